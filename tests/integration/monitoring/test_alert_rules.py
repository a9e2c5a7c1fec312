"""Every alert fires when it should and at no other time: judged by Prometheus' own tool, on made-up series."""

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from monitoring.alerts import Thresholds, rendering
from monitoring.alerts.rendering import ALERTS
from sandbox.toolchain import Tools
from tests.support.alert_cases import CASES, named
from tests.support.promtool import RULES, Document, promtool, write

Change = Callable[[Document], Document]


def test_all_cases_hold(tools: Tools, tmp_path: Path) -> None:
    done = promtool(tools, "test", "rules", *write(tmp_path))
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


def test_prometheus_reads_the_rules_without_a_complaint(tools: Tools, tmp_path: Path) -> None:
    write(tmp_path)
    done = promtool(tools, "check", "rules", rendering.PATH, *tmp_path.glob("*.all.rules.yaml"))
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
    done = promtool(tools, "test", "rules", *write(tmp_path, few, broken, systems={}))
    assert done.returncode == 1
    assert "MirrorDown" in done.stdout + done.stderr


def red_with(tools: Tools, folder: Path, change: Change) -> set[str]:
    """Names of the alerts whose cases notice that every alert's rule is changed."""
    groups = [{**group, "rules": [*map(change, group["rules"])]} for group in RULES["named"]]
    done = promtool(tools, "test", "rules", *write(folder, rules={"named": groups}, systems={}))
    return set(re.findall(r"alertname: (\w+)", done.stdout + done.stderr))


@pytest.mark.nightly
def test_the_cases_notice_a_hold_that_is_gone(tools: Tools, tmp_path: Path) -> None:
    red = red_with(tools, tmp_path, lambda rule: {**rule, "for": "0m"} if "alert" in rule else rule)
    assert {alert.name for alert in ALERTS if alert.hold != "0m"} - red == set()


@pytest.mark.nightly
@pytest.mark.parametrize("factor", [0.5, 2])
def test_the_cases_notice_a_threshold_that_is_another(tools: Tools, tmp_path: Path, factor: float) -> None:
    other = Thresholds(**{name: type(value)(value * factor) for name, value in asdict(Thresholds()).items()})
    expressions = {_name(rule): rule["expr"] for group in named(other) for rule in group["rules"]}
    red = red_with(tools, tmp_path, lambda rule: {**rule, "expr": expressions[_name(rule)]})
    assert {alert.name for alert in ALERTS if isinstance(alert.threshold, str)} - red == set()


def _name(rule: Document) -> tuple[str, ...]:
    return (rule["record"],) if "record" in rule else (rule["alert"], rule["labels"]["severity"])
