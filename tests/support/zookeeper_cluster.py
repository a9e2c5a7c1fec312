"""One broker of an earlier Kafka version and its ZooKeeper, as processes of the sandbox, without TLS and logins."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.operator.java_processes import properties
from sandbox.operator.kafkas import process_environment
from sandbox.processes import free_port
from sandbox.state import write_private
from sandbox.toolchain import maven
from sandbox.toolchain.__main__ import ensure
from sandbox.toolchain.paths import here

from . import records
from .running_sandbox import Sandbox
from .waiting import wait_until

CONNECTS_MS, SESSION_MS = 240_000, 60_000
_BROKER, _ZOOKEEPER = "kafka.Kafka", "org.apache.zookeeper.server.ZooKeeperServerMain"
_LOGGING = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_ONE = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor", "transaction.state.log.min.isr")


@dataclass(frozen=True)
class ZooKeeperCluster:
    """A cluster that is up."""

    version: str
    bootstrap_servers: str

    @property
    def client(self) -> dict[str, Any]:
        """Properties of a client."""
        return {"bootstrap.servers": self.bootstrap_servers, "log_level": 0}


def install(version: str) -> None:
    """Fetch a Kafka version that the set-up leaves out, once."""
    assert ensure(here(), [f"kafka-{version}"]) == 0, f"Kafka {version} must be installed, see above"


@contextmanager
def running(sandbox: Sandbox, version: str, folder: Path) -> Iterator[ZooKeeperCluster]:
    """Fetch a Kafka version once, and run a cluster of it that keeps its data in a folder."""
    install(version)
    libs = maven.kafka_with_zookeeper(here(), version).path / maven.LIBS
    write_private(folder / "log4j.properties", _LOGGING)
    zookeeper, broker = free_port(), free_port()
    address = f"PLAINTEXT://127.0.0.1:{broker}"
    config = {
        "broker.id": 0,
        "listeners": address,
        "advertised.listeners": address,
        "zookeeper.connect": f"127.0.0.1:{zookeeper}",
        # A broker ends if ZooKeeper, which starts beside it, does not answer within 6 s: a loaded machine takes longer.
        "zookeeper.connection.timeout.ms": CONNECTS_MS,
        "zookeeper.session.timeout.ms": SESSION_MS,
        "log.dirs": folder / "logs",
        "auto.create.topics.enable": False,
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.num.partitions": 3,
        **dict.fromkeys(_ONE, 1),
    }
    write_private(folder / "server.properties", properties(config))
    names = {f"earlier.zookeeper.{version}": (_ZOOKEEPER, str(zookeeper), str(folder / "zookeeper"))}
    names |= {f"earlier.kafka.{version}": (_BROKER, str(folder / "server.properties"))}
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.admin.enableServer=false"]
    java = [str(sandbox.tools.java), *options, f"-Dlog4j.configuration=file:{folder}/log4j.properties"]
    found = ZooKeeperCluster(version, f"127.0.0.1:{broker}")
    try:
        for name, main in names.items():
            log = sandbox.state.log(name)
            sandbox.processes.start(name, [*java, "-cp", f"{libs}/*", *main], process_environment(), log)
        wait_until(f"Kafka {version} answers", lambda: records.admits(found.client), 90, otherwise=sandbox.tails)
        yield found
    finally:
        for name in reversed(names):
            sandbox.processes.stop(name, 20)
