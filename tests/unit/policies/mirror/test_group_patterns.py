"""The rule on groups that a mirror selects."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.group_patterns import POLICY
from settings.mirror_parts import FOLLOWED
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

DEFAULT = "console-consumer-.*,connect-.*,__.*"


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-groups", lambda mirror: kit.flow(mirror).update(groupsExcludePattern="nothing"))


def mirror_with(shape: str, groups: str | None, exclude: str | None) -> kit.Sample:
    mirror = kit.mirror(shape)
    patterns = {"groupsPattern": groups, "groupsExcludePattern": exclude}
    kit.flow(mirror).pop("groupsPattern")
    kit.flow(mirror).update({key: pattern for key, pattern in patterns.items() if pattern is not None})
    return mirror


def lets_in(group: str, got: str) -> str:
    return (
        f"mirror mm2: mirrors[0].groupsExcludePattern must keep out groups such as {group} (got {got}). "
        f"It replaces MirrorMaker's {DEFAULT}: offsets of Connect and of consoles would be copied."
    )


def leaves_out(group: str, got: str) -> str:
    return (
        f"mirror mm2: mirrors[0].groupsExcludePattern must leave {group} in, which groupsPattern lists (got {got}). "
        "Its offsets would not be copied."
    )


EMPTY = (
    "mirror mm2: mirrors[0].groupsPattern must select the groups to sync (got an empty one). "
    "No group would have its offsets on the target; leave the field out for all groups."
)


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("groups", "exclude"),
    [
        (None, None),
        (".*", None),
        (".*", DEFAULT),
        (".*", "console-consumer-.*|connect-.*|__.*|test-.*"),
        ("shop-.*", ""),
        ("shop-.*", "shop-test"),
        ("connect-orders.*|console-consumer-.*", ""),
        ("connect-orders-sink", ""),
        ("shop-.*|billing-.*", "billing-"),
        (r"\R", ""),
    ],
)
def test_groups_that_are_meant_pass(shape: str, groups: str | None, exclude: str | None) -> None:
    assert kit.judge(POLICY, mirror_with(shape, groups, exclude)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(("exclude", "got"), [("test-.*", "test-.*"), ("", "an empty one")])
@pytest.mark.parametrize("groups", [None, ".*", "c.*"])
def test_groups_of_connect_and_consoles_let_in_by_an_exclude_of_ones_own_are_reported(
    shape: str, groups: str | None, exclude: str, got: str
) -> None:
    expected = [lets_in("console-consumer-1", got), lets_in("connect-x", got)]
    assert kit.judge(POLICY, mirror_with(shape, groups, exclude)) == expected


def test_only_the_kind_that_is_let_in_is_reported() -> None:
    mirror = mirror_with(kit.V1, ".*", "console-consumer-.*")
    assert kit.judge(POLICY, mirror) == [lets_in("connect-x", "console-consumer-.*")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_group_that_is_listed_but_excluded_is_reported(shape: str) -> None:
    mirror = mirror_with(shape, "shop,connect-orders-sink", None)
    assert kit.judge(POLICY, mirror) == [leaves_out("connect-orders-sink", f"nothing, which means {DEFAULT}")]
    mirror = mirror_with(shape, "shop,billing", "connect-.*,console-consumer-.*,bil.*")
    assert kit.judge(POLICY, mirror) == [leaves_out("billing", "connect-.*,console-consumer-.*,bil.*")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_that_syncs_groups_must_select_some(shape: str) -> None:
    assert kit.judge(POLICY, mirror_with(shape, "", None)) == [EMPTY]


@pytest.mark.parametrize("value", [None, False, "false"])
def test_a_mirror_that_syncs_no_groups_may_select_none(value: object) -> None:
    mirror = mirror_with(kit.V1, "", None)
    kit.flow(mirror)["checkpointConnector"]["config"]["sync.group.offsets.enabled"] = value
    assert kit.judge(POLICY, mirror) == []


def test_a_follower_needs_groups_too() -> None:
    mirror = mirror_with(kit.V1, "", None).annotated(**FOLLOWED)
    kit.flow(mirror)["checkpointConnector"]["config"]["sync.group.offsets.enabled"] = False
    assert kit.judge(POLICY, mirror) == [EMPTY]


@pytest.mark.parametrize(("groups", "exclude"), [("", None), (".*", ""), ("connect-x", None)])
def test_without_a_checkpoint_connector_no_group_is_copied_and_none_is_judged(groups: str, exclude: str | None) -> None:
    mirror = mirror_with(kit.V1, groups, exclude)
    del kit.flow(mirror)["checkpointConnector"]
    assert kit.judge(POLICY, mirror) == []


def test_another_type_is_ignored() -> None:
    props = mirror_with(kit.V1, "", None).props
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", props)) == []


def test_one_unknown_pattern_hides_no_other_mirror() -> None:
    mirror = mirror_with(kit.V1, "", None)
    mirror.spec["mirrors"].insert(0, {**kit.flow(mirror), "groupsPattern": UNKNOWN_STRING_VALUE})
    assert kit.judge(POLICY, mirror) == [EMPTY.replace("[0]", "[1]")]
