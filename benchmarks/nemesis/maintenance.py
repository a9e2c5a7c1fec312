"""What operators do to a mirror in use: certificates renewed, brokers and worker rolled to another version of Kafka.

A broker reads its renewed certificate while it runs (AlterConfigs); the worker is started again for its own, as Strimzi
does. The two versions are those that Strimzi runs; brokers are formatted for the features of the former one, as they
are while both of them run.
"""

import os
import signal
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType  # type: ignore[attr-defined]  # the package does not list what it re-exports

from benchmarks import tables
from benchmarks.clusters import SOURCE, TARGET, WORKER, BenchmarkError, Clusters
from sandbox.processes import HOST
from sandbox.toolchain import pins

NEXT = {pins.KAFKA: pins.KAFKA_BEFORE, pins.KAFKA_BEFORE: pins.KAFKA}
BEGUN_WITHIN_S, READ_WITHIN_S, ASK_EVERY_S = 2.0, 60.0, 0.5
_KEYSTORES = {"ssl": "listener.name.ssl.ssl.keystore.location", "far": "listener.name.far.ssl.keystore.location"}


class Maintenance:
    """Renewals and rolls of a pair of clusters and its worker."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self.versions = dict.fromkeys((SOURCE, TARGET, WORKER), pins.KAFKA)
        """That brokers and worker are to run."""

    def renew(self, owner: str) -> None:
        """Give an owner a new certificate: the worker ends for it, a broker is asked to read it."""
        self._clusters.certificates.renew(owner)
        if owner == WORKER:
            self._end(WORKER)
        elif owner in (SOURCE, TARGET):
            with suppress(KafkaException, TimeoutError):  # it may be starting: it reads the file then
                self._let_read(owner, BEGUN_WITHIN_S)

    def roll(self, name: str) -> None:
        """Let a broker or the worker end; it is started with the other version."""
        self.versions[name] = NEXT[self.versions[name]]
        self._end(name)

    def start(self, name: str) -> None:
        """Start a broker or the worker; one that has not ended yet is killed, as after the grace period of a pod."""
        if self._clusters.processes.alive(name):
            self._clusters.processes.kill(name)
        if name == WORKER:
            self._clusters.start_worker(wait=False, version=self.versions[name])
        else:
            self._clusters.start_broker(name, version=self.versions[name])

    def start_ended(self, name: str) -> None:
        """Start a broker or the worker if it has ended by itself, as a pod is started again.

        A broker that could not write for a moment ends up to seconds after it has room again.
        """
        if not self._clusters.processes.alive(name):
            tables.log(f"{name} has ended by itself, and is started again")
            self.start(name)

    def require_newest(self) -> None:
        """Raise BenchmarkError unless brokers show their newest certificates, and all run their version.

        All of them answer. A broker does not say its version: it is that of the jars with which its process began.
        """
        for broker, listener, port in self._listeners():
            self._require_shown(broker, listener, port)
        found = {name: self._clusters.broker_version(name) for name in (SOURCE, TARGET)}
        with suppress(httpx.HTTPError):
            found[WORKER] = self._clusters.connect("GET", "/")["version"]
        for name, version in self.versions.items():
            if found.get(name) != version:
                raise BenchmarkError(f"{name}: must run Kafka {version} (got {found.get(name, 'no answer')}).")

    def _require_shown(self, broker: str, listener: str, port: int) -> None:
        """Wait until a listener shows the newest certificate: what it was asked before may have been lost."""
        end = time.monotonic() + READ_WITHIN_S
        while True:
            with suppress(OSError):
                if ssl.get_server_certificate((HOST, port), timeout=ASK_EVERY_S * 10) == self._newest(broker):
                    return
            if time.monotonic() > end:
                raise BenchmarkError(f"{broker}: must show its newest certificate at listener {listener}.")
            with suppress(KafkaException, TimeoutError):
                self._let_read(broker, READ_WITHIN_S)
            time.sleep(ASK_EVERY_S)

    def _newest(self, broker: str) -> str:
        return self._clusters.certificates.newest(broker)

    def _listeners(self) -> Iterator[tuple[str, str, int]]:
        """Yield each listener of each broker, and its own port, in front of which no line is."""
        for broker in (SOURCE, TARGET):
            yield broker, "ssl", self._clusters.ports[broker]
        if far := self._clusters.far:
            yield SOURCE, "far", far.port

    def _let_read(self, broker: str, within_s: float) -> None:
        """Ask a broker to read its keystore again: the same path in the configuration, another file."""
        path = str(self._clusters.certificates.keystore(broker))
        entries = [
            ConfigEntry(_KEYSTORES[listener], path, incremental_operation=AlterConfigOpType.SET)
            for name, listener, _ in self._listeners()
            if name == broker
        ]
        admin = self._clusters.admin(broker)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
        for future in admin.incremental_alter_configs([resource], request_timeout=within_s).values():
            future.result(within_s)

    def _end(self, name: str) -> None:
        with suppress(ProcessLookupError):  # it may have ended by itself
            if self._clusters.processes.alive(name):
                os.kill(self._clusters.pid(name), signal.SIGTERM)
