"""What a cluster's settings say about nodes, listeners, authorities and addresses."""

from typing import Any

import pytest

from settings.cluster import Cluster, bootstrap_servers
from settings.parsing import read

EXTERNAL: dict[str, Any] = {"bootstrapServers": ["a.example.com:9093", "b.example.com:9093"]}
LISTENERS = [
    {"name": "internal", "port": 9093},
    {"name": "outside", "port": 9094, "type": "route", "host": "kafka.example.com"},
]


def cluster(**values: Any) -> Cluster:
    found, problems = read(Cluster, {"name": "a", "namespace": "space", **values}, "cluster", "cluster a")
    assert found is not None, problems
    return found


def test_brokers_are_one_pool_with_both_roles() -> None:
    (pool,) = cluster(brokers=2, nodePool="nodes", resources={"limits": {"cpu": "1"}}).all_node_pools
    assert (pool.name, pool.replicas, pool.roles) == ("nodes", 2, ("controller", "broker"))
    assert pool.resources.rendered() == {"limits": {"cpu": "1"}}


def test_only_nodes_that_hold_records_count_as_brokers() -> None:
    pools = [
        {"name": "controllers", "replicas": 3, "roles": ["controller"]},
        {"name": "brokers", "replicas": 4, "roles": ["broker"]},
        {"name": "both", "replicas": 1},
    ]
    made = cluster(nodePools=pools)
    assert made.broker_count == 5
    assert [pool.name for pool in made.all_node_pools] == ["controllers", "brokers", "both"]
    assert made.kafka_config["default.replication.factor"] == 3


def test_a_cluster_listens_with_tls_unless_it_lists_its_listeners() -> None:
    (listener,) = cluster().all_listeners
    assert (listener.name, listener.port, listener.type, listener.tls) == ("tls", 9093, "internal", True)
    (own,) = cluster(listener="mirror", listenerPort=9095).all_listeners
    assert (own.name, own.port) == ("mirror", 9095)


def test_mirrors_connect_by_the_named_listener_or_by_the_first() -> None:
    assert cluster(listeners=LISTENERS).client_listener.name == "internal"
    assert cluster(listeners=LISTENERS, listener="outside").client_listener.name == "outside"
    with pytest.raises(KeyError):
        _ = cluster(listeners=LISTENERS, listener="other").client_listener


def test_clients_trust_the_clusters_own_authority_where_there_is_tls() -> None:
    assert cluster().ca_secret == ("a-cluster-ca-cert", "ca.crt")
    assert cluster(listeners=[{"name": "plain", "port": 9092, "tls": False}]).ca_secret is None


@pytest.mark.parametrize(
    ("external", "secret"),
    [
        ({}, None),
        ({"certificateAuthority": {"secret": "ca"}}, ("ca", "ca.crt")),
        ({"certificateAuthority": {"secret": "ca", "key": "tls.crt"}}, ("ca", "tls.crt")),
        ({"certificateAuthority": {"file": "ca.pem"}}, ("a-cluster-ca-cert", "ca.crt")),
        ({"tls": False}, None),
    ],
)
def test_an_external_cluster_has_the_authority_that_is_named(
    external: dict[str, Any], secret: tuple[str, str] | None
) -> None:
    assert cluster(external={**EXTERNAL, **external}).ca_secret == secret


def test_an_external_cluster_has_as_many_brokers_as_it_is_said_to_have() -> None:
    assert cluster(external=EXTERNAL).broker_count == 3
    assert cluster(external={**EXTERNAL, "brokers": 6}).broker_count == 6


@pytest.mark.parametrize(
    ("listener", "address"),
    [
        ({}, "a-kafka-bootstrap.space.svc:9094"),
        ({"type": "route", "host": "kafka.example.com"}, "kafka.example.com:443"),
        ({"type": "ingress", "host": "kafka.example.com"}, "kafka.example.com:443"),
        ({"type": "loadbalancer", "host": "kafka.example.com"}, "kafka.example.com:9094"),
        ({"type": "nodeport", "host": "node.example.com", "nodePort": 31000}, "node.example.com:31000"),
        ({"type": "loadbalancer"}, None),
        ({"type": "nodeport", "nodePort": 31000}, None),
        ({"type": "route"}, None),
    ],
)
def test_an_address_is_known_before_the_cluster_runs_if_the_settings_say_it(
    listener: dict[str, Any], address: str | None
) -> None:
    assert bootstrap_servers(cluster(listeners=[{"name": "x", "port": 9094, **listener}])) == address


def test_an_external_cluster_is_reached_where_it_says() -> None:
    assert bootstrap_servers(cluster(external=EXTERNAL)) == "a.example.com:9093,b.example.com:9093"
