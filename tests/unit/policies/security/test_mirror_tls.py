"""The rule on TLS between a mirror and its clusters."""

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.mirror_tls import POLICY
from tests.support import compliant_resources as kit
from tests.support.policy_violations import broken_mirror

PLACES = {kit.V1: ("mirrors[0].source", "target")}
HOSTS = [
    "rt-inventory-dev-kafka-bootstrap.rt-inventory-dev.svc",
    "rt-inventory-stg-kafka-bootstrap.rt-inventory-stg.svc",
]
OTHERWISE = "Without TLS, records and the mirror's login can be read on their way."


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-plain", lambda mirror: kit.source(mirror).pop("tls"))


def message(shape: str, end: int) -> str:
    where = PLACES.get(shape, ("clusters[es-src]", "clusters[es-tgt]"))[end]
    return f"mirror mm2: {where} tls must be set (got nothing for {HOSTS[end]}). {OTHERWISE}"


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_with_tls_at_both_ends_passes(shape: str) -> None:
    assert kit.judge(POLICY, kit.mirror(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("end", [0, 1])
def test_an_end_without_tls_is_reported(shape: str, end: int) -> None:
    mirror = kit.mirror(shape)
    del [kit.source, kit.target][end](mirror)["tls"]
    assert kit.judge(POLICY, mirror) == [message(shape, end)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_tls_with_the_cas_that_java_trusts_passes(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.source(mirror)["tls"] = {}
    kit.target(mirror)["tls"] = {"trustedCertificates": []}
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("key", ["source.cluster.security.protocol", "producer.override.security.protocol"])
def test_a_connector_that_undoes_tls_is_reported(shape: str, key: str) -> None:
    mirror = kit.mirror(shape)
    config = kit.flow(mirror)["sourceConnector"]["config"]
    config[key] = "SASL_PLAINTEXT"
    assert kit.judge(POLICY, mirror) == [
        f"mirror mm2: mirrors[0].sourceConnector config {key} must be SSL or SASL_SSL (got SASL_PLAINTEXT). {OTHERWISE}"
    ]
    config[key] = "SASL_SSL"
    assert kit.judge(POLICY, mirror) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_cluster_whose_configuration_undoes_tls_is_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.target(mirror)["config"]["security.protocol"] = "PLAINTEXT"
    where = "target" if shape == kit.V1 else "clusters[es-tgt]"
    assert kit.judge(POLICY, mirror) == [
        f"mirror mm2: {where} config security.protocol must be SSL or SASL_SSL (got PLAINTEXT). {OTHERWISE}"
    ]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_named_hosts_may_be_without_tls(shape: str) -> None:
    mirror = kit.mirror(shape)
    del kit.source(mirror)["tls"]
    kit.flow(mirror)["sourceConnector"]["config"]["source.cluster.security.protocol"] = "PLAINTEXT"
    assert kit.judge(POLICY, mirror, plaintext=[r"[^.]+\.rt-inventory-dev\.svc"]) == []
    assert message(shape, 0) in kit.judge(POLICY, mirror, plaintext=[r"rt-inventory-dev\.svc", "("])


def test_every_host_of_an_end_must_be_named() -> None:
    mirror = kit.mirror(kit.V1)
    del kit.target(mirror)["tls"]
    kit.target(mirror)["bootstrapServers"] = "a.example.com:9092, b.example.com:9092"
    reported = f"mirror mm2: target tls must be set (got nothing for a.example.com, b.example.com). {OTHERWISE}"
    assert kit.judge(POLICY, mirror, plaintext=[r"a\.example\.com"]) == [reported]
    assert kit.judge(POLICY, mirror, plaintext=[r"A\.example\.com", r"b\..*"]) == []


def test_an_end_without_servers_is_reported_whatever_is_named() -> None:
    mirror = kit.mirror(kit.V1)
    del kit.target(mirror)["tls"], kit.target(mirror)["bootstrapServers"]
    assert kit.judge(POLICY, mirror, plaintext=[".*"]) == [
        f"mirror mm2: target tls must be set (got nothing). {OTHERWISE}"
    ]


def test_another_type_is_ignored() -> None:
    mirror = kit.mirror(kit.V1)
    del kit.target(mirror)["tls"]
    assert kit.judge(POLICY, kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", mirror.props)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_one_unknown_end_hides_no_other(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.source(mirror)["tls"] = UNKNOWN_STRING_VALUE
    del kit.target(mirror)["tls"]
    assert kit.judge(POLICY, mirror) == [message(shape, 1)]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_switch_in_place_of_the_mapping_is_no_tls(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.source(mirror)["tls"] = False
    (reported,) = kit.judge(POLICY, mirror)
    assert "tls must be set (got false for rt-inventory-dev-kafka-bootstrap.rt-inventory-dev.svc)" in reported
