"""Faults at random moments: fixed seeds, and one of the day that no run has had before."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.state import PROJECT

SEEDS = (1, 2, 3)
ENDS_S = 900
pytestmark = pytest.mark.nightly


@pytest.mark.sandbox
@pytest.mark.parametrize("seed", [*SEEDS, int(f"{datetime.now(UTC):%Y%m%d}")])
def test_every_verdict_is_true_and_nothing_is_lost_whatever_fails(tmp_path: Path, seed: int) -> None:
    result = tmp_path / "nemesis.json"
    options = ["--seed", str(seed), "--minutes", "1", "--output", str(result)]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.nemesis", *options],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    (row,) = json.loads(result.read_text(encoding="utf-8"))["rows"]
    assert row["acknowledged"] > 0
    assert sum(row["faults"].values()) > 0
