"""What `up` waits for in the status of an audit's SparkApplication, and what it makes of a changed request.

The kinds are the Spark operator's. No operator runs: the test writes what it would report.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from sandbox.state import PROJECT
from tests.support.waiting import at_most, wait_until

from ...support.pulumi_engine import target
from ...support.running_sandbox import Sandbox
from ...support.spark_operator import spark_definitions

NAMESPACE, NAME, KIND = "audit-application", "mm2-audit", "sparkapplications.sparkoperator.k8s.io"
UP_S = at_most(300)
PROGRAM = """\
import json
import pulumi
from components.custom_resource import explain_waits
from components.guards import guard_against_deletion
from components.kubernetes_objects import KubernetesAccess
from components.verification import audit
from components.verification.in_cluster import InClusterArgs
from settings import parse

config, access = pulumi.Config(), KubernetesAccess()
explain_waits(access)
audit.DEADLINE_S = config.require_int("seconds")
with open("settings.json") as file:
    settings = parse(json.load(file), "stg")
args = InClusterArgs(
    settings=settings,
    mirror="mm2",
    mirror_namespace="stg",
    namespace="audit-application",
    request=pulumi.Output.from_input({}),
    environment=pulumi.Output.secret({"SOURCE_PASSWORD": "made-up"}),
    trigger=pulumi.Output.from_input(config.require("trigger")),
)
guard_against_deletion([audit.AuditInCluster("audit", args)], protect=False)
"""
PROJECT_FILE = """\
name: audit-application
runtime: python
options:
  refresh: always
"""
FAILED = {"state": "FAILING", "errorMessage": "driver container failed with ExitCode: 2, Reason: Error"}
RUNNING = {"state": "RUNNING"}
EXECUTORS = {"mm2-audit-1-exec-1": "PENDING"}


class Stack:
    """A stack with nothing but an audit, and the operator of its application."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox, self._folder = sandbox, folder
        run = {"how": "spark-application", "image": "verification:1.0.0", "networkPolicy": True}
        settings = target(verification={"when": "never", "run": run, "audit": {"stateClaim": "audits"}})
        (folder / "settings.json").write_text(json.dumps(settings))
        (folder / "Pulumi.yaml").write_text(PROJECT_FILE)
        (folder / "__main__.py").write_text(PROGRAM)

    def run(self, *arguments: str) -> str:
        process = self._start(*arguments)
        text, _ = process.communicate(timeout=UP_S)
        assert process.returncode == 0, text
        return text

    def set(self, **values: Any) -> None:
        for key, value in values.items():
            self.run("config", "set", key, str(value))

    @contextmanager
    def up(self) -> "Iterator[Popen[str]]":
        """An `up` in the background, which is over at the end of the block."""
        process = self._start("up", "--yes", "--skip-preview")
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def application(self) -> dict[str, Any] | None:
        found = self._sandbox.kubectl("get", KIND, NAME, "-n", NAMESPACE, "-o", "json", "--ignore-not-found").stdout
        return json.loads(found) if found else None

    def uid(self) -> str | None:
        found = self.application()
        return None if found is None else str(found["metadata"]["uid"])

    def report(self, state: dict[str, str], executors: dict[str, str] | None = None) -> None:
        """Write a status as the operator does, who leaves out the executors while there are none."""
        status: dict[str, Any] = {"applicationState": state, "driverInfo": {"podName": f"{NAME}-driver"}}
        status |= {"executorState": executors} if executors else {}
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
        self._sandbox.kubectl("patch", KIND, NAME, "-n", NAMESPACE, *patch)

    def _start(self, *arguments: str) -> "Popen[str]":
        environment = {**self._sandbox.environment(), "PYTHONPATH": str(PROJECT)}
        command = ["pulumi", "-C", str(self._folder), *arguments, "--non-interactive"]
        return Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process: "Popen[str]") -> tuple[int, str]:
    text, _ = process.communicate(timeout=UP_S)
    return process.returncode, text


@pytest.fixture
def stack(sandbox: Sandbox, tmp_path: Path) -> Iterator[Stack]:
    (tmp_path / "module").mkdir()
    (tmp_path / "project").mkdir()
    with spark_definitions(sandbox, tmp_path / "module"):
        sandbox.kubectl("create", "namespace", NAMESPACE)
        stack = Stack(sandbox, tmp_path / "project")
        stack.run("stack", "select", "--create", "one")
        try:
            yield stack
        finally:
            stack.run("destroy", "--yes", "--skip-preview")
            sandbox.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def test_up_waits_for_executors_of_each_application_that_a_request_makes(stack: Stack) -> None:
    stack.set(seconds=35, trigger="first")
    with stack.up() as process:
        wait_until("the application is there", stack.application, 60)
        stack.report(RUNNING)  # its driver may end at once, as this one does
        time.sleep(12)  # in which the report of the wait reads it
        stack.report(FAILED)
        code, text = ended(process)
    assert code != 0, text
    assert "waited 35 s in vain for SparkApplication mm2-audit: running, with executors (FAILING: driver " in text
    assert "ExitCode: 2" in text
    assert f"kubectl logs -n {NAMESPACE} mm2-audit-driver" in text

    stack.set(seconds=120)
    with stack.up() as process:
        wait_until("the application is there", stack.application, 60)
        stack.report(RUNNING, EXECUTORS)
        code, text = ended(process)
    assert code == 0, text
    first = stack.uid()
    again = stack.run("up", "--yes", "--skip-preview")
    assert not [word for word in ("created", "updated", "replaced", "deleted") if word in again], again
    assert stack.uid() == first

    stack.set(trigger="second")
    with stack.up() as process:
        wait_until("another application is there", lambda: stack.uid() not in (first, None), 60)
        time.sleep(5)
        assert process.poll() is None, "the status of the first one is not that of the second"
        stack.report(RUNNING, EXECUTORS)
        code, text = ended(process)
    assert code == 0, text
    found = stack.application()
    assert found is not None
    assert found["spec"]["driver"]["annotations"] == {"rt-inventory/audit-request": "second"}
