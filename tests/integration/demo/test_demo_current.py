"""`make demo CLUSTER=current` on somebody's Kubernetes cluster: a sandbox, of which it knows a kubeconfig alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from sandbox.demo.current import FOLDER_VARIABLE
from sandbox.demo.kubernetes import NAMESPACES
from sandbox.state import ENVIRONMENT_VARIABLE, PROJECT, read_json, write_private
from sandbox.toolchain import Tools
from tests.support.waiting import at_most, wait_for_line

from ...support.running_sandbox import Sandbox

DEMO_S, REFUSED_S = at_most(900), at_most(60)
CONTEXT = "somebodys-cluster"


@dataclass
class User:
    """Somebody with a kubeconfig, Pulumi on PATH and stacks of their own, and the demo's folder."""

    sandbox: Sandbox
    environment: dict[str, str]
    folder: Path
    own_stacks: Path

    def make(self, target: str, *variables: str) -> subprocess.CompletedProcess[str]:
        """Run a make target of the demo; nobody is there to answer."""
        # Whoever runs the tests may have downloaded Strimzi's release: this cluster has an operator.
        command = ["make", target, f"PY={sys.executable}", "CLUSTER=current", "STRIMZI=", *variables]
        return self._run(command, DEMO_S)

    def refused(self, *options: str) -> str:
        """Start the demo, which must refuse; return why."""
        result = self._run([*self.command(), *options], REFUSED_S)
        assert result.returncode == 2, result.stdout + result.stderr
        return result.stderr

    def command(self) -> list[str]:
        """The demo without make."""
        return [sys.executable, "-m", "sandbox", "demo", "--cluster", "current"]

    def namespaces(self) -> set[str]:
        """Those of the demo that are in the cluster."""
        found = {each["metadata"]["name"] for each in self.sandbox.get("namespaces")["items"]}
        return found & set(NAMESPACES.values())

    def assert_nothing_is_left(self) -> None:
        """No namespace, no process, no state; reports and logs stay."""
        assert self.namespaces() == set()
        assert not [name for name in self.sandbox.processes.names() if NAMESPACES["dev"][:-4] in name]
        assert {path.name for path in self.folder.iterdir()} <= {"lock", "logs", "reports"}
        assert not self.own_stacks.exists()

    def _run(self, command: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=PROJECT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


@pytest.fixture
def user(sandbox: Sandbox, tools: Tools, tmp_path: Path) -> Iterator[User]:
    own = yaml.safe_load(sandbox.kubeconfig.read_text(encoding="utf-8"))
    own["contexts"] = [{**own["contexts"][0], "name": CONTEXT}]
    write_private(tmp_path / "kubeconfig", yaml.safe_dump({**own, "current-context": CONTEXT}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "RT_INVENTORY_S"))}
    environment = {
        **kept,
        "PATH": os.pathsep.join([str(tools.bin), os.environ["PATH"]]),
        "KUBECONFIG": str(tmp_path / "kubeconfig"),
        "PULUMI_HOME": str(tools.pulumi_home),
        "PULUMI_BACKEND_URL": f"file://{tmp_path}/own-stacks",
        FOLDER_VARIABLE: str(tmp_path / "demo"),
    }
    assert ENVIRONMENT_VARIABLE not in environment
    somebody = User(sandbox, environment, tmp_path / "demo", tmp_path / "own-stacks")
    yield somebody
    somebody.make("demo", "REMOVE=1")


@pytest.mark.nightly
def test_it_fails_over_loses_and_repeats_nothing_and_leaves_nothing(user: User) -> None:
    result = user.make("demo", "YES=1")
    assert result.returncode == 0, f"{result.stdout}{result.stderr}\n\n{user.sandbox.tails()}"
    (found,) = user.folder.glob("reports/demo-*/summary.json")
    summary = read_json(found)
    assert summary["records"] == {
        "produced": 10_000,
        "replicated": 10_000,
        "read_before": 4_000,
        "read_after": 6_000,
        "lost": 0,
        "repeated": 0,
    }
    assert (summary["verdict"], summary["residentMiB"]) == ("pass", None)
    assert Path(summary["report"]).is_file()
    assert f"dev: context {CONTEXT}, namespace {NAMESPACES['dev']}" in result.stdout
    assert "waiting up to 900 s for Kafka rt-inventory-stg: Ready" in result.stdout
    user.assert_nothing_is_left()


def test_a_demo_that_is_interrupted_says_what_is_left_which_can_be_removed(user: User) -> None:
    demo = subprocess.Popen(
        [*user.command(), "--yes", "--keep"],
        cwd=PROJECT,
        env=user.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for_line(demo, "for Kafka rt-inventory-dev", 180)
    demo.send_signal(signal.SIGTERM)
    shown = " ".join(demo.communicate(timeout=at_most(180))[0].split())
    assert demo.returncode == 143, shown
    left = f"A demo is still there: namespace {NAMESPACES['dev']} in context {CONTEXT}"
    assert left in shown
    assert "Remove it: make demo CLUSTER=current REMOVE=1" in shown
    assert user.namespaces() == {NAMESPACES["dev"]}
    assert left in user.refused("--yes")
    removed = user.make("demo", "REMOVE=1")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    user.assert_nothing_is_left()


def test_a_namespace_that_is_not_its_own_is_left_alone(user: User) -> None:
    kubectl, namespace = user.sandbox.kubectl, NAMESPACES["stg"]
    kubectl("create", "namespace", namespace)
    try:
        assert f"namespace {namespace}: must not exist in context {CONTEXT}" in user.refused("--yes")
        assert user.namespaces() == {namespace}
    finally:
        kubectl("delete", "namespace", namespace)


def test_nothing_is_made_unless_somebody_agrees(user: User) -> None:
    assert "demo: must be confirmed" in user.refused()
    assert "context nowhere: must be in the kubeconfig" in user.refused("--yes", "--stg-context", "nowhere")
    assert user.namespaces() == set()
