"""The rule on excludes that no longer keep out internal topics."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.internal_topics_mirrored import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

EVERY = "__consumer_offsets, __transaction_state, mm2-offset-syncs.x.internal"


def violation() -> list[kit.Sample]:
    return broken_mirror(
        "mm-internal",
        lambda mirror: kit.flow(mirror).update(topicsPattern="[_a-n].*", topicsExcludePattern="nothing"),
    )


def mirror_with(shape: str, topics: str | None, exclude: str | None) -> kit.Sample:
    mirror = kit.mirror(shape)
    patterns = {"topicsPattern": topics, "topicsExcludePattern": exclude}
    kit.flow(mirror).pop("topicsPattern")
    kit.flow(mirror).update({key: pattern for key, pattern in patterns.items() if pattern is not None})
    return mirror


def message(got: str, taken: str) -> str:
    return (
        "mirror mm2: mirrors[0].topicsExcludePattern must keep out internal topics "
        f"(got {got}, which lets in {taken}). It replaces MirrorMaker's mm2.*\\.internal,.*\\.replica,__.*; "
        "only the replication policy still refuses them."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("topics", "exclude"),
    [
        (".*", None),
        (None, None),
        (".*", r"mm2.*\.internal,.*\.replica,__.*"),
        (".*", r"mm2.*\.internal|.*\.replica|__.*|test-.*"),
        (".*", r"__.*,.*[\-\.]internal"),
        ("items,store.inventory,items.inventory", ".apicurio"),
        (r"retail\..*", ""),
        (r"\R", ""),
        ("", ""),
    ],
)
def test_internal_topics_that_are_excluded_or_not_selected_pass(
    shape: str, topics: str | None, exclude: str | None
) -> None:
    assert kit.judge(POLICY, mirror_with(shape, topics, exclude)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("topics", "exclude", "got", "taken"),
    [
        (".*", ".apicurio", ".apicurio", EVERY),
        (None, ".apicurio", ".apicurio", EVERY),
        (".*", "", "an empty one", EVERY),
        (".*", "__.*", "__.*", "mm2-offset-syncs.x.internal"),
        ("_.*|items", "test", "test", "__consumer_offsets, __transaction_state"),
    ],
)
def test_internal_topics_that_are_let_in_are_reported(
    shape: str, topics: str | None, exclude: str, got: str, taken: str
) -> None:
    assert kit.judge(POLICY, mirror_with(shape, topics, exclude)) == [message(got, taken)]


def test_a_mirror_that_copies_no_topics_passes() -> None:
    mirror = mirror_with(kit.V1, ".*", "")
    del kit.flow(mirror)["sourceConnector"]
    assert kit.judge(POLICY, mirror) == []


def test_another_type_is_ignored() -> None:
    props = mirror_with(kit.V1, ".*", "").props
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", props)) == []


def test_one_unknown_pattern_hides_no_other_mirror() -> None:
    mirror = mirror_with(kit.V1, ".*", "")
    mirror.spec["mirrors"].insert(0, {**kit.flow(mirror), "topicsExcludePattern": UNKNOWN_STRING_VALUE})
    assert kit.judge(POLICY, mirror) == [message("an empty one", EVERY).replace("[0]", "[1]")]
