"""A canary: stamped records sent through the mirror, and how long each took to be readable on the target.

Sends only after the cut, so no canary record is ever compared. Both ends are in this process: the stamps are of one
monotonic clock. Does not judge.
"""

import json
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Canary, Request
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from kafka.mirror_position import Deadline
from kafka.raw_consumer import UndecodableError, headers
from kafka.topic_partition import TopicPartition

HEADER = "rt-inventory-canary"
INTERVAL_S = 0.01
DELIVERY_S = 15.0


@dataclass(frozen=True, kw_only=True)
class CanaryResult:
    """`asked`: to be sent. `latencies_ms`: each that arrived, sorted. `problem`: why nothing could be measured."""

    topic: str
    run: str
    asked: int = 0
    sent: int = 0
    latencies_ms: tuple[float, ...] = ()
    waited_s: float = 0.0
    problem: str | None = None

    def percentile(self, percent: float) -> float | None:
        """Return the latency in ms that this share of the arrived records did not exceed (nearest rank)."""
        if not self.latencies_ms:
            return None
        rank = -(-len(self.latencies_ms) * percent // 100)
        return self.latencies_ms[max(0, int(rank) - 1)]

    def document(self) -> dict[str, Any]:
        """Return the result as JSON values; the latencies in the order of their length."""
        return {
            "topic": self.topic,
            "run": self.run,
            "records": self.sent,
            "arrived": len(self.latencies_ms),
            "waited_seconds": round(self.waited_s, 1),
            "p50_ms": self.percentile(50),
            "p95_ms": self.percentile(95),
            "p99_ms": self.percentile(99),
            "latencies_ms": list(self.latencies_ms),
            "problem": self.problem,
        }


def send(
    source: Cluster, target: Cluster, request: Request, partitions: Iterable[int], deadline: Deadline
) -> CanaryResult:
    """Send the canary and wait, up to the deadline, for what arrives; never raises for a cluster that refuses.

    `partitions` are those that the topic has at the source.
    """
    canary = request.mirror.canary
    if canary is None:
        raise ValueError("request: mirror.canary must be set to send a canary")
    run = uuid.uuid4().hex
    chosen = sorted(partitions) if canary.partition is None else [canary.partition]
    known = set(partitions)
    if not set(chosen) <= known or not chosen:
        lacking = f"partition {canary.partition}" if known else "such topic"
        return CanaryResult(topic=canary.topic, run=run, problem=f"topic {canary.topic} has no {lacking} at the source")
    try:
        return _CanaryRun(source, target, request, canary, run, chosen, deadline).measure()
    except ClusterError as error:
        return CanaryResult(topic=canary.topic, run=run, problem=str(error))
    except KafkaException as error:
        return CanaryResult(topic=canary.topic, run=run, problem=f"canary topic {canary.topic}: {_text(error.args[0])}")


@dataclass
class _CanaryRun:
    """One run of the canary: it sends, receives, and measures how long each record took."""

    source: Cluster
    target: Cluster
    request: Request
    canary: Canary
    run: str
    partitions: list[int]
    deadline: Deadline
    sent_at: dict[int, float] = field(default_factory=dict)
    took_ms: dict[int, float] = field(default_factory=dict)
    refused: KafkaError | None = None
    sending: bool = True

    def measure(self) -> CanaryResult:
        began = time.monotonic()
        there = [
            TopicPartition(self.request.mirror.target_topic(self.canary.topic), number) for number in self.partitions
        ]
        ends = self._ends_on_target(there)
        if ends is None:
            return self._result(began, f"topic {there[0][0]} is not on the target with all partitions of the canary")
        consumer = self.target.consumer("read_committed")
        try:
            consumer.assign([ClientTopicPartition(*tp, at) for tp, at in ends.items()])
            consumer.poll(0)
            producing = threading.Thread(target=self._produce, name="canary", daemon=True)
            producing.start()
            while (self.sending or len(self.took_ms) < len(self.sent_at)) and not self.deadline.over:
                for message in consumer.consume(500, timeout=0.05):
                    self._arrived(message, time.monotonic())
                if self.refused is not None:
                    break
            self.sending = False
            producing.join(DELIVERY_S)
        finally:
            consumer.close()
        return self._result(began, self._refusal() if self.refused is not None else None)

    def _ends_on_target(self, there: list[TopicPartition]) -> dict[TopicPartition, int] | None:
        """Return the target's log end offsets before the first record; waits until the mirror has made the topic."""
        topic = there[0][0]
        while True:
            found = self.target.topics(lambda name: name == topic)
            if topic in found and {number for _, number in there} <= set(found[topic].replicas):
                return self.target.ends(there, "read_uncommitted")
            if self.deadline.over:
                return None
            self.deadline.pause()

    def _produce(self) -> None:
        try:
            producer = self.source.producer({"linger.ms": 0, "message.timeout.ms": int(DELIVERY_S * 1000)})
            for number in range(self.canary.records):
                if self.refused is not None or self.deadline.over or not self.sending:
                    break
                stamp = time.monotonic()
                self.sent_at[number] = stamp
                value = json.dumps({"run": self.run, "sequence": number, "monotonic_seconds": stamp}).encode()
                producer.produce(
                    self.canary.topic,
                    value=value,
                    key=HEADER.encode(),
                    headers=[(HEADER, self.run.encode())],
                    partition=self.partitions[number % len(self.partitions)],
                    on_delivery=self._delivered,
                )
                producer.poll(INTERVAL_S)
            producer.flush(DELIVERY_S)
        except KafkaException as error:
            self.refused = error.args[0]
        finally:
            self.sending = False

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self.refused is None:
            self.refused = error

    def _arrived(self, message: Message, now: float) -> None:
        if message.error() is not None:
            return
        try:
            named = headers(message)
        except UndecodableError:
            return  # another producer's record: the names of the canary's headers are ASCII, and a mirror keeps them
        if (HEADER, self.run.encode()) not in (named or ()):
            return
        number = int(json.loads(message.value() or b"{}")["sequence"])
        # A mirror that delivers twice is no slower for it: the first arrival counts.
        self.took_ms.setdefault(number, round((now - self.sent_at[number]) * 1000, 1))

    def _refusal(self) -> str:
        side, topic = self.source.side, self.canary.topic
        error = self.refused
        if error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return (
                f"{side.role} {side.alias}: user {side.user} must have Write on topic {topic} for the canary "
                f"(got {error.name()}). Grant it, or take mirror.canary out of the request"
            )
        return f"{side.role} {side.alias}: topic {topic} does not take the canary's records: {_text(error)}"

    def _result(self, began: float, problem: str | None) -> CanaryResult:
        return CanaryResult(
            topic=self.canary.topic,
            run=self.run,
            asked=self.canary.records,
            sent=len(self.sent_at),
            latencies_ms=tuple(sorted(self.took_ms.values())),
            waited_s=time.monotonic() - began,
            problem=problem,
        )


def _text(error: object) -> str:
    return error.str() if isinstance(error, KafkaError) else str(error)
