"""`pulumi up -s stg` is a gate: it stays shut while records are missing on the target, and opens once they arrive."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.state import PROJECT
from tests.support.waiting import at_most, wait_until

from ...support.ops_commands import ops
from ...support.running_sandbox import Pair, Sandbox

UP_S = at_most(400)
RECORDS = 300


@pytest.fixture
def worker(sandbox: Sandbox, pair: Pair) -> Iterator[str]:
    """The mirror's worker, which runs again after the test."""
    (name,) = [name for name in sandbox.processes.names() if name.startswith("mirror.rt-inventory-stg.mm2.")]
    yield name
    release(sandbox, name)


def release(sandbox: Sandbox, worker: str) -> None:
    sandbox.processes.release(worker)
    wait_until("the worker runs again", lambda: sandbox.processes.alive(worker), 60)
    sandbox.wait_ready("rt-inventory-stg", "kafkamirrormaker2/mm2", 100)


def up(sandbox: Sandbox, stack_file: Path) -> subprocess.CompletedProcess[str]:
    return sandbox.pulumi.run(
        "stg", "up", "--yes", "--skip-preview", config_file=stack_file, check=False, timeout_s=UP_S
    )


def test_up_fails_while_records_are_missing_and_passes_once_they_arrived(
    sandbox: Sandbox, worker: str, tmp_path: Path
) -> None:
    text = (PROJECT / "Pulumi.stg.yaml").read_text(encoding="utf-8")
    always = tmp_path / "Pulumi.stg.yaml"
    always.write_text(
        text.replace("when: on-change", "when: always").replace("mirrorWaitSeconds: 120", "mirrorWaitSeconds: 5")
    )
    sandbox.processes.kill(worker, hold=True)
    ops(sandbox, "produce", "-s", "dev", "-t", "items", "-n", str(RECORDS))

    shut = up(sandbox, always)
    assert shut.returncode == 1, shut.stdout + shut.stderr
    (verdict,) = set(re.findall(r"records_complete failed: (.*)", shut.stdout + shut.stderr))
    behind = {partition: int(count) for count, partition in re.findall(r"(\d+) behind in (items-\d+)", verdict)}
    assert sum(behind.values()) == RECORDS, verdict
    assert "lost" not in verdict

    release(sandbox, worker)
    always.write_text(always.read_text(encoding="utf-8").replace("mirrorWaitSeconds: 5", "mirrorWaitSeconds: 120"))
    opened = up(sandbox, always)
    assert opened.returncode == 0, opened.stdout + opened.stderr
    assert sandbox.pulumi.outputs("stg")["verifications"]["mm2"]["verdict"] in {"pass", "unknown"}
