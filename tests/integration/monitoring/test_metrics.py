"""What live brokers and workers expose: every rule fits, names and labels are the catalogue's, and nothing is NaN.

Each rule writes its number into a label of its series, so that what it fits can be counted.
"""

import copy
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition
from kubernetes import client
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from monitoring.metrics import PROCESSES, catalog
from monitoring.metrics.catalog import (
    BY_NAME,
    RELABELLINGS,
    Exporter,
    Metric,
    Part,
    allow_list,
    consumer_config,
    of_part,
)
from sandbox.state import read_json
from settings.cluster import RULES_KEY
from tests.support.http_client import HTTP
from tests.support.producers import RaisingProducer
from tests.support.small_cluster import PASSWORD, Kit, mirror_spec
from tests.support.waiting import wait_until
from tests.unit.monitoring.test_scraping import relabelled

from ...support import records
from ...support.running_sandbox import Sandbox

MIRROR = "watched"
SCRAPES = 4
TOPICS = ("mirrored", "mirrored.by-dots")
GROUP = 'the "readers" of=all:them*'  # MirrorMaker takes a name with a comma for two
RULE = "rule"  # the label with a rule's number
LEFT_OUT = "left_out_of_nan"
# Fits what no rule before it fits: what is NaN on a live worker shows that those rules do leave it out.
CONTROL = {"pattern": "kafka.*<>[a-z-]+: NaN", "name": LEFT_OUT, "value": 1, "type": "GAUGE"}
FILES = {Part.WORKER: catalog.JMX_WORKERS, Part.BROKER: catalog.JMX_BROKERS}
PARTS = pytest.mark.parametrize("part", list(FILES))


def numbered(file: str) -> str:
    """The rules of a file, each with its number in a label."""
    found = yaml.safe_load(catalog.jmx_rules(file))
    for number, rule in enumerate(found["rules"]):
        rule["labels"] = {**rule.get("labels", {}), RULE: str(number)}
    return yaml.safe_dump({**found, "rules": [*found["rules"], CONTROL]}, width=10_000)


def reading(config_map: str) -> dict[str, Any]:
    reference = {"name": config_map, "key": RULES_KEY}
    return {"type": "jmxPrometheusExporter", "valueFrom": {"configMapKeyRef": reference}}


@pytest.fixture(scope="module")
def kit(sandbox: Sandbox) -> Iterator[Kit]:
    """A broker and a worker that copies its records to itself, both exposed by the project's rules."""
    kit = Kit(sandbox.state, namespace="metrics-tests", cluster="watched")
    kit.core.create_namespace({"metadata": {"name": kit.namespace}})
    for part, file in FILES.items():
        body = client.V1ConfigMap(metadata={"name": part.value}, data={RULES_KEY: numbered(file)})
        kit.core.create_namespaced_config_map(kit.namespace, body)
    kit.create_cluster(metricsConfig=reading(Part.BROKER.value))
    for topic in TOPICS:
        kit.apply("KafkaTopic", topic, {"partitions": 2, "replicas": 1})
        kit.ready("KafkaTopic", topic)
    send(kit)
    kit.secret("source-password", {"password": PASSWORD})
    kit.apply("KafkaMirrorMaker2", MIRROR, {**spec(kit), "metricsConfig": reading(Part.WORKER.value)})
    kit.ready("KafkaMirrorMaker2", MIRROR)
    yield kit
    kit.remove_cluster(("KafkaMirrorMaker2", MIRROR), *(("KafkaTopic", topic) for topic in TOPICS))


def spec(kit: Kit) -> dict[str, Any]:
    """A mirror that refreshes topics and groups, commits and writes checkpoints all the time."""
    found = copy.deepcopy(mirror_spec(kit, "source-password"))
    found["target"]["config"]["offset.flush.interval.ms"] = 1000
    flow = found["mirrors"][0]
    flow["topicsPattern"] = "mirrored.*"
    flow["sourceConnector"]["config"] |= {"refresh.topics.interval.seconds": 1, "offset.lag.max": 0}
    flow["checkpointConnector"]["config"] |= {
        "refresh.groups.interval.seconds": 1,
        "emit.checkpoints.interval.seconds": 1,
        "sync.group.offsets.interval.seconds": 1,
    }
    return found


def send(kit: Kit) -> None:
    """Records in every topic, and a group that has read them: what is behind may have no translation."""
    producer = RaisingProducer(kit.client_config())
    for topic in TOPICS:
        for number in range(20):
            producer.produce(topic, key=str(number), value="x", partition=number % 2)
    producer.deliver()
    reader = Consumer({**kit.client_config(), "group.id": GROUP, "enable.auto.commit": False})
    for part in [TopicPartition(topic, partition) for topic in TOPICS for partition in range(2)]:
        _, part.offset = reader.get_watermark_offsets(part, timeout=10)
        records.commit(reader, [part])
    reader.close()


def address(kit: Kit, part: Part) -> str:
    if part is Part.BROKER:
        port = read_json(kit.folder() / "layout.json")["nodes"][0]["ports"]["metrics"]
    else:
        port = read_json(kit.state.mirrors / kit.namespace / MIRROR / "layout.json")["metrics_ports"]["0"]
    return f"http://127.0.0.1:{port}/metrics"


def wanted(part: Part, exporter: Exporter) -> set[str]:
    """What must be there: of a part, and of any Java process."""
    metrics: list[Metric] = [*of_part(part), *PROCESSES]
    return {each.name for each in metrics if exporter in each.exporters and each.always}


def scraped(kit: Kit, part: Part, exporter: Exporter = Exporter.JMX) -> list[Family]:
    """All series of a process, once it shows everything that it must; records keep coming."""
    families: list[Family] = []

    def missing() -> set[str]:
        send(kit)
        families[:] = text_string_to_metric_families(HTTP.get(address(kit, part), timeout=30).text)
        return wanted(part, exporter) - {renamed(sample.name) for each in families for sample in each.samples}

    wait_until(f"all metrics of {part}", lambda: not missing(), every_s=1, otherwise=lambda: str(sorted(missing())))
    return families


def renamed(name: str) -> str:
    """A name as scraping leaves it: the reporter writes states as infos."""
    return name.removesuffix("_info") if name.endswith("_status_info") else name


def of_kafka(families: list[Family]) -> list[Any]:
    return [sample for each in families for sample in each.samples if sample.name.startswith("kafka_")]


@PARTS
def test_every_rule_fits_something(kit: Kit, part: Part) -> None:
    fits = Counter(sample.labels[RULE] for sample in of_kafka(scraped(kit, part)))
    rules = yaml.safe_load(catalog.jmx_rules(FILES[part]))["rules"]
    assert [rule["pattern"] for number, rule in enumerate(rules) if not fits[str(number)]] == []


@PARTS
def test_names_and_labels_are_those_of_the_catalogue(kit: Kit, part: Part) -> None:
    for family in scraped(kit, part):
        for sample in family.samples:
            if not sample.name.startswith("kafka_"):
                continue
            metric, labels = BY_NAME[sample.name], sample.labels.keys() - {RULE}
            assert metric.part is part
            # What is counted of all topics has no topic.
            assert labels <= set(metric.labels), sample
            assert set(metric.labels) - labels <= ({"topic"} if family.type == "counter" else set()), sample
            assert family.type == ("counter" if metric.kind == "counter" else "gauge"), sample


@PARTS
def test_no_series_is_nan_and_no_name_is_a_stray(kit: Kit, part: Part) -> None:
    families = scraped(kit, part)
    assert not [sample for each in families for sample in each.samples if sample.value != sample.value]
    # The exporter adds this where it cannot tell two series of one name apart.
    assert not [sample for sample in of_kafka(families) if "_objectname" in sample.labels]


def test_what_is_nan_is_left_out_on_purpose(kit: Kit) -> None:
    # A group that no record follows has averages of nothing, a worker that just started has no rebalance to average.
    wait_until("something is NaN", lambda: LEFT_OUT in HTTP.get(address(kit, Part.WORKER), timeout=30).text, 90)


def test_topics_with_dots_and_groups_with_any_name_are_reported_as_they_are(kit: Kit) -> None:
    samples = of_kafka(scraped(kit, Part.WORKER))
    copied = {each.labels["topic"] for each in samples if each.name.endswith("_record_count")}
    assert copied == {f"here.{topic}" for topic in TOPICS}
    checkpoints = [each.labels for each in samples if each.name.endswith("_checkpoint_latency_ms")]
    # Java quotes what has a meaning in names of MBeans.
    assert GROUP in {labels["group"].replace("\\", "") for labels in checkpoints}
    assert {(labels["source"], labels["target"]) for labels in checkpoints} == {("here", "there")}
    lag = [each.labels for each in samples if each.name.endswith("_records_lag")]
    assert {(labels["source"], labels["target"]) for labels in lag} == {("here", "there")}
    assert {labels["topic"] for labels in lag} == {topic.replace(".", "_") for topic in TOPICS}


def test_a_scrape_is_cheap(kit: Kit) -> None:
    for part in FILES:
        scraped(kit, part)
        # The shortest of some: others may have both cores in one of them.
        assert min(seconds_of_a_scrape(kit, part) for _ in range(SCRAPES)) < 2


def seconds_of_a_scrape(kit: Kit, part: Part) -> float:
    began = time.monotonic()
    HTTP.get(address(kit, part), timeout=30)
    return time.monotonic() - began


@pytest.mark.nightly
def test_the_reporter_gives_the_same_names_and_nothing_else_of_what_it_is_allowed(kit: Kit) -> None:
    metrics = {"type": Exporter.REPORTER.value, "values": {"allowList": list(allow_list(Part.WORKER))}}
    flows = spec(kit)["mirrors"]
    flows[0]["sourceConnector"]["config"] |= {f"consumer.{key}": value for key, value in consumer_config().items()}
    kit.change(
        "KafkaMirrorMaker2", MIRROR, {"spec": {"metricsConfig": {**metrics, "valueFrom": None}, "mirrors": flows}}
    )
    kit.ready("KafkaMirrorMaker2", MIRROR)
    names = set()
    for sample in of_kafka(scraped(kit, Part.WORKER, Exporter.REPORTER)):
        labels = relabelled(list(RELABELLINGS), {"__name__": sample.name, **sample.labels})
        metric = BY_NAME.get(labels.pop("__name__")) if labels is not None else None
        if labels is None or metric is None:
            # MirrorMaker's connectors report by themselves, without the list of their worker.
            assert labels is None or sample.name.startswith("kafka_connect_mirror_"), sample
            continue
        assert labels.keys() == set(metric.labels)
        names.add(metric.name)
    assert names >= wanted(Part.WORKER, Exporter.REPORTER) - {each.name for each in PROCESSES}
