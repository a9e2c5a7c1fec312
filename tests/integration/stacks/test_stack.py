"""The stacks on the running sandbox: first preview, second up, mistakes, waits that end, and what the state holds."""

import base64
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.state import PROJECT
from tests.support.waiting import at_most, wait_until

from ...support.projects import unchanged
from ...support.running_sandbox import Pair, Sandbox

SECONDS = at_most(400)


def stack_file(folder: Path, based_on: str, **changes: Any) -> Path:
    """A shipped stack file in a namespace of its own, with some keys replaced."""
    document = yaml.safe_load((PROJECT / f"Pulumi.{based_on}.yaml").read_text(encoding="utf-8"))
    config = document["config"]
    config["rt-inventory:cluster"] |= {"name": "own", "namespace": "own"}
    for key, value in changes.items():
        known = config.get(f"rt-inventory:{key}")
        config[f"rt-inventory:{key}"] = {**known, **value} if isinstance(known, dict) else value
    file = folder / "Pulumi.own.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


def pulumi(
    sandbox: Sandbox, stack: str, *arguments: str, file: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    return sandbox.pulumi.run(stack, *arguments, config_file=file, check=False, timeout_s=SECONDS)


def reported(result: "subprocess.CompletedProcess[str]") -> str:
    return result.stdout + result.stderr


def namespaces(sandbox: Sandbox) -> list[str]:
    return [item["metadata"]["name"] for item in sandbox.get("namespaces")["items"]]


@pytest.mark.parametrize("stack", ["dev", "stg"])
def test_a_second_up_changes_nothing_and_they_comply_with_the_policy_pack(
    sandbox: Sandbox, pair: Pair, stack: str
) -> None:
    def up() -> "subprocess.CompletedProcess[str]":
        return pulumi(sandbox, stack, "up", "--yes", "--skip-preview", "--policy-pack", str(PROJECT / "policies"))

    second = up()
    if not unchanged(second.stdout):  # other tests may have used other settings
        second = up()
    assert second.returncode == 0, reported(second)
    assert not re.findall(r"\[(?:advisory|mandatory|remediate)\]", second.stdout), reported(second)
    assert "rt-inventory@v" in second.stdout, "the pack did not run"
    assert unchanged(second.stdout), reported(second)


def test_the_first_preview_of_an_empty_target_works(sandbox: Sandbox, pair: Pair, tmp_path: Path) -> None:
    result = pulumi(sandbox, "own", "preview", file=stack_file(tmp_path, "stg"))
    assert result.returncode == 0, reported(result)
    assert re.fullmatch(r"\s*\+ 34 to create\s*", result.stdout.partition("Resources:")[2]), reported(result)
    assert "own" not in namespaces(sandbox)


def test_a_target_before_its_source_is_reported_what_to_do_first(sandbox: Sandbox, tmp_path: Path) -> None:
    mirrors = yaml.safe_load((PROJECT / "Pulumi.stg.yaml").read_text())["config"]["rt-inventory:mirrors"]
    mirrors[0]["source"]["stack"] = "elsewhere"
    result = pulumi(sandbox, "own", "up", "--yes", "--skip-preview", file=stack_file(tmp_path, "stg", mirrors=mirrors))
    assert result.returncode != 0
    assert "got elsewhere, which does not exist). Run `pulumi up -s elsewhere` first." in reported(result)
    assert "Traceback" not in reported(result)
    assert "own" not in namespaces(sandbox)


def test_all_mistakes_of_a_stack_file_are_reported_and_nothing_is_created(sandbox: Sandbox, tmp_path: Path) -> None:
    topics = [{"name": "items", "partitions": 1, "replicas": 3}, {"name": "bad/name", "partitions": 1, "replicas": 1}]
    file = stack_file(tmp_path, "dev", topics=topics, cluster={"brokrs": 3})
    for command in (("preview",), ("up", "--yes", "--skip-preview")):
        result = pulumi(sandbox, "own", *command, file=file)
        assert result.returncode != 0
        for key in ("cluster.brokrs", "topics[0].replicas", "topics[1].name"):
            assert f"rt-inventory:{key}: " in reported(result), reported(result)
        assert "Traceback" not in reported(result)
    assert "own" not in namespaces(sandbox)


@pytest.fixture
def own(sandbox: Sandbox, tmp_path: Path) -> Iterator[Path]:
    """A stack file of a cluster that the operator cannot run; what it made is destroyed afterwards."""
    file = stack_file(tmp_path, "dev", cluster={"version": "4.2.0", "readySeconds": 25})
    yield file
    gone = pulumi(sandbox, "own", "destroy", "--yes", "--skip-preview", file=file)
    assert gone.returncode == 0, reported(gone)
    assert "own" not in namespaces(sandbox)


def test_a_wait_that_times_out_reports_the_operators_reason(sandbox: Sandbox, own: Path) -> None:
    result = pulumi(sandbox, "own", "up", "--yes", "--skip-preview", file=own)
    assert result.returncode != 0
    assert "waiting up to 25 s for Kafka own: Ready" in reported(result)
    reason = re.escape(
        "NotReady is True, reason UnsupportedKafkaVersion: Kafka own: spec.kafka.version must be one that is installed "
        "(got 4.2.0, allowed 4.3.1)"
    )
    assert re.search(rf"waiting for Kafka own: Ready, [12]\d of 25 s: {reason}", reported(result)), reported(result)
    assert re.search(rf"error: waited 25 s in vain for Kafka own: Ready \({reason}", reported(result)), reported(result)
    assert "Set a version that the operator's release runs." in reported(result)
    assert "map[" not in reported(result)


@pytest.fixture
def stopped(sandbox: Sandbox, pair: Pair) -> Iterator[None]:
    """A mirror whose worker is stopped for the length of a test."""
    worker = "mirror.rt-inventory-stg.mm2.0"
    sandbox.processes.kill(worker, hold=True)
    wait_until("the operator misses the worker", lambda: not mirror_is_ready(sandbox), 60)
    yield
    sandbox.processes.release(worker)
    wait_until("the mirror is ready again", lambda: mirror_is_ready(sandbox), 120)


def mirror_is_ready(sandbox: Sandbox) -> bool:
    conditions = sandbox.mirror("rt-inventory-stg", "mm2")["status"]["conditions"]
    return {"Ready": "True"} in [{entry["type"]: entry["status"]} for entry in conditions]


def test_a_mirror_that_stopped_is_verified_again_without_a_change_of_settings(sandbox: Sandbox, stopped: None) -> None:
    preview = pulumi(sandbox, "stg", "preview")
    assert preview.returncode == 0, reported(preview)
    changes = re.findall(r"^ ([~+-]+) +(\S+) (\S+) (?:create|update|replace|delete)", preview.stdout, re.MULTILINE)
    assert changes == [("~", "pulumi-python:dynamic/verification:Run", "mm2-verification-run")], reported(preview)


def test_the_states_hold_no_password_in_plain_or_as_kubernetes_encodes_it(sandbox: Sandbox, pair: Pair) -> None:
    states = [path for path in sandbox.state.pulumi.rglob("*") if path.is_file()]
    assert any(path.name == "stg.json" for path in states)
    secrets = [value.encode() for outputs in (pair.dev, pair.stg) for value in outputs["userPasswords"].values()]
    for secret in [*secrets, *map(base64.b64encode, secrets)]:
        assert not [path for path in states if secret in path.read_bytes()]


def test_the_verification_of_the_first_up_is_exported(pair: Pair) -> None:
    verification = pair.stg["verifications"]["mm2"]
    assert verification["verdict"] in ("pass", "unknown")
    assert verification["report"] == "reports/stg/mm2/report.html"
    open_checks = f"{verification.get('failed', '')}, {verification.get('unknown', '')}"
    assert "connectors_running" not in open_checks
    assert "replication_factor" not in open_checks
