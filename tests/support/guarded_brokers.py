"""Two real brokers that refuse what they must: TLS, passwords, client certificates and ACLs, and one bad address each.

Listeners: OPEN (plain text, all rights: for the tests' own preparations), LOGIN (TLS and passwords), MUTUAL (TLS and
client certificates), STALE (as LOGIN with a certificate that expired), FAR (as LOGIN; the second broker advertises a
port at which nobody listens).
"""

import datetime
import ipaddress
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509

from sandbox.operator.java_processes import ClassArchives, properties
from sandbox.pki import KeyPair, common_name_only, issue, self_signed
from sandbox.processes import HOST, Processes, free_ports
from sandbox.state import SandboxState
from sandbox.toolchain import Tools
from tests.support.full_disk import SmallDisk, small_disk
from tests.support.producers import RaisingProducer
from tests.support.waiting import wait_until

NODES = (1, 2)
LISTENERS = ("OPEN", "LOGIN", "MUTUAL", "STALE", "FAR")
READY_WITHIN_S = 150.0
_PROTOCOLS = {"OPEN": "PLAINTEXT", "LOGIN": "SASL_SSL", "MUTUAL": "SSL", "STALE": "SASL_SSL", "FAR": "SASL_SSL"}
_CLUSTER_ID = "rtInventoryGuardedAAAA"
_PASSWORD = "made-up-password-of-"


class Authority:
    """Signs certificates that begin and end when the test says."""

    def __init__(self, name: str) -> None:
        self._pair = self_signed(common_name_only(name), valid=(_in(-1), _in(30)))
        self.certificate = self._pair.certificate

    def issue(self, name: str, *, ends_in_days: float = 30, host: str = HOST) -> KeyPair:
        """Return a pair that is valid since ten days and ends then."""
        names = [x509.IPAddress(ipaddress.ip_address(host))]
        return issue(self._pair, common_name_only(name), valid=(_in(-10), _in(ends_in_days)), names=names)


def _in(days: float) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)


@dataclass
class Guarded:
    """The running brokers, and how the tests reach and change them."""

    tools: Tools
    folder: Path
    processes: Processes
    ports: dict[tuple[str, int], int]
    authority: Authority
    disk: SmallDisk | None = None
    """That of the second broker, if it has one of its own."""

    def bootstrap(self, listener: str, node: int = 1) -> str:
        """Address of a listener of one broker."""
        return f"{HOST}:{self.ports[listener, node]}"

    def login(self, user: str, listener: str = "LOGIN") -> dict[str, Any]:
        """Return `client_config` of a request for a user with a password, given by variable PASSWORD."""
        return {
            "bootstrap.servers": self.bootstrap(listener),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": {"env": "PASSWORD"},
            "ssl.ca.pem": self.authority.certificate,
        }

    @cached_property
    def admin(self) -> AdminClient:
        """An admin client with all rights."""
        return AdminClient({"bootstrap.servers": self.bootstrap("OPEN"), "log_level": 0})

    def user(self, name: str, acls: Iterable[tuple[str, str, str]]) -> str:
        """Add a user with rights (`topic`, `group` or `cluster`, name, operation) and return its password."""
        password = _PASSWORD + name
        secret = UserScramCredentialUpsertion(
            name, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), password.encode(), os.urandom(16)
        )
        for future in self.admin.alter_user_scram_credentials([secret]).values():
            future.result(20)
        self.grant(f"User:{name}", acls)
        return password

    def grant(self, principal: str, acls: Iterable[tuple[str, str, str]]) -> None:
        """Allow a principal these operations."""
        bindings = [
            AclBinding(
                ResourceType["BROKER" if kind == "cluster" else kind.upper()],
                name,
                ResourcePatternType.LITERAL,
                principal,
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for kind, name, operation in acls
        ]
        if bindings:
            for future in self.admin.create_acls(bindings).values():
                future.result(20)

    def topic(self, name: str, replicas: list[list[int]], records: int = 0) -> str:
        """Make a topic whose partitions lie on these brokers, with as many records in each."""
        # the package's types lack replica_assignment without a count
        made = NewTopic(name, num_partitions=len(replicas), replica_assignment=replicas)
        self.admin.create_topics([made])[name].result(20)
        producer = RaisingProducer({"bootstrap.servers": self.bootstrap("OPEN"), "log_level": 0})
        now_ms = int(time.time() * 1000) - 3_600_000  # young enough for every retention
        for number in range(len(replicas)):
            for value in range(records):
                producer.produce(name, value=b"%d" % value, partition=number, timestamp=now_ms + value)
        producer.deliver()
        return name

    def pid(self, node: int) -> int:
        """Process id of a broker."""
        return next(entry.pid for entry in self.processes.entries() if entry.name == f"kafka.{node}")

    def start(self) -> None:
        """Write what the brokers need and start both; fails when they do not answer."""
        server = self.authority.issue("server")
        stale = self.authority.issue("server", ends_in_days=-1)
        (self.folder / "ca.crt").write_text(self.authority.certificate)
        for name, pair in (("server", server), ("stale", stale)):
            (self.folder / f"{name}.pem").write_text(pair.key + pair.certificate)
        logging = "rootLogger.level=warn\nrootLogger.appenderRef.o.ref=o\nappender.o.type=Console\nappender.o.name=o\n"
        (self.folder / "log4j2.properties").write_text(logging)
        for node in NODES:
            path = self.folder / f"{node}.properties"
            path.write_text(properties(self._broker(node)), encoding="utf-8")
            format_log = ["format", "-t", _CLUSTER_ID, "-c", str(path)]
            command = self._on_disk(node, self._java("kafka.tools.StorageTool", *format_log))
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        for node in NODES:
            self.run(node)
        log = self.folder / "1.log"
        wait_until("the brokers are ready", self.is_ready, READY_WITHIN_S, otherwise=lambda: log.read_text()[-2000:])

    def run(self, node: int) -> None:
        """Start one broker."""
        command = self._on_disk(node, self._java("kafka.Kafka", str(self.folder / f"{node}.properties")))
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.processes.start(f"kafka.{node}", command, environment, self.folder / f"{node}.log")

    def is_ready(self) -> bool:
        """Whether both brokers answer."""
        try:
            return len(self.admin.list_topics(timeout=2).brokers) == len(NODES)
        except KafkaException:
            return False

    def _java(self, main: str, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        class_path = f"{self.tools.kafka_libs}/*"
        # From the archive of a sandbox's brokers, if one has written it, the start takes half of the processor time.
        archive = ClassArchives(self.tools.java, self.tools.kafka_classes, lists=self.folder).existing(main, class_path)
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", logging, *archive]
        return [str(self.tools.java), *options, "-cp", class_path, main, *arguments]

    def _on_disk(self, node: int, command: list[str]) -> list[str]:
        return self.disk.command(*command) if self.disk and node == NODES[1] else command

    def _broker(self, node: int) -> dict[str, object]:
        controller = f"{HOST}:{self.ports['CONTROLLER', 1]}"
        listeners = {name: f"{HOST}:{self.ports[name, node]}" for name in LISTENERS}
        advertised = listeners | ({"FAR": f"{HOST}:{self.ports['NOBODY', node]}"} if node == 2 else {})
        bound = listeners | ({"CONTROLLER": controller} if node == 1 else {})
        settings: dict[str, object] = {
            "process.roles": "broker,controller" if node == 1 else "broker",
            "node.id": node,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(f"{name}://{address}" for name, address in bound.items()),
            "advertised.listeners": ",".join(f"{name}://{address}" for name, address in advertised.items()),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in {**_PROTOCOLS, "CONTROLLER": "PLAINTEXT"}.items()
            ),
            "inter.broker.listener.name": "OPEN",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.crt"),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.stale.ssl.keystore.type": "PEM",
            "listener.name.stale.ssl.keystore.location": str(self.folder / "stale.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "log.dirs": str(_data(self.folder, node)),
            "log.segment.bytes": 1_048_576,
            "log.initial.task.delay.ms": 1000,
            "log.retention.check.interval.ms": 1000,
            "auto.create.topics.enable": False,
            "group.initial.rebalance.delay.ms": 0,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "broker.session.timeout.ms": 4000,
        }
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        for name, protocol in _PROTOCOLS.items():
            if protocol.startswith("SASL"):
                settings[f"listener.name.{name.lower()}.scram-sha-512.sasl.jaas.config"] = login
        return settings


def _data(folder: Path, node: int) -> Path:
    return folder / f"{node}.data"


@contextmanager
def running(tools: Tools, disk_bytes: int | None = None) -> Iterator[Guarded]:
    """The brokers, ready; stopped and removed at the end, whatever ends it.

    With `disk_bytes` the second one's data is on a disk of that size.
    """
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="rt-inventory-guarded-")))
        state = SandboxState(folder / "state")
        state.create()
        disk = None
        if disk_bytes is not None:
            _data(folder, NODES[1]).mkdir()
            disk = held.enter_context(small_disk(_data(folder, NODES[1]), disk_bytes))
        places = [*((listener, node) for listener in LISTENERS for node in NODES), ("CONTROLLER", 1), ("NOBODY", 2)]
        ports = dict(zip(places, free_ports(len(places)), strict=True))
        guarded = Guarded(tools, folder, Processes(state), ports, Authority("guarded CA"), disk)
        try:
            guarded.start()
            yield guarded
        finally:
            guarded.processes.stop_all(5.0)
