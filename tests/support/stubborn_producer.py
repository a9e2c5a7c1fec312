"""A producer that goes on whatever it is refused, as no application should."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from .waiting import wait_until


class Stubborn:
    """A producer that writes to one side for ever. `refused`: the names of the errors that it got."""

    def __init__(self, client: dict[str, Any], name: str, topic: str = "items") -> None:
        self._topic = topic
        self.acknowledged: set[str] = set()
        self.refused: set[str] = set()
        self._producer = Producer(client | {"enable.idempotence": True, "message.timeout.ms": 30_000, "linger.ms": 5})
        self._name = name
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        number = 0
        while not self._stopped.is_set():
            number += 1
            value = f"{self._name}-{number}"
            try:
                self._producer.produce(self._topic, key=value, value=value, on_delivery=self._delivered)
            except KafkaException as error:  # an idempotent producer that was refused may do so at once
                self.refused.add(error.args[0].name())
            self._producer.poll(0.02)
        self._producer.flush(40)

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.acknowledged.add(message.key().decode())
        else:
            self.refused.add(error.name())

    @contextmanager
    def at_work(self) -> Iterator["Stubborn"]:
        """Produce while the block runs."""
        self._thread.start()
        try:
            wait_until(f"{self._name} has written", lambda: len(self.acknowledged) > 20, 30)
            yield self
        finally:
            self._stopped.set()
            self._thread.join(60)
        assert not self._thread.is_alive()
