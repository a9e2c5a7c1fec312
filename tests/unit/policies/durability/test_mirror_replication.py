"""The rule on what a mirror creates on the target."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE

from policies.rules.durability.mirror_replication import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror, connector_config

OF_CONNECTORS = [
    ("sourceConnector", "replication.factor"),
    ("sourceConnector", "offset-syncs.topic.replication.factor"),
    ("checkpointConnector", "checkpoints.topic.replication.factor"),
]
STORAGE = [f"{topic}.storage.replication.factor" for topic in ("config", "offset", "status")]


def violation() -> list[kit.Sample]:
    return broken_mirror(
        "mm-factor", lambda mirror: connector_config(mirror, "sourceConnector").update({"replication.factor": 1})
    )


def message(where: str, key: str, got: str) -> str:
    return (
        f"mirror mm2: {where} {key} must be >= 3 (got {got}). "
        "With fewer, the loss of one broker can lose the records of such a topic."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_with_every_factor_three_passes(shape: str) -> None:
    assert kit.judge(POLICY, kit.mirror(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(("connector", "key"), OF_CONNECTORS)
def test_one_low_factor_of_a_connector_is_reported(shape: str, connector: str, key: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)[connector]["config"][key] = 1
    assert kit.judge(POLICY, mirror) == [message(f"mirrors[0].{connector}", key, "1")]


@pytest.mark.parametrize("shape", [kit.V1BETA2, kit.EVENT_STREAMS])
def test_a_low_factor_of_heartbeats_is_reported_where_the_api_has_them(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["heartbeatConnector"]["config"]["heartbeats.topic.replication.factor"] = "2"
    expected = [message("mirrors[0].heartbeatConnector", "heartbeats.topic.replication.factor", "2")]
    assert kit.judge(POLICY, mirror) == expected


def test_heartbeats_of_v1_are_no_field_and_therefore_not_judged() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["heartbeatConnector"] = {"config": {"heartbeats.topic.replication.factor": 1}}
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("key", STORAGE)
def test_one_low_factor_of_connects_storage_is_reported(shape: str, key: str) -> None:
    mirror = kit.mirror(shape)
    kit.target(mirror)["config"][key] = 2
    where = "target" if shape == kit.V1 else "clusters[es-tgt]"
    assert kit.judge(POLICY, mirror) == [message(where, key, "2")]


@pytest.mark.parametrize("shape", [kit.V1BETA2, kit.EVENT_STREAMS])
def test_storage_factors_of_the_source_cluster_decide_nothing(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.source(mirror)["config"]["config.storage.replication.factor"] = 1
    assert kit.judge(POLICY, mirror) == []


def test_the_factor_of_mirrored_topics_is_two_unless_set() -> None:
    mirror = kit.mirror(kit.V1)
    del kit.flow(mirror)["sourceConnector"]["config"]["replication.factor"]
    expected = [message("mirrors[0].sourceConnector", "replication.factor", "nothing, which means 2")]
    assert kit.judge(POLICY, mirror) == expected


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_factors_left_to_the_brokers_and_kafkas_defaults_pass(shape: str) -> None:
    mirror = kit.mirror(shape)
    for connector, key in OF_CONNECTORS:
        kit.flow(mirror)[connector]["config"][key] = -1
    for key in STORAGE:
        del kit.target(mirror)["config"][key]
    assert kit.judge(POLICY, mirror) == []


def test_the_minimum_can_be_configured() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["sourceConnector"]["config"]["replication.factor"] = 1
    assert kit.judge(POLICY, mirror, minimum=1) == []


def test_another_type_is_ignored() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["sourceConnector"]["config"]["replication.factor"] = 1
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror.props)) == []


def test_one_unknown_factor_hides_no_other() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["sourceConnector"]["config"]["replication.factor"] = UNKNOWN_NUMBER_VALUE
    kit.flow(mirror)["checkpointConnector"]["config"]["checkpoints.topic.replication.factor"] = 1
    expected = [message("mirrors[0].checkpointConnector", "checkpoints.topic.replication.factor", "1")]
    assert kit.judge(POLICY, mirror) == expected


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("connector", [UNKNOWN_OBJECT_VALUE, {"config": UNKNOWN_OBJECT_VALUE}])
def test_an_unknown_connector_hides_no_other(shape: str, connector: object) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["sourceConnector"] = connector
    kit.flow(mirror)["checkpointConnector"]["config"]["checkpoints.topic.replication.factor"] = 1
    expected = [message("mirrors[0].checkpointConnector", "checkpoints.topic.replication.factor", "1")]
    assert kit.judge(POLICY, mirror) == expected


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_unknown_workers_hide_no_connector(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.target(mirror)["config"] = UNKNOWN_OBJECT_VALUE
    kit.flow(mirror)["sourceConnector"]["config"]["replication.factor"] = 2
    assert kit.judge(POLICY, mirror) == [message("mirrors[0].sourceConnector", "replication.factor", "2")]
