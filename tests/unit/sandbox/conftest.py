"""A state folder, a registry, and programs that stand for the tools."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.processes import Processes, end_processes, marked
from sandbox.state import SandboxState
from sandbox.toolchain import Tools


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SandboxState]:
    state = SandboxState(tmp_path / "sandbox")
    state.create()
    yield state
    end_processes(marked(state), deadline_s=0)


@pytest.fixture
def processes(state: SandboxState) -> Processes:
    return Processes(state)


@pytest.fixture
def environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"]}


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """Tools whose `controlplane` and `pulumi` are scripts; a test writes into them with `script`."""
    folder = tmp_path / "tools"
    (folder / "bin").mkdir(parents=True)
    for name in ("strimzi_crds", "served_crds", "olm_crds", "monitoring_crds"):
        (folder / name).mkdir()
    return Tools(
        pulumi=script(folder / "bin" / "pulumi", "raise SystemExit(1)"),
        controlplane=script(folder / "controlplane", "raise SystemExit(1)"),
        kubectl=folder / "bin" / "kubectl",
        java=folder / "jdk" / "bin" / "java",
        kafka_libs=folder / "kafka",
        kafka_versions={"4.3.1": folder / "kafka"},
        kafka_classes=folder / "kafka-classes",
        spark_jars=folder / "spark",
        spark_classes=folder / "spark-classes.jsa",
        jmx_exporter=folder / "agent.jar",
        metrics_reporter=folder / "reporter",
        prometheus=folder / "prometheus",
        promtool=folder / "promtool",
        alertmanager=folder / "alertmanager",
        amtool=folder / "amtool",
        toxiproxy=folder / "toxiproxy",
        strimzi_crds=folder / "strimzi_crds",
        strimzi_v1beta2_crds=folder / "strimzi-v1beta2",
        event_streams_crds=folder / "event-streams",
        served_crds=folder / "served_crds",
        olm_crds=folder / "olm_crds",
        monitoring_crds=folder / "monitoring_crds",
        pulumi_home=folder / "home",
        bin=folder / "bin",
    )


def script(path: Path, body: str) -> Path:
    """A Python program at this path."""
    path.write_text(f"#!{sys.executable}\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
