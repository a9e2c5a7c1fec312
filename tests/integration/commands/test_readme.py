"""Every command line of the README does what it says, run in the order in which it stands there."""

import os
import subprocess

from tests.support.readme_commands import README, RUN_ELSEWHERE, commands
from tests.support.waiting import at_most

DEADLINE_S = at_most(600)


def test_every_command_of_the_readme_succeeds(sandbox, pair) -> None:
    """One shell runs them all, as a reader would, so that exported variables reach the later ones."""
    lines = [line for line in commands() if line not in RUN_ELSEWHERE]
    assert lines
    script = "\n".join(["set -euo pipefail", *(f"echo {quoted(line)} >&2\n{line}" for line in lines)])
    environment = {**os.environ, **sandbox.pulumi.environment()}
    run = subprocess.run(
        ["bash", "-c", script],
        cwd=README.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout[-3000:]}\n{run.stderr[-3000:]}"


def quoted(line: str) -> str:
    return "'" + line.replace("'", "'\\''") + "'"
