"""Prometheus and Alertmanager: kept running once requested, and reloaded after every change of their files.

Owns both processes and the folder of monitoring. Stands in for the Prometheus Operator: PodMonitors and PrometheusRules
of all namespaces become Prometheus' files, AlertmanagerConfigs a part of Alertmanager's; what either of the two would
refuse is left out, so that the others work.
What people add lies in `targets/` and `rules/` of that folder.
"""

import hashlib
import json
import logging
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from sandbox import processes
from sandbox.monitoring import ALERTMANAGER, CONFIGURED_BY, PROMETHEUS, MonitoringFiles
from sandbox.state import private_folder, read_json, write_json, write_private

from . import prometheus
from .alertmanager import Routing
from .java_processes import ProcessSupervisor
from .kafkas import process_environment
from .kubernetes_api import (
    ALERTMANAGER_CONFIG,
    KAFKA,
    MIRROR,
    POD_MONITOR,
    PROMETHEUS_RULE,
    SUBSCRIPTION,
    Kubernetes,
    Object,
    Resource,
)

logger = logging.getLogger(__name__)

PASS_S = 2.0
RETENTION = "6h"
CHECK_S, ANSWER_S = 20.0, 5.0
OF_CONFIG = ("config", "--syntax-only")  # what lies in other files is not a PodMonitor's fault


@dataclass(frozen=True)
class Programs:
    """Prometheus and Alertmanager with their checkers; they may be absent."""

    prometheus: Path
    promtool: Path
    alertmanager: Path
    amtool: Path


@dataclass
class Server:
    """A server that is kept running and reads its files again when they are others than those it has."""

    name: str
    port: int
    supervisor: ProcessSupervisor
    log: Path
    command: list[str] | None = None
    has: str | None = None
    refused: str | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def keep(self, command: list[str], content: str) -> None:
        """Start it if it does not run; if it runs with other content than this digest's, ask it to read it.

        It is started again with another command. `content` is the digest of all that it reads.
        """
        if self.command not in (None, command):
            self.supervisor.stop(self.name)
        self.command = command
        if not self.supervisor.processes.alive(self.name):
            if not self.supervisor.processes.held(self.name) and self.supervisor.wait_s(self.name) <= 0:
                logger.info("%s: start at http://%s", self.name, self.address)
                self.supervisor.start(self.name, command, process_environment(), self.log)
                self.has = self.refused = None
            return
        if content in (self.has, self.refused):
            return
        try:
            answer = httpx.post(f"http://{self.address}/-/reload", timeout=ANSWER_S, trust_env=False)
        except httpx.HTTPError:
            return  # it is starting; the next pass asks again
        if answer.is_success:
            self.has, self.refused = content, None
        else:
            self.refused = content
            logger.error("%s: keeps what it has, because it refuses the new: %s", self.name, answer.text.strip()[:1000])


@dataclass
class Monitoring:
    """The loop over what is asked for and what there is."""

    kubernetes: Kubernetes
    supervisor: ProcessSupervisor
    programs: Programs
    files: MonitoringFiles
    clusters: Path
    mirrors: Path
    logs: Path
    own_port: int
    _servers: dict[str, Server] = field(default_factory=dict)
    _checked: dict[str, bool] = field(default_factory=dict)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _routing: Routing = field(init=False)

    def __post_init__(self) -> None:
        self._routing = Routing(self.kubernetes, self.files, self.programs.amtool)

    def start(self) -> None:
        """Work in a thread of its own until `stop`."""
        threading.Thread(target=self._loop, name="monitoring", daemon=True).start()

    def stop(self) -> None:
        """Start nothing more; Prometheus and Alertmanager go on."""
        self._stopping.set()

    def run_once(self) -> None:
        """One pass; nothing runs while nobody asks for monitoring."""
        request = read_json(self.files.request)
        if not request:
            self._end()
            return
        prometheus, alertmanager = self._server(PROMETHEUS), self._server(ALERTMANAGER)
        routing = self._routing.write(request.get(CONFIGURED_BY), self._objects(ALERTMANAGER_CONFIG))
        self._write(alertmanager.address)
        prometheus.keep(self._prometheus(prometheus), _digest([self.files.prometheus, *self.files.rule_files()]))
        templates = sorted(routing.parent.glob("*.tmpl"))
        alertmanager.keep(self._alertmanager(alertmanager, routing), _digest([routing, *templates]))
        addresses = {name: entry.address for name, entry in self._servers.items()}
        write_json(self.files.addresses, {**addresses, CONFIGURED_BY: request.get(CONFIGURED_BY)})

    def _end(self) -> None:
        # A pass that failed may have started one and written no addresses.
        known = self.supervisor.processes.names()
        for name in (PROMETHEUS, ALERTMANAGER):
            if name in known:
                self.supervisor.stop(name)
        self._servers.clear()
        self.files.addresses.unlink(missing_ok=True)

    def _loop(self) -> None:
        while not self._stopping.wait(PASS_S):
            try:
                self.run_once()
            except Exception:  # the API server may be away, a disk full: the next pass may do better
                logger.exception("monitoring: this pass failed")

    def _server(self, name: str) -> Server:
        if name not in self._servers:
            known = read_json(self.files.addresses).get(name)
            port = int(known.rpartition(":")[2]) if known else processes.free_port()
            processes.reserve_ports([port])
            self._servers[name] = Server(name, port, self.supervisor, self.logs / f"{name}.log")
        return self._servers[name]

    def _write(self, alertmanager: str) -> None:
        for folder in (self.files.targets, self.files.rules, self.files.from_objects):
            private_folder(folder)
        groups = [pod.target_group() for pod in self._pods()]
        write_private(self.files.pods, json.dumps(groups, indent=1) + "\n")
        self._write_rules(self._objects(PROMETHEUS_RULE))
        monitors = [
            monitor
            for monitor in self._objects(POD_MONITOR)
            if self._is_valid(
                _described("PodMonitor", monitor), self._configuration([monitor], alertmanager), *OF_CONFIG
            )
        ]
        write_private(self.files.prometheus, self._configuration(monitors, alertmanager))

    def _configuration(self, monitors: Iterable[Object], alertmanager: str) -> str:
        pattern = [self.files.rules / "*.y*ml", self.files.from_objects / "*.json"]
        targets = self.files.targets / "*.json"
        content = prometheus.configuration(monitors, self.files.pods, targets, pattern, alertmanager)
        # JSON is YAML, and its strings are never read as another type.
        return json.dumps(content, indent=1) + "\n"

    def _write_rules(self, rules: Iterable[Object]) -> None:
        wanted = set()
        for rule in rules:
            metadata = rule["metadata"]
            path = self.files.from_objects / f"{metadata['namespace']}.{metadata['name']}.json"
            content = json.dumps(prometheus.rule_file(rule), indent=1) + "\n"
            if self._is_valid(_described("PrometheusRule", rule), content, "rules"):
                write_private(path, content)
                wanted.add(path)
        for path in set(self.files.from_objects.glob("*.json")) - wanted:
            path.unlink()

    def _is_valid(self, what: str, content: str, *kind: str) -> bool:
        key = hashlib.sha256(content.encode()).hexdigest()
        if key not in self._checked:
            scratch = self.files.folder / "checked.json"
            write_private(scratch, content)
            command = [str(self.programs.promtool), "check", *kind, str(scratch)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S, check=False)
            self._checked[key] = done.returncode == 0
            if done.returncode:
                logger.error("%s: left out, because promtool refuses it: %s", what, done.stderr.strip()[:1000])
        return self._checked[key]

    def _pods(self) -> list[prometheus.Pod]:
        objects = self.kubernetes.objects
        of_own = _namespaces([*objects(KAFKA), *objects(MIRROR)])
        operators = prometheus.operators(of_own, _namespaces(objects(SUBSCRIPTION)), self.own_port)
        return [*prometheus.brokers(self.clusters), *prometheus.workers(self.mirrors), *operators]

    def _objects(self, kind: Resource) -> list[Object]:
        found = self.kubernetes.objects(kind)
        return sorted(found, key=lambda entry: (entry["metadata"]["namespace"], entry["metadata"]["name"]))

    def _prometheus(self, server: Server) -> list[str]:
        return [
            str(self.programs.prometheus),
            f"--config.file={self.files.prometheus}",
            f"--storage.tsdb.path={self.files.folder / 'prometheus-data'}",
            f"--storage.tsdb.retention.time={RETENTION}",
            f"--web.listen-address={server.address}",
            f"--web.external-url=http://{server.address}",
            "--web.enable-lifecycle",
            # An Alertmanager that was killed knows no alert until it is sent again.
            "--rules.alert.resend-delay=5s",
        ]

    def _alertmanager(self, server: Server, routing: Path) -> list[str]:
        return [
            str(self.programs.alertmanager),
            f"--config.file={routing}",
            f"--storage.path={self.files.folder / 'alertmanager-data'}",
            f"--data.retention={RETENTION}",
            f"--web.listen-address={server.address}",
            f"--web.external-url=http://{server.address}",
            "--cluster.listen-address=",
        ]


def _described(kind: str, entry: Object) -> str:
    return f"{kind} {entry['metadata']['namespace']}/{entry['metadata']['name']}"


def _namespaces(objects: Iterable[Object]) -> set[str]:
    return {entry["metadata"]["namespace"] for entry in objects}


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(str(path).encode() + b"\0" + (path.read_bytes() if path.exists() else b"") + b"\0")
    return digest.hexdigest()
