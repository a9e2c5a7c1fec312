"""Connect workers of one KafkaMirrorMaker2 as processes: started, rolled one after the other, probed, stopped.

A worker that exports metrics does so on a loopback port of its own, which is in the operator's log. Owns ports,
configuration files, logs and the files of Secrets of the workers. Does not own the connectors that run on them.
"""

import fnmatch
import hashlib
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox import processes
from sandbox.operator import NotReadyError, connectors, java_processes, metrics_config
from sandbox.operator.connect import Rest, worker_properties
from sandbox.operator.connectors import refusal
from sandbox.operator.java_processes import ProcessSupervisor, last_error_line, properties
from sandbox.operator.kafkas import process_environment
from sandbox.operator.kubernetes_api import Kubernetes, Object
from sandbox.operator.metrics_config import Exporter, Metrics, Reporter
from sandbox.state import read_json, write_json, write_private

logger = logging.getLogger(__name__)

MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
ROLL_DEADLINE_S = 60.0
LOG_TAIL_BYTES = 1024 * 1024


@dataclass(frozen=True)
class MirrorSecrets:
    """The files of one KafkaMirrorMaker2."""

    kubernetes: Kubernetes
    namespace: str
    name: str
    spec: dict[str, Any]
    folder: Path

    def write(self) -> None:
        """Put all values into files and remove the others; raises NotReadyError that names what is missing."""
        wanted: dict[str, str] = {}
        for entry in connectors.secret_files(self.spec):
            wanted[entry.file] = self._value(entry)
        for cluster in connectors.sides(self.spec):
            parts = [self._certificates(entry) for entry in connectors.trusted(cluster)]
            if parts:
                wanted[self._trust_file(cluster)] = "\n".join(part.strip() for part in parts) + "\n"
        for path, value in wanted.items():
            write_private(self.folder / path, value)
        for file in [path for path in self.folder.glob("*/*") if str(path.relative_to(self.folder)) not in wanted]:
            file.unlink(missing_ok=True)

    def fingerprint(self, *clusters: dict[str, Any]) -> str:
        """Changes when a secret changes that the connection to one of these sides uses, and with nothing else."""
        digest = hashlib.sha256()
        for cluster in clusters:
            files = [entry.file for entry in connectors.secret_files_of(cluster)]
            for file in [*files, self._trust_file(cluster)]:
                path = self.folder / file
                digest.update(file.encode() + b"\0" + (path.read_bytes() if path.exists() else b"") + b"\0")
        return digest.hexdigest()

    def _trust_file(self, cluster: dict[str, Any]) -> str:
        return f"{connectors.trust_folder(self.name)}/{connectors.trust_key(cluster['alias'])}"

    def _value(self, entry: connectors.SecretFile) -> str:
        value = self._secret(entry.secret).get(entry.key)
        if value is None:
            raise NotReadyError(
                "SecretKeyNotFound",
                f"KafkaMirrorMaker2 {self.name}: Secret {entry.secret} must have the key {entry.key} (it has none). "
                "Add it.",
                retry_s=2,
            )
        return value

    def _certificates(self, entry: connectors.SecretFile) -> str:
        if not entry.pattern:
            return self._value(entry)
        values = self._secret(entry.secret)
        matching = [values[key] for key in sorted(values) if fnmatch.fnmatchcase(key, entry.key)]
        if not matching:
            raise NotReadyError(
                "SecretKeyNotFound",
                f"KafkaMirrorMaker2 {self.name}: Secret {entry.secret} must have a key that matches {entry.key} (it "
                "has none). Add it or change the pattern.",
                retry_s=2,
            )
        return "\n".join(matching)

    def _secret(self, name: str) -> dict[str, str]:
        values = self.kubernetes.secret(self.namespace, name)
        if values is None:
            raise NotReadyError(
                "SecretNotFound",
                f"KafkaMirrorMaker2 {self.name}: must name an existing Secret (got {name}, there is none in "
                f"{self.namespace}). Create it.",
                retry_s=2,
            )
        return values


@dataclass
class WorkerTools:
    """What all workers share: the supervisor, Java, both exporters, the folders of configuration and logs."""

    supervisor: ProcessSupervisor
    java: java_processes.Jvm
    jmx_exporter: Path
    metrics_reporter: Path
    folder: Path
    logs: Path


def stop_all(tools: WorkerTools, namespace: str, name: str) -> None:
    """Stop every worker of a mirror that goes away."""
    prefix = f"mirror.{namespace}.{name}."
    for process in tools.supervisor.processes.names():
        if process.startswith(prefix):
            tools.supervisor.stop(process, deadline_s=5.0)


class Workers:
    """One pass over one resource's workers."""

    def __init__(self, tools: WorkerTools, resource: Object, secrets: MirrorSecrets, metrics: Metrics = None) -> None:
        self._tools, self._metrics = tools, metrics
        self._supervisor, self._java, self._logs = tools.supervisor, tools.java, tools.logs
        self._secrets = secrets
        self.namespace, self.name = resource["metadata"]["namespace"], resource["metadata"]["name"]
        self.spec: dict[str, Any] = resource["spec"]
        self.replicas = int(self.spec["replicas"])
        self._home = tools.folder / self.namespace / self.name
        stored = read_json(self._home / "layout.json")
        self.memory: dict[str, Any] = {"ports": {}, "metrics_ports": {}, "marks": {}, **stored}
        for kind in ("ports", "metrics_ports"):
            known: dict[str, int] = self.memory[kind]
            processes.reserve_ports(list(known.values()))
            for replica in range(max(1, self.replicas)):
                known[str(replica)] = known.get(str(replica)) or processes.free_port()
        # For people who need the address to scrape.
        self.memory["exporting"] = self.replicas if metrics else 0
        self.save()

    def save(self) -> None:
        """Write down what is remembered about this mirror."""
        write_json(self._home / "layout.json", self.memory)

    def url(self, replica: int) -> str:
        """Address of one worker's REST interface."""
        return f"http://127.0.0.1:{self.memory['ports'][str(replica)]}"

    def process(self, replica: int) -> str:
        """Name of one worker's process in the registry."""
        return f"mirror.{self.namespace}.{self.name}.{replica}"

    def run(self, status: dict[str, Any]) -> None:
        """Start the workers that should run, stop the others, restart those with an older configuration or version.

        A running worker is restarted only while all others answer, and the next one when it is back in the group:
        a configuration that does not work stops one worker and no more. Raises NotReadyError if that is so.
        """
        self._check_version()
        self._stop_surplus()
        outdated = []
        for replica in range(self.replicas):
            port = self.memory["ports"][str(replica)]
            metrics_port: int = self.memory["metrics_ports"][str(replica)]
            reporter = (self._metrics, metrics_port) if isinstance(self._metrics, Reporter) else None
            content = properties(worker_properties(self.name, self.spec, self._secrets.folder, port, reporter))
            write_private(self._file(replica, "connect.properties"), content)
            if isinstance(self._metrics, Exporter):
                write_private(self._file(replica, metrics_config.FILE), self._metrics.rules)
            if not self._supervisor.processes.alive(self.process(replica)):
                self._start(replica)
            elif self._digest(replica) != self._started(replica):
                outdated.append(replica)
        # Those that do not answer first: there is nothing to lose.
        for replica in sorted(outdated, key=self.answers):
            others = [other for other in range(self.replicas) if other != replica]
            if self.answers(replica) and not self._wait_for(others):
                raise self.down([other for other in others if not self.answers(other)], status)
            logger.info("%s: restart with its new configuration", self.process(replica))
            self._supervisor.stop(self.process(replica))
            self._start(replica)
            if not self._wait_for([replica]):
                raise self.down([replica], status)

    def rest(self, status: dict[str, Any]) -> Rest:
        """The REST interface of the first worker that answers; raises NotReadyError with the cause if none does."""
        for replica in range(self.replicas):
            rest = Rest(self.url(replica))
            if self._supervisor.processes.alive(self.process(replica)) and rest.answers():
                return rest
            rest.close()
        raise self.down(list(range(self.replicas)), {**status, "connectors": []})

    def answers(self, replica: int) -> bool:
        """True if the worker runs, has read its configuration topic and is a member of the group."""
        if not self._supervisor.processes.alive(self.process(replica)):
            return False
        rest = Rest(self.url(replica))
        try:
            return rest.answers()
        finally:
            rest.close()

    def down(self, dead: list[int], status: dict[str, Any]) -> NotReadyError:
        """The condition of a mirror some of whose workers do not answer."""
        if refused := refusal(self.name, self.spec["target"], self.log_since_marks()):
            return NotReadyError(refused[0], refused[1], retry_s=1.0, status=dict(status))
        words, reason = [], "WorkerStarting"
        for replica in dead:
            process = self.process(replica)
            if self._supervisor.processes.held(process):
                reason = "WorkerHeld"
                words.append(
                    f"worker {replica} is held stopped (venv/bin/python -m sandbox start {process} releases it)"
                )
            elif self._supervisor.deaths(process) > 1:
                reason = "WorkerFailing"
                problem = last_error_line(self._log(replica))
                words.append(
                    f"worker {replica} ends soon after its start: {problem} (venv/bin/python -m sandbox logs {process})"
                )
            else:
                words.append(f"worker {replica} is starting")
        return NotReadyError(
            reason, f"KafkaMirrorMaker2 {self.name}: {'; '.join(words)}.", retry_s=0.5, status=dict(status)
        )

    def changed(self) -> None:
        """A connector was changed or restarted: what was logged before counts no more."""
        for replica in range(self.replicas):
            self.memory["marks"][str(replica)] = _size(self._log(replica))
        self.save()

    def log_since_marks(self) -> str:
        """What the workers logged since they were started or their connectors were changed, at most 1 MiB each."""
        parts = []
        for replica in range(self.replicas):
            log = self._log(replica)
            if log.exists():
                with log.open("rb") as file:
                    file.seek(max(self.memory["marks"].get(str(replica), 0), _size(log) - LOG_TAIL_BYTES))
                    parts.append(file.read().decode("utf-8", "replace"))
        return "\n".join(parts)

    def _check_version(self) -> None:
        """A version that is not installed changes nothing: the workers go on with what they run."""
        version, installed = self.spec.get("version"), self._java.versions()
        if version and version not in installed:
            raise NotReadyError(
                "UnsupportedKafkaVersion",
                f"KafkaMirrorMaker2 {self.name}: spec.version must be one that is installed (got {version}, allowed "
                f"{', '.join(installed)}). Set it to one of these or leave it out.",
                retry_s=30,
            )

    def _stop_surplus(self) -> None:
        prefix = f"mirror.{self.namespace}.{self.name}."
        for process in self._supervisor.processes.names():
            if process.startswith(prefix) and int(process.removeprefix(prefix)) >= self.replicas:
                logger.info("%s: stop, replicas is %d", process, self.replicas)
                self._supervisor.stop(process)

    def _start(self, replica: int) -> None:
        process = self.process(replica)
        if self._supervisor.processes.held(process) or self._supervisor.wait_s(process) > 0:
            return
        port = self.memory["ports"][str(replica)]
        if not processes.is_free_port(port):
            raise NotReadyError(
                "PortTaken",
                f"KafkaMirrorMaker2 {self.name}: worker {replica} needs the port 127.0.0.1:{port}, which another "
                "process uses. Stop that process; the worker starts by itself then.",
                retry_s=2,
            )
        logger.info("%s: start", process)
        self.memory["marks"][str(replica)] = _size(self._log(replica))
        self.save()
        write_private(self._file(replica, "started"), self._digest(replica))
        file = self._file(replica, "connect.properties")
        version = self.spec.get("version")
        more_libs = self._tools.metrics_reporter if isinstance(self._metrics, Reporter) else None
        heap_mib = java_processes.CONNECT_HEAP_MIB
        command = self._java.command(MAIN, str(file), heap_mib=heap_mib, version=version, more_libs=more_libs)
        if self._metrics is not None:
            port = self.memory["metrics_ports"][str(replica)]
            logger.info("%s: metrics at http://127.0.0.1:%d/metrics", process, port)
        if isinstance(self._metrics, Exporter):
            rules = self._file(replica, metrics_config.FILE)
            command.insert(1, metrics_config.argument(self._tools.jmx_exporter, port, rules))
        self._supervisor.start(process, command, process_environment(), self._log(replica))

    def _wait_for(self, replicas: list[int]) -> bool:
        """True once all of these workers answer; False at the deadline or when one of them has ended."""
        end = time.monotonic() + ROLL_DEADLINE_S
        while not all(self.answers(replica) for replica in replicas):
            alive = all(self._supervisor.processes.alive(self.process(replica)) for replica in replicas)
            if not alive or time.monotonic() > end:
                return False
            time.sleep(0.5)
        return True

    def _digest(self, replica: int) -> str:
        """Fingerprint of what a worker reads only at its start: version, properties, metrics, the target's secrets."""
        digest = hashlib.sha256(self._file(replica, "connect.properties").read_bytes())
        digest.update(str(self._metrics).encode())
        digest.update(self._secrets.fingerprint(self.spec["target"]).encode())
        digest.update(self._java.class_path(self.spec.get("version")).encode())
        return digest.hexdigest()

    def _started(self, replica: int) -> str:
        path = self._file(replica, "started")
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def _file(self, replica: int, name: str) -> Path:
        path: Path = self._home / str(replica) / name
        return path

    def _log(self, replica: int) -> Path:
        return self._logs / f"{self.process(replica)}.log"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
