"""Topics written by hand on both sides of two clusters, and the verification job run on them.

No mirror touches these topics. Their request is one for the two clusters, without a mirror's position and connectors.
"""

import copy
import json
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.support import raw_producer

from .producers import RaisingProducer
from .running_sandbox import Sandbox
from .verification_runs import JobBench
from .waiting import wait_until

TESTER = "verification-tester"
PREFIX = "verify-"
START_MS = int(time.time() * 1000) - 3_600_000  # young enough for every retention
SIDES = ("source", "target")
_ANSWER_S = 30
Record = dict[str, Any]


class Bench(JobBench):
    """Two clusters and topics that no mirror touches."""

    def target_name(self, topic: str, naming: str) -> str:
        """Name on the target of a topic of the source."""
        return topic if naming == "identity" else f"{self.request['mirror']['source_alias']}.{topic}"

    def topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        naming: str = "identity",
        within_s: float = _ANSWER_S,
    ) -> str:
        """Make a topic on both sides."""
        for side, called in zip(SIDES, (name, self.target_name(name, naming)), strict=True):
            admin = self.admin(side)
            made = admin.create_topics(
                [NewTopic(called, partitions, 1, config=dict(config or {}))], request_timeout=within_s
            )
            made[called].result(within_s)
        return name

    def create_again(self, side: str, topic: str, partitions: int = 1) -> None:
        """Delete a topic of one side, and create another one with its name."""
        admin = self.admin(side)
        admin.delete_topics([topic])[topic].result(_ANSWER_S)
        wait_until(f"{topic} is gone", lambda: topic not in admin.list_topics(timeout=_ANSWER_S).topics)
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_ANSWER_S)

    def add_partitions(self, side: str, topic: str, total: int) -> None:
        """Give a topic more partitions, and wait until its brokers have them: the controller answers before."""
        admin = self.admin(side)
        admin.create_partitions([NewPartitions(topic, total)])[topic].result(_ANSWER_S)

        def there() -> bool:
            described = admin.list_topics(topic, timeout=_ANSWER_S).topics[topic]
            return len(described.partitions) == total

        wait_until(f"{topic} has {total} partitions", there, _ANSWER_S)

    def configure(self, side: str, topic: str, config: Mapping[str, str]) -> None:
        """Set properties of a topic on one side, and wait until its brokers have them."""
        admin = self.admin(side)
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        admin.incremental_alter_configs([resource])[resource].result(_ANSWER_S)  # the controller answers before them

        def there() -> bool:
            found = admin.describe_configs([resource])[resource].result(_ANSWER_S)
            return all(found[name].value == value for name, value in config.items())

        wait_until(f"{topic} has {dict(config)}", there, _ANSWER_S)

    def write(self, side: str, topic: str, records: Iterable[Record], partition: int = 0) -> None:
        """Write records to one partition, in their order."""
        self.write_partitions(side, topic, {partition: records})

    def write_partitions(
        self, side: str, topic: str, records: Mapping[int, Iterable[Record]], within_s: float = _ANSWER_S
    ) -> None:
        """Write the records of several partitions, of each in their order."""
        producer = self._producer(side)
        for partition, of_it in records.items():
            for record in of_it:
                produce(producer, topic, partition, record)
        producer.deliver(within_s)

    def write_raw(self, side: str, topic: str, records: Iterable[Record], partition: int = 0) -> None:
        """Write records whose headers may have any bytes as names."""
        raw_producer.write(self.client(side), topic, partition, records)

    def write_transaction(self, side: str, topic: str, records: Iterable[Record], *, commit: bool) -> None:
        """Write records to partition 0 in a transaction of their own, which leaves a marker behind."""
        producer = self.open_transaction(side, topic, records)
        end = producer.commit_transaction if commit else producer.abort_transaction
        end(_ANSWER_S)
        self._wait_for_markers(side, TopicPartition(topic, 0))

    def open_transaction(self, side: str, topic: str, records: Iterable[Record]) -> RaisingProducer:
        """Write records to partition 0 in a transaction that the producer has not ended."""
        producer = self._producer(side, {"transactional.id": f"{PREFIX}{uuid.uuid4().hex}"})
        producer.init_transactions(_ANSWER_S)
        producer.begin_transaction()
        for record in records:
            produce(producer, topic, 0, record)
        # What is not on the broker yet would be dropped by an abort.
        producer.deliver(_ANSWER_S)
        return producer

    def _wait_for_markers(self, side: str, partition: TopicPartition) -> None:
        """Wait until ended transactions have their markers in the log, which is after the coordinator's answer.

        What is written meanwhile would stand in front of a marker.
        """
        admin = AdminClient(self.client(side))

        def there() -> bool:
            ends = (
                admin.list_offsets({partition: OffsetSpec.latest()}, isolation_level=level)[partition]
                for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
            )
            stable, last = (end.result(_ANSWER_S).offset for end in ends)
            return bool(stable == last)

        wait_until(f"{partition.topic} has the markers of its transactions", there, _ANSWER_S)

    def delete_before(self, side: str, topic: str, offset: int, partition: int = 0) -> None:
        """Let a log lose its beginning, as retention does."""
        # A client of its own: in one that is shared, requests for leaders at the same time find none.
        admin = AdminClient(self.client(side))
        wanted = TopicPartition(topic, partition, offset)
        admin.delete_records([wanted])[wanted].result(_ANSWER_S)

    def verify(
        self,
        topics: list[str],
        mirror: Mapping[str, Any] | None = None,
        options: Sequence[str] = (),
        /,
        **environment: str,
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """Run the job on hand-written topics, with changes of the request's mirror; returns process and report."""
        request = copy.deepcopy(self.request)
        nothing: dict[str, Any] = {"connect_url": None, "offset_storage_topic": None, "connectors": {}}
        nothing |= {"internal_topics": [], "resource": None, "active": None}
        request["mirror"] |= nothing | {"topics": topics, "replication_factor": 1} | dict(mirror or {})
        groups = ["groups_synced", "groups_no_loss", "groups_reread_bounded", "checkpoints_consistent"]
        allowed = ["connectors_running", *groups]
        request["limits"] |= {"mirror_wait_seconds": 2, "allow_unknown": allowed, "duplicates_max": 0}
        return self.run_job(request, options, environment)

    def admin(self, side: str) -> AdminClient:
        """An admin client of one side."""
        return AdminClient(self.client(side))

    def _producer(self, side: str, more: Mapping[str, Any] | None = None) -> RaisingProducer:
        # Idempotent: a retry neither doubles nor reorders what a test counts.
        return RaisingProducer(
            {**self.client(side), "enable.idempotence": True, "message.max.bytes": 11 * 2**20, **(more or {})}
        )


def produce(producer: RaisingProducer, topic: str, partition: int, record: Record) -> None:
    """Hand one record to a producer, and wait while its queue is full."""
    while True:
        try:
            producer.produce(topic, partition=partition, **record)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def add_tester(
    sandbox: Sandbox,
    namespace: str,
    cluster: str,
    on_cluster: tuple[str, ...] = (),
    prefixes: Iterable[str] = (PREFIX,),
) -> str:
    """Add a user that owns the topics with the prefixes, with rights on the cluster; return its password."""
    password = uuid.uuid4().hex
    acls: list[dict[str, Any]] = [
        {"resource": {"type": "topic", "name": prefix, "patternType": "prefix"}, "operations": ["All"]}
        for prefix in prefixes
    ]
    acls += [{"resource": {"type": "cluster"}, "operations": list(on_cluster)}] if on_cluster else []
    acls += [
        {"resource": {"type": "group", "name": "*", "patternType": "literal"}, "operations": ["Read", "Describe"]},
        {"resource": {"type": "transactionalId", "name": PREFIX, "patternType": "prefix"}, "operations": ["All"]},
    ]
    reference = {"name": f"{TESTER}-credentials", "key": "password"}
    objects = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": reference["name"], "namespace": namespace},
         "stringData": {"password": password}},
        {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaUser",
         "metadata": {"name": TESTER, "namespace": namespace, "labels": {"strimzi.io/cluster": cluster}},
         "spec": {"authentication": {"type": "scram-sha-512", "password": {"valueFrom": {"secretKeyRef": reference}}},
                  "authorization": {"type": "simple", "acls": acls}}},
    ]  # fmt: skip
    sandbox.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    sandbox.wait_ready(namespace, f"kafkauser/{TESTER}")
    return password


def record(number: int, **changes: Any) -> Record:
    """A record that no other number makes."""
    fields: Record = {"key": b"k%d" % number, "value": b'{"n": %d}' % number, "timestamp": START_MS + number}
    return fields | {"headers": [("h", b"%d" % number)]} | changes


def findings(report: Mapping[str, Any], topic: str) -> dict[str, list[dict[str, Any]]]:
    """All findings of a topic by kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for part in report["partitions"]:
        for finding in part["findings"]:
            if finding["topic"] == topic:
                found.setdefault(finding["kind"], []).append(finding)
    return found


def own_name(fault: str) -> str:
    """A topic's name that no other run uses."""
    return f"{PREFIX}{fault}-{uuid.uuid4().hex[:6]}"
