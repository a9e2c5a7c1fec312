"""What is lost between a source and its mirror is reported before, or as soon as, it happens; on real brokers.

The mirror is the position that its connector has committed: a record of Connect's offsets topic, which the tests write.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # the package does not list it

from contract.documents import parse
from contract.verification_request import Request
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from ops.doctor.command import collect
from ops.doctor.diagnosis import diagnose
from ops.doctor.known_issues import Finding
from sandbox.toolchain import Tools
from tests.support.mirror_symptoms import context

from ...support import guarded_brokers as guarded
from ...support.guarded_brokers import Guarded

OFFSETS, CONNECTOR = "m-offsets", "src->tgt.MirrorSourceConnector"
RETENTION_S = 20
COPIED = 10
SHORT = [f"short-{number}" for number in range(20)]
LASTING = {"lasting": {"retention.ms": "3600000"}, "compacted": {"cleanup.policy": "compact"}}
OVER_WITHIN_S = 90.0


class StandingMirror:
    """A mirror of a cluster to itself of which only the committed positions are there."""

    def __init__(self, brokers: Guarded) -> None:
        self.brokers = brokers
        self.password = brokers.user("mirror", [("topic", "*", right) for right in ("READ", "DESCRIBE_CONFIGS")])
        self.producer = Producer({"bootstrap.servers": brokers.bootstrap("OPEN"), "log_level": 0})
        self.create({OFFSETS: {"cleanup.policy": "compact"}})

    def create(self, topics: Mapping[str, Mapping[str, str]]) -> None:
        """Make topics of one partition with these configurations."""
        made = [NewTopic(name, num_partitions=1, config=dict(config)) for name, config in topics.items()]
        for future in self.brokers.admin.create_topics(made).values():
            future.result(20)

    def produce(self, topics: Iterable[str], count: int = 1) -> None:
        """Write records of now."""
        for topic in topics:
            for number in range(count):
                self.producer.produce(topic, key=b"%d" % number, value=bytes(100))
        assert self.producer.flush(20) == 0

    def commit(self, topic: str, position: int | None) -> None:
        """Commit the last offset that was copied; None: nothing was."""
        key = [CONNECTOR, {"cluster": "src", "partition": 0, "topic": topic}]
        value = None if position is None else json.dumps({"offset": position})
        self.producer.produce(OFFSETS, key=json.dumps(key), value=value)
        assert self.producer.flush(20) == 0

    def request(self, *topics: str) -> Request:
        login = self.brokers.login("mirror")
        mirror = {
            "name": "m",
            "topics": list(topics),
            "naming": "prefixed",
            "source_alias": "src",
            "target_alias": "tgt",
            "offset_storage_topic": OFFSETS,
            "sync_group_offsets": False,
        }
        document = {
            "source": {"alias": "src", "client_config": login},
            "target": {"alias": "tgt", "client_config": login},
            "mirror": mirror,
            "limits": {},
        }
        return parse(document, {"PASSWORD": self.password})

    def examined(self, *topics: str) -> list[Finding]:
        """What the doctor finds of these topics, without the rights and copies that this mirror never has."""
        request = self.request(*topics)
        seen = collect(context(request), {"PASSWORD": self.password}, lambda line: None)
        assert seen.unseen == ()
        left_out = ("missing-acls", "unknown-topic-or-partition")
        return [one for one in diagnose(seen, request.secrets) if one.trouble not in left_out]

    def starts(self, topics: Iterable[str]) -> dict[str, int]:
        """Log start offsets."""
        cluster = Cluster(self.request(*topics).source)
        cluster.connect()
        return {tp.topic: start for tp, start in cluster.starts([TopicPartition(one, 0) for one in topics]).items()}


@pytest.fixture(scope="module")
def mirror(tools: Tools) -> Iterator[StandingMirror]:
    with guarded.running(tools) as brokers:
        yield StandingMirror(brokers)


def topics_of(findings: Iterable[Finding], trouble: str) -> set[str]:
    return {one.where.split()[1] for one in findings if one.trouble == trouble}


def test_retention_is_reported_before_the_first_record_is_lost(mirror: StandingMirror) -> None:
    """Half of the topics were copied from, half were not yet; all are written to all the time."""
    short = {"retention.ms": str(RETENTION_S * 1000), "segment.ms": "1000"}
    mirror.create({**dict.fromkeys(SHORT, short), **LASTING})
    everything = [*SHORT, *LASTING]
    mirror.produce(everything, COPIED)
    first = dict.fromkeys(SHORT, 0)
    for topic in (*SHORT[::2], *LASTING):
        mirror.commit(topic, COPIED - 1)
        first[topic] = COPIED
    reported: dict[str, float] = {}
    lost: dict[str, float] = {}
    findings: list[Finding] = []
    before: set[str] = set()
    began = time.monotonic()
    while len(lost) < len(SHORT):
        mirror.produce(everything)
        asked = time.monotonic() - began
        findings = mirror.examined(*everything)
        found = topics_of(findings, "retention-overtakes-mirror")
        if asked < RETENTION_S / 4:
            before |= found
        starts, now = mirror.starts(everything), time.monotonic() - began
        lost |= {topic: now for topic in SHORT if starts[topic] > first[topic] and topic not in lost}
        reported |= dict.fromkeys(found - set(lost) - set(reported), now)
        assert now < OVER_WITHIN_S, f"retention must have deleted something of all topics by now (left {starts})"
    assert before == set(), "three quarters of the time are left"
    assert sorted(reported) == sorted(SHORT), (reported, lost)
    assert all(reported[topic] < lost[topic] for topic in SHORT)
    assert {"retention-overtakes-mirror", "retention-overtook-mirror"} == {one.trouble for one in findings}
    # One offset could be a marker of a transaction: what was copied from has lost two, or will have.
    assert topics_of(mirror.examined(*everything), "retention-overtook-mirror") <= set(SHORT[::2])
