"""Pulumi's state on S3: one run at a time, secrets encrypted, every version kept. The store is moto's, the engine real.

No cluster is needed.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]  # ships no types
import psutil
import pytest

from ops.errors import OpsError
from ops.pipeline import aws, stack_checks
from ops.pulumi.stack import PulumiStack
from sandbox.toolchain import locate
from tests.support.s3_server import Amazon, amazon
from tests.support.waiting import at_most, wait_until

from ...support.running_sandbox import environment_beside

ROOT = Path(__file__).parents[3]
BEGINS_S, WITHIN_S = 120, at_most(120)
BUCKET, KEY = "state-of-the-tests", "alias/state-of-the-tests"
SECRET = "hush-4711"
# Its resource says that it started and waits while the file `hold` is there.
PROGRAM = """
import time
from pathlib import Path
import pulumi
from pulumi.dynamic import CreateResult, Resource, ResourceProvider, UpdateResult

HERE = Path("{folder}")

class Provider(ResourceProvider):
    def create(self, props):
        (HERE / "started").touch()
        while (HERE / "hold").exists():
            time.sleep(0.05)
        return CreateResult("one", props)

    def update(self, id, old, new):
        return UpdateResult(self.create(new).outs)

class Held(Resource):
    def __init__(self, name, value):
        super().__init__(Provider(), name, {{"value": value}})

Held("held", (HERE / "value").read_text())
pulumi.export("password", pulumi.Output.secret("hush-4711"))
"""


@dataclass(frozen=True)
class Project:
    """A project whose state lies in the bucket."""

    folder: Path
    cloud: Amazon
    made: aws.StateBackend

    @property
    def environment(self) -> dict[str, str]:
        return {
            **environment_beside(self.folder),
            **self.cloud.environment,
            "PULUMI_BACKEND_URL": self.made.backend,
        }

    def start(self, *arguments: str, environment: dict[str, str] | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(locate().pulumi), *arguments, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=environment or self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, environment: dict[str, str] | None = None, works: bool = True) -> str:
        process = self.start(*arguments, environment=environment)
        said, _ = process.communicate(timeout=WITHIN_S)
        assert (process.returncode == 0) is works, said
        return said

    def up(self, value: str, **options: Any) -> str:
        self.value(value)
        return self.run("up", "--stack", "dev", "--yes", "--skip-preview", **options)

    def value(self, value: str) -> None:
        (self.folder / "value").write_text(value, encoding="utf-8")

    def held(self, value: str) -> "subprocess.Popen[str]":
        """An update that is in the middle of its work until `release`."""
        self.value(value)
        (self.folder / "started").unlink(missing_ok=True)
        (self.folder / "hold").touch()
        process = self.start("up", "--stack", "dev", "--yes", "--skip-preview")
        wait_until("the update works on its resource", (self.folder / "started").exists, BEGINS_S)
        return process

    def release(self) -> None:
        (self.folder / "hold").unlink()

    def state(self, stack: str, version: str | None = None) -> str:
        """The state as it lies in the bucket."""
        which = {"VersionId": version} if version else {}
        body = self.s3().get_object(Bucket=BUCKET, Key=self.key(stack), **which)["Body"]
        return str(body.read().decode())

    def key(self, stack: str) -> str:
        return f".pulumi/stacks/held/{stack}.json"

    def s3(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.cloud.url,
            region_name="us-east-1",
            aws_access_key_id=self.cloud.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.cloud.environment["AWS_SECRET_ACCESS_KEY"],
        )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("state")
    runtime = {"name": "python", "options": {"virtualenv": str(ROOT / "venv")}}
    declared = {"name": "held", "runtime": runtime, "options": {"refresh": "always"}}  # as the product's own
    (folder / "Pulumi.yaml").write_text(json.dumps(declared), encoding="utf-8")
    (folder / "__main__.py").write_text(PROGRAM.format(folder=folder), encoding="utf-8")
    with amazon() as cloud, pytest.MonkeyPatch.context() as patched:
        for name, value in cloud.environment.items():
            patched.setenv(name, value)
        made = aws.make_state_bucket(aws.bucket_settings(BUCKET, KEY, os.environ), lambda _: None)
        found = Project(folder, cloud, made)
        found.run("stack", "init", "dev")
        yield found


def test_secrets_are_encrypted_in_the_state_and_read_with_the_passphrase_only(project: Project) -> None:
    project.up("one")
    assert '"ciphertext"' in project.state("dev")
    assert SECRET not in project.state("dev")
    outputs = json.loads(project.run("stack", "output", "--stack", "dev", "--json", "--show-secrets"))
    assert outputs["password"] == SECRET
    wrong = {**project.environment, "PULUMI_CONFIG_PASSPHRASE": "wrong"}
    assert "incorrect passphrase" in project.run("up", "--stack", "dev", "--yes", environment=wrong, works=False)


def test_a_second_run_is_refused_while_the_first_goes_on_and_leaves_it_alone(project: Project) -> None:
    first = project.held("two")
    try:
        began = time.monotonic()
        said = project.run("up", "--stack", "dev", "--yes", "--skip-preview", works=False)
        assert "the stack is currently locked by 1 lock(s)" in said
        assert f"(pid {first.pid})" in said
        assert time.monotonic() - began < 60, "it must be refused, not wait"
        stack = PulumiStack(folder=project.folder, name="dev", environment=project.environment)
        with pytest.raises(OpsError, match=rf"update must end first .*process {first.pid}, .*pulumi cancel"):
            stack_checks.detect_drift(stack)
    finally:
        project.release()
        reported, _ = first.communicate(timeout=WITHIN_S)
    assert first.returncode == 0, reported
    assert "unchanged" in project.up("two")


def test_a_run_that_was_killed_leaves_its_lock_until_somebody_cancels_it(project: Project) -> None:
    killed = project.held("three")
    below = psutil.Process(killed.pid).children(recursive=True)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=WITHIN_S)
    project.release()
    for process in below:  # plugins have a group of their own, and those in Python do not end with the engine
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert f"(pid {killed.pid})" in project.up("three", works=False)
    project.run("cancel", "--stack", "dev", "--yes")
    project.up("three")


def test_every_version_of_the_state_is_kept(project: Project) -> None:
    def kept() -> list[str]:
        found = project.s3().list_object_versions(Bucket=BUCKET, Prefix=project.key("dev"))["Versions"]
        return [each["VersionId"] for each in found if each["Key"] == project.key("dev")]

    project.up("four")
    (before, *_) = kept()
    project.up("five")
    assert len(kept()) > 1
    assert '"five"' in project.state("dev")
    assert '"four"' in project.state("dev", before)


def test_a_key_of_the_cloud_needs_no_passphrase(project: Project) -> None:
    bare = {name: value for name, value in project.environment.items() if name != "PULUMI_CONFIG_PASSPHRASE"}
    project.run("stack", "init", "keyed", "--secrets-provider", project.made.secrets_provider, environment=bare)
    project.value("one")
    project.run("up", "--stack", "keyed", "--yes", "--skip-preview", environment=bare)
    assert SECRET not in project.state("keyed")
    said = project.run("stack", "output", "--stack", "keyed", "--json", "--show-secrets", environment=bare)
    assert json.loads(said)["password"] == SECRET


def test_looking_needs_a_role_that_reads_and_for_drift_one_that_locks(project: Project) -> None:
    project.up("six")
    project.cloud.written.clear()
    project.run("preview", "--stack", "dev")
    project.run("stack", "output", "--stack", "dev", "--json", "--show-secrets")
    assert project.cloud.written == []
    project.run("refresh", "--stack", "dev", "--preview-only")
    locks = f"/{BUCKET}/.pulumi/locks/organization/held/dev/"
    assert [(method, path.startswith(locks)) for method, path in project.cloud.written] == [
        ("PUT", True),
        ("DELETE", True),
    ]
