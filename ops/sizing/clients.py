"""What one task's consumer and producer can carry over a network with latency, and the settings that carry more.

The consumer asks each broker for one fetch at a time, and TCP lets a connection have one window on its way. So a fetch
takes a round trip in which nothing comes, and then as many as it has windows. Connect gives a source task's producer
one request in flight a broker, so that order is kept without idempotence. Sources: Kafka's ConsumerConfig and
ProducerConfig, `Worker.baseProducerConfigs` of Kafka Connect, Linux's tcp(7); `benchmarks.distance` for the fetches.
"""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ops.errors import OpsError
from settings.text import format_count

KIB, MIB = 1024, 1024 * 1024
# Linux grows a window to 6 MiB by itself and keeps half for its own bookkeeping; a buffer set by hand cannot grow.
OS_WINDOW = 3 * MIB
BROKER_BUFFER = 100 * KIB
# What a connection has on its way for each byte of a buffer set by hand. Linux doubles the buffer and counts its own
# bookkeeping in it; what is left of a receive buffer is the window, and a sender waits until a third of its buffer is
# free. Measured by `benchmarks.distance` (Linux 6.18, packets of 1500 bytes): 72 KB of 64 KiB, 138 KB of 100 KiB.
RECEIVED, SENT = 1.1, 1.35
LARGEST_BATCH = MIB  # a request, and so a batch, may have max.request.size
LARGEST_FETCH = 16 * MIB
LEAST_IDLE = 0.2  # of the time a connection waits for the next request: beyond that requests grow for little
POLLED_RECORDS = 500  # max.poll.records: what a task has in memory of its last poll


@dataclass(frozen=True)
class Network:
    """Round trips of the consumer and the producer in milliseconds, brokers, and the brokers' socket buffers.

    `acknowledge_ms` is what acks=all adds to a producer's round trip. `broker_buffer` is `socket.send.buffer.bytes` of
    the source brokers and `socket.receive.buffer.bytes` of the target's; -1 lets the system choose.
    """

    consumer_ms: float
    producer_ms: float
    acknowledge_ms: float
    source_brokers: int
    target_brokers: int
    broker_buffer: int = BROKER_BUFFER


@dataclass(frozen=True)
class Clients:
    """Settings of a task's clients; these are Kafka's and Connect's defaults."""

    receive_buffer: int = 64 * KIB
    send_buffer: int = 128 * KIB
    max_partition_fetch: int = MIB
    fetch_max: int = 50 * MIB
    batch: int = 16 * KIB
    max_request: int = MIB
    in_flight: int = 1
    buffer_memory: int = 32 * MIB
    compression: str = "none"
    linger_ms: int | None = None

    def consumer_overrides(self) -> dict[str, int | str]:
        """Return the consumer's settings that are not Kafka's defaults."""
        names = {"receive_buffer": "receive.buffer.bytes", "max_partition_fetch": "max.partition.fetch.bytes"}
        return self._changed(names)

    def producer_overrides(self) -> dict[str, int | str]:
        """Return the producer's settings that are not Connect's defaults."""
        names = {
            "batch": "batch.size",
            "linger_ms": "linger.ms",
            "compression": "compression.type",
            "buffer_memory": "buffer.memory",
            "send_buffer": "send.buffer.bytes",
            "in_flight": "max.in.flight.requests.per.connection",
        }
        changed = self._changed(names)
        # More than one request in flight keeps the order of records only with idempotence.
        return changed | ({"enable.idempotence": "true"} if self.in_flight > 1 else {})

    def _changed(self, names: dict[str, str]) -> dict[str, int | str]:
        plain = Clients()
        return {name: getattr(self, key) for key, name in names.items() if getattr(self, key) != getattr(plain, key)}


@dataclass(frozen=True)
class Bound:
    """Bytes a second that a client carries, and the calculation as people read it. None: latency does not limit."""

    bytes_per_second: float | None
    formula: str


def window(receive_buffer: int, send_buffer: int) -> float:
    """Return the bytes that one connection has on its way, from the socket buffers of its receiver and its sender."""
    sides = ((receive_buffer, RECEIVED), (send_buffer, SENT))
    return min(OS_WINDOW if buffer < 0 else buffer * carried for buffer, carried in sides)


def consumer_bound(clients: Clients, network: Network, partitions: int) -> Bound:
    """Return what a task with so many partitions can fetch."""
    brokers, each = _spread(partitions, network.source_brokers)
    fetch = min(clients.fetch_max, each * clients.max_partition_fetch)
    pipe = window(clients.receive_buffer, network.broker_buffer)
    return _bound(
        brokers * _in_turn(fetch, pipe),
        network.consumer_ms,
        f"{format_count(brokers, 'broker')} x fetch of {format_count(each, 'partition')} {shown(fetch)} / "
        f"(1 + fetch / TCP window {shown(pipe)}) / {network.consumer_ms:g} ms",
    )


def producer_bound(clients: Clients, network: Network, partitions: int, record_bytes: float) -> Bound:
    """Return what a task with so many partitions can write; a record larger than a batch goes alone."""
    brokers, each = _spread(partitions, network.target_brokers)
    batch = max(clients.batch, int(record_bytes))
    request = max(min(clients.max_request, each * batch), batch)
    trip = network.producer_ms + network.acknowledge_ms
    pipe = window(network.broker_buffer, clients.send_buffer)
    asked = _bound(
        brokers * clients.in_flight * request,
        trip + network.producer_ms * request / pipe,
        f"{format_count(brokers, 'broker')} x {format_count(clients.in_flight, 'request')} in flight x "
        f"{format_count(each, 'batch', 'batches')} {shown(request)} / "
        f"({network.producer_ms:g} ms x (1 + request / TCP window {shown(pipe)}) + {network.acknowledge_ms:g} ms for "
        "acks=all)",
    )
    carried = _bound(
        brokers * pipe,
        network.producer_ms,
        f"{format_count(brokers, 'broker')} x TCP window {shown(pipe)} / {network.producer_ms:g} ms",
    )
    return min(asked, carried, key=lambda bound: bound.bytes_per_second or math.inf)


def tuned(clients: Clients, network: Network, partitions: int, needed_in: float, needed_out: float) -> Clients:
    """Return settings that carry so many bytes a second in and out of one task, as far as settings can."""
    brokers, each = _spread(partitions, network.source_brokers)
    way = needed_in * network.consumer_ms / 1000 / brokers
    if way > _in_turn(each * clients.max_partition_fetch, window(clients.receive_buffer, -1)):
        clients = replace(clients, receive_buffer=-1)
    fetch = _least_in_turn(way, way, window(clients.receive_buffer, network.broker_buffer))
    if fetch > each * clients.max_partition_fetch:
        clients = replace(clients, max_partition_fetch=min(LARGEST_FETCH, power_of_two(fetch / each)))
    brokers, each = _spread(partitions, network.target_brokers)
    sent = needed_out * network.producer_ms / 1000 / brokers
    if sent > clients.send_buffer * SENT >= 0:
        clients = replace(clients, send_buffer=-1)
    way = needed_out * (network.producer_ms + network.acknowledge_ms) / 1000 / brokers
    request = _least_in_turn(way, sent, window(network.broker_buffer, clients.send_buffer))
    if request > each * clients.batch:
        batch = min(LARGEST_BATCH, power_of_two(request / each))
        linger = min(100, max(10, round(network.producer_ms)))
        memory = max(clients.buffer_memory, power_of_two(2 * partitions * batch))
        clients = replace(clients, batch=batch, linger_ms=linger, buffer_memory=memory)
    if request > min(clients.max_request, each * clients.batch):
        clients = replace(clients, in_flight=5)
    return clients


def task_memory(clients: Clients, network: Network, partitions: int, record_bytes: int) -> int:
    """Return the bytes of heap that one task may fill: producer buffer, fetched data, the records of a poll."""
    brokers, _ = _spread(partitions, network.source_brokers)
    fetched = min(brokers * clients.fetch_max, partitions * clients.max_partition_fetch)
    return clients.buffer_memory + fetched + 2 * POLLED_RECORDS * record_bytes


def shown(size: float) -> str:
    """Return a number of bytes as people read it."""
    if size >= MIB:
        return f"{size / MIB:.4g} MiB"
    return f"{size / KIB:.4g} KiB" if size >= KIB else f"{size:.0f} B"


def power_of_two(least: float) -> int:
    """Return the smallest power of two that is not smaller."""
    return 1 << max(0, int(-(-least // 1)) - 1).bit_length()


def _in_turn(request: float, pipe: float) -> float:
    """Bytes in a round trip where one request or answer after the other is on its way, at the pace of the window."""
    return request / (1 + request / pipe)


def _least_in_turn(way: float, on_the_line: float, pipe: float) -> float:
    """Return the bytes of a request of which one after the other carries `way` bytes in a turn.

    `on_the_line` is what the line must carry in a round trip; no request makes it carry all of `pipe`.
    """
    if not on_the_line:
        return way
    carried = min(on_the_line, (1 - LEAST_IDLE) * pipe)
    return way * carried / on_the_line / (1 - carried / pipe)


def _spread(partitions: int, brokers: int) -> tuple[int, int]:
    """Brokers that lead a task's partitions, and how many each leads at least."""
    reached = max(1, min(partitions, brokers))
    return reached, max(1, partitions // reached)


def _bound(on_the_way: float, trip_ms: float, formula: str) -> Bound:
    if trip_ms <= 0:
        return Bound(None, f"{formula}: no round trip, no limit")
    rate = on_the_way * 1000 / trip_ms
    return Bound(rate, f"{formula} = {shown(rate)}/s")


MEASURED = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "mirror_throughput.json"
_MEASURE = "Run `python -m benchmarks.mirror_throughput`."


@dataclass(frozen=True)
class Point:
    """One measurement with one task: seconds and CPU seconds a record."""

    record_bytes: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Throughput:
    """Measurements by record size, at least one, and a description of where they come from."""

    points: tuple[Point, ...]
    origin: str

    def records_per_second(self, record_bytes: float) -> float:
        """Return what one task copies with nothing but its CPU in its way."""
        return 1 / self._between(record_bytes, lambda point: point.seconds)

    def cpu_seconds(self, record_bytes: float) -> float:
        """Return CPU seconds a record."""
        return self._between(record_bytes, lambda point: point.cpu_seconds)

    def _between(self, record_bytes: float, value: Callable[[Point], float]) -> float:
        """Straight line between the sizes around it. Below the smallest a record costs the same as the smallest; above
        the largest every byte costs what it costs in the largest.
        """
        first, last = self.points[0], self.points[-1]
        if record_bytes <= first.record_bytes:
            return value(first)
        if record_bytes >= last.record_bytes:
            return value(last) * record_bytes / last.record_bytes
        pairs = itertools.pairwise(self.points)
        low, high = next(pair for pair in pairs if pair[1].record_bytes >= record_bytes)
        share = (record_bytes - low.record_bytes) / (high.record_bytes - low.record_bytes)
        return value(low) + share * (value(high) - value(low))


NOTHING = Throughput((), "nothing measured")


def read_throughput(path: Path) -> Throughput:
    """Return the measurements of a results file; raises OpsError if it is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OpsError(f"throughput {path}: must be readable ({error.strerror}). {_MEASURE}") from None
    except ValueError:
        raise OpsError(f"throughput {path}: must be JSON. {_MEASURE}") from None
    try:
        points = _points(document["mirror"])
        machine = document["machine"]
        origin = (
            f"{path.name} of {document['date']}: Kafka {document['versions']['kafka']}, {machine['processor']}, "
            f"{machine['cores']} cores shared with both brokers, load {machine['loadAverage'][0]} before"
        )
    except (KeyError, TypeError, IndexError, ValueError, ZeroDivisionError) as error:
        raise OpsError(f"throughput {path}: must be a result of the benchmark ({error!r}). {_MEASURE}") from None
    if not points:
        raise OpsError(f"throughput {path}: mirror must have a row with 1 task (got none). {_MEASURE}")
    return Throughput(points, origin)


def _points(rows: Sequence[dict[str, Any]]) -> tuple[Point, ...]:
    found = [
        Point(int(row["recordBytes"]), 1 / row["recordsPerSecond"], row["cpuSecondsPer100kRecords"] / 100_000)
        for row in rows
        if row["tasks"] == 1
    ]
    return tuple(sorted(found, key=lambda point: point.record_bytes))
