"""KafkaMirrorMaker2: Connect workers as processes, connectors over REST, their state in the status."""

import fnmatch
import hashlib
import logging
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import connectors, jvm, ports
from .connect import Rest, worker_properties
from .connectors import Connector
from .errors import NotReadyError
from .files import properties, read_json, write_json, write_private
from .kafkas import process_environment
from .kubernetes_api import MIRROR, Kubernetes, Object
from .mirror_health import connector_problem, refusal
from .reconcile import Outcome
from .supervision import Keeper, last_problem

logger = logging.getLogger(__name__)

MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
ROLL_DEADLINE_S = 60.0
ACTIONS = {"paused": "pause", "stopped": "stop", "running": "resume"}


@dataclass
class Mirrors:
    """Reconciler of KafkaMirrorMaker2."""

    kubernetes: Kubernetes
    keeper: Keeper
    java: jvm.Jvm
    folder: Path
    logs: Path
    resource = MIRROR
    finalizer: str | None = "sandbox.strimzi.io/processes"

    def reconcile(self, resource: Object) -> Outcome:
        """Run the workers and keep the connectors as the spec says; see `Reconciler`."""
        worker = _Workers(self, resource)
        self._check_metrics(resource)
        worker.write_secrets()
        status: dict[str, Any] = {
            "url": worker.url(0),
            "replicas": worker.replicas,
            "labelSelector": f"strimzi.io/cluster={worker.name},strimzi.io/kind=KafkaMirrorMaker2",
        }
        worker.run()
        if worker.replicas == 0:
            return Outcome({**status, "connectors": []}, again_s=10.0)
        rest = worker.rest(status)
        try:
            wanted = connectors.definitions(worker.name, worker.spec, worker.secrets)
            worker.keep_connectors(rest, wanted)
            states = rest.connectors()
        finally:
            rest.close()
        status["connectors"] = [
            states[entry.name]["status"] for entry in wanted if "status" in states.get(entry.name, {})
        ]
        worker.check(wanted, states, status)
        return Outcome(status, again_s=2.0)

    def remove(self, namespace: str, name: str, resource: Object | None) -> None:
        """Stop the workers and remove their files; topics on the clusters stay, as with Strimzi."""
        prefix = f"mirror.{namespace}.{name}."
        for process in self.keeper.processes.names():
            if process.startswith(prefix):
                self.keeper.stop(process, deadline_s=5.0)
        shutil.rmtree(self.folder / namespace / name, ignore_errors=True)

    def stored(self) -> list[tuple[str, str]]:
        """Namespace and name of every mirror that has files here."""
        return sorted((path.parent.parent.name, path.parent.name) for path in self.folder.glob("*/*/layout.json"))

    def _check_metrics(self, resource: Object) -> None:
        metrics = resource["spec"].get("metricsConfig") or {}
        reference = (metrics.get("valueFrom") or {}).get("configMapKeyRef")
        if not reference or reference.get("optional"):
            return
        namespace, name = resource["metadata"]["namespace"], resource["metadata"]["name"]
        values = self.kubernetes.config_map(namespace, reference["name"])
        if values is None or reference["key"] not in values:
            what = f"key {reference['key']} in the ConfigMap {reference['name']}"
            raise NotReadyError(
                "ConfigMapNotFound",
                f"KafkaMirrorMaker2 {name}: metricsConfig must name an existing {what} (there is none). Create it.",
                retry_s=2,
            )


class _Workers:
    """One pass over one resource's workers and connectors."""

    def __init__(self, mirrors: Mirrors, resource: Object) -> None:
        self._kubernetes, self._keeper, self._java = mirrors.kubernetes, mirrors.keeper, mirrors.java
        self._logs = mirrors.logs
        self.namespace, self.name = resource["metadata"]["namespace"], resource["metadata"]["name"]
        self.spec: dict[str, Any] = resource["spec"]
        self.replicas = int(self.spec["replicas"])
        self.home = mirrors.folder / self.namespace / self.name
        self.secrets = self.home / "secrets"
        self._layout = read_json(self.home / "layout.json") or {"ports": {}, "marks": {}, "applied": ""}
        known: dict[str, int] = self._layout["ports"]
        ports.reserve(list(known.values()))
        for replica in range(max(1, self.replicas)):
            known.setdefault(str(replica), 0)
            known[str(replica)] = known[str(replica)] or ports.free_port()
        self._save()

    def url(self, replica: int) -> str:
        """Address of one worker's REST interface."""
        return f"http://127.0.0.1:{self._layout['ports'][str(replica)]}"

    def process(self, replica: int) -> str:
        """Name of one worker's process in the registry."""
        return f"mirror.{self.namespace}.{self.name}.{replica}"

    def write_secrets(self) -> None:
        """Put all values that the workers refer to into files; raises NotReadyError that names what is missing."""
        wanted: dict[str, str] = {}
        for entry in connectors.secret_files(self.spec):
            wanted[entry.file] = self._value(entry)
        for cluster in connectors.sides(self.spec):
            parts = [self._certificates(entry) for entry in connectors.trusted(cluster)]
            if parts:
                path = f"{connectors.trust_folder(self.name)}/{connectors.trust_key(cluster['alias'])}"
                wanted[path] = "\n".join(part.strip() for part in parts) + "\n"
        for path, value in wanted.items():
            write_private(self.secrets / path, value)
        for file in [path for path in self.secrets.glob("*/*") if str(path.relative_to(self.secrets)) not in wanted]:
            file.unlink(missing_ok=True)

    def run(self) -> None:
        """Start the workers that should run, stop the others, restart what has an older configuration."""
        prefix = f"mirror.{self.namespace}.{self.name}."
        for process in self._keeper.processes.names():
            if process.startswith(prefix) and int(process.removeprefix(prefix)) >= self.replicas:
                logger.info("%s: stop, replicas is %d", process, self.replicas)
                self._keeper.stop(process)
        for replica in range(self.replicas):
            process = self.process(replica)
            file = self.home / str(replica) / "connect.properties"
            port = self._layout["ports"][str(replica)]
            write_private(file, properties(worker_properties(self.name, self.spec, self.secrets, port)))
            if not self._keeper.processes.alive(process):
                self._start(replica)
            elif self._digest(replica) != self._started(replica):
                logger.info("%s: restart with its new configuration", process)
                self._keeper.stop(process)
                self._start(replica)
                self._wait_until_up(replica)

    def rest(self, status: dict[str, Any]) -> Rest:
        """The REST interface of the first worker that answers; raises NotReadyError with the cause if none does."""
        for replica in range(self.replicas):
            rest = Rest(self.url(replica))
            if self._keeper.processes.alive(self.process(replica)) and rest.answers():
                return rest
            rest.close()
        raise self._down(list(range(self.replicas)), {**status, "connectors": []})

    def keep_connectors(self, rest: Rest, wanted: list[Connector]) -> None:
        """Create, change and delete connectors until they are as wanted; restart them when a secret changed."""
        have = rest.connectors()
        for name in sorted(have.keys() - {entry.name for entry in wanted}):
            logger.info("%s: delete connector %s", self.name, name)
            rest.delete(name)
        secrets = self._secrets_digest()
        renewed = bool(self._layout["applied"]) and self._layout["applied"] != secrets
        for entry in wanted:
            known = have.get(entry.name)
            if known is None or known["info"]["config"] != entry.config:
                logger.info("%s: %s connector %s", self.name, "change" if known else "create", entry.name)
                rest.put(entry.name, entry.config)
                self._mark_logs()
            elif renewed:
                logger.info("%s: restart connector %s with its new secrets", self.name, entry.name)
                rest.restart(entry.name, only_failed=False)
                self._mark_logs()
            state = known["status"]["connector"]["state"].lower() if known else "running"
            if entry.state != state and (entry.state != "running" or state in ("paused", "stopped")):
                rest.state(entry.name, ACTIONS[entry.state])
        if self._layout["applied"] != secrets:
            self._layout["applied"] = secrets
            self._save()

    def check(self, wanted: list[Connector], states: dict[str, dict[str, Any]], status: dict[str, Any]) -> None:
        """Raise NotReadyError if a connector, a task or a worker is not well."""
        log = self._log_since_marks()
        known = {name: state["status"] for name, state in states.items() if "status" in state}
        for entry in wanted:
            since_change_s = time.time() - self._layout.get("changed_at", 0.0)
            problem = connector_problem(self.name, self.spec, entry, known, log, since_change_s)
            if problem:
                self._auto_restart(entry, known.get(entry.name))
                raise NotReadyError(problem[0], problem[1], retry_s=2.0, status=dict(status))
        dead = [replica for replica in range(self.replicas) if not self._answers(replica)]
        if dead:
            raise self._down(dead, status)

    def _answers(self, replica: int) -> bool:
        if not self._keeper.processes.alive(self.process(replica)):
            return False
        rest = Rest(self.url(replica))
        try:
            return rest.answers()
        finally:
            rest.close()

    def _auto_restart(self, entry: Connector, state: dict[str, Any] | None) -> None:
        """Restart what failed, if the resource asks for it, at most once a minute and `maxRestarts` times."""
        failed = state and "FAILED" in [state["connector"]["state"], *(task["state"] for task in state["tasks"])]
        history: dict[str, Any] = self._layout.setdefault("restarts", {}).setdefault(
            entry.name, {"count": 0, "at": 0.0}
        )
        if not failed or not entry.auto_restart or time.time() < history["at"] + min(600, 10 * 2 ** history["count"]):
            return
        if entry.max_restarts is not None and history["count"] >= entry.max_restarts:
            return
        rest = Rest(self.url(0))
        try:
            rest.restart(entry.name, only_failed=True)
        finally:
            rest.close()
        history.update(count=history["count"] + 1, at=time.time())
        self._save()

    def _start(self, replica: int) -> None:
        process = self.process(replica)
        if self._keeper.processes.held(process) or self._keeper.wait_s(process) > 0:
            return
        port = self._layout["ports"][str(replica)]
        if not ports.is_free(port):
            raise NotReadyError(
                "PortTaken",
                f"KafkaMirrorMaker2 {self.name}: worker {replica} needs the port 127.0.0.1:{port}, which another "
                "process uses. Stop that process; the worker starts by itself then.",
                retry_s=2,
            )
        home = self.home / str(replica)
        logger.info("%s: start", process)
        self._layout["marks"][str(replica)] = _size(self._log(replica))
        self._save()
        write_private(home / "started", self._digest(replica))
        command = self._java.command(MAIN, str(home / "connect.properties"), heap_mib=jvm.CONNECT_HEAP_MIB)
        self._keeper.start(process, command, process_environment(), self._log(replica))

    def _wait_until_up(self, replica: int) -> None:
        end = time.monotonic() + ROLL_DEADLINE_S
        rest = Rest(self.url(replica))
        try:
            while time.monotonic() < end and self._keeper.processes.alive(self.process(replica)):
                if rest.answers():
                    return
                time.sleep(0.5)
        finally:
            rest.close()

    def _down(self, dead: list[int], status: dict[str, Any]) -> NotReadyError:
        if refused := refusal(self.name, self.spec["target"], self._log_since_marks()):
            return NotReadyError(refused[0], refused[1], retry_s=1.0, status=dict(status))
        words, reason = [], "WorkerStarting"
        for replica in dead:
            process = self.process(replica)
            if self._keeper.processes.held(process):
                reason = "WorkerHeld"
                words.append(f"worker {replica} is held stopped (python -m sandbox start {process} releases it)")
            elif self._keeper.deaths(process) > 1:
                reason = "WorkerFailing"
                problem = last_problem(self._log(replica))
                words.append(
                    f"worker {replica} ends soon after its start: {problem} (python -m sandbox logs {process})"
                )
            else:
                words.append(f"worker {replica} is starting")
        return NotReadyError(
            reason, f"KafkaMirrorMaker2 {self.name}: {'; '.join(words)}.", retry_s=0.5, status=dict(status)
        )

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
        return "\n".join(values[key] for key in sorted(values) if fnmatch.fnmatchcase(key, entry.key))

    def _secret(self, name: str) -> dict[str, str]:
        values = self._kubernetes.secret(self.namespace, name)
        if values is None:
            raise NotReadyError(
                "SecretNotFound",
                f"KafkaMirrorMaker2 {self.name}: must name an existing Secret (got {name}, there is none in "
                f"{self.namespace}). Create it.",
                retry_s=2,
            )
        return values

    def _digest(self, replica: int) -> str:
        """Fingerprint of what a worker reads only at its start: its properties and the target's secrets."""
        digest = hashlib.sha256((self.home / str(replica) / "connect.properties").read_bytes())
        target = {"target": self.spec["target"], "mirrors": []}
        files = [entry.file for entry in connectors.secret_files(target)]
        files.append(f"{connectors.trust_folder(self.name)}/{connectors.trust_key(self.spec['target']['alias'])}")
        for path in (self.secrets / file for file in files):
            digest.update(path.read_bytes() if path.exists() else b"")
        return digest.hexdigest()

    def _secrets_digest(self) -> str:
        digest = hashlib.sha256()
        for path in sorted(self.secrets.glob("*/*")):
            digest.update(str(path).encode() + path.read_bytes())
        return digest.hexdigest()

    def _started(self, replica: int) -> str:
        path = self.home / str(replica) / "started"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def _log(self, replica: int) -> Path:
        return self._logs / f"{self.process(replica)}.log"

    def _mark_logs(self) -> None:
        for replica in range(self.replicas):
            self._layout["marks"][str(replica)] = _size(self._log(replica))
        self._layout["changed_at"] = time.time()
        self._save()

    def _log_since_marks(self) -> str:
        """What the workers logged since they were started or their connectors were changed, at most 1 MiB each."""
        parts = []
        for replica in range(self.replicas):
            log = self._log(replica)
            if log.exists():
                with log.open("rb") as file:
                    file.seek(max(self._layout["marks"].get(str(replica), 0), _size(log) - 1024 * 1024))
                    parts.append(file.read().decode("utf-8", "replace"))
        return "\n".join(parts)

    def _save(self) -> None:
        write_json(self.home / "layout.json", self._layout)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
