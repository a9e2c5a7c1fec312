"""A Secret that the stack makes: changed by hand it is set back and who changed it is named; another's is kept."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess, run
from typing import Any

import pytest

from sandbox.state import PROJECT
from tests.support.waiting import at_most

from ...support.running_sandbox import Sandbox

NAMESPACE = "default"
PROGRAM = """\
import pulumi
from components.kubernetes_objects import KubernetesAccess
from components.kubernetes_objects import OwnedSecret, guard_secrets

guard_secrets(KubernetesAccess())
for name in pulumi.Config().require_object("names"):
    metadata = {"name": name, "namespace": "default"}
    password = pulumi.Output.secret("made-by-the-stack")
    OwnedSecret(name, metadata=metadata, string_data={"password": password}, opts=pulumi.ResourceOptions())
"""
SETTINGS = """\
name: owned
runtime: python
options:
  refresh: always
config:
  kubernetes:enableSecretMutable: true
"""
Pulumi = Callable[..., CompletedProcess[str]]


@pytest.fixture
def pulumi(sandbox: Sandbox, tmp_path: Path) -> Any:
    """Pulumi on a program that makes a Secret of each name; what it made is destroyed."""
    (tmp_path / "Pulumi.yaml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "__main__.py").write_text(PROGRAM, encoding="utf-8")

    def pulumi(*arguments: str) -> CompletedProcess[str]:
        command = ["pulumi", "-C", str(tmp_path), *arguments, "--non-interactive"]
        environment = {**sandbox.environment(), "PYTHONPATH": str(PROJECT)}
        return run(command, env=environment, capture_output=True, text=True, timeout=at_most(300), check=False)

    assert pulumi("stack", "select", "--create", "one").returncode == 0
    yield pulumi
    gone = pulumi("destroy", "--yes", "--skip-preview")
    assert gone.returncode == 0, gone.stdout + gone.stderr


def up(pulumi: Pulumi, names: str, *options: str) -> CompletedProcess[str]:
    return pulumi("up", "--yes", "--config", f"names={names}", *options)


def test_a_password_patched_by_hand_is_set_back_and_a_secret_of_somebody_else_is_kept(
    sandbox: Sandbox, pulumi: Pulumi
) -> None:
    first = up(pulumi, '["mine"]', "--skip-preview")
    assert first.returncode == 0, first.stdout + first.stderr
    assert sandbox.secret(NAMESPACE, "mine") == {"password": "made-by-the-stack"}
    patch = json.dumps({"data": {"password": base64.b64encode(b"wrong").decode()}})
    sandbox.kubectl("patch", "secret/mine", "-n", NAMESPACE, "--type=merge", "-p", patch)
    assert sandbox.secret(NAMESPACE, "mine") == {"password": "wrong"}

    second = up(pulumi, '["mine"]', "--skip-preview")
    assert second.returncode == 0, second.stdout + second.stderr
    assert sandbox.secret(NAMESPACE, "mine") == {"password": "made-by-the-stack"}
    assert "Secret default/mine: values were set by kubectl-patch at " in second.stdout, second.stdout

    sandbox.kubectl("create", "secret", "generic", "theirs", "-n", NAMESPACE, "--from-literal=password=in-use")
    try:
        third = up(pulumi, '["mine", "theirs"]')
        assert third.returncode != 0, third.stdout
        refused = "Secret default/theirs: must not exist yet with other values (got values set by kubectl-create at "
        assert refused in third.stdout + third.stderr, third.stdout + third.stderr
        assert sandbox.secret(NAMESPACE, "theirs") == {"password": "in-use"}
    finally:
        sandbox.kubectl("delete", "secret/theirs", "-n", NAMESPACE)
