from pathlib import Path
from typing import Any

import pytest

from sandbox.operator import NotReadyError, kafka_nodes

LISTENER = {"name": "tls", "port": 9093, "type": "internal", "tls": True, "authentication": {"type": "scram-sha-512"}}
SPEC: dict[str, Any] = {"listeners": [LISTENER], "authorization": {"type": "simple"}}


def pool(replicas: int = 3, roles: tuple[str, ...] = ("controller", "broker")) -> dict[str, Any]:
    return {"metadata": {"name": "pool"}, "spec": {"replicas": replicas, "roles": list(roles)}}


def planned(tmp_path: Path, replicas: int = 3) -> kafka_nodes.Layout:
    return kafka_nodes.plan(tmp_path, "ns", "c", [pool(replicas)], [LISTENER])


def rendered(tmp_path: Path, spec: dict[str, Any] = SPEC) -> dict[str, object]:
    plan = planned(tmp_path)
    return kafka_nodes.server_properties(plan, plan.nodes[1], spec)


def test_internal_listeners_demand_a_certificate_and_clients_a_password(tmp_path: Path) -> None:
    result = rendered(tmp_path)
    for internal in (kafka_nodes.CONTROL_PLANE, kafka_nodes.REPLICATION):
        assert result[f"listener.name.{internal}.ssl.client.auth"] == "required"
    protocols = str(result["listener.security.protocol.map"])
    assert protocols == "CONTROLPLANE-9090:SSL,REPLICATION-9091:SSL,TLS-9093:SASL_SSL"
    assert "PLAINTEXT" not in str(result)


def test_only_the_brokers_and_the_operator_are_super_users(tmp_path: Path) -> None:
    result = rendered(tmp_path)
    assert result["super.users"] == "User:CN=c-kafka,O=io.strimzi;User:CN=c-cluster-operator,O=io.strimzi"
    assert result["allow.everyone.if.no.acl.found"] is False


def test_an_option_that_the_operator_manages_is_ignored_and_named(tmp_path: Path) -> None:
    spec = SPEC | {"config": {"super.users": "User:me", "log.retention.hours": 5}}
    result = rendered(tmp_path, spec)
    assert "User:me" not in str(result["super.users"])
    assert result["log.retention.hours"] == 5
    assert kafka_nodes.ignored_options(spec) == ["super.users"]


def test_a_cluster_may_let_everybody_use_what_no_rule_names(tmp_path: Path) -> None:
    spec = SPEC | {"config": {"allow.everyone.if.no.acl.found": True}}
    assert rendered(tmp_path, spec)["allow.everyone.if.no.acl.found"] is True
    assert kafka_nodes.ignored_options(spec) == []


def test_ports_and_the_cluster_id_stay_when_it_is_planned_again(tmp_path: Path) -> None:
    assert planned(tmp_path) == planned(tmp_path)
    ports = [port for node in planned(tmp_path).nodes for port in node.ports.values()]
    assert len(set(ports)) == len(ports) == 9


def test_an_exporter_has_a_port_beside_the_listeners_only_while_it_is_wanted(tmp_path: Path) -> None:
    before = planned(tmp_path)
    with_metrics = kafka_nodes.plan(tmp_path, "ns", "c", [pool()], [LISTENER], metrics=True)
    assert {kafka_nodes.METRICS} == set(with_metrics.nodes[0].ports) - set(before.nodes[0].ports)
    assert len({node.ports[kafka_nodes.METRICS] for node in with_metrics.nodes}) == 3
    properties = kafka_nodes.server_properties(with_metrics, with_metrics.nodes[0], SPEC)
    assert str(with_metrics.nodes[0].ports[kafka_nodes.METRICS]) not in str(properties["listeners"])
    assert planned(tmp_path) == before


@pytest.mark.parametrize(
    ("pools", "reason"),
    [([], "NoNodePools"), ([pool(2)], "ScalingNotSupported"), ([pool(roles=("broker",))], "UnsupportedRoles")],
)
def test_pools_that_cannot_be_run_are_refused_with_a_reason(tmp_path: Path, pools: list[Any], reason: str) -> None:
    planned(tmp_path)
    with pytest.raises(NotReadyError) as refused:
        kafka_nodes.plan(tmp_path, "ns", "c", pools, [LISTENER])
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": "3.9.0"}, "UnsupportedKafkaVersion"),
        ({"listeners": [LISTENER | {"authentication": {"type": "custom"}}]}, "UnsupportedListener"),
        ({"authorization": {"type": "custom"}}, "UnsupportedAuthorization"),
        ({"metricsConfig": {"type": "strimziMetricsReporter"}}, "UnsupportedMetrics"),
    ],
)
def test_a_spec_that_cannot_be_run_is_refused_with_a_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotReadyError) as refused:
        kafka_nodes.check_spec("c", SPEC | change, "4.3.1")
    assert refused.value.reason == reason
