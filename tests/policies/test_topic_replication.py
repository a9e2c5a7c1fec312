"""The rule on a topic's replicas."""

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UnknownValueError, unknown_checking_proxy

from policies.rules.topic_replication import violations

V1 = "kubernetes:kafka.strimzi.io/v1:KafkaTopic"
TYPES = [V1, "kubernetes:kafka.strimzi.io/v1beta2:KafkaTopic", "kubernetes:eventstreams.ibm.com/v1beta2:KafkaTopic"]


def topic(replicas: object = 3) -> dict[str, Any]:
    return {"metadata": {"name": "items"}, "spec": {"partitions": 3, "replicas": replicas}}


@pytest.mark.parametrize("type_", TYPES)
def test_three_replicas_pass_and_one_does_not(type_: str) -> None:
    assert violations(type_, topic(3.0), {}) == []
    assert violations(type_, topic(1.0), {}) == [
        "topic items: replicas must be >= 3 (got 1). "
        "With fewer, the loss of one broker can stop producers or lose records."
    ]


def test_replicas_left_to_the_brokers_do_not_pass() -> None:
    props = topic()
    del props["spec"]["replicas"]
    assert "(got nothing: the brokers' default decides)" in violations(V1, props, {})[0]


def test_the_minimum_can_be_configured() -> None:
    assert violations(V1, topic(1), {"minimum": 1.0}) == []
    assert "must be >= 4 (got 3)" in violations(V1, topic(3), {"minimum": 4})[0]


def test_another_kind_is_ignored() -> None:
    assert violations("kubernetes:core/v1:ConfigMap", topic(1), {}) == []
    assert violations("kubernetes:example.com/v1:KafkaTopic", topic(1), {}) == []


def test_a_value_not_known_in_a_preview_is_left_to_the_update() -> None:
    with pytest.raises(UnknownValueError):
        violations(V1, unknown_checking_proxy(topic(UNKNOWN_NUMBER_VALUE)), {})


def test_what_the_engine_hands_over_is_read() -> None:
    assert len(violations(V1, unknown_checking_proxy(topic(2.0)), {})) == 1
