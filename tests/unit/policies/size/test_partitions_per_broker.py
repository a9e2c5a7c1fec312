"""The rule on how many replicas of partitions a broker carries."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_STRING_VALUE

from policies.rules.size.partitions_per_broker import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_cluster, changed, in_cluster


def violation() -> list[kit.Sample]:
    return [
        *broken_cluster("dense", lambda cluster: None),
        *changed(in_cluster(kit.node_pool(kit.V1), "dense-stg"), "dense", lambda pool: None),
        *[
            topic
            for number in range(40)
            for topic in changed(
                in_cluster(kit.topic(kit.V1), "dense-stg"),
                f"dense.{number}",
                lambda topic: topic.spec.update(partitions=120),
            )
        ],
    ]


def message(per_broker: int, replicas: int, brokers: int, maximum: int = 4000) -> str:
    return (
        f"cluster rt-inventory-stg: replicas of partitions per broker must be <= {maximum} "
        f"(got {per_broker}: {replicas} on {brokers} brokers). Lower the topics' partitions, or add brokers."
    )


def topic(shape: str, partitions: object, replicas: object = 3, name: str = "items") -> kit.Sample:
    sample = kit.topic(shape, name)
    sample.spec.update(partitions=partitions, replicas=replicas)
    return sample


def cluster(shape: str) -> list[kit.Sample]:
    """A cluster of three brokers."""
    return [kit.cluster(shape), *([kit.node_pool(shape)] if shape == kit.V1 else [])]


def pool(shape: str, replicas: object, *roles: str) -> kit.Sample:
    sample = kit.node_pool(shape)
    sample.spec.update(replicas=replicas, roles=[*roles])
    return sample


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_as_many_as_the_limit_pass_and_more_do_not(shape: str) -> None:
    assert kit.judge_stack(POLICY, [*cluster(shape), topic(shape, 4000)]) == []
    samples = [*cluster(shape), topic(shape, 4000), topic(shape, 1, 2, "orders")]
    assert kit.judge_stack_by_urn(POLICY, samples) == [(message(4001, 12002, 3), samples[0].urn)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_only_nodes_with_the_role_broker_count_and_pools_come_before_the_clusters_own_nodes(shape: str) -> None:
    pools = [pool(shape, 2, "broker"), pool(shape, 4, "broker", "controller"), pool(shape, 5, "controller")]
    samples = [kit.cluster(shape), *pools, topic(shape, 10, 3)]
    assert kit.judge_stack(POLICY, samples, maximum=5) == []
    assert kit.judge_stack(POLICY, samples, maximum=4) == [message(5, 30, 6, 4)]


def test_node_pools_inside_event_streams_count() -> None:
    event_streams = kit.cluster(kit.EVENT_STREAMS)
    event_streams.spec["strimziOverrides"]["nodePools"] = [
        {"name": "brokers", "replicas": 5, "roles": ["broker"]},
        {"name": "controllers", "replicas": 3, "roles": ["controller"]},
    ]
    samples = [event_streams, topic(kit.EVENT_STREAMS, 10, 3)]
    assert kit.judge_stack(POLICY, samples, maximum=5) == [message(6, 30, 5, 5)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_stack_that_does_not_say_how_many_brokers_there_are_is_not_judged(shape: str) -> None:
    assert kit.judge_stack(POLICY, [topic(shape, 9999)], maximum=1) == []
    without_nodes = kit.cluster(shape)
    kit.brokers(without_nodes).pop("replicas", None)
    assert kit.judge_stack(POLICY, [without_nodes, topic(shape, 9999)], maximum=1) == []


def test_replicas_are_no_field_of_a_v1_cluster() -> None:
    kafka = kit.cluster(kit.V1)
    kit.brokers(kafka)["replicas"] = 1
    assert kit.judge_stack(POLICY, [kafka, topic(kit.V1, 9999)], maximum=1) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_what_a_topic_leaves_open_is_the_clusters_default(shape: str) -> None:
    samples = [*cluster(shape), topic(shape, None, -1)]
    config = kit.brokers(samples[0])["config"]
    config.update({"num.partitions": "8", "default.replication.factor": 2})
    assert kit.judge_stack(POLICY, samples, maximum=5) == [message(6, 16, 3, 5)]
    del config["num.partitions"], config["default.replication.factor"]
    del samples[-1].spec["replicas"]
    assert kit.judge_stack(POLICY, [*samples, topic(shape, 3, None, "orders")], maximum=1) == [message(2, 4, 3, 1)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_topics_and_pools_of_other_clusters_do_not_count(shape: str) -> None:
    key = "eventstreams.ibm.com/cluster" if shape == kit.EVENT_STREAMS else "strimzi.io/cluster"
    others = [topic(shape, 99), topic(shape, 99), topic(shape, 99), pool(shape, 1, "broker")]
    for other in (others[0], others[3]):
        other.props["metadata"]["labels"][key] = "spare"
    others[1].props["metadata"]["namespace"] = "spare"
    del others[2].props["metadata"]["labels"]
    assert kit.judge_stack(POLICY, [*cluster(shape), *others], maximum=1) == []


def test_topics_count_where_the_topic_operator_looks_for_them() -> None:
    samples = [*cluster(kit.V1), topic(kit.V1, 2)]
    samples[0].spec["entityOperator"] = {"topicOperator": {"watchedNamespace": "topics"}}
    samples[2].props["metadata"]["namespace"] = "topics"
    assert kit.judge_stack(POLICY, samples, maximum=1) == [message(2, 6, 3, 1)]
    samples[1].props["metadata"]["namespace"] = "topics"
    assert kit.judge_stack(POLICY, samples, maximum=1) == []


def test_another_type_is_ignored() -> None:
    users = [kit.Sample(kit.user(kit.V1).type_, topic(kit.V1, 99).props)]
    assert kit.judge_stack(POLICY, [*cluster(kit.V1), *users], maximum=1) == []


def test_an_unknown_topic_is_left_out_and_an_unknown_pool_leaves_the_cluster_to_the_update() -> None:
    unlabelled = topic(kit.V1, 99)
    unlabelled.props["metadata"]["labels"]["strimzi.io/cluster"] = UNKNOWN_STRING_VALUE
    samples = [*cluster(kit.V1), topic(kit.V1, UNKNOWN_NUMBER_VALUE), unlabelled, topic(kit.V1, 2)]
    assert kit.judge_stack(POLICY, samples, maximum=1) == [message(2, 6, 3, 1)]
    samples[1].spec["replicas"] = UNKNOWN_NUMBER_VALUE
    assert kit.judge_stack(POLICY, samples, maximum=1) == []
