"""What a mirror is configured with for a distance: Kafka's defaults, or what `ops size` recommends and expects.

It recommends other tasks where the source's brokers keep their socket buffers, as those of somebody else do.
"""

from dataclasses import dataclass

from ops.sizing.clients import BROKER_BUFFER, Clients, Throughput
from ops.sizing.model import Workload, copied, size

PARTITIONS, RECORD_BYTES = 8, 1024
DEFAULTS, MIRROR_ONLY, RECOMMENDED = "defaults", "recommended, brokers' defaults", "recommended"
# `socket.send.buffer.bytes` of the source's brokers; -1 lets the system choose.
BROKER_BUFFERS = {RECOMMENDED: -1, MIRROR_ONLY: BROKER_BUFFER, DEFAULTS: BROKER_BUFFER}
NEAR_MS = 0.2  # a round trip on one machine
ALONE_MS = 0.0  # what acks=all adds where one broker is the only replica
SHARE = 2 / 3  # of what the machine copies: beyond it the processors are the limit, and not the line


@dataclass(frozen=True)
class Setting:
    """Tasks and clients of a mirror, the clients as the connector's options."""

    name: str
    tasks: int
    consumer: dict[str, int | str]
    producer: dict[str, int | str]

    def overrides(self) -> dict[str, object]:
        """Options of the connector."""
        return {
            **{f"consumer.{key}": value for key, value in self.consumer.items()},
            **{f"producer.override.{key}": value for key, value in self.producer.items()},
        }

    def expected(self, round_trip_ms: int, here: Throughput) -> float:
        """Return the records a second that `ops size` expects; `here` is what a task copies without a distance."""
        clients = Clients(
            receive_buffer=int(self.consumer.get("receive.buffer.bytes", Clients.receive_buffer)),
            max_partition_fetch=int(self.consumer.get("max.partition.fetch.bytes", Clients.max_partition_fetch)),
            batch=int(self.producer.get("batch.size", Clients.batch)),
            in_flight=int(self.producer.get("max.in.flight.requests.per.connection", Clients.in_flight)),
            send_buffer=int(self.producer.get("send.buffer.bytes", Clients.send_buffer)),
        )
        most = here.records_per_second(RECORD_BYTES)
        load = _load(self.name, round_trip_ms, most)
        return min(copied(load, here, clients, self.tasks), most)  # the tasks share the machine that one task fills


def setting(name: str, round_trip_ms: int, here: Throughput, records_per_second: float | None = None) -> Setting:
    """Return what a mirror is configured with for this distance; `here` is what a task copies without one.

    Recommended is for so many records a second, of which the double, the catch-up factor, must be possible; without a
    number the double is two thirds of what this machine can copy.
    """
    if name == DEFAULTS:
        return Setting(name, 1, {}, {})
    if records_per_second is None:
        records_per_second = SHARE * here.records_per_second(RECORD_BYTES) / Workload.catch_up
    found = size(_load(name, round_trip_ms, records_per_second), here)
    return Setting(name, found.tasks, found.consumer, found.producer)


def _load(name: str, round_trip_ms: int, records_per_second: float) -> Workload:
    return Workload(
        topics=1,
        partitions=PARTITIONS,
        record_bytes=RECORD_BYTES,
        records_per_second=records_per_second,
        latency_ms=round_trip_ms,
        local_ms=NEAR_MS,
        acknowledge_ms=ALONE_MS,
        source_brokers=1,
        target_brokers=1,
        broker_buffer=BROKER_BUFFERS[name],
    )
