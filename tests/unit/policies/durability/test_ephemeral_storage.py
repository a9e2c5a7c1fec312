"""The rule on disks that are lost with their pods."""

import pytest
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policies.rules.durability.ephemeral_storage import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_pool

EPHEMERAL = {"type": "ephemeral"}
WITH_DISKS = [kit.V1BETA2, kit.EVENT_STREAMS]


def violation() -> list[kit.Sample]:
    return broken_pool("ephemeral", lambda pool: pool.spec.update(storage={"type": "ephemeral"}))


def message(where: str, described: str = "cluster rt-inventory-stg") -> str:
    return (
        f"{described}: {where}.type must be persistent-claim (got ephemeral). "
        "A pod that is restarted begins with an empty disk; if all are, every record is lost."
    )


def place(shape: str) -> str:
    return "spec.strimziOverrides" if shape == kit.EVENT_STREAMS else "spec"


def parts(cluster: kit.Sample) -> kit.Spec:
    spec: kit.Spec = cluster.spec["strimziOverrides"] if cluster.shape == kit.EVENT_STREAMS else cluster.spec
    return spec


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_persistent_disks_pass(shape: str) -> None:
    assert kit.judge(POLICY, kit.cluster(shape)) == []
    assert kit.judge(POLICY, kit.node_pool(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("storage", [None, {"size": "1Gi"}])
def test_storage_of_no_type_is_not_taken_for_ephemeral(shape: str, storage: object) -> None:
    pool = kit.node_pool(shape)
    pool.spec["storage"] = storage
    assert kit.judge(POLICY, pool) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_an_ephemeral_disk_of_a_node_pool_is_reported(shape: str) -> None:
    pool = kit.node_pool(shape)
    pool.spec["storage"] = EPHEMERAL
    assert kit.judge(POLICY, pool) == [message("spec.storage", "node pool dual")]


@pytest.mark.parametrize("shape", WITH_DISKS)
@pytest.mark.parametrize("part", ["kafka", "zookeeper"])
def test_an_ephemeral_disk_of_a_cluster_is_reported(shape: str, part: str) -> None:
    cluster = kit.cluster(shape)
    parts(cluster)[part]["storage"] = EPHEMERAL
    assert kit.judge(POLICY, cluster) == [message(f"{place(shape)}.{part}.storage")]


def test_a_cluster_of_v1_has_no_disks_of_its_own() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["storage"] = EPHEMERAL
    assert kit.judge(POLICY, cluster) == []


def test_an_ephemeral_disk_of_event_streams_own_node_pool_is_reported() -> None:
    cluster = kit.cluster(kit.EVENT_STREAMS)
    parts(cluster)["nodePools"] = [
        {"name": "brokers", "storage": EPHEMERAL},
        {"name": "controllers", "storage": kit.STORAGE},
    ]
    assert kit.judge(POLICY, cluster) == [message("spec.strimziOverrides.nodePools[brokers].storage")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_every_volume_of_jbod_storage_is_judged(shape: str) -> None:
    pool = kit.node_pool(shape)
    volumes = [{**kit.STORAGE, "id": 0}, {**EPHEMERAL, "id": 7}, EPHEMERAL]
    pool.spec["storage"] = {"type": "jbod", "volumes": volumes}
    assert kit.judge(POLICY, pool) == [
        message("spec.storage.volumes[7]", "node pool dual"),
        message("spec.storage.volumes[2]", "node pool dual"),
    ]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_ephemeral_disks_can_be_allowed(shape: str) -> None:
    pool = kit.node_pool(shape)
    pool.spec["storage"] = EPHEMERAL
    assert kit.judge(POLICY, pool, allowed=True) == []


def test_another_type_is_ignored() -> None:
    pool = kit.node_pool(kit.V1)
    pool.spec["storage"] = EPHEMERAL
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaNodePool", pool.props)) == []


@pytest.mark.parametrize("shape", WITH_DISKS)
@pytest.mark.parametrize(
    "brokers",
    [UNKNOWN_OBJECT_VALUE, {"storage": UNKNOWN_OBJECT_VALUE}, {"storage": {"type": UNKNOWN_STRING_VALUE}}],
)
def test_one_unknown_disk_hides_no_other(shape: str, brokers: object) -> None:
    cluster = kit.cluster(shape)
    parts(cluster).update(kafka=brokers, zookeeper={"storage": EPHEMERAL})
    assert kit.judge(POLICY, cluster) == [message(f"{place(shape)}.zookeeper.storage")]


def test_one_unknown_volume_hides_no_other() -> None:
    pool = kit.node_pool(kit.V1)
    volumes = [{"type": UNKNOWN_STRING_VALUE, "id": 0}, {**EPHEMERAL, "id": UNKNOWN_STRING_VALUE}]
    pool.spec["storage"] = {"type": "jbod", "volumes": volumes}
    assert kit.judge(POLICY, pool) == [message("spec.storage.volumes[1]", "node pool dual")]
