"""The rule on disks that are deleted with the resource that asked for them."""

import pytest
from pulumi_policy.proxy import UNKNOWN_BOOLEAN_VALUE

from policies.rules.durability.delete_claim import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_pool

DELETED = {**kit.STORAGE, "deleteClaim": True}


def violation() -> list[kit.Sample]:
    return broken_pool("deleted", lambda pool: pool.spec["storage"].update(deleteClaim=True))


def message(where: str, described: str = "cluster rt-inventory-stg") -> str:
    return (
        f"{described}: {where}.deleteClaim must be false (got true). "
        "Whoever deletes the resource deletes its PersistentVolumeClaims and their records too."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    "storage",
    [{"type": "persistent-claim", "size": "1Gi"}, kit.STORAGE, {"type": "ephemeral", "deleteClaim": True}],
)
def test_disks_that_stay_and_disks_without_a_claim_pass(shape: str, storage: object) -> None:
    pool = kit.node_pool(shape)
    pool.spec["storage"] = storage
    assert kit.judge(POLICY, pool) == []
    assert kit.judge(POLICY, kit.cluster(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("value", [True, "true"])
def test_a_deleted_claim_of_a_node_pool_is_reported(shape: str, value: object) -> None:
    pool = kit.node_pool(shape)
    pool.spec["storage"]["deleteClaim"] = value
    assert kit.judge(POLICY, pool) == [message("spec.storage", "node pool dual")]


@pytest.mark.parametrize("shape", [kit.V1BETA2, kit.EVENT_STREAMS])
@pytest.mark.parametrize("part", ["kafka", "zookeeper"])
def test_a_deleted_claim_of_a_cluster_is_reported(shape: str, part: str) -> None:
    cluster = kit.cluster(shape)
    spec = cluster.spec["strimziOverrides"] if shape == kit.EVENT_STREAMS else cluster.spec
    spec[part]["storage"] = DELETED
    prefix = "spec.strimziOverrides" if shape == kit.EVENT_STREAMS else "spec"
    assert kit.judge(POLICY, cluster) == [message(f"{prefix}.{part}.storage")]


def test_a_cluster_of_v1_has_no_disks_of_its_own() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster)["storage"] = DELETED
    assert kit.judge(POLICY, cluster) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_deleted_claim_of_one_volume_is_reported(shape: str) -> None:
    pool = kit.node_pool(shape)
    pool.spec["storage"] = {"type": "jbod", "volumes": [{**kit.STORAGE, "id": 0}, {**DELETED, "id": 1}]}
    assert kit.judge(POLICY, pool) == [message("spec.storage.volumes[1]", "node pool dual")]


def test_another_type_is_ignored() -> None:
    pool = kit.node_pool(kit.V1)
    pool.spec["storage"] = DELETED
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaNodePool", pool.props)) == []


def test_one_unknown_value_hides_no_other() -> None:
    cluster = kit.cluster(kit.V1BETA2)
    cluster.spec["kafka"]["storage"]["deleteClaim"] = UNKNOWN_BOOLEAN_VALUE
    cluster.spec["zookeeper"]["storage"] = DELETED
    assert kit.judge(POLICY, cluster) == [message("spec.zookeeper.storage")]
