"""Topics that a mirror keeps for itself: names as the replication policy makes them, partitions as Connect does."""

import pytest

from settings import internal_topics, parse

from .examples import TARGET, Values, with_value

KAFKA = "4.3.1"


def made(path: str = "mirrors/0/name", value: object = "mm2", kafka: str = KAFKA) -> list[tuple[str, int, str]]:
    mirror = parse(with_value(TARGET, path, value)).mirrors[0]
    return [(topic.name, topic.partitions, topic.location) for topic in internal_topics.all_of(mirror, kafka)]


def test_a_mirror_needs_connects_three_topics_the_offset_syncs_and_the_checkpoints() -> None:
    assert made() == [
        ("mm2-configs", 1, "target"),
        ("mm2-offsets", 25, "target"),
        ("mm2-status", 5, "target"),
        ("mm2-offset-syncs.es-src.internal", 1, "target"),
        ("es-src.checkpoints.internal", 1, "target"),
    ]


def test_heartbeats_have_a_topic_where_they_are_emitted() -> None:
    platform: Values = {"apiVersion": "kafka.strimzi.io/v1beta2"}
    mirror = parse(with_value(with_value(TARGET, "mirrors/0/heartbeats", True), "platform", platform)).mirrors[0]
    assert internal_topics.all_of(mirror, KAFKA)[-1] == internal_topics.InternalTopic(name="heartbeats")


def test_offset_syncs_on_the_source_are_named_after_the_target() -> None:
    assert ("mm2-offset-syncs.es-tgt.internal", 1, "source") in made("mirrors/0/offsetSyncsLocation", "source")


@pytest.mark.parametrize(
    ("kafka", "syncs", "checkpoints"),
    [
        ("3.0.1", "mm2-offset-syncs.es-src.internal", "es-src.checkpoints.internal"),
        ("3.1.0", "mm2-offset-syncs_es-src_internal", "es-src_checkpoints_internal"),
        ("4.3.1", "mm2-offset-syncs_es-src_internal", "es-src_checkpoints_internal"),
    ],
)
def test_the_separator_is_part_of_the_names_since_kafka_3_1(kafka: str, syncs: str, checkpoints: str) -> None:
    assert [name for name, *_ in made("mirrors/0/separator", "_", kafka)[3:]] == [syncs, checkpoints]


def test_without_a_separator_the_parts_stand_side_by_side() -> None:
    assert made("mirrors/0/separator", "")[3][0] == "mm2-offset-syncses-srcinternal"
