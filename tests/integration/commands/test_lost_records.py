"""What MirrorMaker says nothing about, caused on real brokers, and named by the doctor before it happens or at once."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from ops.doctor.known_issues import Finding
from tests.support.small_cluster import ALL_RIGHTS, Kit, user_spec
from tests.support.waiting import wait_until

from ...support.failing_mirror import BOSS, BOSS_PASSWORD, NAME, Patient, patient_spec
from ...support.running_sandbox import Sandbox

RENEWED, GONE, LARGE = "renewed", "gone", "large"
TOPICS = (RENEWED, GONE, LARGE)
RECORDS = 5
LARGE_BYTES, SOURCE_LIMIT = 2 * 1024 * 1024, 3 * 1024 * 1024


class Site(Patient):
    """A mirror of many topics, which the doctor is asked about."""

    def send_records(self, topic: str, count: int, size: int = 10) -> None:
        """Write records of this size, each as a batch of its own."""
        producer = Producer(self.boss | {"message.max.bytes": SOURCE_LIMIT})
        for _ in range(count):
            producer.produce(topic, value=bytes(size))
            assert producer.flush(30) == 0

    def named(self, trouble: str) -> dict[str, Finding]:
        """What the doctor finds now of this kind, by where it is."""
        return {one.where: one for one in self.examined(topics=list(TOPICS)) if one.trouble == trouble}

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
    kit.create_cluster()
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
    for topic in TOPICS:
        made.send_records(topic, RECORDS)
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


@pytest.fixture(scope="module")
def paused(site: Site) -> Site:
    """The mirror while it copies nothing; its positions are committed."""
    site.ask_for("paused")
    return site


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
