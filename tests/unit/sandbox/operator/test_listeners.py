from pathlib import Path
from typing import Any

import pytest

from sandbox.operator import NotReadyError, kafka_nodes


def listener(name: str, port: int, kind: str | None, tls: bool = True, **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "port": port, "type": "internal", "tls": tls, **more}
    return entry | ({"authentication": {"type": kind}} if kind else {})


SCRAM, MUTUAL = listener("scram", 9093, "scram-sha-512"), listener("mutual", 9094, "tls")
OPEN, PLAIN = listener("open", 9095, None), listener("plain", 9092, None, tls=False)
ALL = [SCRAM, MUTUAL, OPEN, PLAIN, listener("bare", 9096, "scram-sha-512", tls=False)]


def rendered(tmp_path: Path) -> dict[str, Any]:
    pool = {"metadata": {"name": "pool"}, "spec": {"replicas": 1, "roles": ["broker", "controller"]}}
    plan = kafka_nodes.plan(tmp_path, "ns", "c", [pool], ALL)
    return kafka_nodes.server_properties(plan, plan.nodes[0], {"listeners": ALL})


def test_several_listeners_each_have_their_own_protocol(tmp_path: Path) -> None:
    kafka_nodes.check_listeners("c", ALL)
    protocols = str(rendered(tmp_path)["listener.security.protocol.map"])
    assert protocols.split(",")[2:] == [
        "SCRAM-9093:SASL_SSL",
        "MUTUAL-9094:SSL",
        "OPEN-9095:SSL",
        "PLAIN-9092:PLAINTEXT",
        "BARE-9096:SASL_PLAINTEXT",
    ]


def test_only_a_listener_with_client_certificates_demands_one_and_only_of_the_clients_authority(tmp_path: Path) -> None:
    result = rendered(tmp_path)
    demands = {name: result.get(f"listener.name.{name}.ssl.client.auth") for name in ("mutual-9094", "open-9095")}
    assert demands == {"mutual-9094": "required", "open-9095": "none"}
    assert result["listener.name.mutual-9094.ssl.truststore.location"] == tmp_path / kafka_nodes.CLIENTS
    for internal in (kafka_nodes.REPLICATION, kafka_nodes.CONTROL_PLANE):
        assert result[f"listener.name.{internal}.ssl.truststore.location"] == tmp_path / kafka_nodes.TRUSTED


def test_no_key_or_password_mechanism_is_given_to_a_listener_without_them(tmp_path: Path) -> None:
    result = rendered(tmp_path)
    assert not [key for key in result if key.startswith("listener.name.plain-9092.")]
    assert not [key for key in result if key.startswith("listener.name.mutual-9094.") and "sasl" in key]


@pytest.mark.parametrize(
    ("entry", "words", "reason"),
    [
        (listener("x", 9095, "tls", tls=False), "got tls false", "InvalidListener"),
        (listener("x", 9095, None, tls=False) | {"type": "route"}, "with type route", "InvalidListener"),
        (listener("x", 9095, None) | {"type": "ingress"}, "configuration.bootstrap.host", "InvalidListener"),
        (listener("x", 9404, None), "got 9404", "InvalidListener"),
        (listener("scram", 9095, None), "different names (got scram twice)", "InvalidListener"),
        (listener("x", 9093, None), "different ports (got 9093 twice)", "InvalidListener"),
        (listener("x", 9095, "custom"), "got custom", "UnsupportedListener"),
    ],
)
def test_what_strimzi_does_not_permit_is_refused(entry: dict[str, Any], words: str, reason: str) -> None:
    with pytest.raises(NotReadyError) as refused:
        kafka_nodes.check_listeners("c", [SCRAM, entry])
    assert refused.value.reason == reason
    assert words in refused.value.message


def test_a_listener_for_the_outside_is_served_here_and_said_so_once() -> None:
    outside = [MUTUAL | {"type": "route"}, OPEN | {"type": "nodeport"}]
    kafka_nodes.check_listeners("c", outside)
    ((reason, message),) = kafka_nodes.listener_warnings("c", [SCRAM, *outside])
    assert reason == "ServedOnLoopback"
    assert "mutual (route), open (nodeport) on 127.0.0.1 only" in message
    assert kafka_nodes.listener_warnings("c", [SCRAM]) == []
