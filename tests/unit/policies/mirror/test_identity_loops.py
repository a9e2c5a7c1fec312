"""The rule on topics that come back under their own names."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.identity_loops import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror, reverse

DEFAULT = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
WITH_CLUSTERS = [kit.V1BETA2, kit.EVENT_STREAMS]
EAST, WEST, NORTH = (f"{site}.example.com:9094" for site in ("east", "west", "north"))


def violation() -> list[kit.Sample]:
    return [*broken_mirror("mm-there", lambda mirror: None), *broken_mirror("mm-back", reverse)]


def message(first: str, back: str, topic: str) -> str:
    name, where = first.split()
    return (
        f"mirror {name}: {where} must not let topics come back under the same name "
        f"(got topics such as {topic}, which come back {back}). "
        "A record would be copied again, without end: prefix the names, or mirror other topics."
    )


def mirror(name: str, source: str, target: str, topics: str | None = "items", shape: str = kit.V1) -> kit.Sample:
    sample = kit.mirror(shape, name)
    kit.source(sample)["bootstrapServers"], kit.target(sample)["bootstrapServers"] = source, target
    kit.flow(sample)["topicsPattern"] = topics
    return sample


def both_ways(shape: str = kit.V1, topics: str | None = "items", back: str | None = "items") -> list[kit.Sample]:
    return [mirror("east", WEST, EAST, topics, shape), mirror("west", EAST, WEST, back, shape)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_single_direction_passes(shape: str) -> None:
    assert kit.judge_stack(POLICY, [kit.mirror(shape)]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_both_directions_are_reported_once_at_the_first_mirror(shape: str) -> None:
    east, west = both_ways(shape)
    expected = message("east mirrors[0]", "by west mirrors[0]", "items")
    for samples in ([east, west], [west, east]):
        assert kit.judge_stack_by_urn(POLICY, samples) == [(expected, east.urn)]


@pytest.mark.parametrize("shape", WITH_CLUSTERS)
def test_both_directions_within_one_resource_are_reported(shape: str) -> None:
    sample = kit.mirror(shape)
    sample.spec["mirrors"].append({**kit.flow(sample), "sourceCluster": "es-tgt", "targetCluster": "es-src"})
    expected = message("mm2 mirrors[0]", "by mm2 mirrors[1]", "items")
    assert kit.judge_stack(POLICY, [sample]) == [expected]


def test_directions_in_two_shapes_are_reported() -> None:
    samples = [both_ways(kit.V1)[0], both_ways(kit.EVENT_STREAMS)[1]]
    assert kit.judge_stack(POLICY, samples) == [message("east mirrors[0]", "by west mirrors[0]", "items")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_prefixed_names_in_either_direction_pass(shape: str) -> None:
    for index in (0, 1):
        samples = both_ways(shape)
        kit.flow(samples[index])["sourceConnector"]["config"]["replication.policy.class"] = DEFAULT
        assert kit.judge_stack(POLICY, samples) == []


@pytest.mark.parametrize(
    ("topics", "back", "topic"),
    [
        ("items|orders", "orders,returns", "orders"),
        (r"orders\..*", ".*", "orders."),
        (".*", ".*", "x"),
        (None, None, "x"),
    ],
)
def test_patterns_that_share_a_name_are_reported(topics: str | None, back: str | None, topic: str) -> None:
    found = kit.judge_stack(POLICY, both_ways(topics=topics, back=back))
    assert found == [message("east mirrors[0]", "by west mirrors[0]", topic)]


@pytest.mark.parametrize(("topics", "back"), [("items", "orders"), (r"east\..*", r"west\..*"), ("", ".*")])
def test_patterns_that_share_no_name_pass_where_that_is_let_be(topics: str, back: str) -> None:
    assert kit.judge_stack(POLICY, both_ways(topics=topics, back=back), disjointDirections=True) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_both_directions_are_reported_even_if_they_share_no_name(shape: str) -> None:
    assert kit.judge_stack(POLICY, both_ways(shape, "items", "orders")) == [
        "mirror east: mirrors[0] must not keep names beside its opposite direction "
        "(got west mirrors[0] back, under kept names too). "
        "Their patterns share no topic yet; one more in either would be copied without end: prefix the names."
    ]


def test_a_direction_that_takes_no_topic_is_none() -> None:
    assert kit.judge_stack(POLICY, both_ways(topics="", back=".*")) == []


@pytest.mark.parametrize("key", ["topicsExcludePattern", "topicsBlacklistPattern"])
def test_what_one_direction_leaves_out_does_not_come_back(key: str) -> None:
    east, west = both_ways(kit.V1BETA2, ".*", r"east\..*")
    kit.flow(east)[key] = r"east\..*"
    assert kit.judge_stack(POLICY, [east, west], disjointDirections=True) == []


def test_what_mirrors_leave_out_unless_reported_does_not_come_back() -> None:
    east, west = both_ways(topics="__private", back="__private")
    assert kit.judge_stack(POLICY, [east, west], disjointDirections=True) == []
    for sample in (east, west):
        kit.flow(sample)["topicsExcludePattern"] = ""
    assert kit.judge_stack(POLICY, [east, west]) == [message("east mirrors[0]", "by west mirrors[0]", "__private")]


def test_topics_of_the_stack_are_tried() -> None:
    east, west = both_ways(topics="[a-z]+-orders", back=".+-orders")
    assert kit.judge_stack(POLICY, [east, west], disjointDirections=True) == []
    topic = kit.topic(kit.V1, "retail-orders")
    assert kit.judge_stack(POLICY, [east, west, topic]) == [
        message("east mirrors[0]", "by west mirrors[0]", "retail-orders")
    ]
    topic.spec["topicName"] = "other"
    assert kit.judge_stack(POLICY, [east, west, topic], disjointDirections=True) == []


def test_a_ring_of_three_is_reported_once() -> None:
    samples = [mirror("a", EAST, WEST), mirror("b", WEST, NORTH, ".*"), mirror("c", NORTH, EAST, "items|orders")]
    assert kit.judge_stack(POLICY, samples) == [message("a mirrors[0]", "by b mirrors[0] and c mirrors[0]", "items")]
    kit.flow(samples[1])["topicsPattern"] = "orders"
    assert kit.judge_stack(POLICY, samples) == []


def test_every_ring_is_reported() -> None:
    samples = [mirror("a", EAST, WEST), mirror("b", WEST, EAST), mirror("c", WEST, NORTH), mirror("d", NORTH, WEST)]
    assert kit.judge_stack(POLICY, samples) == [
        message("a mirrors[0]", "by b mirrors[0]", "items"),
        message("c mirrors[0]", "by d mirrors[0]", "items"),
    ]


def test_a_line_of_clusters_passes() -> None:
    samples = [mirror("a", EAST, WEST), mirror("b", WEST, NORTH), mirror("c", EAST, NORTH)]
    assert kit.judge_stack(POLICY, samples) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_cluster_that_is_its_own_target_is_reported(shape: str) -> None:
    samples = [mirror("mm2", EAST, EAST, shape=shape)]
    assert kit.judge_stack(POLICY, samples) == [message("mm2 mirrors[0]", "for its target is its source", "items")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("East.example.com:9094", " east.example.com:9094 "),
        ("east.example.com:9094,other.example.com:9094", "third.example.com:9094,east.example.com:9094"),
        ("east.example.com.:9094", "EAST.example.com:9094"),
        ("a-kafka-bootstrap", "a-kafka-bootstrap:9092"),
        ("a-kafka-bootstrap:9093", "a-kafka-bootstrap.rt-inventory-stg.svc:9092"),
        ("a-kafka-bootstrap.kafka.svc.cluster.local:9093", "a-kafka-bootstrap.kafka.svc:9093"),
    ],
)
def test_a_cluster_is_known_by_any_spelling_of_an_address(one: str, other: str) -> None:
    samples = [mirror("a", one, WEST), mirror("b", WEST, other)]
    assert len(kit.judge_stack(POLICY, samples)) == 1


@pytest.mark.parametrize(
    "other", ["east.example.com:9095", "east.example.org:9094", "a-kafka-bootstrap.elsewhere.svc:9094"]
)
def test_other_addresses_are_other_clusters(other: str) -> None:
    assert kit.judge_stack(POLICY, [mirror("a", EAST, WEST), mirror("b", WEST, other)]) == []


def test_two_addresses_that_a_third_mirror_brings_together_are_one_cluster() -> None:
    samples = [mirror("a", EAST, WEST), mirror("b", WEST, "alt.example.com:9094")]
    assert kit.judge_stack(POLICY, samples) == []
    samples.append(mirror("c", f"{EAST},alt.example.com:9094", NORTH))
    assert kit.judge_stack(POLICY, samples) == [message("a mirrors[0]", "by b mirrors[0]", "items")]


def test_an_address_that_is_not_known_yet_leaves_the_alias() -> None:
    east, west = both_ways()
    for end in (kit.source(east), kit.target(west)):
        end |= {"bootstrapServers": UNKNOWN_STRING_VALUE, "alias": "west"}
    assert kit.judge_stack(POLICY, [east, west]) == [message("east mirrors[0]", "by west mirrors[0]", "items")]
    kit.target(west)["alias"] = "elsewhere"
    assert kit.judge_stack(POLICY, [east, west], disjointDirections=True) == []
    del kit.target(west)["alias"]
    assert kit.judge_stack(POLICY, [east, west], disjointDirections=True) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_direction_that_does_not_run_passes(shape: str) -> None:
    for state in ("stopped", "paused"):
        east, west = both_ways(shape)
        kit.flow(west)["sourceConnector"]["state"] = state
        assert kit.judge_stack(POLICY, [east, west], disjointDirections=True) == []
    east, west = both_ways(shape)
    west.spec["replicas"] = 0
    assert kit.judge_stack(POLICY, [east, west], disjointDirections=True) == []
    east, west = both_ways(shape)
    del kit.flow(west)["sourceConnector"]
    assert kit.judge_stack(POLICY, [east, west], disjointDirections=True) == []
    east, west = both_ways(shape)
    kit.flow(west)["sourceConnector"] |= {"state": "running", "pause": False}
    assert len(kit.judge_stack(POLICY, [east, west])) == 1
    kit.flow(west)["sourceConnector"] |= {"pause": True}
    assert len(kit.judge_stack(POLICY, [east, west])) == 1


def test_pause_counts_without_a_state_where_the_version_has_it() -> None:
    for shape in kit.SHAPES:
        east, west = both_ways(shape)
        kit.flow(west)["sourceConnector"] |= {"pause": True}
        assert len(kit.judge_stack(POLICY, [east, west])) == (shape == kit.V1)


def test_mirrors_of_one_name_in_two_namespaces_are_two() -> None:
    samples = [mirror("a", EAST, WEST), mirror("b", WEST, EAST), mirror("a", EAST, NORTH), mirror("b", NORTH, EAST)]
    for sample in samples[2:]:
        sample.props["metadata"]["namespace"] = "elsewhere"
    assert kit.judge_stack(POLICY, samples) == [message("a mirrors[0]", "by b mirrors[0]", "items")] * 2


def test_other_types_are_ignored() -> None:
    samples = [kit.Sample("kubernetes:example.com/v1:KafkaMirrorMaker2", sample.props) for sample in both_ways()]
    assert kit.judge_stack(POLICY, samples) == []


def test_one_unknown_pattern_hides_no_other_ring() -> None:
    samples = [*both_ways(), mirror("a", EAST, NORTH), mirror("b", NORTH, EAST)]
    kit.flow(samples[0])["topicsPattern"] = UNKNOWN_STRING_VALUE
    topic = kit.topic(kit.V1)
    topic.spec["topicName"] = UNKNOWN_STRING_VALUE
    assert kit.judge_stack(POLICY, [topic, *samples]) == [message("a mirrors[0]", "by b mirrors[0]", "items")]


def test_blanks_around_the_class_hide_no_identity() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["sourceConnector"]["config"]["replication.policy.class"] += " "
    kit.source(mirror)["bootstrapServers"] = kit.target(mirror)["bootstrapServers"]
    assert len(kit.judge_stack(POLICY, [mirror])) == 1
