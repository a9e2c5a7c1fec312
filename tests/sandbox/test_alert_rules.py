"""Every alert fires when it should and at no other time: judged by Prometheus' own tool, on made-up series."""

import subprocess
from pathlib import Path

import pytest
import yaml

from monitoring.alerts import plain
from sandbox.toolchain import Tools
from tests.monitoring.cases import CASES
from tests.monitoring.promtool import RULES, write

PROMTOOL_S = 300


def promtool(tools: Tools, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(tools.promtool), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PROMTOOL_S, check=False)


def test_all_cases_hold(tools: Tools, tmp_path: Path) -> None:
    done = promtool(tools, "test", "rules", *write(tmp_path))
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


def test_prometheus_reads_the_rules_without_a_complaint(tools: Tools, tmp_path: Path) -> None:
    write(tmp_path)
    done = promtool(tools, "check", "rules", plain.PATH, *tmp_path.glob("*.rules.yaml"))
    assert done.returncode == 0, done.stderr
    assert "duplicate" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new"), [("for: 5m", "for: 50m"), ("severity: critical", "severity: info"), ("has no worker", "is fine")]
)
def test_a_rule_that_is_not_the_one_that_was_meant_is_noticed(tools: Tools, tmp_path: Path, old: str, new: str) -> None:
    text = yaml.safe_dump(RULES["named"])
    assert old in text
    few = [case for case in CASES if case.alert == "MirrorDown" and case.rules == "named"]
    broken = {"named": yaml.safe_load(text.replace(old, new))}
    done = promtool(tools, "test", "rules", *write(tmp_path, few, broken))
    assert done.returncode == 1
    assert "MirrorDown" in done.stdout + done.stderr
