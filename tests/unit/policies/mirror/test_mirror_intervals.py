"""The rule on intervals of a mirror."""

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE

from policies.rules.mirror.mirror_intervals import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror, connector_config

OF_SOURCE = [
    ("sourceConnector", "refresh.topics"),
    ("sourceConnector", "sync.topic.configs"),
    ("sourceConnector", "sync.topic.acls"),
]
OF_CHECKPOINTS = [
    ("checkpointConnector", "refresh.groups"),
    ("checkpointConnector", "emit.checkpoints"),
    ("checkpointConnector", "sync.group.offsets"),
]
HEARTBEATS = ("heartbeatConnector", "emit.heartbeats")
EVERYWHERE = [(shape, *interval) for shape in kit.SHAPES for interval in OF_SOURCE + OF_CHECKPOINTS]
EVERY = EVERYWHERE + [(shape, *HEARTBEATS) for shape in (kit.V1BETA2, kit.EVENT_STREAMS)]


def violation() -> list[kit.Sample]:
    return broken_mirror(
        "mm-interval",
        lambda mirror: connector_config(mirror, "sourceConnector").update({"refresh.topics.interval.seconds": 3600}),
    )


def message(where: str, key: str, got: str, bounds: str = "1 and 600") -> str:
    return (
        f"mirror mm2: {where} {key} must be between {bounds} (got {got}). "
        "Too short burdens both clusters, too long leaves the target behind."
    )


def mirror_with(shape: str, connector: str, key: str, value: object) -> kit.Sample:
    mirror = kit.mirror(shape)
    kit.flow(mirror)[connector]["config"][key] = value
    return mirror


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_intervals_that_are_not_set_pass(shape: str) -> None:
    assert kit.judge(POLICY, kit.mirror(shape)) == []


@pytest.mark.parametrize(("shape", "connector", "timed"), EVERY)
@pytest.mark.parametrize("value", [0, 601, "900", -1, "often", 0.5])
def test_an_interval_out_of_bounds_is_reported(shape: str, connector: str, timed: str, value: object) -> None:
    key = f"{timed}.interval.seconds"
    mirror = mirror_with(shape, connector, key, value)
    assert kit.judge(POLICY, mirror) == [message(f"mirrors[0].{connector}", key, str(value))]


@pytest.mark.parametrize(("shape", "connector", "timed"), EVERY)
@pytest.mark.parametrize("value", [1, "60", 600])
def test_an_interval_within_bounds_passes(shape: str, connector: str, timed: str, value: object) -> None:
    assert kit.judge(POLICY, mirror_with(shape, connector, f"{timed}.interval.seconds", value)) == []


@pytest.mark.parametrize(("shape", "connector", "timed"), EVERY)
def test_what_is_switched_off_has_no_interval(shape: str, connector: str, timed: str) -> None:
    mirror = mirror_with(shape, connector, f"{timed}.interval.seconds", 3600)
    kit.flow(mirror)[connector]["config"][f"{timed}.enabled"] = "false"
    assert kit.judge(POLICY, mirror) == []


def test_only_group_offsets_are_off_unless_set() -> None:
    mirror = mirror_with(kit.V1, "checkpointConnector", "sync.group.offsets.interval.seconds", 3600)
    del kit.flow(mirror)["checkpointConnector"]["config"]["sync.group.offsets.enabled"]
    assert kit.judge(POLICY, mirror) == []
    mirror = mirror_with(kit.V1, "checkpointConnector", "emit.checkpoints.interval.seconds", 3600)
    del kit.flow(mirror)["checkpointConnector"]["config"]["emit.checkpoints.enabled"]
    assert len(kit.judge(POLICY, mirror)) == 1


def test_heartbeats_are_no_field_of_v1() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["heartbeatConnector"] = {"config": {"emit.heartbeats.interval.seconds": 3600}}
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_the_workers_interval_is_judged_at_the_target_in_milliseconds(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.target(mirror)["config"]["offset.flush.interval.ms"] = 10_000
    kit.source(mirror)["config"]["offset.flush.interval.ms"] = 999
    assert kit.judge(POLICY, mirror) == []
    kit.target(mirror)["config"]["offset.flush.interval.ms"] = 999
    where = "target" if shape == kit.V1 else "clusters[es-tgt]"
    assert kit.judge(POLICY, mirror) == [message(where, "offset.flush.interval.ms", "999", "1000 and 600000")]


def test_the_bounds_can_be_configured() -> None:
    key = "refresh.topics.interval.seconds"
    mirror = mirror_with(kit.V1, "sourceConnector", key, 900)
    assert kit.judge(POLICY, mirror, maximumSeconds=900) == []
    mirror = mirror_with(kit.V1, "sourceConnector", key, 5)
    expected = [message("mirrors[0].sourceConnector", key, "5", "10 and 600")]
    assert kit.judge(POLICY, mirror, minimumSeconds=10) == expected


def test_another_type_is_ignored() -> None:
    mirror = mirror_with(kit.V1, "sourceConnector", "refresh.topics.interval.seconds", 3600)
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror.props)) == []


def test_one_unknown_interval_hides_no_other() -> None:
    mirror = mirror_with(kit.V1, "sourceConnector", "refresh.topics.interval.seconds", UNKNOWN_NUMBER_VALUE)
    kit.flow(mirror)["sourceConnector"]["config"]["sync.topic.configs.interval.seconds"] = 0
    expected = [message("mirrors[0].sourceConnector", "sync.topic.configs.interval.seconds", "0")]
    assert kit.judge(POLICY, mirror) == expected


def test_one_unknown_configuration_hides_no_other() -> None:
    mirror = mirror_with(kit.V1, "checkpointConnector", "refresh.groups.interval.seconds", 0)
    kit.flow(mirror)["sourceConnector"]["config"] = UNKNOWN_OBJECT_VALUE
    kit.target(mirror)["config"] = UNKNOWN_OBJECT_VALUE
    expected = [message("mirrors[0].checkpointConnector", "refresh.groups.interval.seconds", "0")]
    assert kit.judge(POLICY, mirror) == expected
