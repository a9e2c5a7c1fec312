"""Two Kafka clusters of one broker each, mutual TLS only, and a Connect worker: what a mirror is measured on.

Owns the processes and their files in one temporary folder; both are gone when the `with` block ends. Does not own the
topics and connectors in them. Users and ACLs are left out: they cost nothing per record.
"""

import json
import logging
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import psutil
from confluent_kafka.admin import AdminClient

from benchmarks.certificates import CLIENTS, Certificates
from sandbox.operator.java_processes import ClassArchives, Jvm, kafka_version, properties
from sandbox.processes import HOST, Processes, free_ports
from sandbox.state import SandboxState
from sandbox.toolchain import Tools

CONNECTOR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
BROKER_HEAP_MIB, WORKER_HEAP_MIB, TOOL_HEAP_MIB = 512, 768, 512
SOURCE, TARGET, WORKER = "kafka.source", "kafka.target", "worker"
READY_WITHIN_S = 180.0
TOOL_WITHIN_S = 90.0
_POLL_S = 0.2
_STOP_S = 5.0
_CLUSTER_ID = "rtInventoryBenchmarkAA"
_LOGGING = """\
status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class BenchmarkError(Exception):
    """A measurement cannot be made; the message says what did not happen."""


@dataclass(frozen=True)
class FarListener:
    """A second listener of the source, at the far end of a line: where it listens, and what clients are told."""

    host: str
    port: int
    advertised_host: str
    advertised_port: int

    @property
    def bootstrap(self) -> str:
        """Address for clients."""
        return f"{self.advertised_host}:{self.advertised_port}"


@dataclass(frozen=True)
class Clusters:
    """The running processes, and how to reach them."""

    tools: Tools
    folder: Path
    processes: Processes
    ports: dict[str, int]
    worker_settings: Mapping[str, object] = field(default_factory=dict)
    broker_heap_mib: int = BROKER_HEAP_MIB
    with_worker: bool = True
    far: FarListener | None = None
    source_settings: Mapping[str, object] = field(default_factory=dict)
    features_of: str | None = None
    starts_fast: bool = False

    @cached_property
    def certificates(self) -> Certificates:
        """Of brokers, worker and clients."""
        return Certificates(self.folder, sorted({HOST, self.far.advertised_host} if self.far else {HOST}))

    def bootstrap(self, broker: str) -> str:
        """Address of a broker."""
        return f"{HOST}:{self.ports[broker]}"

    def client(self, broker: str) -> dict[str, str]:
        """Properties of a librdkafka client."""
        return {
            "bootstrap.servers": self.bootstrap(broker),
            "security.protocol": "SSL",
            **self.certificates.client(),
        }

    def admin(self, broker: str) -> AdminClient:
        """An admin client of a broker. It logs nothing while the broker starts; its calls raise."""
        silent = logging.Logger("silent", level=logging.CRITICAL)
        return AdminClient({**self.client(broker)}, logger=silent)

    def java_client(self) -> dict[str, str]:
        """Properties of a Java client, the address left out."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.trusted),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates.keystore(WORKER)),
        }

    def pid(self, name: str) -> int:
        """Process id of a broker or of the worker."""
        return next(entry.pid for entry in self.processes.entries() if entry.name == name)

    def kill(self, name: str) -> float:
        """Send SIGKILL to a broker or to the worker; return when, by `time.monotonic`. Raises BenchmarkError."""
        try:
            if not self.processes.alive(name):
                raise ProcessLookupError
            os.kill(self.pid(name), signal.SIGKILL)
        except ProcessLookupError:  # also between the two: somebody else may end it at any time
            raise BenchmarkError(f"{name}: must run until it is killed (got an end before).") from None
        return time.monotonic()

    def tool(self, main: str, *arguments: str) -> str:
        """What one of Kafka's own tools prints; raises BenchmarkError if it fails or takes too long."""
        try:
            done = subprocess.run(
                self.command(main, *arguments, heap_mib=TOOL_HEAP_MIB),
                env=_environment(),
                capture_output=True,
                text=True,
                timeout=TOOL_WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError(f"{main}: must end within {TOOL_WITHIN_S:.0f} s (got no end).") from error
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines()[-3:]
            raise BenchmarkError(f"{main}: must exit with 0 (got {done.returncode}: {' '.join(words)}).")
        return done.stdout

    def groups(self, broker: str) -> str:
        """What Kafka's tool lists of a broker's groups, of all types."""
        options = ("--command-config", str(self.folder / "client.properties"), "--list")
        return self.tool("org.apache.kafka.tools.GroupsCommand", "--bootstrap-server", self.bootstrap(broker), *options)

    def command(self, main: str, *arguments: str, heap_mib: int, version: str | None = None) -> list[str]:
        """A Java command line with both compiler tiers, as in production, or one that starts fast, as in the sandbox.

        The worker gets G1 on 2 cores and more anyway; naming it keeps a smaller machine comparable.
        """
        if self.starts_fast:
            return self._fast.command(main, *arguments, heap_mib=heap_mib, version=version)
        libs = self.tools.kafka_libs if version is None else self.tools.kafka_versions[version]
        return [
            str(self.tools.java),
            f"-Xms{heap_mib}m",
            f"-Xmx{heap_mib}m",
            "-XX:+UseG1GC",
            "-XX:+ExitOnOutOfMemoryError",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            "-cp",
            f"{libs}/*",
            main,
            *arguments,
        ]

    @cached_property
    def _fast(self) -> Jvm:
        """What the sandbox starts brokers and workers by."""
        tools, logging_ = self.tools, self.folder / "log4j2.properties"
        archives = ClassArchives(tools.java, tools.kafka_classes, lists=self.folder / "classes")
        return Jvm(tools.java, tools.kafka_libs, tools.kafka_versions, logging_, archives)

    def connect(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        """An answer of the worker's REST interface; raises httpx.HTTPError."""
        url = f"http://{HOST}:{self.ports[WORKER]}{path}"
        answer = httpx.request(method, url, json=body, timeout=20, trust_env=False)
        answer.raise_for_status()
        return json.loads(answer.text) if answer.text else None

    def mirror(self, alias: str, topic: str, tasks: int, source: str, **overrides: object) -> dict[str, str]:
        """Configuration of a source connector that copies a topic from the source's address `source`."""
        addresses = {"source": source, "target": self.bootstrap(TARGET)}
        sides = {
            f"{side}.cluster.{key}": value
            for side, address in addresses.items()
            for key, value in (*self.java_client().items(), ("bootstrap.servers", address), ("alias", side))
        }
        return {
            **sides,
            "source.cluster.alias": alias,
            "connector.class": CONNECTOR,
            "tasks.max": str(tasks),
            "topics": topic,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "offset-syncs.topic.location": "target",
            "sync.topic.acls.enabled": "false",
            **{key: str(value) for key, value in overrides.items()},
        }

    def start(self) -> None:
        """Start both brokers, then the worker if there is to be one, and wait until each answers."""
        for owner in (SOURCE, TARGET, WORKER, CLIENTS):
            self.certificates.renew(owner)
        (self.folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        (self.folder / "client.properties").write_text(properties(self.java_client()), encoding="utf-8")
        for name in (SOURCE, TARGET):
            path = self._write(name, self._broker(name))
            features = ["--release-version", self.features_of] if self.features_of else []
            self.tool("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", path, *features)
            self.start_broker(name)
        for name in (SOURCE, TARGET):
            self.wait_for_broker(name)
        if self.with_worker:
            self.start_worker()

    def start_broker(self, name: str, *, version: str | None = None) -> None:
        """Start a broker, also after its end and with another version of Kafka, without waiting for it."""
        path = str(self.folder / f"{name}.properties")
        self._run(name, self.command("kafka.Kafka", path, heap_mib=self.broker_heap_mib, version=version))

    def broker_version(self, name: str) -> str:
        """Version of Kafka whose jars a broker runs."""
        words = psutil.Process(self.pid(name)).cmdline()
        return kafka_version(Path(words[words.index("-cp") + 1]).parent)

    def wait_for_broker(self, name: str) -> None:
        """Wait until a broker answers; raises BenchmarkError."""
        self.wait(name, partial(self.admin(name).list_topics, timeout=2))

    def start_worker(self, *, wait: bool = True, version: str | None = None) -> None:
        """Start the worker, also after its end and with another version of Kafka, and wait until it answers."""
        path = self._write(WORKER, {**self._worker(), **self.worker_settings})
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        self._run(WORKER, self.command(main, path, heap_mib=WORKER_HEAP_MIB, version=version))
        if wait:
            self.wait_for_worker()

    def wait_for_worker(self) -> None:
        """Wait until the worker answers; raises BenchmarkError."""
        self.wait(WORKER, lambda: isinstance(self.connect("GET", "/connectors"), list))

    def wait(self, name: str, answers: Callable[[], Any]) -> None:
        """Wait until a process answers; raises BenchmarkError with the end of its log if it does not."""
        end = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < end and self.processes.alive(name):
            try:
                if answers():
                    return
            except Exception:  # noqa: S110 - it may fail in any way while it starts
                pass
            time.sleep(_POLL_S)
        log = (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        raise BenchmarkError(f"{name}: must answer within {READY_WITHIN_S:.0f} s. Its last lines:\n" + "\n".join(log))

    def _run(self, name: str, command: list[str]) -> None:
        self.processes.start(name, command, _environment(), self.folder / f"{name}.log")

    def _write(self, name: str, values: dict[str, object]) -> str:
        path = self.folder / f"{name}.properties"
        path.write_text(properties(values), encoding="utf-8")
        return str(path)

    def _broker(self, name: str) -> dict[str, object]:
        far = self.far if name == SOURCE else None
        own, controller = f"SSL://{HOST}:{self.ports[name]}", f"CONTROLLER://{HOST}:{self.ports[name + '.controller']}"
        bound, told = ([f"FAR://{far.host}:{far.port}"], [f"FAR://{far.bootstrap}"]) if far else ([], [])
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{HOST}:{self.ports[name + '.controller']}",
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join([own, controller, *bound]),
            "advertised.listeners": ",".join([own, *told]),
            "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT,FAR:SSL",
            "inter.broker.listener.name": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates.keystore(name)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.trusted),
            "ssl.client.auth": "required",
            "log.dirs": str(self.folder / f"{name}.data"),
            "auto.create.topics.enable": False,
            "group.initial.rebalance.delay.ms": 0,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "share.coordinator.state.topic.num.partitions": 1,
            **(self.source_settings if name == SOURCE else {}),
        }

    def _worker(self) -> dict[str, object]:
        client = self.java_client()
        names = {f"{kind}.storage.topic": f"worker-{kind}s" for kind in ("config", "offset", "status")}
        factors = {f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")}
        return {
            "bootstrap.servers": self.bootstrap(TARGET),
            "group.id": "worker",
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "listeners": f"http://{HOST}:{self.ports[WORKER]}",
            "plugin.discovery": "service_load",
            **names,
            **factors,
            **client,
            **{f"{kind}.{key}": value for kind in ("producer", "consumer", "admin") for key, value in client.items()},
        }


@contextmanager
def running(
    tools: Tools,
    worker_settings: Mapping[str, object] = MappingProxyType({}),
    *,
    broker_heap_mib: int = BROKER_HEAP_MIB,
    with_worker: bool = True,
    far: FarListener | None = None,
    source_settings: Mapping[str, object] = MappingProxyType({}),
    features_of: str | None = None,
    starts_fast: bool = False,
) -> Iterator[Clusters]:
    """The clusters and the worker, ready; stopped and removed at the end, whatever ends it.

    `features_of` is the version whose features the brokers have, so that they can change to it and back; None for those
    of their own version. With `starts_fast` a start takes half the CPU time, where no speed is measured.
    """
    with tempfile.TemporaryDirectory(prefix="rt-inventory-benchmark-") as name:
        state = SandboxState(Path(name) / "state")
        state.create()
        names = (SOURCE, TARGET, f"{SOURCE}.controller", f"{TARGET}.controller", WORKER)
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        place = tools, Path(name), Processes(state), ports
        sizes = worker_settings, broker_heap_mib, with_worker
        clusters = Clusters(*place, *sizes, far, source_settings, features_of, starts_fast)
        try:
            clusters.start()
            yield clusters
        finally:
            clusters.processes.stop_all(_STOP_S)


def _environment() -> dict[str, str]:
    """What a Java process needs of the caller's environment, and nothing else."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
