"""The rule on how many brokers, workers and tasks there may be."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE

from policies.rules.size.replica_limits import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

WITH_NODES = [kit.V1BETA2, kit.EVENT_STREAMS]
PREFIX = {kit.V1BETA2: "spec.", kit.EVENT_STREAMS: "spec.strimziOverrides."}


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-workers", lambda mirror: mirror.spec.update(replicas=100))


def message(described: str, field: str, maximum: int, got: int, option: str) -> str:
    return f"{described}: {field} must be <= {maximum} (got {got}). Raise {option} if that many are wanted."


def overrides(cluster: kit.Sample) -> kit.Spec:
    spec: kit.Spec = cluster.spec["strimziOverrides"] if cluster.shape == kit.EVENT_STREAMS else cluster.spec
    return spec


def connect(shape: str, replicas: object) -> kit.Sample:
    return kit.Sample(f"kubernetes:{shape}:KafkaConnect", {"metadata": {"name": "c"}, "spec": {"replicas": replicas}})


def connector(shape: str, tasks: object) -> kit.Sample:
    return kit.Sample(f"kubernetes:{shape}:KafkaConnector", {"metadata": {"name": "sink"}, "spec": {"tasksMax": tasks}})


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_numbers_up_to_the_limits_pass(shape: str) -> None:
    pool = kit.node_pool(shape)
    pool.spec["replicas"] = 9
    mirror = kit.mirror(shape)
    mirror.spec["replicas"] = 10
    kit.flow(mirror)["sourceConnector"]["tasksMax"] = 32
    samples = [pool, mirror, kit.cluster(shape), connect(shape, 10), connector(shape, 32), connector(shape, None)]
    assert [message for sample in samples for message in kit.judge(POLICY, sample)] == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_node_pool_with_more_nodes_is_reported(shape: str) -> None:
    pool = kit.node_pool(shape)
    pool.spec["replicas"] = 10
    assert kit.judge(POLICY, pool) == [message("node pool dual", "spec.replicas", 9, 10, "maximumBrokers")]


@pytest.mark.parametrize("shape", WITH_NODES)
@pytest.mark.parametrize("part", ["kafka", "zookeeper"])
def test_a_cluster_with_more_nodes_is_reported_where_the_api_has_them(shape: str, part: str) -> None:
    cluster = kit.cluster(shape)
    overrides(cluster)[part]["replicas"] = 33
    field = f"{PREFIX[shape]}{part}.replicas"
    assert kit.judge(POLICY, cluster) == [message("cluster rt-inventory-stg", field, 9, 33, "maximumBrokers")]


def test_a_node_pool_inside_event_streams_is_reported() -> None:
    cluster = kit.cluster(kit.EVENT_STREAMS)
    overrides(cluster)["nodePools"] = [{"name": "brokers", "replicas": 12}]
    field = "spec.strimziOverrides.nodePools[brokers].replicas"
    assert kit.judge(POLICY, cluster) == [message("cluster rt-inventory-stg", field, 9, 12, "maximumBrokers")]


def test_replicas_are_no_field_of_a_v1_cluster_and_therefore_not_judged() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["replicas"] = 33
    assert kit.judge(POLICY, cluster) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_more_workers_are_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    mirror.spec["replicas"] = 11
    assert kit.judge(POLICY, mirror) == [message("mirror mm2", "spec.replicas", 10, 11, "maximumWorkers")]
    expected = [message("Connect cluster c", "spec.replicas", 10, 11, "maximumWorkers")]
    assert kit.judge(POLICY, connect(shape, 11)) == expected


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("part", ["sourceConnector", "checkpointConnector"])
def test_more_tasks_of_a_mirror_are_reported(shape: str, part: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)[part]["tasksMax"] = 33
    assert kit.judge(POLICY, mirror) == [message("mirror mm2", f"mirrors[0].{part}.tasksMax", 32, 33, "maximumTasks")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_more_tasks_of_a_connector_are_reported(shape: str) -> None:
    assert kit.judge(POLICY, connector(shape, 64)) == [
        message("connector sink", "spec.tasksMax", 32, 64, "maximumTasks")
    ]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_tasks_of_heartbeats_are_reported_where_the_api_has_them(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["heartbeatConnector"] = {"tasksMax": 33}
    field = "mirrors[0].heartbeatConnector.tasksMax"
    expected = [] if shape == kit.V1 else [message("mirror mm2", field, 32, 33, "maximumTasks")]
    assert kit.judge(POLICY, mirror) == expected


def test_the_limits_can_be_configured() -> None:
    pool, mirror = kit.node_pool(kit.V1), kit.mirror(kit.V1)
    assert kit.judge(POLICY, pool, maximumBrokers=2) == [
        message("node pool dual", "spec.replicas", 2, 3, "maximumBrokers")
    ]
    assert kit.judge(POLICY, mirror, maximumWorkers=1, maximumTasks=1) == [
        message("mirror mm2", "spec.replicas", 1, 2, "maximumWorkers"),
        message("mirror mm2", "mirrors[0].sourceConnector.tasksMax", 1, 2, "maximumTasks"),
    ]
    pool.spec["replicas"] = 50
    assert kit.judge(POLICY, pool, maximumBrokers=50) == []


def test_another_type_is_ignored() -> None:
    pool = kit.node_pool(kit.V1)
    pool.spec["replicas"] = 50
    assert kit.judge(POLICY, kit.Sample("kubernetes:apps/v1:StatefulSet", pool.props)) == []


def test_one_unknown_number_hides_no_other() -> None:
    mirror = kit.mirror(kit.V1)
    mirror.spec["replicas"] = UNKNOWN_NUMBER_VALUE
    kit.flow(mirror)["sourceConnector"]["tasksMax"] = 33
    expected = [message("mirror mm2", "mirrors[0].sourceConnector.tasksMax", 32, 33, "maximumTasks")]
    assert kit.judge(POLICY, mirror) == expected
