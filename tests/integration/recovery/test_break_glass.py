"""A failover while the bucket of Pulumi's state is lost, and Pulumi agrees with it afterwards."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.state import PROJECT

from ...support.running_sandbox import Pair, Sandbox

ENDS_S = 420
NAMESPACE, CLIENTS, COPY = "rt-inventory-stg", "mm2-clients", "mm2-break-glass"
NOWHERE = "s3://lost-with-its-region?region=eu-central-1&endpoint=127.0.0.1:1&disableSSL=true&s3ForcePathStyle=true"
UNCHANGED = {"same", "read", "refresh"}


@pytest.fixture
def folder(sandbox: Sandbox, pair: Pair, tmp_path: Path) -> Iterator[Path]:
    """A project folder whose stack file the commands change; afterwards the source is active again."""
    text = (PROJECT / "Pulumi.yaml").read_text("utf-8").replace("virtualenv: venv", f"virtualenv: {PROJECT}/venv")
    (tmp_path / "Pulumi.yaml").write_text(f"{text}main: {PROJECT}\n", "utf-8")
    for stack in ("dev", "stg"):
        (tmp_path / f"Pulumi.{stack}.yaml").write_bytes((PROJECT / f"Pulumi.{stack}.yaml").read_bytes())
    yield tmp_path
    if '"target"' in json.dumps(sandbox.pulumi.outputs("stg")["mirrors"]["mm2"]["active"]):
        ended = command(sandbox, tmp_path, "ops", "failback", "--to", "dev", "--yes", "--json")
        assert ended.returncode == 0, ended.stdout + ended.stderr


def command(sandbox: Sandbox, folder: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run pulumi in the folder, or ops on it."""
    program, *rest = words
    line = [sys.executable, "-m", "ops", *rest, "-C", str(folder)] if program == "ops" else [*words, "-s", "stg"]
    return subprocess.run(
        line,
        cwd=PROJECT if program == "ops" else folder,
        env={**sandbox.environment(), **environment},
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )


def without_state(sandbox: Sandbox) -> dict[str, str]:
    """The environment of Pulumi itself, not of the sandbox's, with a bucket that nobody serves."""
    shim, path = f"{sandbox.state.path / 'bin'}:", sandbox.environment()["PATH"]
    assert path.startswith(shim)
    login = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_EC2_METADATA_DISABLED": "true"}
    return {"PATH": path.removeprefix(shim), "PULUMI_BACKEND_URL": NOWHERE, **login}


def failed_over(sandbox: Sandbox, folder: Path) -> dict[str, Any]:
    """Fail over without the state; return the command's document."""
    words = "ops", "failover", "--to", "stg", "--unplanned", "--break-glass", "--yes", "--json"
    ended = command(sandbox, folder, *words, **without_state(sandbox))
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}\n\n{sandbox.tails()}"
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def test_a_failover_ends_well_while_the_state_is_lost_and_pulumi_agrees_afterwards(
    sandbox: Sandbox, pair: Pair, folder: Path
) -> None:
    lost = command(sandbox, folder, "ops", "status", "--json", **without_state(sandbox))
    assert lost.returncode == 2

    done = failed_over(sandbox, folder)

    assert (done["active"], done["clientsSecret"]) == ("target", CLIENTS)
    assert done["reconcileWith"] == "pulumi up --refresh -s stg"
    assert sandbox.secret(NAMESPACE, CLIENTS)["bootstrapServers"] == pair.stg["cluster"]["internalBootstrapServers"]
    connectors = sandbox.mirror(NAMESPACE, "mm2")["status"]["connectors"]
    assert {connector["connector"]["state"] for connector in connectors} == {"STOPPED"}
    entry = yaml.safe_load((folder / "Pulumi.stg.yaml").read_text("utf-8"))["config"]["rt-inventory:mirrors"][0]
    assert (entry["active"], entry["state"]) == ("target", "stopped")
    seen = command(sandbox, folder, "ops", "status", "--break-glass", "--json", **without_state(sandbox))
    assert json.loads(seen.stdout)["active"] == "target", seen.stdout + seen.stderr

    behind = json.loads(command(sandbox, folder, "ops", "status", "--json").stdout)
    assert [problem for problem in behind["problems"] if "Pulumi's state is behind" in problem]
    old_checkout = sandbox.pulumi.run("stg", "up", "--yes", "--skip-preview", check=False, timeout_s=ENDS_S)
    assert "mirror mm2: active must stay 'target' (got 'source')" in old_checkout.stdout + old_checkout.stderr

    preview = command(sandbox, folder, "pulumi", "preview", "--refresh", "--json", "--non-interactive")
    assert preview.returncode == 0, preview.stdout + preview.stderr
    steps = [step for step in json.loads(preview.stdout)["steps"] if step["op"] not in UNCHANGED]
    changed = {step["urn"].rpartition("::")[2]: step["detailedDiff"] for step in steps if "$kubernetes:" in step["urn"]}
    # A refresh takes over what Pulumi had set before, and a mirror that runs has no state.
    added = {"spec.mirrors[0].sourceConnector.state", "spec.mirrors[0].checkpointConnector.state"}
    assert {name: set(paths) for name, paths in changed.items()} == {"mm2-mirror": added}
    before = sandbox.mirror(NAMESPACE, "mm2")["metadata"]["generation"]
    up = command(sandbox, folder, "pulumi", "up", "--refresh", "--yes", "--skip-preview", "--non-interactive")
    assert up.returncode == 0, up.stdout + up.stderr
    assert sandbox.mirror(NAMESPACE, "mm2")["metadata"]["generation"] == before, "nothing was left to change"
    assert sandbox.pulumi.outputs("stg")["mirrors"]["mm2"]["active"] == "target"
    words = "preview", "--refresh", "--expect-no-changes", "--diff", "--non-interactive"
    again = command(sandbox, folder, "pulumi", *words)
    assert again.returncode == 0, again.stdout + again.stderr
    after = json.loads(command(sandbox, folder, "ops", "status", "--json").stdout)
    assert not [problem for problem in after["problems"] if "Pulumi" in problem]
