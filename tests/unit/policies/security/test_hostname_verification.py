"""The rule on the check of a broker's name."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.hostname_verification import POLICY
from tests.support import compliant_resources as kit
from tests.support.client_resources import client
from tests.support.policy_violations import broken_mirror

SETTING = "ssl.endpoint.identification.algorithm"
PREFIXES = ["", "source.cluster.", "target.cluster.", "producer.override.", "consumer.override.", "admin.override."]


def violation() -> list[kit.Sample]:
    return broken_mirror(
        "mm-hosts",
        lambda mirror: kit.source(mirror)["config"].update({"ssl.endpoint.identification.algorithm": ""}),
    )


def message(described: str, where: str, got: str = "''") -> str:
    return (
        f"{described}: {where} must not be blank (got {got}, allowed https). "
        "Blank lets any holder of a certificate of the same CA pose as the server."
    )


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_and_a_cluster_that_verify_pass(shape: str) -> None:
    assert kit.judge(POLICY, kit.mirror(shape)) == []
    assert kit.judge(POLICY, kit.cluster(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_an_absent_key_means_https(shape: str) -> None:
    mirror = kit.mirror(shape)
    del kit.source(mirror)["config"][SETTING]
    kit.target(mirror)["config"][SETTING] = None
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_key_of_a_mirrors_cluster_is_reported(shape: str, blank: str) -> None:
    mirror = kit.mirror(shape)
    kit.source(mirror)["config"][SETTING] = blank
    where = "mirrors[0].source" if shape == kit.V1 else "clusters[es-src]"
    assert kit.judge(POLICY, mirror) == [message("mirror mm2", f"{where} config {SETTING}", repr(blank))]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_blank_key_of_a_mirrors_connector_is_reported_under_every_prefix(shape: str, prefix: str) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["checkpointConnector"]["config"][prefix + SETTING] = ""
    where = f"mirrors[0].checkpointConnector config {prefix}{SETTING}"
    assert kit.judge(POLICY, mirror) == [message("mirror mm2", where)]


def test_the_heartbeat_connector_is_no_field_of_v1() -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["heartbeatConnector"] = {"config": {f"source.cluster.{SETTING}": ""}}
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("kind", ["KafkaConnect", "KafkaConnector"])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_blank_key_of_connect_and_of_a_connector_is_reported(shape: str, kind: str, prefix: str) -> None:
    sample = client(shape, kind, config={prefix + SETTING: ""})
    noun = {"KafkaConnect": "Connect cluster", "KafkaConnector": "connector"}[kind]
    assert kit.judge(POLICY, sample) == [message(f"{noun} pipes", f"config {prefix}{SETTING}")]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("part", ["producer", "consumer", "adminClient"])
def test_a_blank_key_of_a_bridge_is_reported(shape: str, part: str) -> None:
    bridge = client(shape, "KafkaBridge", **{part: {"config": {SETTING: ""}}})
    assert kit.judge(POLICY, bridge) == [message("bridge pipes", f"{part}.config {SETTING}")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_blank_key_of_a_cluster_is_reported(shape: str) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["config"][SETTING] = ""
    assert kit.judge(POLICY, cluster) == [message("cluster rt-inventory-stg", f"config {SETTING}")]


def test_a_key_that_only_ends_alike_is_another_one() -> None:
    config: dict[str, Any] = {f"no-{SETTING}": ""}
    assert kit.judge(POLICY, client(kit.V1, "KafkaConnector", config=config)) == []


def test_another_type_is_ignored() -> None:
    sample = client(kit.V1, "KafkaConnector", config={SETTING: ""})
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaConnector", sample.props)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_one_unknown_value_hides_no_other(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.source(mirror)["config"][SETTING] = UNKNOWN_STRING_VALUE
    kit.target(mirror)["config"] = UNKNOWN_STRING_VALUE
    config = kit.flow(mirror)["sourceConnector"]["config"]
    config[f"source.cluster.{SETTING}"] = UNKNOWN_STRING_VALUE
    config[f"target.cluster.{SETTING}"] = ""
    where = f"mirrors[0].sourceConnector config target.cluster.{SETTING}"
    assert kit.judge(POLICY, mirror) == [message("mirror mm2", where)]
