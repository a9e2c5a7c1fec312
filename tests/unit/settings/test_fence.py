"""The fence: who is refused which topics on the side that is not active, and that nobody else is."""

from typing import Any

import pytest

from settings import SettingsError, Stack, hints, parse
from settings.fence import OPERATIONS, application_users, authorization_of, coverage, entries, rules, rules_of
from settings.platform import Platform
from settings.users import Deny

from ...support.component_settings import mirror
from ...support.stack_values import SOURCE, TARGET, Values, with_value

APP = {"name": "app", "acls": [{"type": "topic", "names": ["*"], "operations": ["Read", "Write"]}]}
CLIENTS = {"source": "reader", "target": "writer"}


def target(**of_mirror: Any) -> Stack:
    """A target with an application user, and these settings of its mirror."""
    values = with_value(TARGET, "users/+", APP)
    for key, value in of_mirror.items():
        values = with_value(values, f"mirrors/0/{key}", value)
    return parse(values)


def source(fence: dict[str, Any] | None = None, *users: Values) -> Stack:
    """A source with an application user and others, and this fence."""
    values = SOURCE if fence is None else with_value(SOURCE, "fence", fence)
    for user in (APP, *users):
        values = with_value(values, "users/+", user)
    return parse(values)


def denied(stack: Stack, user: str = "app") -> list[tuple[str, tuple[str, ...]]]:
    """Names that the fence denies a user, by how they match."""
    found = rules(stack.user(user), stack)
    assert all((rule.type, rule.operations, rule.permission) == ("topic", OPERATIONS, "deny") for rule in found)
    return [(rule.match, rule.names) for rule in found]


def test_applications_may_not_write_delete_or_alter_what_a_mirror_brings() -> None:
    assert OPERATIONS == ("Write", "Delete", "Alter")
    assert denied(target()) == [("literal", ("items", "store.inventory"))]


@pytest.mark.parametrize(
    ("acl", "wanted"),
    [
        ({"names": ["items"], "operations": ["Read", "Write"]}, [("literal", ("items",))]),
        ({"names": ["items", "store.inventory"], "operations": ["Read", "Describe"]}, []),
        ({"names": ["store."], "match": "prefix", "operations": ["All"]}, [("literal", ("store.inventory",))]),
        ({"names": ["orders.eu"], "operations": ["Write"]}, [("prefix", ("orders.",))]),
        ({"names": ["orders.eu."], "match": "prefix", "operations": ["Delete"]}, [("prefix", ("orders.",))]),
        ({"names": ["o"], "match": "prefix", "operations": ["Alter"]}, [("prefix", ("orders.",))]),
        ({"names": ["stock."], "match": "prefix", "operations": ["Write"]}, []),
        (
            {"names": ["*"], "operations": ["Write"]},
            [("literal", ("items", "store.inventory")), ("prefix", ("orders.",))],
        ),
    ],
)
def test_who_may_write_nothing_of_a_mirror_is_denied_nothing(acl: dict[str, Any], wanted: Any) -> None:
    values = with_value(TARGET, "users/+", {"name": "one", "acls": [{"type": "topic", **acl}]})
    values = with_value(values, "mirrors/0/topics", ["items", r"store\.inventory", r"orders\..*"])
    assert denied(parse(values), "one") == wanted
    values = with_value(values, "mirrors/0/topics", [".*"])
    writes = {*acl["operations"]} & {"Write", "Delete", "Alter", "All"}
    assert denied(parse(values), "one") == ([("literal", ("*",))] if writes else [])


def test_an_active_target_refuses_nobody() -> None:
    assert denied(target(active="target", state="stopped")) == []


def test_an_open_standby_refuses_nobody_and_is_not_hinted_at() -> None:
    assert denied(target(standby="open")) == []
    assert denied(target(standby="open", naming="prefixed")) == []
    values = with_value(with_value(TARGET, "mirrors/0/topics", ["items|audit"]), "mirrors/0/standby", "open")
    assert not [hint for hint in hints(values, "stg", {"dev": SOURCE}) if "fenced" in hint.message]


def test_remote_topics_with_a_prefix_are_denied_whichever_side_is_active() -> None:
    for active in ("source", "target"):
        found = denied(target(naming="prefixed", active=active))
        assert found == [("literal", ("es-src.items", "es-src.store.inventory"))]


def test_the_users_of_mirrors_are_refused_nothing() -> None:
    assert denied(target(), "writer") == []
    assert [user.name for user in application_users(target())] == ["app"]
    reads = {"name": "mirror", "aclSets": [{"set": "mirror-source", "topics": ["items"], "groups": ["*"]}]}
    fenced = source({"topics": ["items"], "mirrorUsers": ["reader"]}, reads)
    assert [user.name for user in application_users(fenced)] == ["app"]
    assert denied(fenced, "mirror") == denied(fenced, "reader") == []


def test_a_source_refuses_what_its_fence_names_and_nothing_without_one() -> None:
    assert denied(source()) == []
    fenced = source({"topics": ["items", "store.inventory"], "prefixes": ["orders."]})
    assert denied(fenced) == [("literal", ("items", "store.inventory")), ("prefix", ("orders.",))]


def test_what_the_fence_and_a_mirror_both_name_is_denied_once_and_the_fence_comes_first() -> None:
    values = with_value(with_value(TARGET, "users/+", APP), "fence", {"topics": ["audit", "items"]})
    assert denied(parse(values)) == [("literal", ("audit", "items", "store.inventory"))]


@pytest.mark.parametrize("cluster", [{"authorization": "none"}, {"external": {"bootstrapServers": ["cloud:9093"]}}])
def test_where_no_right_is_asked_for_or_granted_no_rule_is_made(cluster: dict[str, Any]) -> None:
    values = with_value(TARGET, "users/+", {"name": "app"})
    if "external" in cluster:
        values = with_value(values, "topics", None)
        values["cluster"] = {"name": "passive", "namespace": "passive", **cluster}
        values["users"] = [{**user, "secret": {"name": "known"}} for user in values["users"]]
    else:
        values["cluster"] |= cluster
    assert denied(parse(values)) == []


def test_prefixed_remote_topics_are_denied_by_their_own_names() -> None:
    found = coverage(mirror(naming="prefixed", topics=["items", r"orders\..*", ".*"]))
    assert (found.topics, found.prefixes, found.without_rule) == (("us.items",), ("us.orders.", "us."), ())


@pytest.mark.parametrize(
    ("topics", "exclude", "named", "prefixes", "without_rule"),
    [
        ([".*"], None, ("*",), (), ()),
        (["items", r"orders\..*"], None, ("items",), ("orders.",), ()),
        (["items|audit"], None, (), (), ("items|audit",)),
        (["items", "audit"], ["aud.*"], ("items",), (), ()),
        ([r"orders\..*"], [r"orders\.local"], (), (), (r"orders\..*",)),
        ([r"orders\..*"], [r"orders\.local\..*"], (), (), (r"orders\..*",)),
        ([r"orders\..*"], [".*-local"], (), (), (r"orders\..*",)),
        ([r"orders\..*"], ["audit", r"stock\..*"], (), ("orders.",), ()),
        ([".*"], ["local"], (), (), (".*",)),
    ],
)
def test_a_rule_is_made_of_names_and_prefixes_and_reaches_no_topic_that_is_not_mirrored(
    topics: list[str], exclude: list[str] | None, named: Any, prefixes: Any, without_rule: Any
) -> None:
    found = coverage(mirror(topics=topics, **({"topicsExclude": exclude} if exclude else {})))
    assert (found.topics, found.prefixes, found.without_rule) == (named, prefixes, without_rule)


def test_a_user_s_own_rights_come_first_and_the_entries_are_what_the_operator_reads() -> None:
    stack = target()
    assert [rule.permission for rule in rules_of(stack.user("app"), stack)] == ["allow", "deny"]
    found = authorization_of(stack.user("app"), stack)
    assert found is not None
    assert found["type"] == "simple"
    assert found["acls"][1:] == [
        {
            "type": "deny",
            "resource": {"type": "topic", "name": name, "patternType": "literal"},
            "operations": ["Write", "Delete", "Alter"],
            "host": "*",
        }
        for name in ("items", "store.inventory")
    ]


def test_a_denial_is_written_in_full_for_a_user_whose_rights_are_not() -> None:
    values = with_value(with_value(TARGET, "users/+", APP), "users/1/configDefaults", False)
    stack = parse(values)
    allowed, denial, _ = (authorization_of(stack.user("app"), stack) or {})["acls"]
    assert "type" not in allowed
    assert denial["type"] == "deny"


def test_before_lists_of_operations_each_is_an_entry_of_its_own() -> None:
    license_ = {"accept": True, "use": "CloudPakForIntegrationNonProduction"}
    platform = Platform.model_validate({"type": "event-streams", "version": "11.0.0", "license": license_})
    denial = Deny(type="topic", names=("items", "audit"), operations=OPERATIONS)
    found = entries(denial, platform, every=True)
    assert [(entry["resource"]["name"], entry["operation"]) for entry in found] == [
        (name, operation) for name in ("items", "audit") for operation in OPERATIONS
    ]


def test_rights_of_a_failback_are_granted_only_while_the_source_is_fenced() -> None:
    back = {"set": "failback", "failbackOf": "mm2", "failbackFrom": "es-tgt", "topics": ["items"], "groups": ["*"]}
    mirrors = {"name": "mirror", "aclSets": [{"set": "mirror-source", "topics": ["items"], "groups": ["*"]}, back]}
    granted = {}
    for name, stack in (("open", source(None, mirrors)), ("fenced", source({"topics": ["items"]}, mirrors))):
        granted[name] = {operation for acl in stack.acls(stack.user("mirror")) for operation in acl.operations}
    assert "Write" not in granted["open"]
    assert {"Write", "Delete", "Create"} <= granted["fenced"]


def test_a_stack_file_may_not_deny() -> None:
    acl = {"type": "topic", "names": ["items"], "operations": ["Write"], "permission": "deny"}
    with pytest.raises(SettingsError, match=r"acls\[0\].permission must be one of the allowed values \(got 'deny'"):
        parse(with_value(TARGET, "users/0/acls", [acl]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (with_value(SOURCE, "fence", {}), "fence.topics: fence: topics or prefixes must be given (got nothing)"),
        (
            with_value(SOURCE, "fence", {"topics": ["items"], "mirrorUsers": ["raeder"]}),
            "fence: mirrorUsers must be this stack's users (got raeder, allowed reader). Did you mean reader?",
        ),
        (
            with_value(
                with_value(with_value(SOURCE, "fence", {"topics": ["items"]}), "users", []),
                "cluster/authorization",
                "none",
            ),
            "fence: fence must not be given where cluster.authorization is none (every user may do everything)",
        ),
        (with_value(SOURCE, "fence", {"topics": ["a b"]}), "must be a name for Kafka"),
    ],
)
def test_a_fence_that_refuses_nobody_is_refused(values: Values, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse(values)
    assert message in str(error.value)


@pytest.mark.parametrize("side", ["source", "target"])
def test_one_user_for_the_mirror_and_applications_is_hinted_at(side: str) -> None:
    clients = {"source": "app", "target": "app", side: CLIENTS[side]}
    values = with_value(with_value(TARGET, "users/+", APP), "mirrors/0/clients", clients)
    found = [hint for hint in hints(values, "stg", {"dev": SOURCE}) if "clients" in hint.key]
    assert [hint.key for hint in found] == [f"mirrors[0].clients.{side}"]
    assert f"user {CLIENTS[side]} serves both the mirror and applications" in found[0].message
    separate = with_value(values, "mirrors/0/clients", {"source": "app", "target": "app"})
    assert not [hint for hint in hints(separate, "stg", {"dev": SOURCE}) if "clients" in hint.key]


def test_a_pattern_that_no_rule_stands_for_is_hinted_at() -> None:
    values = with_value(TARGET, "mirrors/0/topics", ["items", "items|audit"])
    found = [hint for hint in hints(values, "stg", {"dev": SOURCE}) if "fenced" in hint.message]
    assert [hint.key for hint in found] == ["mirrors[0].topics[1]"]
    assert "standby_read_only" in found[0].message
