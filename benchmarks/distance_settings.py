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


@dataclass(frozen=True)
class Setting:
    """Tasks and clients of a mirror, the same as connector's options, and what `ops size` expects of it."""

    name: str
    tasks: int
    consumer: dict[str, int | str]
    producer: dict[str, int | str]
    expected: float
    """Records a second that `ops size` expects."""

    def overrides(self) -> dict[str, object]:
        """Options of the connector."""
        return {
            **{f"consumer.{key}": value for key, value in self.consumer.items()},
            **{f"producer.override.{key}": value for key, value in self.producer.items()},
        }


def setting(name: str, round_trip_ms: int, here: Throughput, records_per_second: float | None = None) -> Setting:
    """Return what a mirror is configured with for this distance; `here` is what a task copies without one.

    Recommended is for so many records a second; without a number for a load of which the double, the catch-up factor,
    is all that this machine can copy.
    """
    most = here.records_per_second(RECORD_BYTES)
    load = Workload(
        topics=1,
        partitions=PARTITIONS,
        record_bytes=RECORD_BYTES,
        records_per_second=most / 2 if records_per_second is None else records_per_second,
        latency_ms=round_trip_ms,
        local_ms=NEAR_MS,
        source_brokers=1,
        target_brokers=1,
        broker_buffer=BROKER_BUFFERS[name],
    )
    consumer: dict[str, int | str] = {}
    producer: dict[str, int | str] = {}
    tasks = 1
    if name != DEFAULTS:
        found = size(load, here)
        tasks, consumer, producer = found.tasks, found.consumer, found.producer
    clients = Clients(
        receive_buffer=int(consumer.get("receive.buffer.bytes", Clients.receive_buffer)),
        max_partition_fetch=int(consumer.get("max.partition.fetch.bytes", Clients.max_partition_fetch)),
        batch=int(producer.get("batch.size", Clients.batch)),
        in_flight=int(producer.get("max.in.flight.requests.per.connection", Clients.in_flight)),
        send_buffer=int(producer.get("send.buffer.bytes", Clients.send_buffer)),
    )
    return Setting(
        name=name,
        tasks=tasks,
        consumer=consumer,
        producer=producer,
        expected=min(copied(load, here, clients, tasks), most),  # the tasks share the machine that one task fills
    )
