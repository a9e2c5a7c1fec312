"""Topics that a mirror keeps for itself: names as the replication policy makes them, partitions as Connect does."""

import os
import subprocess
from pathlib import Path

import pytest

from sandbox.toolchain.paths import cache_root
from settings import parse
from settings.topics import HEARTBEATS, InternalTopic, checkpoints_topic, internal_topics_of, offset_syncs_topic
from tests.support.java_regex import QUICK

from ...support.stack_values import TARGET, Values, with_value

KAFKA = "4.3.1"
SEPARATORS = (".", "_", "-", "")
ENABLED = "replication.policy.internal.topic.separator.enabled"
PROGRAM = Path(__file__).with_name("InternalTopics.java")
POLICIES = ("DefaultReplicationPolicy", "IdentityReplicationPolicy")


def made(path: str = "mirrors/0/name", value: object = "mm2", kafka: str = KAFKA) -> list[tuple[str, int, str]]:
    mirror = parse(with_value(TARGET, path, value)).mirrors[0]
    return [(topic.name, topic.partitions, topic.location) for topic in internal_topics_of(mirror, kafka)]


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
    assert internal_topics_of(mirror, KAFKA)[-1] == InternalTopic(name="heartbeats")


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


def test_the_mirrors_own_version_of_kafka_decides_and_not_the_stacks() -> None:
    values = with_value(with_value(TARGET, "mirrors/0/separator", ""), "mirrors/0/version", "3.0.1")
    assert offset_syncs_topic(parse(values).mirrors[0], KAFKA).name == "mm2-offset-syncs.es-src.internal"
    newer = with_value(values, "mirrors/0/version", "3.2.3")
    assert offset_syncs_topic(parse(newer).mirrors[0], "3.0.1").name == "mm2-offset-syncses-srcinternal"


@pytest.mark.parametrize(
    ("kafka", "syncs"), [("3.5.2", "mm2-offset-syncs_es-src_internal"), ("3.6.0", "mm2-offset-syncs.es-src.internal")]
)
def test_the_separator_can_be_kept_out_of_the_names_since_kafka_3_6(kafka: str, syncs: str) -> None:
    values = with_value(with_value(TARGET, "mirrors/0/separator", "_"), "mirrors/0/configDefaults", False)
    values = with_value(values, "mirrors/0/sourceConnectorConfig", {ENABLED: False})
    assert offset_syncs_topic(parse(values).mirrors[0], kafka).name == syncs


@pytest.fixture(scope="module")
def kafkas(java: str) -> dict[str, str]:
    """What Kafka's own policies name the topics of alias es-src, by policy, separator and whether it is enabled."""
    folders = sorted((cache_root(os.environ) / "kafka").glob("*/libs"))
    if not folders:
        pytest.skip("needs Kafka's jars, which `make setup` fetches")
    command = [java, *QUICK, "-cp", f"{folders[-1]}/*", str(PROGRAM), "es-src", *POLICIES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_names_are_those_of_kafkas_own_policies(kafkas: dict[str, str], policy: str) -> None:
    for separator in SEPARATORS:
        for enabled in ("true", "false"):
            values = with_value(with_value(TARGET, "mirrors/0/separator", separator), "mirrors/0/configDefaults", False)
            values = with_value(values, "mirrors/0/sourceConnectorConfig", {ENABLED: enabled})
            mirror = parse(values).mirrors[0]
            topics = offset_syncs_topic(mirror, KAFKA), checkpoints_topic(mirror, KAFKA)
            names = " ".join([*(topic.name for topic in topics), HEARTBEATS])
            assert kafkas[f"{policy} {separator} {enabled}"] == names
