"""Faults at random moments: five fixed seeds in every run, and by night one of the day that no run has had before."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.nemesis.traffic import GROUP_KINDS, RECREATED_GROUP
from benchmarks.traffic import GROUPS
from sandbox.state import PROJECT
from sandbox.toolchain import pins
from tests.support.waiting import at_most

SEEDS = (1, 2, 3, 4, 5)
TODAY = int(f"{datetime.now(UTC):%Y%m%d}")
ENDS_S = at_most(900)


@pytest.mark.sandbox
@pytest.mark.parametrize("seed", [*SEEDS, pytest.param(TODAY, marks=pytest.mark.nightly)])
def test_every_verdict_is_true_and_nothing_is_lost_whatever_fails(tmp_path: Path, seed: int) -> None:
    result = tmp_path / "nemesis.json"
    ended = _run("benchmarks.nemesis", "--seed", str(seed), "--minutes", "1", "--output", str(result))
    assert ended.returncode == 0, ended.stderr
    (row,) = json.loads(result.read_text(encoding="utf-8"))["rows"]
    assert row["acknowledged"] > 0
    assert sum(row["faults"].values()) > 0
    assert row["groups"] == sorted([*GROUPS, *GROUP_KINDS, RECREATED_GROUP])
    assert row["audit"]["complete"] > 0
    assert (row["follower"] or {}).get("exact", 0) > 0 if seed % 2 else row["follower"] is None
    assert row["shared"] > 0
    for name, version in row["versions"].items():
        rolls = row["faults"].get(f"roll version {name}", 0)
        assert version == (pins.KAFKA_BEFORE if rolls % 2 else pins.KAFKA), name


@pytest.mark.sandbox
@pytest.mark.nightly
def test_a_planned_failover_and_failback_lose_nothing_whatever_fails(tmp_path: Path) -> None:
    result = tmp_path / "recovery.json"
    ended = _run("benchmarks.nemesis.recovery", "--seed", str(TODAY), "--output", str(result))
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(result.read_text(encoding="utf-8"))["rows"]
    assert [row["command"] for row in rows] == ["failover", "failback"]
    assert all(row["acknowledged"] > 0 for row in rows)


def _run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )
