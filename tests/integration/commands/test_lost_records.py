"""What MirrorMaker says nothing about, caused on real brokers, and named by the doctor before it happens or at once."""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from ops.doctor.known_issues import Finding
from tests.support.producers import RaisingProducer
from tests.support.small_cluster import ALL_RIGHTS, Kit, kafka_spec, user_spec
from tests.support.waiting import wait_until

from ...support.failing_mirror import BOSS, BOSS_PASSWORD, NAME, SOURCE, Patient, patient_spec
from ...support.running_sandbox import Sandbox

RETAINED = tuple(f"retained-{number:02}" for number in range(20))
RETENTION_S = range(40, 60)
CHECKED_EVERY_MS = 1000
ASKED_EVERY_S = 2.0
RENEWED, GONE, CUT, LARGE, AHEAD = "renewed", "gone", "cut", "large", "ahead"
TOPICS = (*RETAINED, RENEWED, GONE, CUT, LARGE, AHEAD)
YEAR_MS, ANY_TIME = 365 * 24 * 3600 * 1000, {"message.timestamp.after.max.ms": 2**63 - 1}
RECORDS, LEFT = 5, 4
LARGE_BYTES, SOURCE_LIMIT = 10 * 1024 * 1024, 11 * 1024 * 1024
LOST_WITHIN_S = 180.0


class Site(Patient):
    """A mirror of many topics, which the doctor is asked about."""

    def send_records(self, topic: str, count: int, size: int = 10) -> None:
        """Write records of this size to a topic, each as a batch of its own."""
        self.send_to_all([topic], count, size)

    def send_to_all(self, topics: Iterable[str], count: int, size: int = 10) -> None:
        """Do so for several topics.

        By a producer of its own: one that has seen a topic deleted goes on refusing to write to the new one.
        """
        sender = RaisingProducer(self.boss | {"message.max.bytes": SOURCE_LIMIT})
        for _ in range(count):
            for topic in topics:
                sender.produce(topic, value=bytes(size))
            sender.deliver()

    def starts(self) -> dict[str, int]:
        """Where the log of each topic with a short retention begins."""
        return {
            topic: self.counter.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[0] for topic in RETAINED
        }

    def named(self, trouble: str, *, may_miss: bool = False) -> dict[str, Finding]:
        """What the doctor finds now of this kind, by where it is."""
        found = self.examined(may_miss=may_miss, topics=list(TOPICS))
        return {one.where: one for one in found if one.trouble == trouble}

    def ask_for(self, state: str) -> None:
        """Let the operator pause or run the source connector."""
        mirrors = spec_of(self.kit)["mirrors"]
        mirrors[0]["sourceConnector"]["state"] = state
        self.kit.change("KafkaMirrorMaker2", NAME, {"spec": {"mirrors": mirrors}})
        wait_until(f"the task is {state}", lambda: self.tasks() == [state.upper()], otherwise=self.state)


def spec_of(kit: Kit) -> dict[str, Any]:
    spec = patient_spec(kit)
    spec["mirrors"][0]["topicsPattern"] = "|".join(TOPICS)
    return spec


def set_of(admin: AdminClient, topic: str, values: Mapping[str, object]) -> None:
    entries = [
        ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET) for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(20)


@pytest.fixture(scope="module")
def site(sandbox: Sandbox) -> Iterator[Site]:
    kit = Kit(sandbox.state, namespace="lost-records-tests")
    often = {"log.retention.check.interval.ms": CHECKED_EVERY_MS, "log.initial.task.delay.ms": CHECKED_EVERY_MS}
    kit.create_cluster(config=kafka_spec()["config"] | often)
    kit.secret(f"{BOSS}-credentials", {"password": BOSS_PASSWORD})
    kit.apply("KafkaUser", BOSS, user_spec(f"{BOSS}-credentials", ALL_RIGHTS))
    kit.ready("KafkaUser", BOSS)
    made = Site(kit)
    admin = AdminClient(made.boss)  # named, because its futures end with it
    created = admin.create_topics([NewTopic(topic, 1, 1) for topic in TOPICS])
    for future in created.values():
        future.result(30)
    kit.apply("KafkaMirrorMaker2", NAME, spec_of(kit))
    kit.ready("KafkaMirrorMaker2", NAME)
    made.send_to_all(TOPICS, RECORDS)
    wait_until("all is copied", lambda: all(made.written(f"here.{topic}") == RECORDS for topic in TOPICS))
    yield made
    kit.remove_cluster(("KafkaMirrorMaker2", NAME), ("KafkaUser", BOSS))


def test_a_record_that_is_too_large_is_named_and_the_remedy_loses_nothing(site: Site) -> None:
    admin = AdminClient(site.boss)
    set_of(admin, LARGE, {"max.message.bytes": SOURCE_LIMIT})
    site.send_records(LARGE, 1, LARGE_BYTES)
    site.send_records(LARGE, 1)
    wait_until("the task failed", lambda: site.tasks() == ["FAILED"], otherwise=site.state)

    found = site.named("record-too-large")[f"topic {LARGE} of the source"]

    assert "a record of partition 0 that is not copied takes about" in found.what
    needed = int(found.remedy.partition("Set all three to at least ")[2].partition(":")[0])
    assert LARGE_BYTES < needed < LARGE_BYTES + 200
    for place in (
        f"max.message.bytes of here.{LARGE}",
        "message.max.bytes of the target",
        "producer.override.max.request.size",
    ):
        assert place in found.remedy
    set_of(admin, f"here.{LARGE}", {"max.message.bytes": needed})
    mirrors = spec_of(site.kit)["mirrors"]
    mirrors[0]["sourceConnector"]["config"] |= {"producer.override.max.request.size": needed}
    site.kit.change("KafkaMirrorMaker2", NAME, {"spec": {"mirrors": mirrors}})
    wanted = {"producer.override.max.request.size": str(needed)}.items()
    wait_until("the producer takes larger ones", lambda: wanted <= site.connector("GET", "config").items())
    site.restart()
    wait_until("both records are copied", lambda: site.written(f"here.{LARGE}") == RECORDS + 2, otherwise=site.state)
    assert site.named("record-too-large") == {}


def test_a_record_of_a_clock_that_is_a_year_ahead_is_named_and_the_remedy_loses_nothing(site: Site) -> None:
    """A source before Kafka 4 takes it, and a target of Kafka 4 does not."""
    admin = AdminClient(site.boss)
    set_of(admin, AHEAD, ANY_TIME)
    sender = RaisingProducer(site.boss)
    sender.produce(AHEAD, value=b"early", timestamp=int(time.time() * 1000) + YEAR_MS)
    sender.deliver()
    site.send_records(AHEAD, 1)
    wait_until("the task failed", lambda: site.tasks() == ["FAILED"], otherwise=site.state)

    found = site.named("record-time-refused")[f"task 0 of connector {SOURCE}"]

    assert "out of range" in found.what or "InvalidTimestampException" in found.what, found.what
    assert f"message.timestamp.after.max.ms of here.{AHEAD}" in found.remedy
    set_of(admin, f"here.{AHEAD}", ANY_TIME)
    site.restart()
    wait_until("both records are copied", lambda: site.written(f"here.{AHEAD}") == RECORDS + 2, otherwise=site.state)
    assert site.named("record-time-refused") == {}


@pytest.fixture(scope="module")
def paused(site: Site) -> Site:
    """The mirror while it copies nothing; its positions are committed."""
    site.ask_for("paused")
    return site


def test_retention_is_reported_before_it_deletes_what_is_not_copied(paused: Site) -> None:
    """Of each topic, with retention of another length; the mirror copies nothing meanwhile."""
    admin = AdminClient(paused.boss)
    assert paused.named("retention-overtakes-mirror") == {}
    for topic, seconds in zip(RETAINED, RETENTION_S, strict=True):
        set_of(admin, topic, {"retention.ms": seconds * 1000})
    paused.send_to_all(RETAINED, RECORDS)
    warned, lost = set[str](), set[str]()
    deadline = time.monotonic() + LOST_WITHIN_S
    while lost != set(RETAINED) and time.monotonic() < deadline:
        # A record that is deleted between two of its questions is not seen, and named as such.
        found = paused.named("retention-overtakes-mirror", may_miss=True)
        # What was lost by the end of the last look, and not reported by then, was reported too late.
        warned |= {topic for topic in RETAINED if f"topic {topic} of the source" in found} - lost
        lost |= {topic for topic, start in paused.starts().items() if start > RECORDS}
        time.sleep(ASKED_EVERY_S)
    assert lost == set(RETAINED), "retention has deleted records of each"
    assert warned == set(RETAINED)
    assert len(paused.named("retention-overtook-mirror")) == len(RETAINED)


def test_a_log_that_was_cut_off_is_named(paused: Site) -> None:
    kit, broker = paused.kit, paused.kit.broker()
    assert paused.named("source-log-truncated") == {}
    kit.processes.kill(broker, hold=True)
    (log,) = kit.folder().rglob(f"{CUT}-0/00000000000000000000.log")
    log.write_bytes(log.read_bytes()[: log.stat().st_size * LEFT // RECORDS])  # its records are of one size
    for other in log.parent.iterdir():
        if other.suffix in (".index", ".timeindex", ".snapshot"):
            other.unlink()
    kit.processes.release(broker)
    wait_until("the broker answers", lambda: kit.admits(paused.boss))
    wait_until("the log has a leader again", lambda: paused.written(CUT) == LEFT)

    found = paused.named("source-log-truncated")

    assert set(found) == {f"topic {CUT} of the source, partition 0"}
    assert f"ends at {LEFT}" in found[f"topic {CUT} of the source, partition 0"].what


def test_a_topic_that_was_created_again_is_named_by_the_next_probe(paused: Site) -> None:
    assert paused.named("source-topic-recreated") == {}
    admin = AdminClient(paused.boss)
    admin.delete_topics([RENEWED])[RENEWED].result(20)
    wait_until("it is gone", lambda: RENEWED not in admin.list_topics(timeout=10).topics)
    admin.create_topics([NewTopic(RENEWED, 1, 1)])[RENEWED].result(20)
    paused.send_records(RENEWED, RECORDS - 1)

    found = paused.named("source-topic-recreated")

    assert set(found) == {f"topic {RENEWED} of the source, partition 0"}
    assert f"has begun anew and ends at {RECORDS - 1}" in found[f"topic {RENEWED} of the source, partition 0"].what


def test_a_topic_that_was_deleted_at_the_source_is_named(paused: Site) -> None:
    assert paused.named("orphan-remote-topic") == {}
    admin = AdminClient(paused.boss)
    admin.delete_topics([GONE])[GONE].result(20)
    wait_until("it is gone", lambda: GONE not in admin.list_topics(timeout=10).topics)
    assert set(paused.named("orphan-remote-topic")) == {f"topic here.{GONE} of the target"}
