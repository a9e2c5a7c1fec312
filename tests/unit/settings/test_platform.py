"""What a platform's settings resolve to: API version, the Strimzi release below it, Kafka's version, what it can do."""

from typing import Any

import pytest

from settings import SettingsError, hints, parse
from settings.event_streams import USES
from settings.platform import Platform

from ...support.stack_values import SOURCE, TARGET, Values


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


@pytest.mark.parametrize("version", ["10.1.0", "10.5", "9.0"])
def test_event_streams_before_11_is_refused_and_not_rendered_as_11(version: str) -> None:
    terms = {"accept": True, "use": USES[0]}
    message = f"platform: version must be >= 11.0 for event-streams (got {version}). Upgrade the operator."
    assert refused(version=version, license=terms) == {"platform.version": message}
    assert refused(version="11.0.0", license=terms) == {}


def test_only_the_older_api_has_a_place_for_heartbeats() -> None:
    assert not made().has_heartbeats
    assert made(version="0.51.0").has_heartbeats
    assert made(type="event-streams").has_heartbeats


def refused(stack: Values = TARGET, **values: Any) -> dict[str, str]:
    """What is wrong with a platform of Event Streams, by key."""
    try:
        parse({**stack, "platform": {"type": "event-streams", "version": "11.3.0", **values}})
    except SettingsError as error:
        return {problem.key: problem.message for problem in error.problems}
    return {}


ENTITLED = {"productId": "0123", "productName": "IBM Event Streams", "cloudpakRatio": "1:1"}


@pytest.mark.parametrize(
    ("use", "cloud_pak", "missing"),
    [
        ("CloudPakForIntegrationProduction", {}, "productId, productName, cloudpakRatio"),
        ("CloudPakForIntegrationProduction", {"productVersion": "11.3.0"}, "productId, productName, cloudpakRatio"),
        ("CloudPakForIntegrationProduction", {**ENTITLED, "cloudpakRatio": None}, "cloudpakRatio"),
        ("EventAutomationProduction", {}, "productId, productName"),
        ("EventAutomationNonProduction", {}, "productId, productName"),
        ("SomethingThatIbmSellsNextYear", {}, "productId, productName"),
    ],
)
def test_what_does_not_follow_from_a_license_must_be_given(use: str, cloud_pak: Any, missing: str) -> None:
    assert refused(license={"accept": True, "use": use}, cloudPak=cloud_pak) == {
        "platform.cloudPak": f"platform: cloudPak must have {missing} with license.use {use} (got nothing). They do "
        "not follow from the license's use, and IBM's license service counts mirrors by them: copy them from your "
        "license."
    }


@pytest.mark.parametrize("use", USES)
def test_a_license_with_what_it_names_is_accepted(use: str) -> None:
    assert refused(license={"accept": True, "use": use}, cloudPak={**ENTITLED, "productionType": use}) == {}


def test_a_stack_without_mirrors_needs_no_annotations_for_them() -> None:
    assert refused(SOURCE, license={"accept": True, "use": USES[1]}) == {}


def test_a_license_that_is_not_for_production_needs_nothing_more() -> None:
    assert refused(license={"accept": True, "use": "CloudPakForIntegrationNonProduction"}) == {}


def test_what_belongs_to_another_license_is_refused() -> None:
    other = {"productName": "IBM Event Streams for Non Production", "productionType": "EventAutomationProduction"}
    found = refused(license={"accept": True, "use": USES[1]}, cloudPak={**ENTITLED, **other})
    assert set(found) == {"platform.cloudPak.productName", "platform.cloudPak.productionType"}
    assert found["platform.cloudPak.productionType"] == (
        "platform: cloudPak.productionType must be what the license names (got EventAutomationProduction, with "
        "license.use CloudPakForIntegrationProduction). IBM's license service would count mirrors by another license: "
        "correct one of them."
    )


@pytest.mark.parametrize(("use", "hinted"), [(None, True), (USES[0], False)])
def test_a_use_that_is_not_named_is_hinted_at_where_there_are_mirrors(use: str | None, hinted: bool) -> None:
    platform = {"type": "event-streams", "version": "11.3.0", "license": {"accept": True, "use": use}}
    keys = {hint.key for hint in hints({**TARGET, "platform": platform}, "stg", {"dev": SOURCE})}
    assert ("platform.license.use" in keys) is hinted
    source = {hint.key for hint in hints({**SOURCE, "platform": platform}, "dev", {})}
    assert "platform.license.use" not in source
