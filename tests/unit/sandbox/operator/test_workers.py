from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from sandbox.operator import NotReadyError
from sandbox.operator import workers as module
from sandbox.operator.java_processes import Jvm, ProcessSupervisor
from sandbox.operator.kubernetes_api import Kubernetes
from sandbox.operator.metrics_config import REPORTER_CLASS, Exporter, Metrics, Reporter
from sandbox.operator.workers import MirrorSecrets, Workers, WorkerTools
from sandbox.state import read_json
from tests.support.api_objects import MemoryKubernetes
from tests.unit.sandbox.operator.test_connectors import spec

ZERO, ONE = "mirror.ns.mm2.0", "mirror.ns.mm2.1"


@dataclass
class Supervised:
    """A process registry that remembers what was asked in order; a worker whose command is `broken` ends at once."""

    running: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)
    broken: str = "no version is"
    commands: dict[str, list[str]] = field(default_factory=dict)

    def start(self, name: str, argv: list[str], env: dict[str, str], log: Path) -> None:
        self.said.append(f"start {name}")
        self.commands[name] = argv
        if not any(self.broken in argument for argument in argv):
            self.running.add(name)

    def stop(self, name: str, deadline_s: float) -> None:
        self.said.append(f"stop {name}")
        self.running.discard(name)
        self.commands.pop(name, None)

    def alive(self, name: str) -> bool:
        return name in self.running

    def held(self, name: str) -> bool:
        return False

    def names(self) -> list[str]:
        return sorted(self.commands)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Supervised:
    found = Supervised()

    def answers(self: Workers, replica: int) -> bool:
        if found.alive(self.process(replica)):
            found.said.append(f"ask {self.process(replica)}")
            return True
        return False

    monkeypatch.setattr(Workers, "answers", answers)
    monkeypatch.setattr(module, "ROLL_DEADLINE_S", 0.2)
    return found


def run(tmp_path: Path, processes: Supervised, metrics: Metrics = None, **changes: Any) -> None:
    versions = {version: tmp_path / "jars" / version for version in ("4.2.0", "4.3.1")}
    for libs in versions.values():
        libs.mkdir(parents=True, exist_ok=True)
    java = Jvm(java=Path("java"), kafka_libs=versions["4.3.1"], kafka_versions=versions, logging=Path("log"))
    agent, reporter = Path("/agent.jar"), Path("/reporter")
    tools = WorkerTools(ProcessSupervisor(processes), java, agent, reporter, tmp_path / "mirrors", tmp_path / "logs")
    resource = {"metadata": {"name": "mm2", "namespace": "ns"}, "spec": {**spec(), "replicas": 2, **changes}}
    kubernetes = cast(Kubernetes, MemoryKubernetes())
    secrets = MirrorSecrets(kubernetes, "ns", "mm2", resource["spec"], tmp_path / "secrets")
    processes.said.clear()
    Workers(tools, resource, secrets, metrics).run({})


def acts(processes: Supervised) -> list[str]:
    return [entry for entry in processes.said if not entry.startswith("ask ")]


def test_another_version_rolls_the_workers_one_after_the_other_onto_its_jars(
    tmp_path: Path, processes: Supervised
) -> None:
    run(tmp_path, processes)
    run(tmp_path, processes, version="4.2.0")
    assert acts(processes) == [f"stop {ZERO}", f"start {ZERO}", f"stop {ONE}", f"start {ONE}"]
    between = processes.said[processes.said.index(f"start {ZERO}") : processes.said.index(f"stop {ONE}")]
    assert f"ask {ZERO}" in between, "the second waits for the first"
    assert all(f"{tmp_path}/jars/4.2.0/*" in command for command in processes.commands.values())


def test_naming_the_version_that_runs_already_restarts_nothing(tmp_path: Path, processes: Supervised) -> None:
    run(tmp_path, processes)
    run(tmp_path, processes, version="4.3.1")
    assert acts(processes) == []


def test_a_version_that_is_not_installed_is_refused_with_those_that_are_and_touches_nothing(
    tmp_path: Path, processes: Supervised
) -> None:
    run(tmp_path, processes)
    with pytest.raises(NotReadyError, match=r"got 3\.9\.0, allowed 4\.2\.0, 4\.3\.1") as refused:
        run(tmp_path, processes, version="3.9.0")
    assert refused.value.reason == "UnsupportedKafkaVersion"
    assert acts(processes) == []


def test_what_does_not_work_stops_one_worker_and_no_more(tmp_path: Path, processes: Supervised) -> None:
    run(tmp_path, processes)
    processes.broken = "4.2.0"
    for _ in range(3):
        with pytest.raises(NotReadyError) as refused:
            run(tmp_path, processes, version="4.2.0")
        assert refused.value.reason == "WorkerStarting"
        assert processes.running == {ONE}
    run(tmp_path, processes)
    assert processes.running == {ZERO, ONE}
    assert acts(processes) == [f"start {ZERO}"]


def test_metrics_are_exported_on_a_port_of_each_worker_and_new_rules_roll_them(
    tmp_path: Path, processes: Supervised
) -> None:
    def agents() -> set[str]:
        return {argument for command in processes.commands.values() for argument in command if "agent" in argument}

    def exporting() -> int:
        found: int = read_json(tmp_path / "mirrors" / "ns" / "mm2" / "layout.json")["exporting"]
        return found

    run(tmp_path, processes)
    assert agents() == set()
    assert exporting() == 0
    run(tmp_path, processes, metrics=Exporter("rules: []\n"))
    assert len(acts(processes)) == 4
    assert len(agents()) == exporting() == 2
    assert all(agent.startswith("-javaagent:/agent.jar=127.0.0.1:") for agent in agents())
    run(tmp_path, processes, metrics=Exporter("rules: []\n"))
    assert acts(processes) == []


def test_the_metrics_reporter_comes_with_its_jars_and_another_allow_list_rolls_the_workers(
    tmp_path: Path, processes: Supervised
) -> None:
    def class_paths() -> set[str]:
        return {command[command.index("-cp") + 1] for command in processes.commands.values()}

    run(tmp_path, processes)
    assert class_paths() == {f"{tmp_path}/jars/4.3.1/*"}
    run(tmp_path, processes, metrics=Reporter(("kafka_connect.*",)))
    assert class_paths() == {f"{tmp_path}/jars/4.3.1/*:/reporter/*"}
    assert not any("-javaagent" in argument for command in processes.commands.values() for argument in command)
    config = (tmp_path / "mirrors" / "ns" / "mm2" / "1" / "connect.properties").read_text(encoding="utf-8")
    assert f"consumer.metric.reporters={REPORTER_CLASS}\n" in config
    assert "prometheus.metrics.reporter.allowlist=kafka_connect.*\n" in config
    run(tmp_path, processes, metrics=Reporter(("kafka_connect.*", "kafka_consumer.*")))
    assert len(acts(processes)) == 4
