"""Overrides of a spec and components: what is rendered with them, and that nothing rendered can be overridden."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from components.dialects import dialect
from settings.platform import Platform
from settings.rules.common import conflicts, owned_by_cluster, owned_by_mirror

from ...support.component_settings import V1, V1BETA2, cluster, event_streams, mirror, mirror_spec

OLD, NEW = event_streams("11.0.0"), event_streams("12.0.0")
PLATFORMS = pytest.mark.parametrize("platform", [V1, V1BETA2, OLD, NEW], ids=["v1", "v1beta2", "es-11", "es-12"])
EXPORTER = {"type": "jmxPrometheusExporter", "configMap": "metrics", "key": "connect.yml"}
RESOURCES = {"requests": {"cpu": 1, "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
EVERYTHING: dict[str, Any] = {
    "metrics": EXPORTER,
    "resources": RESOURCES,
    "rack": {"topologyKey": "zone"},
}
COMPONENTS: dict[str, Any] = {"adminUI": {"replicas": 2, "resources": RESOURCES}, "adminApi": {}, "restProducer": {}}
FREE = {
    "image": "registry.example.com/kafka:1",
    "template": {"pod": {"imagePullSecrets": [{"name": "pull"}]}},
    "jvmOptions": {"-XX": {"UseG1GC": True}},
    "logging": {"type": "inline", "loggers": {"rootLogger.level": "WARN"}},
}


def cluster_spec(platform: Platform, **settings: Any) -> dict[str, Any]:
    """Spec of the resource that is waited for."""
    found = dialect(platform).cluster(cluster(**settings), platform.kafka_version, platform)[-1].spec
    return dict(found)


def leaves(spec: Mapping[str, Any], way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in spec.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*way, key))
        else:
            yield (*way, key), value


def nested(way: tuple[str, ...], value: Any) -> dict[str, Any]:
    for step in reversed(way):
        value = {step: value}
    return dict(value)


ZOOKEEPERS = ("strimziOverrides", "zookeeper", "resources")


@PLATFORMS
def test_nothing_that_is_rendered_for_a_cluster_can_be_overridden(platform: Platform) -> None:
    ibm = {"components": COMPONENTS} if platform.type == "event-streams" else {}
    settings = cluster(superUsers=["admin"], config={"log.retention.ms": 1}, **EVERYTHING, **ibm)
    spec = dialect(platform).cluster(settings, platform.kafka_version, platform)[-1].spec
    rendered = list(leaves(spec))
    assert len(rendered) > 10
    owned = owned_by_cluster(platform, settings.components)
    for way, _ in rendered:
        given_as_a_whole = way[:3] == ZOOKEEPERS  # no setting stands for them, see test_event_streams.py
        assert bool(conflicts(nested(way, "mine"), owned)) != given_as_a_whole, way


@PLATFORMS
def test_nothing_that_is_rendered_for_a_mirror_can_be_overridden(platform: Platform) -> None:
    settings = mirror(jvm={"xms": "1g", "xmx": "2g"}, logLevel="INFO", **EVERYTHING)
    owned = owned_by_mirror(platform, heap=settings.jvm.options, log_level=settings.log_level)
    rendered = list(leaves(mirror_spec(platform, settings)))
    assert len(rendered) > 10
    for way, _ in rendered:
        assert conflicts(nested(way, "mine"), owned), way


@PLATFORMS
def test_fields_without_a_setting_are_added_to_brokers_and_workers(platform: Platform) -> None:
    plain, ours = mirror_spec(platform, mirror()), mirror_spec(platform, mirror(specOverrides=FREE))
    assert {key: ours[key] for key in ("image", "jvmOptions", "logging")} == {
        key: FREE[key] for key in ("image", "jvmOptions", "logging")
    }
    pod = ours["template"]["pod"]
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    if "template" in plain:  # the annotations of the license service stay
        assert pod["metadata"] == plain["template"]["pod"]["metadata"]
    begin = ("strimziOverrides",) if platform.type == "event-streams" else ()
    spec = cluster_spec(platform, specOverrides=nested((*begin, "kafka"), FREE))
    for step in (*begin, "kafka"):
        spec = spec[step]
    assert {key: spec[key] for key in FREE} == FREE
    assert spec["config"]["default.replication.factor"] == 3


def test_components_of_event_streams_are_rendered_as_they_are_given() -> None:
    components = {**COMPONENTS, "apicurioRegistry": {"enabled": False, "replicas": 3}}
    login = {"adminUI": {"authentication": [{"type": "scram-sha-512"}]}}
    spec = cluster_spec(NEW, components=components, specOverrides=login)
    assert spec["adminUI"] == {"replicas": 2, "resources": RESOURCES, "authentication": [{"type": "scram-sha-512"}]}
    assert (spec["adminApi"], spec["restProducer"]) == ({}, {})
    assert "apicurioRegistry" not in spec
    assert not {"adminUI", "adminApi", "restProducer", "apicurioRegistry"} & set(cluster_spec(NEW))
