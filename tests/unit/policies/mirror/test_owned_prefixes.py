"""The rule on prefixes that a line of business owns."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.owned_prefixes import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

OWNERS = {"retail(-.*)?": ["retail.", "shop."], "logistics": ["logistics."]}
GROUP_OWNERS = {"retail": ["retail-"]}

CONFIGURATION = {"owners": {"mm-owned": ["orders."]}}


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-owned", lambda mirror: kit.flow(mirror).update(topicsPattern="items"))


def mirror_with(shape: str, topics: str = r"retail\..*", groups: str = "retail-.*", name: str = "retail") -> kit.Sample:
    mirror = kit.mirror(shape, name)
    kit.flow(mirror).update(topicsPattern=topics, groupsPattern=groups)
    return mirror


def beyond(got: str) -> str:
    return (
        f"mirror retail: mirrors[0].topicsPattern must spell out an owned prefix first (got {got}, "
        "allowed retail., shop.). It may take topics of another line of business."
    )


def beyond_groups(got: str) -> str:
    return (
        f"mirror retail: mirrors[0].groupsPattern must spell out an owned prefix first (got {got}, "
        "allowed retail-). It may take groups of another line of business."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    "topics",
    [
        r"retail\..*",
        r"retail\.orders,shop\.[a-z]+",
        r"(retail|shop)\..*",
        r"\Qretail.\E.*",
        r"^retail\.(orders|returns)$",
        r"retail\..+\.eu|",
        "",
    ],
)
def test_patterns_that_begin_with_an_owned_prefix_pass(shape: str, topics: str) -> None:
    assert kit.judge(POLICY, mirror_with(shape, topics), owners=OWNERS, groupOwners=GROUP_OWNERS) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    "topics",
    [
        ".*",
        "retail..*",
        r".*retail\..*",
        r"logistics\..*",
        "retail",
        r"(retail|logistics)\..*",
        r"(?i)retail\..*",
        r"(?!x)retail\..*",
        "retail.*",
        r"retail\.?orders",
        r"retail\Q.\E*",
        r"[a-z&&[^x]]+",
    ],
)
def test_what_may_go_beyond_the_prefixes_is_reported(shape: str, topics: str) -> None:
    assert kit.judge(POLICY, mirror_with(shape, topics), owners=OWNERS) == [beyond(topics)]


def test_only_alternatives_that_go_beyond_are_reported() -> None:
    mirror = mirror_with(kit.V1, r"retail\..*|logistics\.orders,shop\.x,items")
    assert kit.judge(POLICY, mirror, owners=OWNERS) == [beyond(r"logistics\.orders"), beyond("items")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_without_patterns_takes_everything(shape: str) -> None:
    mirror = mirror_with(shape)
    del kit.flow(mirror)["topicsPattern"]
    del kit.flow(mirror)["groupsPattern"]
    assert kit.judge(POLICY, mirror, owners=OWNERS, groupOwners=GROUP_OWNERS) == [
        beyond("nothing, which means .*"),
        beyond_groups("nothing, which means .*"),
    ]


def test_topics_in_the_connectors_own_configuration_are_judged_too() -> None:
    mirror = mirror_with(kit.V1)
    kit.flow(mirror).pop("topicsPattern")
    kit.flow(mirror)["sourceConnector"]["config"]["topics"] = "items"
    assert kit.judge(POLICY, mirror, owners=OWNERS) == [beyond("items")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_groups_are_judged_by_owners_of_their_own(shape: str) -> None:
    mirror = mirror_with(shape, groups="retail-.*|.*")
    assert kit.judge(POLICY, mirror, owners=OWNERS) == []
    assert kit.judge(POLICY, mirror, groupOwners=GROUP_OWNERS) == [beyond_groups(".*")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_that_nobody_owns_is_reported(shape: str) -> None:
    mirror = mirror_with(shape, name="mm2")
    assert kit.judge(POLICY, mirror, owners=OWNERS, groupOwners=GROUP_OWNERS) == [
        "mirror mm2: name must be one that owns topics (got mm2, allowed retail(-.*)?, logistics). "
        "Nobody answers for what it copies.",
        "mirror mm2: name must be one that owns groups (got mm2, allowed retail). Nobody answers for what it copies.",
    ]


def test_an_owner_must_match_the_whole_name() -> None:
    assert kit.judge(POLICY, mirror_with(kit.V1, name="retail-2"), owners={"retail": ["retail."]}) == [
        "mirror retail-2: name must be one that owns topics (got retail-2, allowed retail). "
        "Nobody answers for what it copies."
    ]
    assert kit.judge(POLICY, mirror_with(kit.V1, name="retail-2"), owners=OWNERS) == []


def test_nothing_is_judged_while_there_are_no_owners() -> None:
    assert kit.judge(POLICY, mirror_with(kit.V1, ".*", ".*")) == []


def test_an_owner_of_everything_and_one_of_nothing() -> None:
    mirror = mirror_with(kit.V1, "items|")
    assert kit.judge(POLICY, mirror, owners={"retail": [""]}) == []
    assert kit.judge(POLICY, mirror, owners={"retail": []}) == [beyond("items").replace("retail., shop.", "none")]


def test_every_owner_that_matches_the_mirror_counts() -> None:
    mirror = mirror_with(kit.V1, r"retail\..*|items\..*")
    assert kit.judge(POLICY, mirror, owners={"retail": ["retail."], ".*": ["items."]}) == []


def test_owners_that_are_no_expressions_are_reported() -> None:
    assert kit.judge(POLICY, mirror_with(kit.V1), owners={"(retail": ["retail."]}) == [
        "mirror retail: option owners must have regular expressions as keys (got (retail: missing ), unterminated "
        "subpattern at position 0)."
    ]


def test_what_java_refuses_is_left_to_the_rule_on_syntax() -> None:
    assert kit.judge(POLICY, mirror_with(kit.V1, "(retail"), owners=OWNERS) == []


@pytest.mark.parametrize("connector", ["sourceConnector", "checkpointConnector"])
def test_what_no_connector_copies_is_not_judged(connector: str) -> None:
    mirror = mirror_with(kit.V1, ".*", ".*")
    del kit.flow(mirror)[connector]
    left = [beyond_groups(".*")] if connector == "sourceConnector" else [beyond(".*")]
    assert kit.judge(POLICY, mirror, owners=OWNERS, groupOwners=GROUP_OWNERS) == left


def test_another_type_is_ignored() -> None:
    other = kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror_with(kit.V1, ".*").props)
    assert kit.judge(POLICY, other, owners=OWNERS) == []


def test_one_unknown_pattern_hides_no_other() -> None:
    mirror = mirror_with(kit.V1, UNKNOWN_STRING_VALUE, ".*")
    mirror.spec["mirrors"].append({**kit.flow(mirror), "topicsPattern": "items"})
    assert kit.judge(POLICY, mirror, owners=OWNERS, groupOwners=GROUP_OWNERS) == [
        beyond("items").replace("[0]", "[1]"),
        beyond_groups(".*"),
        beyond_groups(".*").replace("[0]", "[1]"),
    ]
