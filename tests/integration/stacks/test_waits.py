"""What `up` waits for in the status of a mirror, as the Kubernetes provider reads it.

The object is of a kind that no operator knows: nobody but the test writes its status.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest

from sandbox.state import PROJECT
from tests.support.waiting import at_most, wait_until

from ...support.running_sandbox import Sandbox

KIND, NAMESPACE, NAME = "mirrors.waits.example.com", "default", "waited-for"
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": KIND},
    "spec": {
        "group": "waits.example.com",
        "names": {"kind": "Mirror", "plural": "mirrors"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}
PROGRAM = """\
import pulumi
from components.custom_resource import READY, CustomResource, Wait
from components.dialects import Manifest
from components.kafka.mirror_maker_2 import NO_TASK_FAILED

CustomResource(
    "mirror",
    api_version="waits.example.com/v1",
    manifest=Manifest(kind="Mirror", name="waited-for", spec={"replicas": 1}),
    namespace="default",
    wait=Wait(for_=(*READY, NO_TASK_FAILED), words="the mirror", seconds=pulumi.Config().require_int("seconds")),
    opts=pulumi.ResourceOptions(),
)
"""
SETTINGS = """\
name: waits
runtime: python
options:
  refresh: always
"""
Pulumi = Callable[..., CompletedProcess[str]]


@pytest.fixture
def pulumi(sandbox: Sandbox, tmp_path: Path) -> Iterator[Pulumi]:
    """Pulumi on a program that waits for one mirror, which is destroyed."""
    (tmp_path / "Pulumi.yaml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "__main__.py").write_text(PROGRAM, encoding="utf-8")

    def pulumi(*arguments: str) -> CompletedProcess[str]:
        command = ["pulumi", "-C", str(tmp_path), *arguments, "--non-interactive"]
        environment = {**sandbox.environment(), "PYTHONPATH": str(PROJECT)}
        return run(command, env=environment, capture_output=True, text=True, timeout=at_most(300), check=False)

    sandbox.kubectl("create", "-f", "-", stdin=json.dumps(DEFINITION))
    try:
        # A definition that was created this moment has no conditions at all, which ends `kubectl wait` with an error.
        wait_until("the kind is served", lambda: sandbox.kubectl("get", KIND, check=False).returncode == 0, 30)
        assert pulumi("stack", "select", "--create", "one").returncode == 0
        yield pulumi
        gone = pulumi("destroy", "--yes", "--skip-preview")
        assert gone.returncode == 0, gone.stdout + gone.stderr
    finally:
        sandbox.kubectl("delete", "crd", KIND)


def up(pulumi: Pulumi, seconds: int) -> tuple[int, str]:
    result = pulumi("up", "--yes", "--skip-preview", "--config", f"seconds={seconds}")
    return result.returncode, result.stdout + result.stderr


def say(sandbox: Sandbox, *tasks: str, ready: bool = True) -> None:
    """Write the status of a mirror with one connector that has tasks in these states."""
    connector = {"name": "a->b.MirrorSourceConnector", "connector": {"state": "RUNNING"}}
    found = [{"id": number, "state": state} for number, state in enumerate(tasks)]
    condition = {"type": "Ready" if ready else "NotReady", "status": "True"}
    status = {"conditions": [condition], "connectors": [{**connector, "tasks": found}], "observedGeneration": 1}
    patch = json.dumps({"status": status})
    sandbox.kubectl("patch", KIND, NAME, "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", patch)


def waits_in_vain(pulumi: Pulumi, seconds: int) -> None:
    code, text = up(pulumi, seconds)
    assert code != 0, text
    assert "timed out waiting for the condition" in text, text
    assert f"waiting up to {seconds} s for the mirror" in text, text


def test_up_waits_while_a_task_has_failed_and_ends_when_none_has(sandbox: Sandbox, pulumi: Pulumi) -> None:
    waits_in_vain(pulumi, 5)  # without a status
    say(sandbox, "RUNNING", "FAILED")
    waits_in_vain(pulumi, 6)
    say(sandbox, "RUNNING", "RUNNING", ready=False)
    waits_in_vain(pulumi, 7)
    say(sandbox, "RUNNING", "RUNNING")
    code, text = up(pulumi, 60)
    assert code == 0, text
