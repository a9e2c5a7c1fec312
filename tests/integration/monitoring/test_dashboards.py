"""Prometheus reads every expression of every dashboard, and has an answer where everything is reported."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from monitoring.alerts.mirror import RECORDINGS
from monitoring.dashboards import Expression, expressions
from sandbox.toolchain import Tools
from tests.support.promtool import promtool
from tests.support.waiting import wait_until

from ...support.scraped_metrics import CHOSEN, ask, prometheus

pytestmark = pytest.mark.sandbox
RULES_WITHIN_S = 45


def checked(tools: Tools, folder: Path, found: list[Expression]) -> CompletedProcess[str]:
    """What promtool says of rules made of the expressions."""
    rules = [
        {"record": f"panel:expression:{number}", "expr": each.filled(), "labels": {"panel": each.panel}}
        for number, each in enumerate(found)
    ]
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}), encoding="utf-8")
    return promtool(tools, "check", "rules", "--lint=none", file)


def test_prometheus_reads_every_expression(tools: Tools, tmp_path: Path) -> None:
    found = [*expressions()]
    done = checked(tools, tmp_path, found)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(found)} rules found" in done.stdout


def test_prometheus_refuses_what_is_broken(tools: Tools, tmp_path: Path) -> None:
    broken = Expression(dashboard="d", panel="p", text="sum by (pod (up)")
    assert checked(tools, tmp_path, [broken]).returncode != 0


def test_every_expression_has_a_real_result_where_everything_is_reported(tools: Tools, tmp_path: Path) -> None:
    with prometheus(tools.prometheus, tmp_path) as address:
        # A rule over a quarter of an hour is evaluated every half minute: one must have begun since the first scrape.
        for waited in ('ALERTS{alertstate="firing", mirror="mm2"}', *(rule.name for rule in RECORDINGS)):
            wait_until(f"{waited} is there", lambda asked=waited: ask(address, asked), RULES_WITHIN_S)
        results = {each: ask(address, each.filled(CHOSEN)) for each in expressions()}
    assert not [(each.panel, each.filled(CHOSEN)) for each, found in results.items() if not found]
    spoilt = {each.panel for each, found in results.items() for one in found if "NaN" in one.get("value", ())}
    assert not spoilt
