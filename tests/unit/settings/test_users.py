"""Users and their rights: where credentials lie, and that a ready-made set grants exactly what is needed."""

from typing import Any

import pytest

from settings import parse
from settings.acl_sets import literal_topics
from settings.users import User

from ...support.stack_values import TARGET, with_value

READ = ("Read", "Describe", "DescribeConfigs")
OWN = ("Create", "Read", "Write", "Describe", "DescribeConfigs")
COPY = ("Create", "Read", "Write", "Alter", "Describe", "AlterConfigs", "DescribeConfigs")
Right = tuple[str, tuple[str, ...], str, tuple[str, ...]]
STORAGE = ("mm2-configs", "mm2-offsets", "mm2-status")
INTERNAL = (*STORAGE, "mm2-offset-syncs.es-src.internal", "es-src.checkpoints.internal")


ASKED = ("cluster", (), "literal", ("Describe",))
"""By which the verification asks who may write."""


def rights(entry: dict[str, Any], *, fenced: bool = False, **mirror: Any) -> list[Right]:
    """All rights of a user with one set, beside a mirror with these keys."""
    values = with_value(TARGET, "users/0/aclSets", [entry])
    if fenced:
        values = with_value(values, "fence", {"topics": ["items"]})
    for key, value in mirror.items():
        values = with_value(values, f"mirrors/0/{key}", value)
    stack = parse(values)
    return [(acl.type, acl.names, acl.match, acl.operations) for acl in stack.acls(stack.user("writer"))]


def test_a_consumer_reads_its_topics_in_its_group() -> None:
    assert rights({"set": "consumer", "topics": ["items", "audit"], "groups": ["app"]}) == [
        ("topic", ("items", "audit"), "literal", ("Read", "Describe")),
        ("group", ("app",), "literal", ("Read", "Describe")),
    ]


def test_a_producer_writes_its_topics() -> None:
    assert rights({"set": "producer", "topics": ["items."], "match": "prefix"}) == [
        ("topic", ("items.",), "prefix", ("Write", "Describe")),
    ]


def test_a_producer_in_transactions_may_use_its_ids() -> None:
    assert rights({"set": "producer", "topics": ["items"], "transactionalIds": ["shop"]})[1:] == [
        ("transactionalId", ("shop",), "literal", ("Write", "Describe")),
    ]


def test_the_source_of_another_stacks_mirror_is_read_and_nothing_else() -> None:
    assert rights({"set": "mirror-source", "topics": ["items"], "groups": ["*"]}) == [
        ("topic", ("items",), "literal", READ),
        ("group", ("*",), "literal", ("Describe",)),
        ("topic", ("__consumer_offsets",), "literal", ("Describe",)),
    ]


def test_offset_syncs_that_are_kept_at_the_source_are_written_there() -> None:
    entry = {"set": "mirror-source", "topics": ["items"], "offsetSyncsFor": "es-tgt"}
    assert rights(entry)[1:] == [("topic", ("mm2-offset-syncs.es-tgt.internal",), "literal", OWN)]


def test_the_separator_of_another_stacks_mirror_is_part_of_the_names_that_are_granted() -> None:
    entry = {"set": "mirror-source", "topics": ["items"], "offsetSyncsFor": "es-tgt", "separator": ""}
    names = ("mm2-offset-syncses-tgtinternal", "mm2-offset-syncs.es-tgt.internal")  # since Kafka 3.1, and before
    assert rights(entry)[1:] == [("topic", names, "literal", OWN)]
    back = {"set": "failback", "failbackOf": "mm2", "failbackFrom": "es-tgt", "topics": ["items"], "groups": ["app"]}
    internal = ("mm2-offset-syncs_es-tgt_internal", "es-tgt_checkpoints_internal")
    internal += ("mm2-offset-syncs.es-tgt.internal", "es-tgt.checkpoints.internal")
    assert ("topic", internal, "literal", OWN) in rights({**back, "separator": "_"}, fenced=True)


def test_a_target_grants_the_names_of_the_mirrors_own_version() -> None:
    found = rights({"set": "mirror-target", "mirror": "mm2"}, separator="", version="3.0.1")
    assert (
        "topic",
        (*STORAGE, "mm2-offset-syncs.es-src.internal", "es-src.checkpoints.internal"),
        "literal",
        OWN,
    ) in found
    found = rights({"set": "mirror-target", "mirror": "mm2"}, separator="", version="3.2.3")
    assert ("topic", (*STORAGE, "mm2-offset-syncses-srcinternal", "es-srccheckpointsinternal"), "literal", OWN) in found


def test_a_canary_is_written_to_its_topic_alone() -> None:
    entry = {"set": "mirror-source", "topics": ["items"], "canary": "canary"}
    assert rights(entry)[1:] == [("topic", ("canary",), "literal", ("Write", "Describe"))]


def test_rights_are_read_where_they_are_copied() -> None:
    entry = {"set": "mirror-source", "topics": ["items"], "syncTopicAcls": True}
    assert rights(entry)[1:] == [("cluster", (), "literal", ("Describe",))]


def test_rights_are_read_at_a_source_that_is_fenced() -> None:
    entry = {"set": "mirror-source", "topics": ["items"]}
    assert rights(entry, fenced=True) == [*rights(entry), ASKED]


def test_a_mirrors_target_gets_the_copies_and_the_mirrors_own_topics() -> None:
    assert rights({"set": "mirror-target", "mirror": "mm2"}) == [
        ("topic", ("items", "store.inventory"), "literal", COPY),
        ("topic", INTERNAL, "literal", OWN),
        ("group", ("mm2", "*"), "literal", ("Read", "Describe")),
        ASKED,
    ]


@pytest.mark.parametrize(
    ("patterns", "granted"),
    [
        (["billing"], [(("mm2", "billing"), "literal")]),
        (["retail-.*", "billing"], [(("mm2", "billing"), "literal"), (("retail-",), "prefix")]),
        (["retail-.*", ".*"], [(("mm2", "*"), "literal")]),
        (["(retail|billing)-app"], [(("mm2", "*"), "literal")]),
    ],
)
def test_a_mirrors_target_may_use_the_groups_that_its_patterns_stand_for(
    patterns: list[str], granted: list[tuple[tuple[str, ...], str]]
) -> None:
    found = rights({"set": "mirror-target", "mirror": "mm2"}, groups=patterns)
    assert found[2:] == [*(("group", names, match, ("Read", "Describe")) for names, match in granted), ASKED]


def test_copies_with_the_aliass_prefix_are_granted_by_their_own_names() -> None:
    found = rights({"set": "mirror-target", "mirror": "mm2"}, naming="prefixed", topics=["items", "orders.*", ".*"])
    assert found[:2] == [
        ("topic", ("es-src.items",), "literal", COPY),
        ("topic", ("es-src.orders", "es-src."), "prefix", COPY),
    ]


def test_every_topic_is_granted_by_the_star() -> None:
    assert rights({"set": "mirror-target", "mirror": "mm2"}, topics=[".*"])[0] == ("topic", ("*",), "literal", COPY)


def test_offset_syncs_at_the_source_are_no_topic_of_the_target() -> None:
    found = rights({"set": "mirror-target", "mirror": "mm2"}, offsetSyncsLocation="source")
    assert found[1] == ("topic", (*STORAGE, "es-src.checkpoints.internal"), "literal", OWN)


def test_a_mirror_without_checkpoints_sets_no_groups() -> None:
    found = rights({"set": "mirror-target", "mirror": "mm2"}, emitCheckpoints=False, syncGroupOffsets=False)
    assert found[2:] == [("group", ("mm2",), "literal", ("Read", "Describe")), ASKED]


def test_only_the_named_groups_are_set() -> None:
    found = rights({"set": "mirror-target", "mirror": "mm2", "groups": ["app"]}, groupId="workers")
    assert found[2:] == [("group", ("workers", "app"), "literal", ("Read", "Describe")), ASKED]


def test_exactly_once_needs_connects_transactions() -> None:
    found = rights({"set": "mirror-target", "mirror": "mm2"}, exactlyOnce=True)
    assert found[3:] == [("transactionalId", ("connect-cluster-mm2", "mm2"), "prefix", ("Write", "Describe")), ASKED]


def test_a_follower_makes_its_own_topic_and_needs_nothing_else() -> None:
    without = rights({"set": "mirror-target", "mirror": "mm2"})
    found = rights({"set": "mirror-target", "mirror": "mm2"}, exactOffsets={"image": "follower:1.0.0"})
    (own,) = [each for each in found if each not in without]
    assert own == ("topic", (*without[1][1], "mm2-follow.es-src.internal"), "literal", OWN)
    assert rights({"set": "mirror-source", "mirror": "mm2"}, reverse={"topics": ["audit"]}) == rights(
        {"set": "mirror-source", "mirror": "mm2"}, reverse={"topics": ["audit"]}, exactOffsets={"image": "f:1"}
    )


def test_copied_rights_are_set_on_the_cluster() -> None:
    found = rights({"set": "mirror-target", "mirror": "mm2"}, syncTopicAcls=True)
    assert found[3:] == [("cluster", (), "literal", ("Alter", "Describe"))]


def test_the_target_of_another_stacks_mirror_gets_what_is_listed() -> None:
    assert rights({"set": "mirror-target", "topics": ["audit"], "groups": ["app"]}) == [
        ("topic", ("audit",), "literal", COPY),
        ("group", ("app",), "literal", ("Read", "Describe")),
    ]


def test_the_way_back_reads_this_stacks_own_topics() -> None:
    entry = {"set": "mirror-source", "mirror": "mm2"}
    found = rights(entry, naming="prefixed", reverse={"topics": ["audit"]}, offsetSyncsLocation="source")
    assert found == [
        ("topic", ("audit",), "literal", READ),
        ("group", ("*",), "literal", ("Describe",)),
        ("topic", ("__consumer_offsets",), "literal", ("Describe",)),
        ("topic", ("mm2-offset-syncs.es-src.internal",), "literal", OWN),
    ]


def test_a_way_back_writes_topics_keeps_its_own_and_sets_groups() -> None:
    entry = {"set": "failback", "failbackOf": "mm2", "failbackFrom": "es-tgt", "topics": ["items"], "groups": ["app"]}
    written = ("Create", "Read", "Write", "Delete", "Alter", "Describe", "DescribeConfigs")
    found = [
        ("topic", ("items",), "literal", written),
        ("topic", ("mm2-failback-",), "prefix", OWN),
        ("topic", ("mm2-offset-syncs.es-tgt.internal", "es-tgt.checkpoints.internal"), "literal", OWN),
        ("group", ("mm2-failback", "app"), "literal", ("Read", "Describe")),
    ]
    assert rights(entry, fenced=True) == found
    assert rights(entry) == [], "the source is active: nothing is written there"
    ids = ["mm2-failback", "connect-cluster-mm2-failback"]
    assert rights({**entry, "transactionalIds": ids}, fenced=True)[4:] == [
        ("transactionalId", tuple(ids), "prefix", ("Write", "Describe"))
    ]


def test_a_way_back_whose_offset_syncs_are_kept_here_writes_them() -> None:
    failback = {"active": "target", "state": "stopped", "failback": "copying", "offsetSyncsLocation": "source"}
    found = rights({"set": "mirror-target", "mirror": "mm2"}, **failback)
    assert (
        "topic",
        (*STORAGE, "es-src.checkpoints.internal", "mm2-offset-syncs.es-src.internal"),
        "literal",
        OWN,
    ) in found


def test_a_right_that_is_listed_and_in_a_set_is_there_once() -> None:
    acl = {"type": "topic", "names": ["items"], "operations": ["Read", "Describe"]}
    entry = {"set": "consumer", "topics": ["items"], "groups": ["app"]}
    stack = parse(with_value(with_value(TARGET, "users/0/acls", [acl]), "users/0/aclSets", [entry, entry]))
    assert [acl.type for acl in stack.acls(stack.user("writer"))] == ["topic", "group"]


@pytest.mark.parametrize(
    ("pattern", "names", "prefixes"),
    [
        ("items", ["items"], []),
        (r"items\.eu", ["items.eu"], []),
        ("items.eu", ["items.eu"], []),
        ("items.*", [], ["items"]),
        (r"items\..*", [], ["items."]),
        (".*", [], [""]),
    ],
)
def test_plain_patterns_stand_for_names_and_prefixes(pattern: str, names: list[str], prefixes: list[str]) -> None:
    assert literal_topics([pattern]) == (names, prefixes)


@pytest.mark.parametrize("pattern", ["a|b", "[ab]", "a+", ".*b", "a.+", "(a)"])
def test_other_patterns_stand_for_no_rights(pattern: str) -> None:
    with pytest.raises(ValueError, match="^" + "".join(f"[{c}]" if c != "[" else r"\[" for c in pattern)):
        literal_topics([pattern])


@pytest.mark.parametrize(
    ("values", "login", "principal", "secret"),
    [
        ({}, "app", "User:app", "app-credentials"),
        ({"authentication": "tls"}, "app", "User:CN=app", "app-credentials"),
        ({"username": "token", "secret": {"name": "key"}}, "token", "User:token", "key"),
    ],
)
def test_a_user_logs_in_by_its_name_unless_the_cluster_calls_it_otherwise(
    values: dict[str, Any], login: str, principal: str, secret: str
) -> None:
    user = User.model_validate({"name": "app", **values})
    assert (user.login, user.principal, user.credentials_secret) == (login, principal, secret)
