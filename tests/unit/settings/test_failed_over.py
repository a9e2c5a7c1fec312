"""Topics that are failed over by themselves: what a mirror leaves out, who may write them, and what may be declared."""

from typing import Any

import pytest

from contract import java_patterns
from settings import SettingsError, Stack, parse
from settings.fence import coverage, named_instead, rules
from settings.mirror_parts import GROUPS_EXCLUDE, TOPICS_EXCLUDE, exactly, exclusions, groups_left_out, topics_left_out

from ...support.component_settings import mirror
from ...support.stack_values import TARGET, with_value

APP = {"name": "app", "acls": [{"type": "topic", "names": ["*"], "operations": ["Read", "Write"]}]}


def target(**of_mirror: Any) -> Stack:
    values = with_value(TARGET, "users/+", APP)
    for key, value in of_mirror.items():
        values = with_value(values, f"mirrors/0/{key}", value)
    return parse(values)


def denied(stack: Stack) -> list[tuple[str, tuple[str, ...]]]:
    return [(rule.match, rule.names) for rule in rules(stack.user("app"), stack)]


@pytest.mark.parametrize("name", ["items", "items.inventory", "a-b_c", "a,b|c", "in (a) [b] {2} *+?^$\\", "größe-é"])
def test_a_name_is_written_as_an_expression_that_matches_it_alone_in_a_list(name: str) -> None:
    pattern = exactly(name)
    assert java_patterns.entry_problem(pattern) is None
    assert java_patterns.matches([pattern], name)
    assert not java_patterns.matches([pattern], name.replace(".", "x") if "." in name else f"{name}s")


def test_a_mirror_leaves_out_what_is_failed_over_besides_what_it_excludes() -> None:
    moved = {"topics": ["items.inventory"], "groups": ["orders"]}
    of = mirror(topics=["items", "items.inventory"], topicsExclude=["old"], groupsExclude=["tmp"], failedOver=moved)
    assert topics_left_out(of) == ("old", r"items\.inventory")
    assert groups_left_out(of) == ("tmp", "orders")
    assert exclusions(of, ",") == {
        "topicsExcludePattern": r"old,items\.inventory",
        "groupsExcludePattern": "tmp,orders",
    }


def test_kafkas_own_exclusions_stay_where_a_mirror_names_none() -> None:
    of = mirror(topics=["items", "stock"], topicsExclude=[], groupsExclude=[], failedOver={"topics": ["items"]})
    assert topics_left_out(of) == (*TOPICS_EXCLUDE, "items")
    assert groups_left_out(of) == ()
    moved = {"topics": ["items"], "groups": ["orders"]}
    of = mirror(topics=["items", "stock"], topicsExclude=[], groupsExclude=[], failedOver=moved)
    assert groups_left_out(of) == (*GROUPS_EXCLUDE, "orders")


def test_applications_may_write_a_topic_at_the_target_once_it_is_no_longer_on_its_way() -> None:
    names = ["items", "store.inventory"]
    assert denied(target(topics=names)) == [("literal", ("items", "store.inventory"))]
    on_its_way = {"topics": ["items"], "pending": ["items"]}
    assert denied(target(topics=names, failedOver=on_its_way)) == [("literal", ("items", "store.inventory"))]
    assert denied(target(topics=names, failedOver={"topics": ["items"]})) == [("literal", ("store.inventory",))]


@pytest.mark.parametrize(("pattern", "others"), [(r"items\..*", ("items.b",)), (".*", ("items.b", "stock"))])
def test_the_others_of_a_prefix_are_denied_by_name_for_kafka_knows_no_exception(
    pattern: str, others: tuple[str, ...]
) -> None:
    of = mirror(topics=[pattern, r"orders\..*"], failedOver={"topics": ["items.a"]})
    names = ["items.a", "items.b", "stock", "__consumer_offsets"]
    assert named_instead(of, ["items.a"], names) == others
    split = {"topics": ["items.a"], "readOnly": list(others)}
    found = coverage(mirror(topics=[pattern, r"orders\..*"], failedOver=split))
    assert (found.topics, found.prefixes, found.without_rule) == (others, ("orders.",), (pattern,))


def test_names_that_no_prefix_stands_for_need_no_others() -> None:
    assert named_instead(mirror(topics=["items", "stock"]), ["items"], ["items", "stock"]) == ()


def test_with_a_prefix_in_the_names_nothing_opens_at_the_target() -> None:
    before = target(topics=["items", "stock"], naming="prefixed")
    after = target(topics=["items", "stock"], naming="prefixed", failedOver={"topics": ["items"]})
    assert denied(before) == denied(after) == [("literal", ("es-src.items", "es-src.stock"))]


@pytest.mark.parametrize(
    ("of_mirror", "message"),
    [
        ({"failedOver": {"topics": ["other"]}}, "failedOver.topics must be topics of the mirror (got other)"),
        (
            {"failedOver": {"topics": ["items"], "pending": ["stock"]}},
            "failedOver.pending must be some of its topics (got stock)",
        ),
        (
            {"failedOver": {"topics": ["items"]}, "active": "target", "state": "stopped"},
            "failedOver must not be given while target is active (got items)",
        ),
    ],
)
def test_what_cannot_be_is_refused(of_mirror: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        target(topics=["items", "stock"], **of_mirror)
    assert message in str(caught.value)


def test_an_up_verifies_a_mirror_unless_topics_are_on_their_way() -> None:
    assert mirror(topics=["items", "stock"], failedOver={"topics": ["items"]}).is_verified
    assert not mirror(topics=["items", "stock"], failedOver={"topics": ["items"], "pending": ["items"]}).is_verified
