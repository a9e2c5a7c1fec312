"""A producer that raises for what it could not deliver."""

from typing import Any

from confluent_kafka import KafkaError, Message, Producer

DELIVERED_WITHIN_S = 30.0


class RaisingProducer(Producer):
    """Producer whose `poll`, `flush` and `deliver` fail with the topic and the reason if it has given a record up.

    The client's own `flush` answers 0 also then: what was given up waits for nothing.
    """

    def produce(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("on_delivery", _require_delivered)
        super().produce(*args, **kwargs)

    def deliver(self, within_s: float = DELIVERED_WITHIN_S) -> None:
        """Wait until the brokers have all records."""
        waiting = self.flush(within_s)
        assert waiting == 0, f"{waiting} records were not written within {within_s:.0f} s"


def _require_delivered(error: KafkaError | None, message: Message) -> None:
    assert error is None, f"topic {message.topic()}: {error}"
