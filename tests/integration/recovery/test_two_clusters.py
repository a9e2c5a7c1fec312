"""The default pair on two Kubernetes clusters, each with an API server of its own, that share only Pulumi's state.

The kubeconfig's current context leads nowhere: whoever does not use the context that a stack names fails.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox import control_plane
from sandbox.processes import marked
from sandbox.pulumi import Pulumi
from sandbox.state import PROJECT, SandboxState, write_private
from sandbox.toolchain import Tools

from ...support import records
from ...support.projects import KEY, Project, smaller
from ...support.running_sandbox import Sandbox

DEV, STG = "dev", "stg"
MIRROR, TOPIC, COUNT = "mm2", "items", 50
OPS_S, RECOVERY_S = 120, 400
NOWHERE = {"cluster": {"server": "https://127.0.0.1:9"}, "name": "nowhere"}


class OnTwoClusters(Pulumi):
    """Pulumi with one kubeconfig for both clusters, as it is on PATH: a sandbox's own has the sandbox's kubeconfig."""

    kubeconfig: Path
    bin: Path

    def environment(self) -> dict[str, str]:
        """The sandbox's environment with that kubeconfig."""
        path = os.pathsep.join([str(self.bin), os.environ["PATH"]])
        return {**super().environment(), "KUBECONFIG": str(self.kubeconfig), "PATH": path}


@dataclass
class Sites:
    """The pair's project, and the sandbox of each stack."""

    project: Project
    clusters: dict[str, Sandbox]

    def listeners(self, stack: str) -> dict[str, str]:
        """Addresses that the stack's Kafka resource publishes, by listener."""
        namespace = self.project.namespace(stack)
        found = self.clusters[stack].get("kafka", "-n", namespace, namespace)["status"]["listeners"]
        return {each["name"]: each["bootstrapServers"] for each in found}

    def ops(self, *arguments: str, within_s: float = OPS_S, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of ops as a user types it."""
        command = [sys.executable, "-m", "ops", *arguments, "-C", str(self.project.folder)]
        return subprocess.run(
            command,
            cwd=PROJECT,
            env={**os.environ, **self.project.pulumi.environment(), **environment},
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )


def merged(file: Path, clusters: dict[str, SandboxState]) -> Path:
    """A kubeconfig with a context for each stack; the current one leads nowhere."""
    parts: dict[str, list[Any]] = {"clusters": [NOWHERE], "users": [{"name": "nowhere", "user": {}}], "contexts": []}
    parts["contexts"].append({"name": "nowhere", "context": {"cluster": "nowhere", "user": "nowhere"}})
    for stack, state in clusters.items():
        own = yaml.safe_load(state.kubeconfig.read_text(encoding="utf-8"))
        parts["clusters"].append({**own["clusters"][0], "name": stack})
        parts["users"].append({**own["users"][0], "name": stack})
        parts["contexts"].append({"name": stack, "context": {"cluster": stack, "user": stack}})
    document = {"apiVersion": "v1", "kind": "Config", "current-context": "nowhere", **parts}
    write_private(file, yaml.safe_dump(document))
    return file


def settings(reports: Path) -> dict[str, dict[str, Any]]:
    """The default pair with one broker a site, verified as it ships, by a verification that knows every check.

    Its reports have a folder of their own: other sandboxes run a stack of the same name.
    """
    result = {}
    for stack in (DEV, STG):
        shipped = yaml.safe_load((PROJECT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))["config"]
        result[stack] = smaller(shipped) | {f"{KEY}cluster": smaller(shipped)[f"{KEY}cluster"] | {"protect": False}}
    result[STG][f"{KEY}verification"] = shipped[f"{KEY}verification"] | {"reportDir": str(reports)}
    return result


@pytest.fixture(scope="module")
def other(tools: Tools) -> Iterator[Sandbox]:
    """A second sandbox, for the stack stg."""
    state = SandboxState(Path(tempfile.mkdtemp(prefix="rt-inventory-")) / "sandbox")
    said: list[str] = []
    try:
        control_plane.up(control_plane.SandboxContext(state, tools, os.environ, said.append))
        yield Sandbox(state, tools, Pulumi(state, tools), said=said)
    finally:
        control_plane.down(state, said.append)
        survivors = [f"{process.pid} {process.name()}" for process in marked(state)]
        shutil.rmtree(state.path.parent, ignore_errors=True)
    assert not survivors, f"processes left after down: {survivors}"


@pytest.fixture(scope="module")
def sites(sandbox: Sandbox, other: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Both stacks up, each in its own cluster; records were written at the source before the mirror came."""
    folder = tmp_path_factory.mktemp("two-clusters")
    clusters = {DEV: sandbox, STG: other}
    shutil.copy(PROJECT / "Pulumi.yaml", folder / "Pulumi.yaml")
    text = (folder / "Pulumi.yaml").read_text(encoding="utf-8")
    text = text.replace("name: rt-inventory\n", f"name: two-clusters-test\nmain: {PROJECT}\n")
    (folder / "Pulumi.yaml").write_text(text.replace("virtualenv: venv", f"virtualenv: {PROJECT}/venv"), "utf-8")
    pulumi = OnTwoClusters(sandbox.state, sandbox.tools, folder)
    pulumi.bin = sandbox.tools.bin
    pulumi.kubeconfig = merged(folder / "kubeconfig", {stack: each.state for stack, each in clusters.items()})
    project = Project(sandbox, folder, settings(folder / "reports"), pulumi)
    try:
        project.up(DEV)
        records.write(project.client(DEV), TOPIC, [f"record-{number}" for number in range(COUNT)])
        project.up(STG)
        yield Sites(project, clusters)
    except AssertionError as error:
        raise AssertionError(f"{error}\n\n{other.tails()}") from None
    finally:
        project.destroy(STG, DEV)


def test_each_stack_is_in_the_cluster_of_its_own_context(sites: Sites) -> None:
    for stack, cluster in sites.clusters.items():
        names = {each["metadata"]["name"] for each in cluster.get("namespaces")["items"]}
        other = {DEV: STG, STG: DEV}[stack]
        assert sites.project.namespace(stack) in names
        assert sites.project.namespace(other) not in names
        assert sites.project.outputs(stack)["cluster"]["context"] == stack


def test_the_mirror_reaches_its_source_by_the_exposed_listener_and_its_target_by_the_one_inside(sites: Sites) -> None:
    there, here = sites.listeners(DEV), sites.listeners(STG)
    assert there.keys() == here.keys() == {"tls", "external"}
    spec = sites.clusters[STG].mirror(sites.project.namespace(STG), MIRROR)["spec"]
    assert spec["mirrors"][0]["source"]["bootstrapServers"] == there["external"] != there["tls"]
    assert spec["target"]["bootstrapServers"] == here["tls"]


def test_the_verification_beside_pulumi_compared_what_was_written(sites: Sites) -> None:
    found = sites.project.outputs(STG)
    verified = found["verifications"][MIRROR]
    assert verified["recordsCompared"] == COUNT
    report = json.loads(Path(verified["report"]).with_suffix(".json").read_text(encoding="utf-8"))
    checks = {each["name"]: each["ok"] for each in report["checks"]}
    assert False not in checks.values(), checks
    assert checks["records_complete"] is True
    assert checks["connectors_running"] is True
    request = found["verificationRequests"][MIRROR]
    for side, stack in (("source", DEV), ("target", STG)):
        assert request[side]["client_config"]["bootstrap.servers"] == sites.listeners(stack)["external"]
    assert records.read(sites.project.client(STG), TOPIC)


def test_status_reads_both_clusters(sites: Sites) -> None:
    result = sites.ops("status", "--stack", STG, "--json")
    found = json.loads(result.stdout)
    assert (found["health"], result.returncode) == ("healthy", 0), result.stdout + result.stderr
    for side in ("source", "target"):
        assert found[side]["resource"]["ready"] is True, found[side]


def test_a_context_that_the_kubeconfig_lacks_is_named(sites: Sites, tmp_path: Path) -> None:
    file = sites.project.pulumi.environment()["KUBECONFIG"]
    document = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    document["contexts"] = [each for each in document["contexts"] if each["name"] != STG]
    lacking = tmp_path / "kubeconfig"
    write_private(lacking, yaml.safe_dump(document))
    result = sites.ops("failover", "--to", STG, "--dry-run", KUBECONFIG=str(lacking))
    assert result.returncode == 2
    assert f"got context {STG}:" in " ".join(result.stderr.split()), result.stdout + result.stderr


@pytest.mark.nightly
def test_a_failover_and_the_failback_change_each_stack_in_its_own_cluster(sites: Sites, tmp_path: Path) -> None:
    """The operator of the other cluster, or of the kubeconfig's current context, knows nothing of this mirror."""
    for stack in (DEV, STG):  # whoever has these files has made the stacks: they hold the state's salt
        known = sites.project.pulumi.stack_file(stack).read_text(encoding="utf-8")
        (sites.project.folder / f"Pulumi.{stack}.yaml").write_text(known, encoding="utf-8")
    there = ("failover", "--to", STG)
    back = ("failback", "--to", DEV)
    for words in (there, back):
        result = sites.ops(*words, "--yes", "--report-dir", str(tmp_path / words[0]), within_s=RECOVERY_S)
        assert result.returncode == 0, result.stdout + result.stderr
        found = json.loads(sites.ops("status", "--stack", STG, "--json").stdout)
        assert found["active"] == ("target" if words is there else "source")
    assert found["health"] == "healthy", found
