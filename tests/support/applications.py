"""A producer and a consumer as applications run them: they find the active side in the Secret and follow it.

Owns what an application sees: which records the brokers have acknowledged, and which it has read how often.
"""

import threading
import time
from collections import Counter
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from .running_sandbox import Sandbox

LOOK_S, SEND_EVERY_S, POLL_S = 0.5, 0.02, 0.2
LEAVES_WITHIN_S = 15.0
DELIVERED_WITHIN_MS = 4000


class Application:
    """A producer and a member of a consumer group on a topic. `sent`, `acknowledged` and `read` are ids of records."""

    def __init__(self, sandbox: Sandbox, namespace: str, secret: str, topic: str, group: str) -> None:
        self.sent: set[str] = set()
        self.acknowledged: set[str] = set()
        self.read: Counter[str] = Counter()
        self._sandbox = sandbox
        self._secret = (namespace, secret)
        self._topic, self._group = topic, group
        self._producing, self._stopped = threading.Event(), threading.Event()
        self._idle_since = time.monotonic()
        self._number = 0
        self._client: dict[str, Any] = self._look()
        self._readers: list[threading.Thread] = []
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._follow, self._send, self._take)]

    def start(self) -> None:
        """Begin to write and to read."""
        self._producing.set()
        for thread in self._threads:
            thread.start()

    def pause(self) -> None:
        """Stop writing, as the people on call ask for; reading goes on."""
        self._producing.clear()

    def resume(self) -> None:
        """Write again, wherever the Secret points."""
        self._producing.set()

    def stop(self) -> None:
        """End both; nothing of them is left."""
        self._stopped.set()
        self._producing.clear()
        threads = [*self._threads, *self._readers]
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads), "an application did not end"

    def idle(self, seconds: float = 4.0) -> bool:
        """Whether nothing was read for a while."""
        return time.monotonic() - self._idle_since > seconds

    @property
    def side(self) -> str:
        """Address of the cluster that the Secret names."""
        return str(self._client["bootstrap.servers"])

    @property
    def lost(self) -> set[str]:
        """Records that were acknowledged and never read."""
        return self.acknowledged - set(self.read)

    @property
    def repeated(self) -> int:
        """How many records were read once more than needed, all together."""
        return sum(times - 1 for times in self.read.values())

    def _look(self) -> dict[str, Any]:
        namespace, name = self._secret
        data = self._sandbox.secret(namespace, name)
        return {
            "bootstrap.servers": data["bootstrapServers"],
            "security.protocol": data["securityProtocol"],
            "sasl.mechanism": data["saslMechanism"],
            "sasl.username": data["user"],
            "sasl.password": data["password"],
            "ssl.ca.pem": data["ca.crt"],
            "log_level": 0,
            "error_cb": lambda error: None,
        }

    def _follow(self) -> None:
        while not self._stopped.wait(LOOK_S):
            self._client = self._look()

    def _send(self) -> None:
        while not self._stopped.is_set():
            if not self._producing.wait(0.1):
                continue
            client = self._client
            producer = Producer(
                {**client, "enable.idempotence": True, "message.timeout.ms": DELIVERED_WITHIN_MS, "linger.ms": 5}
            )
            while self._client["bootstrap.servers"] == client["bootstrap.servers"] and self._producing.is_set():
                self._number += 1
                name = f"{self._group}-{self._number}"
                self.sent.add(name)
                producer.produce(self._topic, key=name, value=name, on_delivery=self._delivered)
                producer.poll(0)
                time.sleep(SEND_EVERY_S)
            producer.flush(10)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.add(message.key().decode())

    def _take(self) -> None:
        """Read with one consumer for each side, in a thread of its own.

        A commit that its broker had received when it was killed never returns (librdkafka's issue 3740). Such a reader
        is left behind, as that of a process that is ended; it reads nothing more.
        """
        while not self._stopped.is_set():
            client, gone = self._client, threading.Event()
            reader = threading.Thread(target=self._read, args=(client, gone), daemon=True)
            self._readers.append(reader)
            reader.start()
            while self._client["bootstrap.servers"] == client["bootstrap.servers"] and not self._stopped.is_set():
                time.sleep(POLL_S)
            gone.set()
            reader.join(LEAVES_WITHIN_S)

    def _read(self, client: dict[str, Any], gone: threading.Event) -> None:
        consumer = Consumer(
            {
                **client,
                "group.id": self._group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
            }
        )
        consumer.subscribe([self._topic])
        try:
            while not gone.is_set():
                self._hand_over(consumer)
        finally:
            consumer.close()

    def _hand_over(self, consumer: Consumer) -> None:
        """Read a batch and commit it, so that what is read again is not this application's own doing."""
        messages = [message for message in consumer.consume(500, timeout=POLL_S) if message.error() is None]
        if not messages:
            return
        self._idle_since = time.monotonic()
        ours = [(message.key() or b"").decode() for message in messages]
        self.read.update(name for name in ours if name.startswith(f"{self._group}-"))
        try:
            consumer.commit(asynchronous=False)
        except KafkaException:  # the side is gone, or the group has changed: what was read may come again
            return
