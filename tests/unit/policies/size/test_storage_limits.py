"""The rule on how big disks may be."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_STRING_VALUE

from policies.rules.size.storage_limits import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_pool

WITH_NODES = [kit.V1BETA2, kit.EVENT_STREAMS]
PREFIX = {kit.V1BETA2: "spec.", kit.EVENT_STREAMS: "spec.strimziOverrides."}
POOL = "node pool dual"
CLUSTER = "cluster rt-inventory-stg"


def violation() -> list[kit.Sample]:
    return broken_pool("huge", lambda pool: pool.spec["storage"].update(size="100Ti"))


def too_big(described: str, where: str, got: str, maximum: int = 4096) -> str:
    return (
        f"{described}: {where}.size must be <= {maximum}Gi (got {got}). "
        "Raise maximumGi if it is meant: a volume cannot be made smaller again."
    )


def too_much(described: str, where: str, got: str, replicas: int = 3, maximum: int = 20480) -> str:
    return (
        f"{described}: {where}.storage of {replicas} replicas must be <= {maximum}Gi together "
        f"(got {got}). Raise maximumTotalGi if it is meant."
    )


def pool(shape: str, *sizes: object, replicas: int = 3) -> kit.Sample:
    """A node pool with one disk, or with JBOD of several."""
    sample = kit.node_pool(shape)
    volumes = [{"id": index, "type": "persistent-claim", "size": size} for index, size in enumerate(sizes)]
    sample.spec.update(
        replicas=replicas, storage={"type": "jbod", "volumes": volumes} if len(sizes) > 1 else volumes[0]
    )
    return sample


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("size", ["100Gi", "4Ti", "4096Gi", "4T", "1.5Ti", "4398046511104", 1073741824, "500G", "9K"])
def test_disks_up_to_the_limit_pass(shape: str, size: object) -> None:
    assert kit.judge(POLICY, pool(shape, size)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    "size", ["5Ti", "4097Gi", "4.1Ti", "5T", "4398046511105", "4500G", "4194305Mi", "4294967297Ki"]
)
def test_a_bigger_disk_is_reported(shape: str, size: str) -> None:
    assert kit.judge(POLICY, pool(shape, size)) == [too_big(POOL, "spec.storage", size)]


@pytest.mark.parametrize("size", ["1Pi", "1P", "1E", "1Ei", "5000000M", "5000000000k"])
def test_every_unit_is_read(size: str) -> None:
    assert kit.judge(POLICY, pool(kit.V1, size, replicas=1), maximumTotalGi=2**31) == [
        too_big(POOL, "spec.storage", size)
    ]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("size", ["100GB", "100 Gi", "lots", "", "-1Gi", "1i", "1ki.", "1e", "1e3Gi", "1e999"])
def test_a_size_that_cannot_be_read_is_reported(shape: str, size: str) -> None:
    expected = f"{POOL}: spec.storage.size must be a quantity (got {size}). Write it as 100Gi."
    assert kit.judge(POLICY, pool(shape, size)) == [expected]


@pytest.mark.parametrize("shape", WITH_NODES)
@pytest.mark.parametrize("part", ["kafka", "zookeeper"])
def test_disks_of_a_cluster_are_judged_where_the_api_has_them(shape: str, part: str) -> None:
    cluster = kit.cluster(shape)
    spec = cluster.spec["strimziOverrides"] if shape == kit.EVENT_STREAMS else cluster.spec
    spec[part]["storage"]["size"] = "5Ti"
    assert kit.judge(POLICY, cluster) == [too_big(CLUSTER, f"{PREFIX[shape]}{part}.storage", "5Ti")]


def test_disks_of_a_node_pool_inside_event_streams_are_judged() -> None:
    cluster = kit.cluster(kit.EVENT_STREAMS)
    big = {"type": "persistent-claim", "size": "4Ti"}
    cluster.spec["strimziOverrides"]["nodePools"] = [{"name": "brokers", "replicas": 6, "storage": big}]
    where = "spec.strimziOverrides.nodePools[brokers]"
    assert kit.judge(POLICY, cluster) == [too_much(CLUSTER, where, "24576Gi", replicas=6)]


def test_storage_is_no_field_of_a_v1_cluster_and_therefore_not_judged() -> None:
    cluster = kit.cluster(kit.V1)
    kit.brokers(cluster).update(replicas=3, storage={"type": "persistent-claim", "size": "lots"})
    assert kit.judge(POLICY, cluster) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_each_volume_of_jbod_storage_is_judged(shape: str) -> None:
    assert kit.judge(POLICY, pool(shape, "100Gi", "5Ti")) == [too_big(POOL, "spec.storage.volumes[1]", "5Ti")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_all_disks_of_a_node_set_are_added_up(shape: str) -> None:
    assert kit.judge(POLICY, pool(shape, "4Ti", "1Ti", replicas=4)) == []
    assert kit.judge(POLICY, pool(shape, "4Ti", "1Ti", "500M", replicas=4)) == [
        too_much(POOL, "spec", "20481.9Gi", replicas=4)
    ]


def test_ephemeral_storage_and_missing_fields_say_nothing() -> None:
    sample = kit.node_pool(kit.V1)
    sample.spec["storage"] = {"type": "ephemeral", "sizeLimit": "9Ti"}
    assert kit.judge(POLICY, sample) == []
    sample.spec["storage"] = {"type": "persistent-claim"}
    assert kit.judge(POLICY, sample) == []
    del sample.spec["replicas"], sample.spec["storage"]
    assert kit.judge(POLICY, sample) == []


def test_the_limits_can_be_configured() -> None:
    assert kit.judge(POLICY, pool(kit.V1, "9Ti"), maximumGi=9216, maximumTotalGi=27648) == []
    assert kit.judge(POLICY, pool(kit.V1, "100Gi"), maximumGi=99, maximumTotalGi=299) == [
        too_big(POOL, "spec.storage", "100Gi", 99),
        too_much(POOL, "spec", "300Gi", maximum=299),
    ]


def test_another_type_is_ignored() -> None:
    claim = pool(kit.V1, "9Ti")
    assert kit.judge(POLICY, kit.Sample("kubernetes:core/v1:PersistentVolumeClaim", claim.props)) == []


def test_one_unknown_value_hides_no_other() -> None:
    sample = pool(kit.V1, UNKNOWN_STRING_VALUE, "5Ti", "4Ti")
    sample.spec["storage"]["volumes"][0]["id"] = UNKNOWN_NUMBER_VALUE
    assert kit.judge(POLICY, sample) == [
        too_big(POOL, "spec.storage.volumes[1]", "5Ti"),
        too_much(POOL, "spec", "27648Gi"),
    ]
    sample.spec["replicas"] = UNKNOWN_NUMBER_VALUE
    assert kit.judge(POLICY, sample) == [too_big(POOL, "spec.storage.volumes[1]", "5Ti")]


@pytest.mark.parametrize(
    ("size", "fits"), [("1e12", True), ("4.3E+12", True), ("1e13", False), (".5Ti", True), ("5E", False)]
)
def test_a_size_may_have_an_exponent_as_kubernetes_reads_it(size: str, fits: bool) -> None:
    expected = [] if fits else [too_big(POOL, "spec.storage", size)]
    assert [reported for reported in kit.judge(POLICY, pool(kit.V1, size)) if "together" not in reported] == expected
