"""Metrics as the program wires them: whose rules, where they lie, and that they are there before they are read."""

from typing import Any

import pytest
import yaml

from monitoring.metrics import catalog

from ...support.component_settings import mirror as settings_of
from ...support.pulumi_engine import Engine, mirror, target, up
from ...support.recorded_program import STATUS

JMX = {"type": "jmxPrometheusExporter"}
EVENT_STREAMS = {"type": "event-streams", "version": "12.0.0", "license": {"accept": True}}
STRIMZI_045 = {"type": "strimzi", "version": "0.45.0"}
CLUSTER = {"name": "kafka-stg", "namespace": "stg", "protect": False}
MAPS, MIRRORS = "v1:ConfigMap", "KafkaMirrorMaker2"


def made(*mirrors: dict[str, Any], **settings: Any) -> Engine:
    engine = Engine()
    up(engine, target(mirrors=list(mirrors), **settings))
    return engine


def read_of(spec: dict[str, Any]) -> tuple[str, str]:
    """ConfigMap and key that a spec's exporter reads."""
    assert spec["metricsConfig"]["type"] == "jmxPrometheusExporter"
    reference = spec["metricsConfig"]["valueFrom"]["configMapKeyRef"]
    return reference["name"], reference["key"]


def test_a_mirror_reads_the_stack_s_own_rules() -> None:
    engine = made(mirror(metrics=JMX))
    assert list(engine.all(MAPS)) == [("stg", "mm2-mirrormaker2-metrics")]
    written = engine.all(MAPS)["stg", "mm2-mirrormaker2-metrics"]
    name, key = read_of(engine.all(f"v1:{MIRRORS}")["stg", "mm2"]["spec"])
    assert name == written["metadata"]["name"]
    assert written["data"] == {key: catalog.jmx_rules(catalog.JMX_WORKERS)}
    assert written["metadata"]["labels"]["app.kubernetes.io/instance"] == "mm2"


def test_brokers_read_rules_of_their_own() -> None:
    engine = made(mirror(), cluster={**CLUSTER, "metrics": JMX})
    name, key = read_of(engine.one("v1:Kafka")["spec"]["kafka"])
    assert engine.all(MAPS)["stg", name]["data"] == {key: catalog.jmx_rules(catalog.JMX_BROKERS)}
    assert len(engine.all(MAPS)) == 1


def test_a_cluster_and_a_mirror_of_one_name_do_not_share_rules() -> None:
    engine = made(mirror(name="kafka-stg", metrics=JMX), cluster={**CLUSTER, "metrics": JMX})
    assert len(engine.all(MAPS)) == 2


@pytest.mark.parametrize(
    ("resource", "map_name"), [("mm2-mirror", "mm2-metrics-rules"), ("cluster-kafka", "cluster-metrics-rules")]
)
def test_the_rules_are_there_before_they_are_read(resource: str, map_name: str) -> None:
    engine = made(mirror(metrics=JMX), cluster={**CLUSTER, "metrics": JMX})
    assert any(urn.endswith(f"::{map_name}") for urn in engine.asked(resource).dependencies)


def test_other_rules_are_read_where_they_are_and_none_are_written() -> None:
    other = {**JMX, "configMap": "ours", "key": "rules"}
    engine = made(mirror(metrics=other), cluster={**CLUSTER, "metrics": other})
    assert read_of(engine.all(f"v1:{MIRRORS}")["stg", "mm2"]["spec"]) == ("ours", "rules")
    assert read_of(engine.one("v1:Kafka")["spec"]["kafka"]) == ("ours", "rules")
    assert not engine.all(MAPS)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"naming": "prefixed", "reverse": {"topics": ["back"]}}, {"mm2", "mm2-reverse"}),
        ({"active": "target", "state": "stopped", "failback": "prepared"}, {"mm2", "mm2-failback"}),
    ],
    ids=["reverse", "failback"],
)
@pytest.mark.parametrize("namespace", [None, "mirrors"])
def test_each_direction_reads_rules_beside_itself(
    settings: dict[str, Any], names: set[str], namespace: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RT_INVENTORY_SWITCH", "mm2")
    engine = made(mirror(metrics=JMX, **({"namespace": namespace} if namespace else {}), **settings))
    found = engine.all(f"v1:{MIRRORS}")
    assert {name for _, name in found} == names
    places = {(place[0], read_of(inputs["spec"])[0]) for place, inputs in found.items()}
    assert places == set(engine.all(MAPS)) == {(namespace or "stg", f"{name}-mirrormaker2-metrics") for name in names}


@pytest.mark.parametrize("platform", [EVENT_STREAMS, STRIMZI_045], ids=["event-streams", "v1beta2"])
def test_every_platform_reads_them(platform: dict[str, Any]) -> None:
    engine = Engine(status={**STATUS, "kafkaListeners": STATUS["listeners"]})
    up(engine, target(mirrors=[mirror(metrics=JMX)], cluster={**CLUSTER, "metrics": JMX}, platform=platform))
    kind = "v1beta2:EventStreams" if platform is EVENT_STREAMS else "v1beta2:Kafka"
    spec = engine.one(kind)["spec"]
    kafka = spec["strimziOverrides"]["kafka"] if platform is EVENT_STREAMS else spec["kafka"]
    read = {read_of(kafka), read_of(engine.all(f"v1beta2:{MIRRORS}")["stg", "mm2"]["spec"])}
    assert {name for name, _ in read} == {name for _, name in engine.all(MAPS)}


def test_a_preview_before_anything_is_there_knows_them() -> None:
    engine = Engine(preview=True)
    up(engine, target(mirrors=[mirror(metrics=JMX)], cluster={**CLUSTER, "metrics": JMX}))
    assert len(engine.all(MAPS)) == 2


def test_the_reporter_needs_no_rules_and_exposes_what_the_catalogue_holds() -> None:
    engine = made(mirror(metrics={"type": "strimziMetricsReporter"}))
    allowed = engine.all(f"v1:{MIRRORS}")["stg", "mm2"]["spec"]["metricsConfig"]["values"]["allowList"]
    assert "kafka_connect_connector_metrics_status" in allowed
    assert not any("," in expression for expression in allowed), "the operator joins them by commas"
    assert not engine.all(MAPS)


@pytest.mark.parametrize(("version", "expected"), [("1.2.0", True), ("0.51.0", False)])
def test_where_the_reporter_leaves_mirrormaker_s_consumers_out_they_report_by_themselves(
    version: str, expected: bool
) -> None:
    platform = {"type": "strimzi", "version": version}
    own = {"fetch.max.bytes": 5}
    engine = made(mirror(metrics={"type": "strimziMetricsReporter"}, consumer=own), platform=platform)
    (inputs,) = [inputs for (kind, _), inputs in engine.resources.items() if kind.endswith(MIRRORS)]
    config = inputs["spec"]["mirrors"][0]["sourceConnector"]["config"]
    assert config["consumer.fetch.max.bytes"] == 5
    assert ("consumer.metric.reporters" in config) is expected
    assert config.get("consumer.prometheus.metrics.reporter.listener.enable", "unset") == (
        False if expected else "unset"
    )


def test_what_was_taken_over_keeps_a_reporter_that_exposes_everything() -> None:
    engine = made(
        mirror(metrics={"type": "strimziMetricsReporter"}, configDefaults=False, offsetSyncsLocation="source")
    )
    spec = engine.all(f"v1:{MIRRORS}")["stg", "mm2"]["spec"]
    assert spec["metricsConfig"] == {"type": "strimziMetricsReporter"}


def test_without_metrics_nothing_is_written() -> None:
    assert not made(mirror()).all(MAPS)


@pytest.mark.parametrize(("version", "expected"), [("0.45.0", True), ("0.51.0", False)])
def test_a_kafka_that_leaves_the_source_out_of_its_metrics_is_reported_to_name_it(version: str, expected: bool) -> None:
    engine = made(mirror(metrics=JMX), platform={"type": "strimzi", "version": version})
    kind = "v1beta2" if f"v1beta2:{MIRRORS}" in {kind for kind, _ in engine.resources} else "v1"
    config = engine.all(f"{kind}:{MIRRORS}")["stg", "mm2"]["spec"]["mirrors"][0]["sourceConnector"]["config"]
    assert config.get("add.source.alias.to.metrics", False) is expected


def test_the_rules_are_yaml_that_the_exporter_can_read() -> None:
    assert {"rules", "includeObjectNames"} <= set(yaml.safe_load(catalog.jmx_rules(catalog.JMX_BROKERS)))
    assert settings_of(metrics=JMX).metrics_rules == "mm2-mirrormaker2-metrics"
