"""The make targets, as a job runs them, and what they would run."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .waiting import at_most

ROOT = Path(__file__).parents[2]
WITHIN_S = at_most(300)


def make(*words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run one target in this project. The set-up is there already, and no test may change what it runs in."""
    command = ["make", "--old-file", "setup-fast", "--old-file", "setup-spark", *words]
    return subprocess.run(
        [*command, f"PY={sys.executable}"],
        cwd=ROOT,
        env={**_without_flags(environment or os.environ), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


def planned_by(*words: str) -> str:
    """What make would run, quotes and line ends left out."""
    command = ["make", "-n", *words, f"PY={sys.executable}"]
    environment = _without_flags(os.environ)
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=WITHIN_S
    )
    return " ".join(result.stdout.replace('"', "").split())


def _without_flags(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what a make that runs the tests hands on: its flags, and that it is not the first."""
    return {name: value for name, value in environment.items() if not name.startswith("MAKE")}
