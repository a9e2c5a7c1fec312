"""The rule on what a mirror creates on the target."""

import copy
from typing import Any

import pytest
from pulumi_policy.proxy import unknown_checking_proxy

from policies.rules.mirror_replication import violations

V1 = "kubernetes:kafka.strimzi.io/v1:KafkaMirrorMaker2"
V1BETA2 = [
    "kubernetes:kafka.strimzi.io/v1beta2:KafkaMirrorMaker2",
    "kubernetes:eventstreams.ibm.com/v1beta2:KafkaMirrorMaker2",
]
CONNECTORS: dict[str, Any] = {
    "sourceConnector": {"config": {"replication.factor": 3, "offset-syncs.topic.replication.factor": 3}},
    "checkpointConnector": {"config": {"checkpoints.topic.replication.factor": "3"}},
    "heartbeatConnector": {"config": {"heartbeats.topic.replication.factor": 3}},
}
STORAGE = {f"{topic}.storage.replication.factor": 3 for topic in ("config", "offset", "status")}


def v1() -> dict[str, Any]:
    """A mirror as Strimzi's v1 has it, with every factor 3."""
    spec = {"target": {"alias": "es-tgt", "config": STORAGE}, "mirrors": [CONNECTORS]}
    return copy.deepcopy({"metadata": {"name": "mm2"}, "spec": spec})


def v1beta2() -> dict[str, Any]:
    """A mirror as v1beta2 has it, with every factor 3."""
    clusters = [{"alias": "es-src", "config": {}}, {"alias": "es-tgt", "config": STORAGE}]
    spec = {"connectCluster": "es-tgt", "clusters": clusters, "mirrors": [CONNECTORS]}
    return copy.deepcopy({"metadata": {"name": "mm2"}, "spec": spec})


def message(where: str, key: str, got: str) -> str:
    return (
        f"mirror mm2: {where} {key} must be >= 3 (got {got}). "
        "With fewer, the loss of one target broker can lose what was mirrored."
    )


def test_a_mirror_with_every_factor_three_passes_in_every_shape() -> None:
    assert violations(V1, v1(), {}) == []
    assert [violations(type_, v1beta2(), {}) for type_ in V1BETA2] == [[], []]


@pytest.mark.parametrize(
    ("connector", "key"),
    [(name, key) for name, connector in CONNECTORS.items() for key in connector["config"]],
)
def test_one_low_factor_of_a_connector_is_told(connector: str, key: str) -> None:
    props = v1()
    props["spec"]["mirrors"][0][connector]["config"][key] = 1
    assert violations(V1, props, {}) == [message(connector, key, "1")]


@pytest.mark.parametrize("key", STORAGE)
def test_one_low_factor_of_connects_storage_is_told_in_every_shape(key: str) -> None:
    new, old = v1(), v1beta2()
    new["spec"]["target"]["config"][key] = 2
    old["spec"]["clusters"][1]["config"][key] = 2
    assert violations(V1, new, {}) == [message("target", key, "2")]
    assert violations(V1BETA2[0], old, {}) == [message("target", key, "2")]


def test_the_factor_of_mirrored_topics_is_two_unless_set() -> None:
    props = v1()
    del props["spec"]["mirrors"][0]["sourceConnector"]["config"]["replication.factor"]
    assert violations(V1, props, {}) == [message("sourceConnector", "replication.factor", "nothing, which means 2")]


def test_the_brokers_default_is_no_answer() -> None:
    props = v1()
    props["spec"]["mirrors"][0]["sourceConnector"]["config"]["replication.factor"] = -1
    assert violations(V1, props, {}) == [message("sourceConnector", "replication.factor", "-1")]


def test_the_minimum_can_be_configured() -> None:
    props = v1()
    props["spec"]["mirrors"][0]["sourceConnector"]["config"]["replication.factor"] = 1
    assert violations(V1, props, {"minimum": 1}) == []


def test_another_kind_is_ignored() -> None:
    assert violations("kubernetes:kafka.strimzi.io/v1:KafkaTopic", {"spec": {"mirrors": [{}]}}, {}) == []


def test_what_the_engine_hands_over_is_read() -> None:
    props = v1()
    props["spec"]["target"]["config"]["offset.storage.replication.factor"] = 1.0
    assert len(violations(V1, unknown_checking_proxy(props), {})) == 1
