"""What scraping makes of the reporter's series: the names and labels that the JMX exporter's rules give."""

from typing import Any

import pytest

from monitoring.metrics.catalog import BY_NAME, RELABELLINGS

from .test_scraping import relabelled

LAG = "kafka_consumer_consumer_fetch_manager_metrics_records_lag"
OWN = "es-src->es-tgt|es-src->es-tgt.MirrorSourceConnector-0|replication-consumer"


def series(name: str, **labels: str) -> dict[str, str] | None:
    return relabelled(list(RELABELLINGS), {"__name__": name, **labels})


@pytest.mark.parametrize("name", [LAG, f"{LAG}_max"])
def test_lag_of_a_mirrors_own_consumer_is_labelled_with_its_clusters(name: str) -> None:
    labels = {"client_id": OWN, "topic": "items_inventory", "partition": "0"}
    expected = {"__name__": name, **labels, "source": "es-src", "target": "es-tgt"}
    assert series(name, **labels) == expected
    assert expected.keys() - {"__name__"} == set(BY_NAME[name].labels)
    assert series(name, **labels, source="es-src", target="es-tgt") == expected, "as the JMX exporter tells it"


@pytest.mark.parametrize(
    "changes",
    [
        {"topic": "items.inventory"},
        {"client_id": "connect-cluster-mm2-configs", "topic": "mm2-configs"},
        {"client_id": "es-src->es-tgt|es-src->es-tgt.MirrorCheckpointConnector-0|offset-syncs-source-consumer"},
        {"topic": "", "partition": ""},
    ],
    ids=["a second time, with dots", "Connect's", "the checkpoint connector's", "of a whole consumer"],
)
def test_other_lag_is_dropped(changes: dict[str, str]) -> None:
    assert series(LAG, **{"client_id": OWN, "topic": "items_inventory", "partition": "0", **changes}) is None


@pytest.mark.parametrize("name", ["kafka_connect_connector_metrics_status", "kafka_log_log_size", f"{LAG}ging", "up"])
def test_everything_else_stays_as_it_is(name: str) -> None:
    labels: dict[str, Any] = {"topic": "a.b", "connector": "es-src->es-tgt.MirrorSourceConnector"}
    assert series(name, **labels) == {"__name__": name, **labels}
