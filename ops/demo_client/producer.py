"""Send inventory events: acks=all, idempotent, every delivery accounted for."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from confluent_kafka import KafkaError, Producer

from ops.connection import ClientErrors, Connection, client_settings, partitions_of
from ops.demo_client import DeliveryLog, Each, Event, nobody
from ops.errors import OpsError

DELIVERY_TIMEOUT_S = 60.0
# What waits while a cluster is away must fit into a small pod.
_QUEUE_MAX = 20_000
_POLL_S = 0.1
_PACE_S = 0.02


class ProducerClient(Protocol):
    """The part of confluent_kafka.Producer that sending needs."""

    def produce(self, topic: str, *, key: bytes, value: bytes, on_delivery: Callable[[Any, Any], None]) -> None:
        """Queue one record."""

    def poll(self, timeout: float) -> Any:
        """Serve delivery reports."""

    def flush(self, timeout: float) -> int:
        """Wait for outstanding records; return how many are left."""


@dataclass
class Sent:
    """The outcome of a run: what was delivered, and failed deliveries per reason."""

    topic: str
    account: DeliveryLog = field(default_factory=DeliveryLog)
    failures: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """Number of records that were not delivered."""
        return self.failures.total()

    def as_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return {
            "topic": self.topic,
            "delivered": self.account.total,
            "failed": self.failed,
            "failures": dict(self.failures),
            "partitions": self.account.as_json(),
            "seconds": round(self.seconds, 3),
        }


def connect(
    connection: Connection, topic: str, delivery_timeout_s: float = DELIVERY_TIMEOUT_S
) -> tuple[Producer, ClientErrors]:
    """Return a producer that has reached the cluster and has found the topic, and what it meets from then on."""
    client_errors = ClientErrors(connection)
    producer = Producer(
        {
            **client_settings(connection, client_errors),
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 20,
            "queue.buffering.max.messages": _QUEUE_MAX,
            "delivery.timeout.ms": int(delivery_timeout_s * 1000),
        }
    )
    partitions_of(producer, topic, client_errors)
    return producer, client_errors


def send(
    producer: ProducerClient,
    topic: str,
    events: Iterable[Event],
    *,
    rate: float | None = None,
    delivery_timeout_s: float = DELIVERY_TIMEOUT_S,
    stopped: Callable[[], bool] = lambda: False,
    each: Each = nobody,
    progress: Callable[[int], None] = lambda _: None,
) -> Sent:
    """Send all events and wait for every delivery report; `rate` is in records per second, None as fast as possible.

    `stopped` says when to stop before the events do. `each` sees every record that was delivered; `progress` is called
    with the number of records queued so far. An interruption (Ctrl-C) still waits for what is queued, so that the
    account is complete.
    """
    sent = Sent(topic, DeliveryLog(each))
    started = time.monotonic()

    def delivered(record_id: str) -> Callable[[KafkaError | None, Any], None]:
        def report(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                sent.failures[error.name()] += 1
            else:
                sent.account.add(message.partition(), message.offset(), record_id)

        return report

    try:
        for number, event in enumerate(events):
            _pace(producer, started, number, rate, stopped)
            if stopped() or not _queue(producer, topic, event, delivered(event.record_id), delivery_timeout_s, stopped):
                break
            progress(number + 1)
    finally:
        left = producer.flush(delivery_timeout_s)
        if left:
            sent.failures["unknown: no delivery report in time"] += left
        sent.seconds = time.monotonic() - started
    return sent


def _pace(
    producer: ProducerClient, started: float, number: int, rate: float | None, stopped: Callable[[], bool]
) -> None:
    if rate is None:
        producer.poll(0)
        return
    while (wait := started + number / rate - time.monotonic()) > 0 and not stopped():
        producer.poll(min(wait, _PACE_S))


def _queue(
    producer: ProducerClient,
    topic: str,
    event: Event,
    on_delivery: Callable[[KafkaError | None, Any], None],
    timeout_s: float,
    stopped: Callable[[], bool],
) -> bool:
    """Queue one record, waiting for room in a full queue until the deadline; false if asked to stop meanwhile."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            producer.produce(topic, key=event.key, value=event.value, on_delivery=on_delivery)
        except BufferError as error:
            if time.monotonic() > end:
                raise OpsError(f"topic {topic}: queue must drain within {timeout_s:g} s. Is a broker down?") from error
            if stopped():
                return False
            producer.poll(_POLL_S)
        else:
            return True
