"""What the runbook shows and no other test runs: every command that only reads, and a failover that was given up."""

import subprocess

import pytest

from tests.runbook import RUNBOOK, read_only

from .clients import ops, run
from .harness import Pair, Sandbox

TOPIC, GROUP = "items", "test-runbook"
SECONDS = 120


@pytest.fixture(scope="module")
def at_work(sandbox: Sandbox, pair: Pair) -> None:
    """Records and a group that has read them, as on a pair in use."""
    ops(sandbox, "produce", "-s", "dev", "-t", TOPIC, "-n", "50")
    ops(sandbox, "consume", "-s", "dev", "-t", TOPIC, "-g", GROUP, "--until-end")


@pytest.mark.usefixtures("at_work")
@pytest.mark.parametrize("command", read_only())
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
    assert result.stdout.strip()


@pytest.mark.usefixtures("at_work")
def test_a_failover_that_has_changed_nothing_can_be_given_up_for_another(sandbox: Sandbox, pair: Pair) -> None:
    namespace = pair.stg["mirrors"]["mm2"]["namespace"]
    # Nobody can be sure within a second that nothing is written.
    begun = run(sandbox, "failover", "--to", "stg", "--drain", "1", "--yes", "--json")
    assert begun.returncode == 2, begun.stdout
    assert "applications must stop writing" in begun.stdout
    other = run(sandbox, "failover", "--to", "stg", "--unplanned", "--yes", "--json")
    assert other.returncode == 2
    assert "must be finished as it began" in other.stdout
    sandbox.kubectl("delete", "configmap", "mm2-failover", "-n", namespace)
    plan = ops(sandbox, "failover", "--to", "stg", "--unplanned", "--dry-run")
    assert not plan["resumes"]
    found = ops(sandbox, "status", "--stack", "stg")
    assert (found["active"], found["state"]) == ("source", "running")
