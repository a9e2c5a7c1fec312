"""What a platform's settings resolve to: API version, the Strimzi release below it, Kafka's version, what it can do."""

from typing import Any

import pytest

from settings.platform import Platform


def made(**values: Any) -> Platform:
    return Platform.model_validate(values, by_name=True)


@pytest.mark.parametrize(
    ("values", "api", "base", "kafka"),
    [
        ({}, "kafka.strimzi.io/v1", (1, 2), "4.3.1"),
        ({"version": "1.2.0"}, "kafka.strimzi.io/v1", (1, 2), "4.3.1"),
        ({"version": "1.1.0"}, "kafka.strimzi.io/v1", (1, 1), "4.2.0"),
        ({"version": "1.0"}, "kafka.strimzi.io/v1", (1, 0), "4.2.0"),
        ({"version": "0.51.0"}, "kafka.strimzi.io/v1beta2", (0, 51), "4.1.0"),
        ({"version": "0.45.0"}, "kafka.strimzi.io/v1beta2", (0, 45), "3.9.0"),
        ({"version": "0.50.0", "api_version": "kafka.strimzi.io/v1"}, "kafka.strimzi.io/v1", (0, 50), "4.1.0"),
        ({"api_version": "kafka.strimzi.io/v1beta2"}, "kafka.strimzi.io/v1beta2", (0, 51), "4.1.0"),
        ({"type": "event-streams"}, "eventstreams.ibm.com/v1beta2", (0, 28), "3.0.1"),
        ({"type": "event-streams", "version": "11.1.5"}, "eventstreams.ibm.com/v1beta2", (0, 31), "3.2.3"),
        ({"type": "event-streams", "version": "11.4.0"}, "eventstreams.ibm.com/v1beta2", (0, 38), "3.6.0"),
        ({"type": "event-streams", "version": "12.3.0"}, "eventstreams.ibm.com/v1beta2", (0, 46), "4.0.0"),
        ({"type": "event-streams", "version": "10.5"}, "eventstreams.ibm.com/v1beta2", (0, 28), "3.0.1"),
    ],
)
def test_a_platform_has_an_api_a_base_and_a_kafka(
    values: dict[str, Any], api: str, base: tuple[int, int], kafka: str
) -> None:
    platform = made(**values)
    assert (platform.api, platform.base, platform.kafka_version) == (api, base, kafka)


@pytest.mark.parametrize(
    ("version", "node_pools", "state", "kafka_policy"),
    [
        ("11.0.0", False, False, False),
        ("11.1.0", False, False, True),
        ("11.3.0", False, True, True),
        ("11.5.0", False, True, True),
        ("12.0.0", True, True, True),
    ],
)
def test_releases_of_event_streams_learn_what_their_base_can_do(
    version: str, node_pools: bool, state: bool, kafka_policy: bool
) -> None:
    platform = made(type="event-streams", version=version)
    assert platform.has_node_pools is node_pools
    assert platform.has_connector_state is state
    assert platform.has_kafka_identity_policy is kafka_policy


def test_only_the_older_api_has_a_place_for_heartbeats() -> None:
    assert not made().has_heartbeats
    assert made(version="0.51.0").has_heartbeats
    assert made(type="event-streams").has_heartbeats
