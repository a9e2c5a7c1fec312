"""Annotations of the settings reach the resources that they render to, beneath those that the program itself sets."""

from typing import Any

import pytest

from components.dialects import dialect
from settings.platform import Platform

from ...support.component_settings import V1, V1BETA2, cluster, event_streams
from ...support.pulumi_engine import Engine, mirror, target, up
from ...support.recorded_program import STATUS

KRAFT = {"strimzi.io/kraft": "enabled", "strimzi.io/node-pools": "enabled"}
PLATFORMS: dict[str, dict[str, Any]] = {
    "v1": {"type": "strimzi", "version": "1.2.0"},
    "v1beta2": {"type": "strimzi", "version": "0.51.0"},
    "event-streams": {"type": "event-streams", "version": "12.0.0", "license": {"accept": True}},
}
STACK = target(
    cluster={"name": "kafka-stg", "namespace": "stg", "protect": False, "annotations": {"example.com/of": "cluster"}},
    users=[{"name": "writer", "annotations": {"example.com/of": "user"}}, {"name": "other"}],
    topics=[
        {"name": "audit", "partitions": 1, "replicas": 3, "annotations": {"example.com/of": "topic"}},
        {"name": "plain", "partitions": 1, "replicas": 3},
    ],
    mirrors=[
        mirror(annotations={"example.com/of": "mirror"}, reverse={"topics": ["back"]}, naming="prefixed"),
        mirror(name="second", naming="prefixed"),
    ],
)


def annotations(engine: Engine) -> dict[tuple[str, str], dict[str, str]]:
    """What each custom resource is annotated with, by kind and name, without the waits."""
    return {
        (inputs["kind"], inputs["metadata"]["name"]): {
            key: value
            for key, value in inputs["metadata"].get("annotations", {}).items()
            if not key.startswith("pulumi.com/")
        }
        for inputs in engine.resources.values()
        if str(inputs.get("kind")).startswith(("Kafka", "EventStreams"))
    }


@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_item_annotates_its_own_resource_and_a_mirror_both_directions(platform: str) -> None:
    engine = Engine(status={**STATUS, "kafkaListeners": STATUS["listeners"]})
    up(engine, {**STACK, "platform": PLATFORMS[platform]})
    found = annotations(engine)
    of = {"KafkaNodePool": "cluster", "Kafka": "cluster", "EventStreams": "cluster"}
    expected = {place: {"example.com/of": of[place[0]]} for place in found if place[0] in of}
    assert {kind for kind, _ in expected} == (
        {"EventStreams"} if platform == "event-streams" else {"Kafka", "KafkaNodePool"}
    )
    assert found == {
        **expected,
        ("KafkaUser", "writer"): {"example.com/of": "user"},
        ("KafkaUser", "other"): {},
        ("KafkaTopic", "audit"): {"example.com/of": "topic"},
        ("KafkaTopic", "plain"): {},
        ("KafkaMirrorMaker2", "mm2"): {"example.com/of": "mirror"},
        ("KafkaMirrorMaker2", "mm2-reverse"): {"example.com/of": "mirror"},
        ("KafkaMirrorMaker2", "second"): {},
    }


def test_pulumi_waits_as_it_does_without_annotations() -> None:
    annotated, plain = Engine(), Engine()
    up(annotated, STACK)
    up(plain, target(**{**STACK, "topics": [{"name": "audit", "partitions": 1, "replicas": 3}]}))
    waits = {"pulumi.com/waitFor", "pulumi.com/timeoutSeconds"}
    with_, without = (
        each.all("v1:KafkaTopic")["stg", "audit"]["metadata"]["annotations"] for each in (annotated, plain)
    )
    assert set(with_) == {*waits, "example.com/of"}
    assert {key: with_[key] for key in waits} == without


def test_a_pool_adds_its_annotations_to_the_clusters_and_its_own_win() -> None:
    pools = [
        {"name": "brokers", "replicas": 3, "annotations": {"a/pool": "brokers", "a/both": "pool"}},
        {"name": "more", "replicas": 1},
    ]
    settings = cluster(annotations={"a/both": "cluster"}, nodePools=pools)
    for platform in (V1, V1BETA2):
        brokers, more, kafka = dialect(platform).cluster(settings, "4.3.1", platform)
        assert brokers.annotations == {"a/pool": "brokers", "a/both": "pool"}
        assert more.annotations == kafka.annotations == {"a/both": "cluster"}


def test_annotations_stand_beside_those_of_the_last_release_with_zookeeper() -> None:
    oldest, own = Platform(version="0.45.0"), {"example.com/of": "cluster"}
    *_, kafka = dialect(oldest).cluster(cluster(annotations=own), "3.9.0", oldest)
    assert kafka.annotations == {**own, **KRAFT}


def test_pools_inside_event_streams_have_no_annotations() -> None:
    settings, platform = cluster(annotations={"example.com/of": "cluster"}), event_streams("12.0.0")
    (streams,) = dialect(platform).cluster(settings, "4.0.0", platform)
    assert streams.annotations == {"example.com/of": "cluster"}
    assert [set(pool) for pool in streams.spec["strimziOverrides"]["nodePools"]] == [
        {"name", "replicas", "roles", "storage"}
    ]


def test_declared_internal_topics_have_the_annotations_of_all_mirrors_that_use_them() -> None:
    engine = Engine()
    first = mirror(name="a", internalTopics="declared", annotations={"example.com/a": "1"})
    second = mirror(name="b", internalTopics="declared", annotations={"example.com/b": "2"})
    up(engine, target(mirrors=[first, second]))
    found = {name: each for (kind, name), each in annotations(engine).items() if kind == "KafkaTopic"}
    assert found["a-offsets"] == {"example.com/a": "1"}
    assert found["b-offsets"] == {"example.com/b": "2"}
    assert found["es-src.checkpoints.internal"] == {"example.com/a": "1", "example.com/b": "2"}


def test_no_proof_depends_on_annotations() -> None:
    def trigger(**own: Any) -> Any:
        engine = Engine()
        users = [{"name": "writer", **own}]
        up(engine, target(users=users, mirrors=[mirror(**own)], verification={"when": "on-change"}))
        (run,) = [inputs for (_, name), inputs in engine.resources.items() if name.endswith("-verification-run")]
        return run["trigger"]

    assert trigger() == trigger(annotations={"example.com/of": "both"}) != trigger(readySeconds=1)
