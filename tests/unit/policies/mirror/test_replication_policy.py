"""The rule on how a mirror's connectors name topics."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.mirror.replication_policy import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror, connector_config

CLASS, SEPARATOR = "replication.policy.class", "replication.policy.separator"
DEFAULT = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
STRIMZIS_IDENTITY = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
WITH_HEARTBEATS = [kit.V1BETA2, kit.EVENT_STREAMS]


def violation() -> list[kit.Sample]:
    return broken_mirror(
        "mm-policy", lambda mirror: connector_config(mirror, "checkpointConnector").pop("replication.policy.class")
    )


def message(key: str, got: str, allowed: str, connector: str = "checkpointConnector") -> str:
    return (
        f"mirror mm2: mirrors[0].{connector} {key} must be that of sourceConnector (got {got}, allowed {allowed}). "
        "The connectors would search for each other's topics under the wrong names."
    )


def config(mirror: kit.Sample, connector: str = "checkpointConnector") -> kit.Spec:
    found: kit.Spec = kit.flow(mirror)[connector]["config"]
    return found


def prefixed(shape: str) -> kit.Sample:
    mirror = kit.mirror(shape)
    for connector in ("sourceConnector", "checkpointConnector", "heartbeatConnector"):
        kit.flow(mirror).get(connector, {}).get("config", {}).pop(CLASS, None)
    return mirror


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_one_policy_for_all_passes_whether_set_or_not(shape: str) -> None:
    assert kit.judge(POLICY, kit.mirror(shape)) == []
    mirror = prefixed(shape)
    assert kit.judge(POLICY, mirror) == []
    config(mirror)[CLASS] = DEFAULT
    config(mirror)[SEPARATOR] = "."
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_checkpoints_under_another_policy_are_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    config(mirror)[CLASS] = DEFAULT
    assert kit.judge(POLICY, mirror) == [message(CLASS, DEFAULT, IDENTITY)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_policy_that_only_one_connector_sets_is_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    del config(mirror)[CLASS]
    assert kit.judge(POLICY, mirror) == [message(CLASS, f"nothing, which means {DEFAULT}", IDENTITY)]
    mirror = kit.mirror(shape)
    del config(mirror, "sourceConnector")[CLASS]
    assert message(CLASS, IDENTITY, f"nothing, which means {DEFAULT}") in kit.judge(POLICY, mirror)


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_another_separator_is_reported(shape: str) -> None:
    mirror = prefixed(shape)
    config(mirror, "sourceConnector")[SEPARATOR] = "_"
    assert kit.judge(POLICY, mirror) == [message(SEPARATOR, "nothing, which means .", "_")]
    config(mirror)[SEPARATOR] = "_"
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_with_identity_the_separator_counts_since_kafka_3_1(shape: str) -> None:
    mirror = kit.mirror(shape)
    config(mirror)[SEPARATOR] = ""
    assert kit.judge(POLICY, mirror) == [message(SEPARATOR, "an empty one", "nothing, which means .")]
    mirror.spec["version"] = "3.1.0"
    assert len(kit.judge(POLICY, mirror)) == 1
    mirror.spec["version"] = "3.0.1"
    assert kit.judge(POLICY, mirror) == []
    del mirror.spec["version"]
    assert len(kit.judge(POLICY, mirror)) == 1


def test_before_kafka_3_1_the_separator_counts_with_prefixes() -> None:
    mirror = prefixed(kit.EVENT_STREAMS)
    mirror.spec["version"] = "3.0.1"
    config(mirror)[SEPARATOR] = "_"
    assert kit.judge(POLICY, mirror) == [message(SEPARATOR, "_", "nothing, which means .")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_strimzis_identity_and_kafkas_are_alike(shape: str) -> None:
    mirror = kit.mirror(shape)
    config(mirror)[CLASS] = STRIMZIS_IDENTITY
    assert kit.judge(POLICY, mirror) == []


def test_an_identity_of_someone_else_is_another_policy() -> None:
    mirror = kit.mirror(kit.V1)
    config(mirror)[CLASS] = "com.example.IdentityReplicationPolicy"
    assert kit.judge(POLICY, mirror) == [message(CLASS, "com.example.IdentityReplicationPolicy", IDENTITY)]


@pytest.mark.parametrize("shape", WITH_HEARTBEATS)
def test_heartbeats_under_another_policy_are_reported_where_the_api_has_them(shape: str) -> None:
    mirror = kit.mirror(shape)
    config(mirror, "heartbeatConnector")[CLASS] = DEFAULT
    assert kit.judge(POLICY, mirror) == [message(CLASS, DEFAULT, IDENTITY, "heartbeatConnector")]


@pytest.mark.parametrize("shape", WITH_HEARTBEATS)
def test_heartbeats_that_set_no_policy_pass(shape: str) -> None:
    mirror = kit.mirror(shape)
    del config(mirror, "heartbeatConnector")[CLASS]
    assert kit.judge(POLICY, mirror) == []


def test_heartbeats_are_no_field_of_v1() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["heartbeatConnector"] = {"config": {CLASS: DEFAULT}}
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_connectors_that_are_not_declared_are_not_compared(shape: str) -> None:
    mirror = kit.mirror(shape)
    del kit.flow(mirror)["checkpointConnector"]
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", WITH_HEARTBEATS)
def test_without_a_source_connector_the_others_are_compared(shape: str) -> None:
    mirror = kit.mirror(shape)
    del kit.flow(mirror)["sourceConnector"]
    config(mirror, "heartbeatConnector")[CLASS] = DEFAULT
    expected = message(CLASS, DEFAULT, IDENTITY, "heartbeatConnector").replace("sourceC", "checkpointC")
    assert kit.judge(POLICY, mirror) == [expected]


def test_another_type_is_ignored() -> None:
    mirror = kit.mirror(kit.V1)
    del config(mirror)[CLASS]
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror.props)) == []


def test_one_unknown_policy_hides_no_separator() -> None:
    mirror = prefixed(kit.V1)
    config(mirror)[CLASS] = UNKNOWN_STRING_VALUE
    config(mirror)[SEPARATOR] = "-"
    assert kit.judge(POLICY, mirror) == [message(SEPARATOR, "-", "nothing, which means .")]


def test_one_unknown_connector_hides_no_other() -> None:
    mirror = kit.mirror(kit.V1BETA2)
    kit.flow(mirror)["checkpointConnector"] = UNKNOWN_STRING_VALUE
    config(mirror, "heartbeatConnector")[CLASS] = DEFAULT
    assert kit.judge(POLICY, mirror) == [message(CLASS, DEFAULT, IDENTITY, "heartbeatConnector")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_blanks_around_a_class_are_none_of_its_name(shape: str) -> None:
    mirror = kit.mirror(shape)
    settings = kit.flow(mirror)["sourceConnector"]["config"]
    settings["replication.policy.class"] += " "
    assert kit.judge(POLICY, mirror) == []
