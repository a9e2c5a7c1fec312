"""The rule on logins by PLAIN."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.plain_authentication import POLICY
from tests.support import compliant_resources as kit
from tests.support.client_resources import client
from tests.support.policy_violations import broken_mirror

SOURCE_HOST = "rt-inventory-dev-kafka-bootstrap.rt-inventory-dev.svc"
TARGET_HOST = "rt-inventory-stg-kafka-bootstrap.rt-inventory-stg.svc"
OTHERWISE = "PLAIN hands the password to whatever answers. Use scram-sha-512 or tls"
SERVERS = "a.cloud.example.com:9093,b.cloud.example.com:9093"
CLOUD = [r"[^.]+\.cloud\.example\.com"]
OWN_WORD = "made-up-word"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{OWN_WORD}";'
CUSTOM = {"type": "custom", "sasl": True, "config": {"sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}}


def violation() -> list[kit.Sample]:
    return broken_mirror("mm-sasl", lambda mirror: kit.source(mirror)["authentication"].update(type="plain"))


def message(field: str, got: str, described: str = "mirror mm2") -> str:
    word = "plain" if field.endswith("type") else "PLAIN"
    return f"{described}: {field} must not be {word} (got {got}). {OTHERWISE}, or name the service in `services`."


def of_listener(got: str) -> str:
    return f"cluster rt-inventory-stg: listener external authentication must not accept PLAIN (got {got}). {OTHERWISE}."


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_mirror_and_a_cluster_with_scram_pass(shape: str) -> None:
    assert kit.judge(POLICY, kit.mirror(shape)) == []
    assert kit.judge(POLICY, kit.cluster(shape)) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_login_of_a_mirror_by_plain_is_reported(shape: str) -> None:
    mirror = kit.mirror(shape)
    kit.target(mirror)["authentication"]["type"] = "plain"
    where = "target" if shape == kit.V1 else "clusters[es-tgt]"
    assert kit.judge(POLICY, mirror) == [message(f"{where} authentication.type", f"plain towards {TARGET_HOST}")]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(("kind", "noun"), [("KafkaConnect", "Connect cluster"), ("KafkaBridge", "bridge")])
def test_a_login_of_connect_and_of_a_bridge_by_plain_is_reported(shape: str, kind: str, noun: str) -> None:
    sample = client(shape, kind, bootstrapServers=SERVERS, authentication={"type": "plain", "username": "token"})
    got = "plain towards a.cloud.example.com, b.cloud.example.com"
    assert kit.judge(POLICY, sample) == [message("authentication.type", got, f"{noun} pipes")]
    assert kit.judge(POLICY, sample, services=CLOUD) == []
    assert kit.judge(POLICY, sample, services=[r"a\..*"]) != []


@pytest.mark.parametrize("kind", ["KafkaConnect", "KafkaBridge"])
def test_custom_authentication_by_plain_is_reported_without_its_password(kind: str) -> None:
    sample = client(kit.V1, kind, bootstrapServers=SERVERS, authentication=CUSTOM)
    (reported,) = kit.judge(POLICY, sample)
    assert "authentication.config sasl.mechanism must not be PLAIN (got PLAIN towards a.cloud.example.com, " in reported
    assert OWN_WORD not in reported
    assert kit.judge(POLICY, sample, services=CLOUD) == []


def test_custom_authentication_of_a_mirror_by_plain_is_reported() -> None:
    mirror = kit.mirror(kit.V1)
    kit.source(mirror)["authentication"] = CUSTOM
    expected = message("mirrors[0].source authentication.config sasl.mechanism", f"PLAIN towards {SOURCE_HOST}")
    assert kit.judge(POLICY, mirror) == [expected]


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("prefix", "towards"),
    [
        ("source.cluster.", SOURCE_HOST),
        ("target.cluster.", TARGET_HOST),
        ("producer.override.", TARGET_HOST),
        ("admin.", f"{SOURCE_HOST}, {TARGET_HOST}"),
    ],
)
def test_a_connectors_mechanism_is_reported_with_the_cluster_to_which_it_goes(
    shape: str, prefix: str, towards: str
) -> None:
    mirror = kit.mirror(shape)
    kit.flow(mirror)["sourceConnector"]["config"][f"{prefix}sasl.mechanism"] = "PLAIN"
    where = f"mirrors[0].sourceConnector config {prefix}sasl.mechanism"
    assert kit.judge(POLICY, mirror) == [message(where, f"PLAIN towards {towards}")]
    assert kit.judge(POLICY, mirror, services=[host.strip() for host in towards.split(",")]) == []
    assert kit.judge(POLICY, mirror, services=CLOUD) != []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_key_of_connects_clients_is_reported(shape: str) -> None:
    sample = client(shape, "KafkaConnect", bootstrapServers=SERVERS, config={"producer.sasl.mechanism": "plain"})
    got = "plain towards a.cloud.example.com, b.cloud.example.com"
    assert kit.judge(POLICY, sample) == [message("config producer.sasl.mechanism", got, "Connect cluster pipes")]
    assert kit.judge(POLICY, sample, services=CLOUD) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_connector_is_let_through_only_if_it_names_its_servers(shape: str) -> None:
    config = {"producer.override.sasl.mechanism": "PLAIN"}
    reported = [message("config producer.override.sasl.mechanism", "PLAIN", "connector pipes")]
    assert kit.judge(POLICY, client(shape, "KafkaConnector", config=config), services=[".*"]) == reported
    config["producer.override.bootstrap.servers"] = SERVERS
    assert kit.judge(POLICY, client(shape, "KafkaConnector", config=config), services=CLOUD) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize(
    ("settings", "got"),
    [
        ({"sasl.enabled.mechanisms": "scram-sha-512, plain"}, "sasl.enabled.mechanisms SCRAM-SHA-512, PLAIN"),
        ({"plain.sasl.jaas.config": JAAS}, "plain.sasl.jaas.config"),
    ],
)
def test_a_custom_listener_with_plain_is_reported_without_its_passwords(
    shape: str, settings: dict[str, Any], got: str
) -> None:
    cluster = kit.cluster(shape)
    authentication = {"type": "custom", "sasl": True, "listenerConfig": settings}
    kit.brokers(cluster)["listeners"][1]["authentication"] = authentication
    assert kit.judge(POLICY, cluster, services=[".*"]) == [of_listener(f"listenerConfig {got}")]


def test_a_custom_listener_with_another_mechanism_passes() -> None:
    cluster = kit.cluster(kit.V1)
    settings = {"sasl.enabled.mechanisms": "oauthbearer", "oauthbearer.sasl.jaas.config": "x"}
    authentication = {"type": "custom", "sasl": True, "listenerConfig": settings}
    kit.brokers(cluster)["listeners"][1]["authentication"] = authentication
    assert kit.judge(POLICY, cluster) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_oauth_over_plain_is_reported_where_the_api_has_it(shape: str) -> None:
    cluster = kit.cluster(shape)
    kit.brokers(cluster)["listeners"][1]["authentication"] = {"type": "oauth", "enablePlain": True}
    assert kit.judge(POLICY, cluster) == ([] if shape == kit.V1 else [of_listener("enablePlain true")])
    kit.brokers(cluster)["listeners"][1]["authentication"] = {"type": "oauth"}
    assert kit.judge(POLICY, cluster) == []


def test_another_type_is_ignored() -> None:
    sample = client(kit.V1, "KafkaConnect", authentication={"type": "plain"})
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaConnect", sample.props)) == []


def test_one_unknown_login_hides_no_other() -> None:
    mirror = kit.mirror(kit.V1)
    kit.source(mirror)["authentication"]["type"] = UNKNOWN_STRING_VALUE
    kit.target(mirror)["authentication"]["type"] = "plain"
    expected = message("target authentication.type", f"plain towards {TARGET_HOST}")
    assert kit.judge(POLICY, mirror) == [expected]
