"""Offsets of a mirror's connector, altered through its operator: the mirror goes on from there."""

from collections.abc import Iterator
from typing import Any

import pytest

from ops.errors import OpsError
from ops.recovery.connector_offsets import CONNECTOR, OPERATION, alter, listed
from tests.support import records
from tests.support.small_cluster import USER, Kit, mirror_spec
from tests.support.waiting import wait_until

NAME, PLACE = "copy", ("kafka.strimzi.io/v1", "offsets-tests", "copy")
SOURCE = "here->there.MirrorSourceConnector"
TOPIC, COPY = "mirrored", "here.mirrored"
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def kit(sandbox: Any) -> Iterator[Kit]:
    kit = Kit(sandbox.state, namespace="offsets-tests", cluster="offsets")
    kit.create_cluster()
    kit.apply("KafkaTopic", TOPIC, {"partitions": 1, "replicas": 1})
    kit.ready("KafkaTopic", TOPIC)
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, "running"))
    kit.ready("KafkaMirrorMaker2", NAME)
    yield kit
    kit.remove_cluster(("KafkaMirrorMaker2", NAME), ("KafkaTopic", TOPIC))


@pytest.fixture(scope="module")
def environment(sandbox: Any) -> dict[str, str]:
    return {"KUBECONFIG": str(sandbox.kubeconfig)}


def spec(kit: Kit, state: str) -> dict[str, Any]:
    found = mirror_spec(kit, USER)
    found["mirrors"][0]["sourceConnector"] |= {
        "state": state,
        "listOffsets": {"toConfigMap": {"name": "copy-connector-offsets"}},
        "alterOffsets": {"fromConfigMap": {"name": "copy-connector-offsets"}},
    }
    found["target"]["config"]["offset.flush.interval.ms"] = 1000
    return found


def values(*numbers: int) -> list[str]:
    return [f"record {number}" for number in numbers]


def copied(kit: Kit, *numbers: int) -> None:
    """Wait until the copy holds exactly these records, in this order."""
    wait_until(f"{numbers} in {COPY}", lambda: records.read(kit.client_config(), COPY) == values(*numbers), WITHIN_S)


def test_a_mirror_goes_on_from_where_its_stopped_connector_is_set(kit: Kit, environment: dict[str, str]) -> None:
    records.write(kit.client_config(), TOPIC, values(*range(10)))
    copied(kit, *range(10))
    wait_until(
        "the position is stored",
        lambda: listed(PLACE, SOURCE, environment, print, WITHIN_S) == {(TOPIC, 0): 9},
        WITHIN_S,
    )
    with pytest.raises(OpsError, match="must be stopped before its offsets are altered"):
        alter(PLACE, SOURCE, {(TOPIC, 0): 5}, environment, print, WITHIN_S)

    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, "stopped"))
    alter(PLACE, SOURCE, {(TOPIC, 0): 5}, environment, print, WITHIN_S)
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, "running"))
    copied(kit, *range(10), 6, 7, 8, 9)

    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, "stopped"))
    alter(PLACE, SOURCE, {(TOPIC, 0): 9}, environment, print, WITHIN_S)
    records.write(kit.client_config(), TOPIC, values(10, 11, 12))
    alter(PLACE, SOURCE, {(TOPIC, 0): 11}, environment, print, WITHIN_S)
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, "running"))
    copied(kit, *range(10), 6, 7, 8, 9, 12)
    found = kit.ready("KafkaMirrorMaker2", NAME)
    assert not {OPERATION, CONNECTOR} & set(found["metadata"].get("annotations") or {})


def test_a_forgotten_position_begins_with_the_first_record(kit: Kit, environment: dict[str, str]) -> None:
    before = records.read(kit.client_config(), COPY)
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, "stopped"))
    alter(PLACE, SOURCE, {(TOPIC, 0): -1}, environment, print, WITHIN_S)
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, "running"))
    wanted = [*before, *records.read(kit.client_config(), TOPIC)]
    wait_until("everything once more", lambda: records.read(kit.client_config(), COPY) == wanted, WITHIN_S)


def test_an_error_of_connect_is_reported_verbatim(kit: Kit, environment: dict[str, str]) -> None:
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, "stopped"))
    with pytest.raises(OpsError, match="the operator must alter the offsets") as caught:
        alter(PLACE, SOURCE, {(TOPIC, -7): 1}, environment, print, WITHIN_S)
    assert "cannot be negative" in str(caught.value)
    kit.apply("KafkaMirrorMaker2", NAME, spec(kit, "running"))
    kit.ready("KafkaMirrorMaker2", NAME)
