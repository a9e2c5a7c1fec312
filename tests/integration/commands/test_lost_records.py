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
from kafka.errors import ClusterError
from kafka.mirror_position import open_reader
from kafka.topic_metadata import topic_ids
from kafka.topic_partition import TopicPartition
from ops.doctor import log_probes
from ops.doctor.command import collect
from ops.doctor.diagnosis import diagnose
from ops.doctor.known_issues import Finding
from sandbox.toolchain import Tools
from tests.support.mirror_symptoms import context
from tests.support.waiting import wait_until

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
        rights = [*(("topic", "*", right) for right in ("READ", "DESCRIBE_CONFIGS")), ("group", "*", "READ")]
        self.password = brokers.user("mirror", rights)
        large = {"message.max.bytes": 4_000_000, "log_level": 0}
        self.producer = Producer({"bootstrap.servers": brokers.bootstrap("OPEN"), **large})
        self.create(**{OFFSETS: {"cleanup.policy": "compact"}})
        self.commit("nothing", 0)
        wait_until("all brokers know the rights", self.may_read)

    def may_read(self) -> bool:
        """Whether the brokers let the mirror's user read the positions."""
        request = self.request("nothing")
        cluster = Cluster(request.target)
        cluster.connect()
        try:
            reader, _ = open_reader(cluster, request, lambda _: None)
            return reader is not None and bool(reader.read())
        except ClusterError:
            return False

    def create(self, *plain: str, **configured: Mapping[str, str]) -> None:
        """Make topics of one partition, some with a configuration of their own."""
        topics = {**{name: {} for name in plain}, **configured}
        made = [NewTopic(name, num_partitions=1, config=dict(config)) for name, config in topics.items()]
        for future in self.brokers.admin.create_topics(made).values():
            future.result(20)

    def produce(self, topics: Iterable[str], count: int = 1, size: int = 100) -> None:
        """Write records of now."""
        for topic in topics:
            for number in range(count):
                self.producer.produce(topic, key=b"%d" % number, value=bytes(size))
        assert self.producer.flush(20) == 0

    def delete(self, *topics: str) -> None:
        """Delete topics, and wait until they are gone: a topic of that name can be created then."""
        for future in self.brokers.admin.delete_topics([*topics]).values():
            future.result(20)
        names = self.brokers.admin.list_topics
        wait_until(f"{topics} are gone", lambda: not {*topics} & set(names(timeout=5).topics))

    def ids(self, *topics: str) -> dict[str, str]:
        """Ids of topics, as the report of a verification has them."""
        cluster = Cluster(self.request(*topics).source)
        cluster.connect()
        return topic_ids(cluster, topics)

    def elect_again(self) -> None:
        """Let every partition have another leader epoch: its brokers restart."""
        for node in guarded.NODES:
            self.brokers.processes.stop(f"kafka.{node}", 10.0)
        for node in guarded.NODES:
            self.brokers.run(node)
        wait_until("the brokers are back", self.brokers.is_ready, guarded.READY_WITHIN_S)

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

    def examined(self, *topics: str, ids: Mapping[str, str] | None = None) -> list[Finding]:
        """What the doctor finds of these topics, without the rights and copies that this mirror never has.

        `ids` are those of topics that the latest verification has reported.
        """
        request = self.request(*topics)
        report = {"source_topic_ids": ids or {}, "finished_at": "yesterday"}
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(log_probes, "latest_verification", lambda pair: report)
            seen = collect(context(request), {"PASSWORD": self.password}, lambda line: None)
        assert seen.unseen == ()
        left_out = ("missing-acls", "unknown-topic-or-partition", "pattern-matches-nothing")
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
    mirror.create(**dict.fromkeys(SHORT, short), **LASTING)
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


def test_a_topic_that_was_created_again_and_one_that_was_cut_off(mirror: StandingMirror) -> None:
    mirror.create("again", "grown", "cut", "well")
    mirror.produce(("again", "grown", "cut", "well"), COPIED)
    for topic in ("again", "grown", "cut", "well"):
        mirror.commit(topic, COPIED - 1)
    ids = mirror.ids("grown")
    assert mirror.examined("again", "grown", "cut", "well") == []
    mirror.delete("again", "grown")
    mirror.create("again", "grown")
    mirror.produce(("again",), 3)
    mirror.produce(("grown",), 3 * COPIED)
    mirror.elect_again()
    mirror.commit("cut", COPIED + 4)  # as after an unclean election: fewer records than were copied
    found = mirror.examined("again", "grown", "cut", "well", ids=ids)
    assert {one.where: one.trouble for one in found} == {
        "topic again of the source, partition 0": "source-topic-recreated",
        "topic grown of the source": "source-topic-recreated",
        "topic cut of the source, partition 0": "source-log-truncated",
    }
    assert "the log has begun anew and ends at 3" in next(one.what for one in found if "again" in one.where)


def test_a_remote_topic_whose_source_is_gone(mirror: StandingMirror) -> None:
    mirror.create("gone", "src.gone", "there", "src.there")
    for topic in ("gone", "there"):
        mirror.commit(topic, COPIED - 1)
    mirror.delete("gone")
    (finding,) = [one for one in mirror.examined("gone", "there") if one.trouble == "orphan-remote-topic"]
    assert finding.where == "topic src.gone of the target"
    assert "--delete --topic src.gone" in finding.remedy


def test_a_record_that_the_target_does_not_take(mirror: StandingMirror) -> None:
    mirror.create("src.large", large={"max.message.bytes": "4000000"})
    mirror.produce(("large",), COPIED)
    mirror.commit("large", COPIED - 1)
    mirror.produce(("large",), size=2 * 1024 * 1024)
    (finding,) = mirror.examined("large")
    assert (finding.trouble, finding.where) == ("record-too-large", "topic large of the source")
    assert "max.message.bytes of src.large is 1048588" in finding.what
    for key in ("max.message.bytes of src.large", "message.max.bytes", "producer.override.max.request.size"):
        assert key in finding.remedy
