"""The JMX exporter's rules: names and labels of the catalogue, whatever the MBeans' values hold, and never a NaN."""

import re
from pathlib import Path

import pytest

from monitoring.metrics import catalog
from monitoring.metrics.catalog import BY_NAME, Exporter, Kind, Part, of_part

from ...support.jmx_exporter import exported, let_in, rules

BEANS = Path(__file__).parent / "beans"
FILES = {catalog.JMX_WORKERS: Part.WORKER, catalog.JMX_BROKERS: Part.BROKER}
SOURCE = "kafka.connect.mirror<type=MirrorSourceConnector, source=es-src, target=es-tgt, topic={topic}, partition=1>"
CHECKPOINT = (
    "kafka.connect.mirror<type=MirrorCheckpointConnector, source=es-src, target=es-tgt, group={group}, "
    "topic=items.inventory, partition=0>"
)
CLIENT = "es-src->es-tgt|es-src->es-tgt.MirrorSourceConnector-0|replication-consumer"


def beans(file: str) -> list[str]:
    """Attributes of a live worker or broker, as the exporter sees them; values are made up."""
    return (BEANS / file).with_suffix(".txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("file", FILES)
def test_every_rule_fits_something_that_lives(file: str) -> None:
    used = {found.rule for text in beans(file) if (found := exported(file, text))}
    assert used == set(range(len(rules(file))))


@pytest.mark.parametrize("file", FILES)
def test_all_that_lives_and_is_let_in_has_a_name_of_the_catalogue_and_its_labels(file: str) -> None:
    for text in beans(file):
        found = exported(file, text)
        if found is None:
            continue
        metric = BY_NAME[found.name]
        # A counter of all topics has no topic.
        assert found.labels.keys() <= set(metric.labels), text
        assert set(metric.labels) - found.labels.keys() <= {"topic"}, text
        assert metric.part is FILES[file]


@pytest.mark.parametrize("file", FILES)
def test_the_exporter_reads_every_bean_that_a_rule_names(file: str) -> None:
    named = [text for text in beans(file) if exported(file, text)]
    assert [text for text in named if not let_in(file, text)] == []
    assert not let_in(file, "java.lang<type=Memory><>Verbose: 0")


@pytest.mark.parametrize("file", FILES)
def test_the_catalogue_holds_nothing_that_no_rule_gives(file: str) -> None:
    given = {found.name for text in beans(file) if (found := exported(file, text))}
    wanted = {each.name for each in of_part(FILES[file]) if Exporter.JMX in each.exporters and each.group}
    assert wanted == given


@pytest.mark.parametrize("file", FILES)
def test_no_value_that_is_not_a_number_becomes_a_series(file: str) -> None:
    for text in beans(file):
        head, _, value = text.rpartition(": ")
        if re.fullmatch(r"-?[\d.E]+", value):
            meters = exported(file, text)
            nan = exported(file, f"{head}: NaN")
            # Counts are whole numbers, which cannot be NaN.
            assert nan is None or (meters and head.endswith(("Count", "count", "failure-total"))), text


@pytest.mark.parametrize("file", FILES)
def test_kinds_are_those_of_the_catalogue(file: str) -> None:
    for text in beans(file):
        if found := exported(file, text):
            counts = rules(file)[found.rule]["type"] == "COUNTER"
            assert counts == (BY_NAME[found.name].kind is Kind.COUNTER)


@pytest.mark.parametrize("topic", ["items", "items.inventory", "store_inventory-2", "es-src.items"])
def test_topics_may_have_dots(topic: str) -> None:
    found = exported(catalog.JMX_WORKERS, f"{SOURCE.format(topic=topic)}<>record-age-ms-avg: 12.5")
    assert found is not None
    assert found.name == "kafka_connect_mirror_mirrorsourceconnector_record_age_ms_avg"
    assert found.labels == {"source": "es-src", "target": "es-tgt", "topic": topic, "partition": "1"}


def test_a_kafka_that_reports_no_source_is_understood() -> None:
    text = SOURCE.format(topic="items").replace(" source=es-src,", "")
    found = exported(catalog.JMX_WORKERS, f"{text}<>record-count: 1.0")
    assert found is not None
    assert found.labels == {"target": "es-tgt", "topic": "items", "partition": "1"}


@pytest.mark.parametrize(
    ("group", "reported"),
    [
        ("readers", "readers"),
        ("my readers", "my readers"),
        ('"a,b"', "a,b"),
        ('"a=b:c"', "a=b:c"),
        (r'"a\"b"', r"a\"b"),
        (r'"ends with \""', r"ends with \""),
        ('"x, topic=y, partition=1"', "x, topic=y, partition=1"),
        ('"größer"', "größer"),
    ],
)
def test_groups_may_be_called_anything(group: str, reported: str) -> None:
    found = exported(catalog.JMX_WORKERS, f"{CHECKPOINT.format(group=group)}<>checkpoint-latency-ms: 4.0")
    assert found is not None
    assert found.labels["group"] == reported
    assert (found.labels["topic"], found.labels["partition"]) == ("items.inventory", "0")


def test_aliases_may_stand_in_quotes() -> None:
    text = SOURCE.format(topic="items").replace("es-src", '"s>t"').replace("es-tgt", '"t|u"')
    found = exported(catalog.JMX_WORKERS, f"{text}<>record-count: 1.0")
    assert found is not None
    assert (found.labels["source"], found.labels["target"]) == ("s>t", "t|u")


@pytest.mark.parametrize("status", ["running", "paused", "stopped", "failed", "unassigned", "restarting", "destroyed"])
def test_every_state_of_a_connector_and_a_task_becomes_a_label(status: str) -> None:
    name = '"es-src->es-tgt.MirrorSourceConnector"'
    for kind, task in (("connector-metrics", ""), ("connector-task-metrics", ", task=0")):
        found = exported(catalog.JMX_WORKERS, f"kafka.connect<type={kind}, connector={name}{task}><>status: {status}")
        assert found is not None
        assert found.name == f"kafka_connect_{kind.replace('-', '_')}_status"
        assert found.labels["status"] == status
        assert found.labels["connector"] == "es-src->es-tgt.MirrorSourceConnector"
        assert rules(catalog.JMX_WORKERS)[found.rule]["value"] == 1


def test_lag_is_labelled_with_the_two_clusters_of_the_consumer() -> None:
    bean = f'kafka.consumer<type=consumer-fetch-manager-metrics, client-id="{CLIENT}", topic=items, partition=0>'
    found = exported(catalog.JMX_WORKERS, f"{bean}<>records-lag: 7.0")
    assert found is not None
    expected = {"client_id": CLIENT, "source": "es-src", "target": "es-tgt", "topic": "items", "partition": "0"}
    assert found.labels == expected


@pytest.mark.parametrize("attribute", ["records-lag", "records-lag-max"])
def test_lag_of_a_topic_with_dots_is_reported_once(attribute: str) -> None:
    bean = f'kafka.consumer<type=consumer-fetch-manager-metrics, client-id="{CLIENT}", topic={{}}, partition=0>'
    found = [exported(catalog.JMX_WORKERS, f"{bean.format(topic)}<>{attribute}: 7.0") for topic in ("a.b-c", "a_b-c")]
    assert [each and each.labels["topic"] for each in found] == [None, "a_b-c"]


def test_a_replica_on_its_way_to_another_disk_is_left_out() -> None:
    bean = "kafka.log<type=Log, name=Size, topic=items, partition=0"
    assert exported(catalog.JMX_BROKERS, f"{bean}><>Value: 5") is not None
    assert exported(catalog.JMX_BROKERS, f"{bean}, is-future=true><>Value: 5") is None


def test_a_meter_without_a_topic_is_that_of_all() -> None:
    bean = "kafka.server<type=BrokerTopicMetrics, name=BytesInPerSec{}><>Count: 5"
    all_, one = (exported(catalog.JMX_BROKERS, bean.format(more)) for more in ("", ", topic=items.inventory"))
    assert all_ is not None
    assert one is not None
    assert all_.name == one.name == "kafka_server_brokertopicmetrics_bytesinpersec_total"
    assert (all_.labels, one.labels) == ({}, {"topic": "items.inventory"})


@pytest.mark.parametrize("file", FILES)
def test_rules_use_the_groups_that_they_have(file: str) -> None:
    for rule in rules(file):
        used = re.findall(r"\$(\d+)", " ".join([rule["name"], *rule.get("labels", {}).values()]))
        assert {int(number) for number in used} == set(range(1, re.compile(rule["pattern"]).groups + 1))


@pytest.mark.parametrize("file", FILES)
def test_lines_of_rules_are_short(file: str) -> None:
    assert max(len(line) for line in catalog.jmx_rules(file).splitlines()) <= 120
