"""Producers of both kinds, while their broker hangs as long as applications wait in a failover.

With the settings of docs/client-timeouts.md they lose no record; with a delivery time-out that is too short they do.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest
from confluent_kafka import Producer

from sandbox.toolchain import Tools
from settings.client_timeouts import Client, producer_settings
from settings.users import Section, properties_text, secret_values

from ...support import records
from ...support.java_regex import QUICK
from ...support.recovery_times import measured_rto_s
from ...support.running_sandbox import Sandbox
from ...support.small_cluster import PASSWORD, USER, Kit
from ...support.waiting import wait_until

TOPIC, EACH_S = "orders", 20
TOO_SHORT = {
    Client.PRODUCER: {"delivery.timeout.ms": "8000", "request.timeout.ms": "4000"},
    Client.LIBRDKAFKA: {"message.timeout.ms": "8000"},
}
AFTERWARDS_S = 90.0


@dataclass
class Delivery:
    """What became of a producer's records."""

    acknowledged: set[str] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)


class Sending(Protocol):
    """A producer at work."""

    delivery: Delivery

    def stop(self) -> None:
        """End it once every record is acknowledged or given up."""


class JavaProducer:
    """Kafka's own `kafka-verifiable-producer`, which says of each record whether it was acknowledged."""

    def __init__(self, kit: Kit, tools: Tools, folder: Path, prefix: int, settings: dict[str, str]) -> None:
        self.delivery = Delivery()
        listener = kit.listener()
        servers, authority = listener["bootstrapServers"], listener["certificates"][0]
        login = secret_values("scram-sha-512", USER, servers, authority, {"password": PASSWORD}, tls=True)
        # The tool tries nothing again unless it is told to.
        more = properties_text([Section(comment=(), values={**settings, "retries": "2147483647"})])
        file = folder / f"{prefix}.properties"
        file.write_text(login["client.properties"] + more, encoding="utf-8")
        words = ["--bootstrap-server", servers, "--topic", TOPIC, "--throughput", str(EACH_S), "--value-prefix", prefix]
        java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
        tool = ["-Xmx64m", "-cp", f"{tools.kafka_libs}/*", "org.apache.kafka.tools.VerifiableProducer"]
        with (folder / f"{prefix}.log").open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [java, *QUICK, *tool, *map(str, words), "--command-config", file],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            said = json.loads(line)
            if said["name"] == "producer_send_success":
                self.delivery.acknowledged.add(said["value"])
            elif said["name"] == "producer_send_error":
                self.delivery.failed.append(f"{said['exception']}: {said['message']}")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(AFTERWARDS_S)
        finally:
            self._process.kill()
            self._reader.join(10)
            if self._process.stdout:
                self._process.stdout.close()


class LibrdkafkaProducer:
    """A producer of confluent-kafka, in a thread of its own."""

    def __init__(self, kit: Kit, prefix: int, settings: dict[str, str]) -> None:
        self.delivery = Delivery()
        login = {key: value for key, value in kit.client_config().items() if key != "socket.timeout.ms"}
        self._producer = Producer(login | settings)
        self._prefix = prefix
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        number = 0
        while not self._stopped.wait(1 / EACH_S):
            number += 1
            self._producer.produce(TOPIC, value=f"{self._prefix}.{number}", on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.delivery.acknowledged.add(message.value().decode())
        else:
            self.delivery.failed.append(str(error))

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(10)
        self._producer.flush(AFTERWARDS_S)


@pytest.fixture(scope="module")
def kit(sandbox: Sandbox) -> Iterator[Kit]:
    kit = Kit(sandbox.state, namespace="client-timeouts", cluster="patient")
    kit.create_cluster()
    kit.apply("KafkaTopic", TOPIC, {"partitions": 1, "replicas": 1})
    kit.ready("KafkaTopic", TOPIC)
    yield kit
    kit.remove_cluster(("KafkaTopic", TOPIC))


@contextmanager
def hanging(kit: Kit) -> Iterator[None]:
    """The broker does nothing while the block runs."""
    broker = kit.pid(kit.broker())
    assert broker is not None
    os.kill(broker, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker, signal.SIGCONT)


@pytest.fixture(scope="module")
def delivered(kit: Kit, tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[Client, bool], Delivery]:
    """What became of the records of both clients, by client and whether it had the page's settings."""
    folder, sending = tmp_path_factory.mktemp("producers"), dict[tuple[Client, bool], Sending]()
    with ExitStack() as stopped:
        for prefix, (client, fits) in enumerate((one, fits) for one in TOO_SHORT for fits in (True, False)):
            settings = producer_settings(client) | ({} if fits else TOO_SHORT[client])
            java = client is Client.PRODUCER
            one = (
                JavaProducer(kit, tools, folder, prefix, settings)
                if java
                else LibrdkafkaProducer(kit, prefix, settings)
            )
            sending[client, fits] = one
            stopped.callback(one.stop)
        every = [one.delivery for one in sending.values()]
        wait_until("all of them write", lambda: all(len(each.acknowledged) > EACH_S for each in every), 60)
        with hanging(kit):
            ends = time.monotonic() + measured_rto_s()  # what is measured is time
            wait_until("answers that were on their way are read", lambda: _rests(every), measured_rto_s())
            before = [len(each.acknowledged) for each in every]
            time.sleep(max(0.0, ends - time.monotonic()))
            grown = [len(each.acknowledged) - count for each, count in zip(every, before, strict=True)]
            assert max(grown) < EACH_S, "the broker did not hang"
        wait_until("all of them write again", lambda: _grown(every, before), AFTERWARDS_S)
    return {which: one.delivery for which, one in sending.items()}


def _rests(every: list[Delivery]) -> bool:
    """Whether no record is acknowledged for a while, in which each producer sends."""
    before = [len(each.acknowledged) for each in every]
    time.sleep(20 / EACH_S)
    return before == [len(each.acknowledged) for each in every]


def _grown(every: list[Delivery], before: list[int]) -> bool:
    """Whether each has more records acknowledged than it had, and some that it has sent since."""
    return all(len(each.acknowledged) > count + 5 * EACH_S for each, count in zip(every, before, strict=True))


@pytest.mark.parametrize("client", TOO_SHORT)
def test_with_the_settings_of_the_page_no_record_is_given_up_or_lost(
    kit: Kit, delivered: dict[tuple[Client, bool], Delivery], client: Client
) -> None:
    found = delivered[client, True]
    assert found.failed == []
    assert len(found.acknowledged) > EACH_S * measured_rto_s()
    held = records.read(kit.client_config(), TOPIC)
    assert found.acknowledged <= set(held)
    mine = [value for value in held if value in found.acknowledged]
    assert len(mine) == len(set(mine)), "sent again, and there twice"


@pytest.mark.parametrize("client", TOO_SHORT)
def test_a_delivery_time_out_that_is_too_short_gives_records_up(
    delivered: dict[tuple[Client, bool], Delivery], client: Client
) -> None:
    failed = delivered[client, False].failed
    assert failed
    assert all("Timeout" in why or "timed out" in why or "TIMED_OUT" in why for why in failed), failed[:3]
