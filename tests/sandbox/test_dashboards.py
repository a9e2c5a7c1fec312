"""Prometheus' own parser reads every expression of every dashboard."""

import subprocess
from pathlib import Path

import pytest
import yaml

from monitoring.dashboards.expressions import Expression, expressions
from sandbox.toolchain import Tools

pytestmark = pytest.mark.sandbox
CHECK_WITHIN_S = 60


def checked(tools: Tools, folder: Path, found: list[Expression]) -> "subprocess.CompletedProcess[str]":
    """What promtool says of rules made of the expressions."""
    rules = [
        {"record": f"panel:expression:{number}", "expr": each.filled(), "labels": {"panel": each.panel}}
        for number, each in enumerate(found)
    ]
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}), encoding="utf-8")
    command = [str(tools.promtool), "check", "rules", "--lint=none", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=CHECK_WITHIN_S, check=False)


def test_prometheus_reads_every_expression(tools: Tools, tmp_path: Path) -> None:
    found = [*expressions()]
    done = checked(tools, tmp_path, found)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(found)} rules found" in done.stdout


def test_prometheus_refuses_what_is_broken(tools: Tools, tmp_path: Path) -> None:
    broken = Expression(dashboard="d", panel="p", text="sum by (pod (up)")
    assert checked(tools, tmp_path, [broken]).returncode != 0
