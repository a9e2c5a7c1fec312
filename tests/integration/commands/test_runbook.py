"""What the runbook shows and no other test runs: every command that only reads."""

import re
import subprocess

import pytest

from tests.support.runbook_commands import RUNBOOK, read_only
from tests.support.waiting import at_most

from ...support.ops_commands import ops
from ...support.running_sandbox import Pair, Sandbox

TOPIC, GROUP = "items", "test-runbook"
SECONDS = at_most(120)
# Others run it in every run: with a source that is lost (test_recovery.py), and dry (the pipelines' drill).
OF_A_LOST_SOURCE = "venv/bin/python -m ops failover --to stg --unplanned --dry-run"


@pytest.fixture(scope="module")
def at_work(sandbox: Sandbox, pair: Pair) -> None:
    """Records and a group that has read them, as on a pair in use."""
    ops(sandbox, "produce", "-s", "dev", "-t", TOPIC, "-n", "50")
    ops(sandbox, "consume", "-s", "dev", "-t", TOPIC, "-g", GROUP, "--until-end")


@pytest.mark.usefixtures("at_work")
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.nightly) if command == OF_A_LOST_SOURCE else command
        for command in read_only()
    ],
)
def test_every_command_that_only_reads_succeeds(sandbox: Sandbox, command: str) -> None:
    result = subprocess.run(
        ["bash", "-c", command],
        cwd=RUNBOOK.parent.parent,
        env=sandbox.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout[-3000:]}\n{result.stderr[-3000:]}\n\n{sandbox.tails()}"
    # The sandbox's operators start processes, not pods.
    of_pods = re.match(r"kubectl (get pods|describe pods|logs) ", command)
    assert result.stdout.strip() or (of_pods and "No resources found" in result.stderr)
