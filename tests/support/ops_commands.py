"""`python -m ops` as a user types it, in the environment of the test's sandbox."""

import json
import subprocess
from typing import Any

from sandbox.state import PROJECT

from .preloaded_commands import run_module
from .running_sandbox import Sandbox
from .waiting import at_most

TIMEOUT_S = at_most(240)


def run(sandbox: Sandbox, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command and return what it wrote and its exit code."""
    return run_module("ops", arguments, PROJECT, sandbox.environment(), TIMEOUT_S)


def ops(sandbox: Sandbox, *arguments: str) -> dict[str, Any]:
    """Run the command with `--json`, which must succeed; return its document."""
    result = run(sandbox, *arguments, "--json")
    assert result.returncode == 0, f"ops {' '.join(arguments)}: {result.stdout}\n{result.stderr}\n\n{sandbox.tails()}"
    document: dict[str, Any] = json.loads(result.stdout)
    return document
