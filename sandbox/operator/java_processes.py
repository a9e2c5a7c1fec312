"""Java processes of brokers and workers: command lines, archives of classes to start from, restarts after a crash.

Heaps are small, all processes log in one format, and no secret is among the arguments. From an archive (JDK class data
sharing) a process starts with half the CPU time. A process that should run and does not is started again, after longer
and longer waits if it ends soon after its start; `ProcessSupervisor` does the same for Prometheus and Alertmanager.
"""

import fcntl
import hashlib
import logging
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sandbox.operator import OperatorError
from sandbox.state import write_private

logger = logging.getLogger(__name__)

BROKER_HEAP_MIB = 256
CONNECT_HEAP_MIB = 384
TOOL_HEAP_MIB = 128

_LOGGING = """\
status = warn
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %X{connector.context}%m (%c:%L)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
logger.reflections.name = org.reflections
logger.reflections.level = error
# These print whole configurations at INFO, hundreds of lines at every start of a client.
logger.clients.name = org.apache.kafka.common.config.AbstractConfig
logger.clients.level = warn
"""


# Main class → the main class whose archive it starts from; their class paths are equal.
BROKER = "kafka.Kafka"

WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"

_ARCHIVE_OF = {BROKER: BROKER, WORKER: WORKER, "kafka.tools.StorageTool": BROKER}

CHECK_S = 10.0  # on a busy machine a process may still load its classes after minutes

STILL_LOADS = 1.01  # times the list, in that time: a process that has started loads a class now and then

WRITTEN_WITHIN_S = 180.0

LOWEST_PRIORITY = ("nice", "-n", "19")


def _start_timer(delay_s: float, act: Callable[[], None]) -> None:
    timer = threading.Timer(delay_s, act)
    timer.daemon = True
    timer.start()


@dataclass
class ClassArchives:
    """The archives in `folder`, made by the Java binary `java`. Lists of classes are kept in `lists` until then."""

    java: Path
    folder: Path
    lists: Path
    later: Callable[[float, Callable[[], None]], None] = _start_timer
    _recording: set[Path] = field(default_factory=set)

    def options(self, main: str, class_path: str) -> list[str]:
        """JVM options for a start of the class `main`: its archive, or the list to record, or nothing."""
        if (found := self.existing(main, class_path)) or main not in _ARCHIVE_OF.values():
            return found
        archive = self._archive(main, class_path)
        if archive in self._recording:
            return []
        self._recording.add(archive)
        classes = self.lists / f"{archive.stem}.classes"
        classes.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write_later(archive, class_path, classes, 0)
        return [f"-XX:DumpLoadedClassList={classes}"]

    def existing(self, main: str, class_path: str) -> list[str]:
        """JVM options for a start of the class `main` from its archive, or nothing; records nothing."""
        if main not in _ARCHIVE_OF:
            return []
        archive = self._archive(_ARCHIVE_OF[main], class_path)
        return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off"] if archive.exists() else []

    def _write_later(self, archive: Path, class_path: str, classes: Path, before: int) -> None:
        """Write the archive once the list of classes has hardly grown since it had `before` bytes."""

        def check() -> None:
            size = classes.stat().st_size if classes.exists() else 0
            if size > before * STILL_LOADS:
                self._write_later(archive, class_path, classes, size)
            else:
                self._write(archive, class_path, classes)

        self.later(CHECK_S, check)

    def _archive(self, main: str, class_path: str) -> Path:
        state = self.java.resolve().stat() if self.java.exists() else None
        made_for = f"{self.java.resolve()} {state and (state.st_size, state.st_mtime_ns)} {class_path}"
        digest = hashlib.sha256(made_for.encode()).hexdigest()[:12]
        return self.folder / f"{main.rpartition('.')[2]}-{digest}.jsa"

    def _write(self, archive: Path, class_path: str, classes: Path) -> None:
        """Write the archive, unless another sandbox does so now. If that fails, later starts take longer."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with archive.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not archive.exists():
                    self._run(archive, class_path, classes)
        except (OSError, subprocess.SubprocessError) as error:
            logger.warning("%s: not written (%s); the processes start without it", archive, error)
        finally:
            self._recording.discard(archive)

    def _run(self, archive: Path, class_path: str, classes: Path) -> None:
        # The process that records goes on writing: a copy without the last line, which may be half of one.
        complete = classes.with_suffix(".complete")
        complete.write_text(classes.read_text(encoding="utf-8").rpartition("\n")[0] + "\n", encoding="utf-8")
        part = archive.with_suffix(f".{os.getpid()}")
        command = [
            *LOWEST_PRIORITY,
            str(self.java),
            "-Xshare:dump",
            "-XX:+UseSerialGC",
            "-Xlog:cds=error",
            f"-XX:SharedClassListFile={complete}",
            f"-XX:SharedArchiveFile={part}",
            "-cp",
            class_path,
        ]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WRITTEN_WITHIN_S, check=True)
            part.rename(archive)
            logger.info("%s: written", archive)
        finally:
            part.unlink(missing_ok=True)


class UnknownVersionError(OperatorError):
    """No jars of that Kafka version are installed."""


@dataclass(frozen=True)
class Jvm:
    """The Java binary, Kafka's jars and the logging configuration that all processes share.

    Brokers and tools run from `kafka_libs`. `kafka_versions` (version → folder of jars) are the versions that a Connect
    worker can run once their folder is there. Without `archives` every process loads its classes from the jars.
    """

    java: Path
    kafka_libs: Path
    kafka_versions: Mapping[str, Path]
    logging: Path
    archives: ClassArchives | None = None

    def versions(self) -> list[str]:
        """The Kafka versions that a Connect worker can run now, oldest first."""
        installed = [version for version, libs in self.kafka_versions.items() if libs.is_dir()]
        return sorted(installed, key=lambda version: [int(part) for part in version.split(".")])

    def class_path(self, version: str | None = None) -> str:
        """Class path of a Kafka version, by default of the brokers' one; raises UnknownVersionError."""
        if version is None:
            return f"{self.kafka_libs}/*"
        if version not in self.versions():
            raise UnknownVersionError(
                f"Kafka: version must be an installed one (got {version}, allowed {', '.join(self.versions())}). "
                "Choose one of these."
            )
        return f"{self.kafka_versions[version]}/*"

    def command(
        self, main: str, *arguments: str, heap_mib: int, version: str | None = None, more_libs: Path | None = None
    ) -> list[str]:
        """Argument list that runs the class `main` of a Kafka version, by default of the brokers' one.

        `more_libs` is a folder of jars that come after Kafka's.
        """
        class_path = self.class_path(version) + (f":{more_libs}/*" if more_libs else "")
        return [
            str(self.java),
            *(self.archives.options(main, class_path) if self.archives else []),
            f"-Xms{min(heap_mib, 128)}m",
            f"-Xmx{heap_mib}m",
            # Two cores are shared by five of these: one compiler tier and one collector thread start and idle cheapest.
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",  # is sampled twenty times a second, for tools that nobody uses here
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={self.logging}",
            "-cp",
            class_path,
            main,
            *arguments,
        ]


def shared_jvm(
    java: Path, kafka_libs: Path, kafka_versions: Mapping[str, Path], folder: Path, class_archives: Path
) -> Jvm:
    """A `Jvm` whose logging configuration is written into `folder`, and its class archives into `class_archives`."""
    logging = folder / "log4j2.properties"
    write_private(logging, _LOGGING)
    archives = ClassArchives(java, class_archives, lists=folder / "classes")
    return Jvm(java=java, kafka_libs=kafka_libs, kafka_versions=kafka_versions, logging=logging, archives=archives)


def kafka_version(kafka_libs: Path) -> str:
    """Version of Kafka in the folder of jars, for example 4.3.1; raises FileNotFoundError if there is none."""
    for jar in sorted(kafka_libs.glob("kafka-clients-*.jar")):
        return jar.stem.removeprefix("kafka-clients-")
    raise FileNotFoundError(f"{kafka_libs}: must have a kafka-clients jar (got none). Run make setup.")


QUICK_DEATH_S = 30.0
DELAYS_S = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0)


class ProcessRegistry(Protocol):
    """The process registry as the operator uses it."""

    def start(self, name: str, argv: list[str], env: dict[str, str], log: Path) -> None:
        """Start a process under this name; its output goes to `log`."""

    def stop(self, name: str, deadline_s: float) -> None:
        """Stop the process if it runs: SIGTERM, after `deadline_s` SIGKILL; forget it."""

    def alive(self, name: str) -> bool:
        """True if the process runs."""

    def held(self, name: str) -> bool:
        """True if it must not be started, because it is to stay stopped."""

    def names(self) -> list[str]:
        """All names in the registry."""


@dataclass
class _Starts:
    at: float = 0.0
    quick_deaths: int = 0


@dataclass
class ProcessSupervisor:
    """Decides when a dead process is started again, and how often it died just after its start."""

    processes: ProcessRegistry
    _starts: dict[str, _Starts] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_s(self, name: str) -> float:
        """Seconds until this dead process may be started; 0 means now."""
        with self._lock:
            starts = self._starts.get(name)
            if starts is None:
                return 0.0
            delay_s = DELAYS_S[min(starts.quick_deaths, len(DELAYS_S) - 1)]
            return max(0.0, starts.at + delay_s - time.monotonic())

    def start(self, name: str, argv: list[str], env: dict[str, str], log: Path) -> None:
        """Start the process and remember when."""
        with self._lock:
            starts = self._starts.setdefault(name, _Starts())
            now = time.monotonic()
            quick = starts.at and now - starts.at < QUICK_DEATH_S + DELAYS_S[-1]
            starts.quick_deaths = starts.quick_deaths + 1 if quick else 0
            starts.at = now
        self.processes.start(name, argv, env, log)

    def stop(self, name: str, deadline_s: float = 20.0) -> None:
        """Stop the process on purpose: its next start counts as its first."""
        self.processes.stop(name, deadline_s)
        with self._lock:
            self._starts.pop(name, None)

    def deaths(self, name: str) -> int:
        """How many times in a row the process died soon after its start."""
        with self._lock:
            starts = self._starts.get(name)
            return starts.quick_deaths if starts else 0


def last_error_line(log: Path, *, tail_bytes: int = 64 * 1024) -> str:
    """The last line of a log that reports an error, without its time stamp; empty if there is none."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - tail_bytes))
        lines = file.read().decode("utf-8", "replace").splitlines()
    for line in reversed(lines):
        if " ERROR " in line or " FATAL " in line or line.startswith(("Caused by:", "Exception in thread")):
            return line.split("] ", 1)[-1][:300]
    return ""


def properties(values: Mapping[str, object]) -> str:
    """The text of a Java properties file, keys in the given order; backslashes and line ends are escaped."""
    return "".join(f"{_escaped_key(key)}={_escaped(value)}\n" for key, value in values.items())


def _escaped_key(key: str) -> str:
    return _escaped(key).replace(":", "\\:").replace("=", "\\=").replace(" ", "\\ ")


def _escaped(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")
