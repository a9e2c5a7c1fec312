"""The records that the benchmark of the audit writes to both sides, and the faults that it puts into them.

A fault is of some records of a partition from a moment on: they are lost, doubled, altered, or held back on the target.
Owns what each bucket must be found to be. The same seed has the same faults.
"""

import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import Producer

from benchmarks.clusters import SOURCE, TARGET, BenchmarkError, Clusters

TOPIC, PARTITIONS, RECORD_BYTES = "items", 8, 1024
BUCKET_S, WITHIN_S = 60, 30
FAULTS_PER_MINUTE = 2
HELD_S = 120.0
Bucket = tuple[int, int]  # partition, begin in ms


@dataclass(frozen=True)
class Injected:
    """A fault: what becomes of some records of a partition at a time."""

    kind: str
    partition: int
    at_s: float
    records: int


def schedule(chance: random.Random, seconds: float) -> list[Injected]:
    """Return the faults of a run, in the order of their time; none in the first and the last minute."""
    found = []
    for number in range(int(FAULTS_PER_MINUTE * seconds / 60)):
        kind = ("missing", "extra", "altered", "late")[number % 4]
        moment = chance.uniform(BUCKET_S, max(BUCKET_S + 1.0, seconds - BUCKET_S))
        found.append(Injected(kind, chance.randrange(PARTITIONS), moment, chance.randint(1, 50)))
    return sorted(found, key=lambda fault: fault.at_s)


@dataclass
class Traffic:
    """Writes to both sides at a rate, and knows what was done to which bucket."""

    clusters: Clusters
    faults: Sequence[Injected]
    changed: dict[Bucket, dict[str, int]] = field(default_factory=dict)
    written: int = 0
    error: BaseException | None = None
    _held: list[tuple[float, int, int, bytes]] = field(default_factory=list)
    _done: dict[int, int] = field(default_factory=dict)

    def write(self, seconds: float, rate: int, chance: random.Random) -> None:
        """Write for some seconds, and then what is still held back; what went wrong is in `error`."""
        try:
            self._write(seconds, rate, chance)
        except Exception as error:
            self.error = error

    def _write(self, seconds: float, rate: int, chance: random.Random) -> None:
        producers = {side: self._producer(side) for side in (SOURCE, TARGET)}
        noise = chance.randbytes(RECORD_BYTES + 256)
        began, waiting = time.monotonic(), list(self.faults)
        for step in itertools.count():
            now = time.monotonic() - began
            if now >= seconds:
                break
            stamp = int(time.time() * 1000)
            due = [fault for fault in waiting if fault.at_s <= now]
            waiting = [fault for fault in waiting if fault.at_s > now]
            for number in range(rate // 10):
                partition = number % PARTITIONS
                value = (step * rate + number).to_bytes(8) + noise[number % 256 : number % 256 + RECORD_BYTES - 8]
                _produce(producers[SOURCE], partition, stamp, value)
                fault = next((one for one in due if one.partition == partition and self._left(one)), None)
                self._copy(producers[TARGET], partition, stamp, value, fault)
            self.written += rate // 10
            self._release(producers[TARGET])
            for producer in producers.values():
                producer.poll(0)
            time.sleep(max(0.0, began + (step + 1) / 10 - time.monotonic()))
        while self._held:
            self._release(producers[TARGET])
            time.sleep(0.5)
        for side, producer in producers.items():
            if producer.flush(60):
                raise BenchmarkError(f"audit: all records must be written to {side} within 60 s.")

    def _copy(self, producer: Producer, partition: int, stamp: int, value: bytes, fault: Injected | None) -> None:
        if fault is None:
            _produce(producer, partition, stamp, value)
            return
        bucket = partition, stamp // (BUCKET_S * 1000) * BUCKET_S * 1000
        done = self.changed.setdefault(bucket, {})
        done[fault.kind] = done.get(fault.kind, 0) + 1
        self._done[id(fault)] = self._done.get(id(fault), 0) + 1
        if fault.kind == "late":
            free_s = bucket[1] / 1000 + BUCKET_S + WITHIN_S + HELD_S
            self._held.append((free_s, partition, stamp, value))
        elif fault.kind != "missing":
            _produce(producer, partition, stamp, b"altered" + value if fault.kind == "altered" else value)
            if fault.kind == "extra":
                _produce(producer, partition, stamp, value)

    def _left(self, fault: Injected) -> bool:
        return self._done.get(id(fault), 0) < fault.records

    def _release(self, producer: Producer) -> None:
        now = time.time()
        for held in [one for one in self._held if one[0] <= now]:
            self._held.remove(held)
            _produce(producer, *held[1:])

    def _producer(self, side: str) -> Producer:
        return Producer(self.clusters.client(side) | {"enable.idempotence": True, "linger.ms": 20})


def _produce(producer: Producer, partition: int, stamp: int, value: bytes) -> None:
    while True:
        try:
            producer.produce(TOPIC, value, partition=partition, timestamp=stamp)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def expected(changed: dict[Bucket, dict[str, int]]) -> dict[Bucket, dict[str, int]]:
    """Return what the audit must say of the buckets with faults once what was held back has arrived.

    Several faults of one bucket add up: as many as are missing are filled by as many extra ones, and what is left of
    both makes it altered.
    """
    wanted: dict[Bucket, dict[str, int]] = {}
    for bucket, done in changed.items():
        less = done.get("missing", 0) - done.get("extra", 0)
        if less > 0:
            wanted[bucket] = {"missing": less}
        elif less < 0:
            wanted[bucket] = {"extra": -less}
        elif done.get("missing") or done.get("altered"):
            wanted[bucket] = {"altered": 0}
    return wanted
