"""The rule on two mirrors that write the same topic."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.mirrors_overlap import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

PREFIXED = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"


def violation() -> list[kit.Sample]:
    return [*broken_mirror("mm-one", lambda mirror: None), *broken_mirror("mm-two", lambda mirror: None)]


def mirror_with(shape: str, name: str, topics: str, **ends: str) -> kit.Sample:
    """A mirror of these topics; `source`, `target` and `alias` replace what the kit's mirror says of its ends."""
    mirror = kit.mirror(shape, name)
    kit.flow(mirror)["topicsPattern"] = topics
    if "source" in ends:
        kit.source(mirror)["bootstrapServers"] = ends["source"]
    if "target" in ends:
        kit.target(mirror)["bootstrapServers"] = ends["target"]
    if "alias" in ends:
        kit.source(mirror)["alias"] = ends["alias"]
        if shape != kit.V1:
            kit.flow(mirror)["sourceCluster"] = ends["alias"]
    if "policy" in ends:
        kit.flow(mirror)["sourceConnector"]["config"]["replication.policy.class"] = ends["policy"]
    if "separator" in ends:
        kit.flow(mirror)["sourceConnector"]["config"]["replication.policy.separator"] = ends["separator"]
    return mirror


def message(second: str, first: str, shared: str, holds: str = "each record twice") -> str:
    return (
        "mirror b: mirrors[0].topicsPattern must share no topic with mirrors[0] of mirror a "
        f"(got {second} and {first}, which share {shared}). Both write it to the same cluster: it would have {holds}."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_two_mirrors_of_one_source_that_share_a_topic_are_reported_at_the_second(shape: str) -> None:
    one, other = mirror_with(shape, "a", "items|orders"), mirror_with(shape, "b", "orders|stock")
    expected = message("orders|stock", "items|orders", "orders")
    assert kit.judge_stack_by_urn(POLICY, [one, other]) == [(expected, other.urn)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_two_sources_that_share_a_topic_under_its_own_name_are_reported(shape: str) -> None:
    mirrors = [mirror_with(shape, "a", r"orders\..*"), mirror_with(shape, "b", ".*", source="other:9093", alias="x")]
    assert kit.judge_stack(POLICY, mirrors) == [message(".*", r"orders\..*", "orders.", "records of two clusters")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_mirrors_of_different_topics_pass(shape: str) -> None:
    mirrors = [mirror_with(shape, "a", r"retail\..*"), mirror_with(shape, "b", r"logistics\..*")]
    assert kit.judge_stack(POLICY, mirrors) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_mirrors_into_different_clusters_pass(shape: str) -> None:
    mirrors = [mirror_with(shape, "a", "items"), mirror_with(shape, "b", "items", target="other:9093")]
    assert kit.judge_stack(POLICY, mirrors) == []


def test_clusters_with_a_common_address_are_the_same() -> None:
    one = mirror_with(kit.V1, "a", "items", target="one:9093, two:9093")
    other = mirror_with(kit.V1, "b", "items", target="two:9093,three:9093")
    assert kit.judge_stack(POLICY, [one, other]) == [message("items", "items", "items")]


def test_an_address_may_be_spelled_in_other_ways() -> None:
    one = mirror_with(kit.V1, "a", "items", target="kafka-bootstrap:9093")
    other = mirror_with(kit.V1, "b", "items", target="Kafka-bootstrap.rt-inventory-stg.svc.cluster.local:9092")
    assert kit.judge_stack(POLICY, [one, other]) == [message("items", "items", "items")]


@pytest.mark.parametrize("state", ["stopped", "paused"])
def test_a_mirror_that_lies_ready_passes(state: str) -> None:
    one, other = mirror_with(kit.V1, "a", "items"), mirror_with(kit.V1, "b", "items")
    kit.flow(one)["sourceConnector"]["state"] = state
    assert kit.judge_stack(POLICY, [one, other]) == []


def test_targets_without_an_address_are_not_compared() -> None:
    mirrors = [mirror_with(kit.V1, name, "items", target="") for name in "ab"]
    assert kit.judge_stack(POLICY, mirrors) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_names_with_different_aliases_never_collide(shape: str) -> None:
    mirrors = [
        mirror_with(shape, name, "items", alias=name, source=f"{name}:9093", policy=PREFIXED) for name in ("a", "b")
    ]
    assert kit.judge_stack(POLICY, mirrors) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_names_with_the_same_alias_collide(shape: str) -> None:
    mirrors = [mirror_with(shape, name, "items", source=f"{name}:9093", policy=PREFIXED) for name in ("a", "b")]
    assert kit.judge_stack(POLICY, mirrors) == [message("items", "items", "items", "records of two clusters")]


def test_names_with_another_separator_do_not_collide() -> None:
    mirrors = [
        mirror_with(kit.V1, "a", "items", policy=PREFIXED),
        mirror_with(kit.V1, "b", "items", policy=PREFIXED, separator="_"),
    ]
    assert kit.judge_stack(POLICY, mirrors) == []


def test_a_kept_name_and_one_with_an_alias_do_not_collide() -> None:
    mirrors = [mirror_with(kit.V1, "a", "items"), mirror_with(kit.V1, "b", "items", policy=PREFIXED)]
    assert kit.judge_stack(POLICY, mirrors) == []


def test_names_under_a_policy_that_is_not_kafkas_are_not_judged() -> None:
    mirrors = [mirror_with(kit.V1, name, "items", policy="com.example.Policy") for name in "ab"]
    assert kit.judge_stack(POLICY, mirrors) == []


def test_a_topic_that_either_excludes_is_not_shared() -> None:
    one, other = mirror_with(kit.V1, "a", "items"), mirror_with(kit.V1, "b", ".*")
    kit.flow(other)["topicsExcludePattern"] = "items"
    assert kit.judge_stack(POLICY, [one, other]) == []


def test_known_topics_show_an_overlap_that_the_patterns_alone_do_not() -> None:
    one, other = mirror_with(kit.V1, "a", r"orders\..*"), mirror_with(kit.V1, "b", r".*\.eu")
    expected = message(r".*\.eu", r"orders\..*", "orders.eu")
    assert kit.judge_stack(POLICY, [one, other]) == []
    assert kit.judge_stack(POLICY, [one, other], sourceTopics=["orders.eu"]) == [expected]
    assert kit.judge_stack(POLICY, [one, other, kit.topic(kit.V1, "orders.eu")]) == [expected]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_two_flows_of_one_resource_are_compared(shape: str) -> None:
    mirror = mirror_with(shape, "a", "items")
    mirror.spec["mirrors"].append(dict(kit.flow(mirror)))
    expected = message("items", "items", "items").replace("mirror b: mirrors[0]", "mirror a: mirrors[1]")
    assert kit.judge_stack(POLICY, [mirror]) == [expected]


def test_a_mirror_that_copies_no_topics_passes() -> None:
    one, other = mirror_with(kit.V1, "a", "items"), mirror_with(kit.V1, "b", "items")
    del kit.flow(other)["sourceConnector"]
    assert kit.judge_stack(POLICY, [one, other]) == []


def test_another_type_is_ignored() -> None:
    other = kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", kit.mirror(kit.V1, "b").props)
    assert kit.judge_stack(POLICY, [kit.mirror(kit.V1, "a"), other]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_what_is_unknown_hides_no_other_pair(shape: str) -> None:
    unknown = [
        mirror_with(shape, "u", UNKNOWN_STRING_VALUE),
        mirror_with(shape, "v", "items", target=UNKNOWN_STRING_VALUE),
        mirror_with(shape, "w", "items", alias=UNKNOWN_STRING_VALUE, policy=PREFIXED),
    ]
    mirrors = [*unknown, mirror_with(shape, "a", "items"), mirror_with(shape, "b", "items")]
    assert kit.judge_stack(POLICY, mirrors) == [message("items", "items", "items")]
