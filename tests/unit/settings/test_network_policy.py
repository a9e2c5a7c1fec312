"""Peers of a listener's NetworkPolicy that Kubernetes would refuse are refused before."""

from typing import Any

import pytest

from settings import parse

from .test_connectivity import cluster, problems

PODS = {"podSelector": {"matchLabels": {"app": "shop"}}}
BLOCK = {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.9.0.0/16"]}}


def found(*peers: dict[str, Any]) -> list[str]:
    return [str(each) for each in problems(cluster(listeners=[listener(*peers)])).items()]


def listener(*peers: dict[str, Any]) -> dict[str, Any]:
    return {"name": "tls", "port": 9093, "networkPolicyPeers": list(peers)}


def test_selectors_and_ranges_are_good() -> None:
    assert parse(cluster(listeners=[listener(PODS, BLOCK, {"namespaceSelector": {}})]))


def test_the_exposed_listener_has_peers_of_its_own() -> None:
    expose = {"type": "loadbalancer", "networkPolicyPeers": [BLOCK]}
    found = parse(cluster(expose=expose)).cluster
    assert found is not None
    inside, outside = found.all_listeners
    assert (len(inside.network_policy_peers), len(outside.network_policy_peers)) == (0, 1)


@pytest.mark.parametrize(
    ("peer", "message"),
    [
        ({}, "must have ipBlock, or podSelector, namespaceSelector or both (got nothing)"),
        (
            {**PODS, **BLOCK},
            "must have ipBlock, or podSelector, namespaceSelector or both (got ipBlock beside a selector)",
        ),
        ({"ipBlock": {"cidr": "10.0.0.1/8"}}, "must have a range such as 10.0.0.0/8 (got 10.0.0.1/8)"),
        ({"ipBlock": {"cidr": "10.0.0.1"}}, "must have a range such as 10.0.0.0/8 (got 10.0.0.1)"),
        (
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}},
            "must except only smaller ranges within 10.0.0.0/8 (got 11.0.0.0/16)",
        ),
        (
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["fd00::/16"]}},
            "must except only smaller ranges within 10.0.0.0/8 (got fd00::/16)",
        ),
        (
            {"podSelector": {"matchExpressions": [{"key": "tier", "operator": "In"}]}},
            "must have values that fit In of tier (got none)",
        ),
        (
            {"podSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists", "values": ["x"]}]}},
            "must have values that fit Exists of tier (got x)",
        ),
    ],
)
def test_what_kubernetes_would_refuse_is_refused_with_its_key(peer: dict[str, Any], message: str) -> None:
    (text,) = found(PODS, peer)
    assert "cluster.listeners[0].networkPolicyPeers[1]" in text
    assert f"listener tls: networkPolicyPeers[1] {message}" in text
