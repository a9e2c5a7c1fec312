"""The rule on CPU and memory of brokers, mirrors and Connect."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policies.rules.security.resources_set import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

ALL = "requests.cpu, requests.memory, limits.memory"
BEFORE_V1 = [kit.V1BETA2, kit.EVENT_STREAMS]


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-resources", lambda mirror: mirror.spec.pop("resources"))


def message(described: str, where: str, missing: str) -> str:
    return (
        f"{described}: {where}.resources must set requests of cpu and memory and a limit of memory "
        f"(got no {missing}). Otherwise the pods can starve, be evicted first, or take the memory of their neighbours."
    )


def place(shape: str, part: str) -> str:
    return f"spec.strimziOverrides.{part}" if shape == kit.EVENT_STREAMS else f"spec.{part}"


def zookeeper(cluster: kit.Sample) -> Any:
    return (cluster.spec["strimziOverrides"] if cluster.shape == kit.EVENT_STREAMS else cluster.spec)["zookeeper"]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_stack_with_all_of_them_passes(shape: str) -> None:
    assert kit.judge_stack(POLICY, [kit.cluster(shape), kit.node_pool(shape), kit.mirror(shape)]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, ALL),
        ({"requests": {"cpu": "1", "memory": "2Gi"}}, "limits.memory"),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, "requests.memory, limits.memory"),
        ({"requests": {"memory": "2Gi"}, "limits": {"memory": "2Gi"}}, "requests.cpu"),
    ],
)
def test_what_a_mirror_lacks_is_reported_at_once(shape: str, given: kit.Spec, missing: str) -> None:
    mirror = kit.mirror(shape)
    mirror.spec["resources"] = given
    assert kit.judge_stack(POLICY, [mirror]) == [message("mirror mm2", "spec", missing)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_what_has_limits_alone_requests_as_much(shape: str) -> None:
    mirror = kit.mirror(shape)
    mirror.spec["resources"] = {"limits": {"cpu": 2, "memory": "2Gi"}}
    assert kit.judge_stack(POLICY, [mirror]) == []


@pytest.mark.parametrize("shape", BEFORE_V1)
def test_brokers_and_zookeeper_of_a_cluster_without_pools_are_judged(shape: str) -> None:
    cluster = kit.cluster(shape)
    del kit.brokers(cluster)["resources"], zookeeper(cluster)["resources"]
    described = f"cluster {kit.NAMESPACE}"
    assert kit.judge_stack_by_urn(POLICY, [cluster]) == [
        (message(described, place(shape, "kafka"), ALL), cluster.urn),
        (message(described, place(shape, "zookeeper"), ALL), cluster.urn),
    ]


def test_a_cluster_of_v1_has_no_nodes_of_its_own() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["replicas"] = 3
    cluster.spec["zookeeper"] = {"replicas": 3}
    assert kit.judge_stack(POLICY, [cluster]) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_pool_that_lacks_a_limit_is_reported(shape: str) -> None:
    pool = kit.node_pool(shape)
    del pool.spec["resources"]["limits"]
    expected = [message("node pool dual", "spec", "limits.memory")]
    assert kit.judge_stack(POLICY, [kit.cluster(shape), pool]) == expected
    assert kit.judge_stack(POLICY, [pool]) == expected


@pytest.mark.parametrize("shape", BEFORE_V1)
def test_before_v1_a_pool_inherits_from_its_cluster(shape: str) -> None:
    cluster, pool = kit.cluster(shape), kit.node_pool(shape)
    del pool.spec["resources"]
    assert kit.judge_stack(POLICY, [cluster, pool]) == []
    del kit.brokers(cluster)["resources"]
    assert kit.judge_stack(POLICY, [cluster, pool]) == [message("node pool dual", "spec", ALL)]


@pytest.mark.parametrize("shape", BEFORE_V1)
@pytest.mark.parametrize("key", ["name", "namespace"])
def test_a_pool_whose_cluster_is_not_in_the_stack_may_inherit_and_is_not_judged(shape: str, key: str) -> None:
    cluster, pool = kit.cluster(shape), kit.node_pool(shape)
    del pool.spec["resources"], kit.brokers(cluster)["resources"]
    cluster.props["metadata"][key] = "elsewhere"
    described = "cluster elsewhere" if key == "name" else f"cluster {kit.NAMESPACE}"
    assert kit.judge_stack(POLICY, [cluster, pool]) == [message(described, place(shape, "kafka"), ALL)]


def test_a_pool_of_v1_inherits_nothing() -> None:
    cluster, pool = kit.cluster(kit.V1), kit.node_pool(kit.V1)
    del pool.spec["resources"]
    kit.brokers(cluster)["resources"] = kit.RESOURCES
    expected = [message("node pool dual", "spec", ALL)]
    assert kit.judge_stack(POLICY, [cluster, pool]) == expected
    assert kit.judge_stack(POLICY, [pool]) == expected


@pytest.mark.parametrize("shape", BEFORE_V1)
def test_brokers_that_pools_replace_are_not_judged(shape: str) -> None:
    cluster = kit.cluster(shape)
    del kit.brokers(cluster)["resources"]
    assert kit.judge_stack(POLICY, [cluster, kit.node_pool(shape)]) == []
    del kit.brokers(cluster)["replicas"]
    assert kit.judge_stack(POLICY, [cluster]) == []


def test_pools_inside_event_streams_are_judged_and_inherit() -> None:
    cluster = kit.cluster(kit.EVENT_STREAMS)
    cluster.spec["strimziOverrides"]["nodePools"] = [
        {"name": "own", "replicas": 3, "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}},
        {"name": "inherits", "replicas": 3},
    ]
    where = "spec.strimziOverrides.nodePools"
    own = message(f"cluster {kit.NAMESPACE}", f"{where}[own]", "limits.memory")
    assert kit.judge_stack(POLICY, [cluster]) == [own]
    del kit.brokers(cluster)["resources"]
    inherits = message(f"cluster {kit.NAMESPACE}", f"{where}[inherits]", ALL)
    assert kit.judge_stack(POLICY, [cluster]) == [own, inherits]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_connect_is_judged(shape: str) -> None:
    connect = kit.Sample(f"kubernetes:{shape}:KafkaConnect", {"metadata": {"name": "sink"}, "spec": {"replicas": 1}})
    assert kit.judge_stack(POLICY, [connect]) == [message("Connect cluster sink", "spec", ALL)]


def test_another_type_is_ignored() -> None:
    bridge = kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaBridge", {"metadata": {"name": "b"}, "spec": {}})
    assert kit.judge_stack(POLICY, [bridge]) == []


@pytest.mark.parametrize("shape", BEFORE_V1)
def test_unknown_resources_of_brokers_hide_nothing_of_zookeeper_and_mirrors(shape: str) -> None:
    cluster, mirror = kit.cluster(shape), kit.mirror(shape)
    kit.brokers(cluster)["resources"] = UNKNOWN_OBJECT_VALUE
    del zookeeper(cluster)["resources"]
    mirror.spec["resources"] = {"limits": {"memory": UNKNOWN_STRING_VALUE}}
    assert kit.judge_stack(POLICY, [cluster, mirror]) == [
        message(f"cluster {kit.NAMESPACE}", place(shape, "zookeeper"), ALL),
        message("mirror mm2", "spec", "requests.cpu"),
    ]
