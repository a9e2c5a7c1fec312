"""Topics that a mirror keeps for itself, made before it starts where clusters do not create topics by themselves."""

from typing import Any

from ...support.pulumi_engine import Engine, mirror, target, up


def declared(**settings: Any) -> dict[str, dict[str, Any]]:
    """Specs of the topics that are made for a mirror, by their names in Kafka."""
    engine = Engine()
    up(engine, target(mirrors=[mirror(internalTopics="declared", **settings)]))
    found = {}
    for (kind, name), inputs in engine.resources.items():
        if kind == "v1:KafkaTopic":
            spec = inputs["spec"]
            found[spec.get("topicName", inputs["metadata"]["name"])] = spec
            assert name.startswith("internal-topics-")
            assert inputs["metadata"]["labels"] == {"strimzi.io/cluster": "kafka-stg"}
    return found


def topic(partitions: int, replicas: int = 3) -> dict[str, Any]:
    config = {"cleanup.policy": "compact", "segment.ms": 21_600_000}
    return {"partitions": partitions, "replicas": replicas, "config": config}


USUAL = {
    "mm2-configs": topic(1),
    "mm2-offsets": topic(25),
    "mm2-status": topic(5),
    "mm2-offset-syncs.es-src.internal": topic(1),
    "es-src.checkpoints.internal": topic(1),
}


def test_all_are_compacted_and_have_the_partitions_that_connect_expects() -> None:
    assert declared() == USUAL


def test_the_replication_factor_is_the_mirrors() -> None:
    assert {spec["replicas"] for spec in declared(replicationFactor=3).values()} == {3}


def test_names_that_are_set_and_the_separator_are_taken_over() -> None:
    found = declared(offsetStorageTopic="Own_Offsets", naming="prefixed", separator="_")
    assert found["Own_Offsets"] == {**topic(25), "topicName": "Own_Offsets"}
    assert {"mm2-offset-syncs_es-src_internal", "es-src_checkpoints_internal"} <= set(found)


def test_offset_syncs_on_the_source_are_that_clusters_matter() -> None:
    assert declared(offsetSyncsLocation="source") == {
        name: spec for name, spec in USUAL.items() if "offset-syncs" not in name
    }


def test_mirrors_of_one_source_share_its_checkpoints_and_each_topic_is_made_once() -> None:
    engine = Engine()
    flows = [mirror(name=name, internalTopics="declared") for name in ("a", "b")]
    up(engine, target(mirrors=flows))
    assert len(engine.all("v1:KafkaTopic")) == 3 + 3 + 2


def test_a_mirror_that_may_create_topics_has_none_declared() -> None:
    engine = Engine()
    up(engine, target())
    assert "v1:KafkaTopic" not in engine.kinds()


def test_the_list_of_topics_that_others_read_holds_the_declared_ones_only() -> None:
    topics = [{"name": "audit", "partitions": 1, "replicas": 3}]
    seen = up(Engine(), target(topics=topics, mirrors=[mirror(internalTopics="declared")]))
    assert seen.exports["topics"] == ["audit"]


def test_the_verification_is_reported_the_names_that_the_mirror_makes_without_a_separator() -> None:
    settings = target(mirrors=[mirror(separator="", offsetSyncsLocation="source")])
    found = up(Engine(), settings).exports["verificationRequests"]["mm2"]["mirror"]
    assert found["offset_syncs_topic"] == {"name": "mm2-offset-syncses-tgtinternal", "location": "source"}
    assert {"mm2-offset-syncses-tgtinternal", "es-srccheckpointsinternal"} <= {
        each["name"] for each in found["internal_topics"]
    }
