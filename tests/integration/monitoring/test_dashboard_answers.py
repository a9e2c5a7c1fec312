"""What panels show of made-up series, by Prometheus' own tool."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from monitoring.dashboards import expressions
from sandbox.toolchain import Tools
from tests.support.promtool import promtool

AT = "10m"
Values = Mapping[str, float]


def asked_by(dashboard: str, panel: str) -> str:
    """The first expression of a panel, with any value of each variable."""
    uid = f"rt-inventory-{dashboard}"
    return next(each.filled() for each in expressions() if (each.dashboard, each.panel) == (uid, panel))


def assert_answers(tools: Tools, folder: Path, asked: str, series: Values, wanted: Values) -> None:
    """Fail unless the expression has just these values while the series have theirs."""
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": f"{value:g}x20"} for name, value in series.items()],
        "promql_expr_test": [
            {
                "expr": asked,
                "eval_time": AT,
                "exp_samples": [{"labels": labels, "value": value} for labels, value in wanted.items()],
            }
        ],
    }
    file = folder / "answers.test.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}), encoding="utf-8")
    done = promtool(tools, "test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_largest_lag_is_that_of_any_mirror_whatever_reports_it(tools: Tools, tmp_path: Path) -> None:
    lags = {
        'rt_inventory_mirror_lag_records{stack="stg", mirror="seen"}': 100.0,
        'mirror:lag_records:sum{stack="stg", mirror="seen"}': 7000.0,
        'mirror:lag_records:sum{stack="stg", mirror="unseen"}': 5000.0,
    }
    assert_answers(tools, tmp_path, asked_by("fleet", "Largest lag"), lags, {"{}": 5000.0})


def test_the_fleet_offers_stacks_without_a_mirror_too(tools: Tools, tmp_path: Path) -> None:
    reported = {
        'rt_inventory_mirror_state{stack="stg", mirror="mm2", state="running"}': 1.0,
        'kafka_server_replicamanager_partitioncount{stack="dev", cluster="active", pod="a"}': 9.0,
        'ALERTS{stack="silent", alertname="BrokerDown", alertstate="firing"}': 1.0,
        'up{job="prometheus"}': 1.0,
    }
    stacks = {f'{{stack="{stack}"}}': 1.0 for stack in ("dev", "stg", "silent")}
    assert_answers(tools, tmp_path, asked_by("fleet", "variable stack"), reported, stacks)


# A push gateway keeps what an old run pushed; `ops` tells of a newer one.
RUN = "rt_inventory_verification_"
OLD = 'stack="stg", mirror="mm2", instance="gateway", job="verification"'
NEW = 'stack="stg", mirror="mm2", instance="ops", job="ops"'
FINISHED = {f"{RUN}finished_timestamp_seconds{{{OLD}}}": 100.0, f"{RUN}finished_timestamp_seconds{{{NEW}}}": 500.0}
OF_MIRROR = 'stack="stg", mirror="mm2"'


@pytest.mark.parametrize(
    ("dashboard", "panel", "metric", "label", "wanted"),
    [
        ("fleet", "Verdict", "verdict", 'verdict="fail"', None),
        ("mirror", "Verdict", "verdict", 'verdict="fail"', None),
        ("verification", "Verdict", "verdict", 'verdict="fail"', None),
        ("verification", "Last verification of each mirror", "verdict", 'verdict="fail"', None),
        ("verification", "Exit code", "exit_code", "", OF_MIRROR),
        ("verification", "Compared", "records_compared", "", OF_MIRROR),
        ("verification", "Took", "duration_seconds", "", OF_MIRROR),
        ("verification", "Findings, by kind", "finding_records", 'kind="lost"', f'{OF_MIRROR}, kind="lost"'),
        ("groups", "Skipped and repeated, by a verification", "group_skipped_records", 'group="g"', 'group="g"'),
    ],
)
def test_only_the_newest_run_is_shown(
    tools: Tools, tmp_path: Path, dashboard: str, panel: str, metric: str, label: str, wanted: str | None
) -> None:
    old, new = (f"{RUN}{metric}{{{run}, {label}}}" for run in (OLD, NEW))
    reported = {**FINISHED, old: 1.0, new: 0.0}
    answer = {} if wanted is None else {f"{{{wanted}}}": 0.0}
    assert_answers(tools, tmp_path, asked_by(dashboard, panel), reported, answer)


def test_a_check_counts_once_and_only_of_the_newest_run(tools: Tools, tmp_path: Path) -> None:
    same = 'stack="stg", mirror="mm2", instance="other", job="ops"'
    reported = {
        **FINISHED,
        f"{RUN}finished_timestamp_seconds{{{same}}}": 500.0,
        f'{RUN}check{{{OLD}, check="records_complete"}}': 0.0,
        f'{RUN}check{{{NEW}, check="records_complete"}}': 1.0,
        f'{RUN}check{{{NEW}, check="lag"}}': 0.0,
        f'{RUN}check{{{same}, check="lag"}}': 0.0,
    }
    asked = asked_by("verification", "Checks that fail")
    assert_answers(tools, tmp_path, asked, reported, {f"{{{OF_MIRROR}}}": 1.0})


def test_a_mirror_is_proven_by_a_young_newest_run_that_passed(tools: Tools, tmp_path: Path) -> None:
    reported: dict[str, float] = {}
    for mirror, passed, finished in (("good", 1, 500), ("failed", 0, 500), ("stale", 1, -1_000_000)):
        own = f'stack="stg", mirror="{mirror}", instance="ops", job="ops"'
        reported[f'{RUN}verdict{{{own}, verdict="pass"}}'] = passed
        reported[f"{RUN}finished_timestamp_seconds{{{own}}}"] = finished
    gateway = 'stack="stg", mirror="failed", instance="gateway", job="verification"'
    reported[f'{RUN}verdict{{{gateway}, verdict="pass"}}'] = 1
    reported[f"{RUN}finished_timestamp_seconds{{{gateway}}}"] = 100
    reported['rt_inventory_mirror_state{stack="stg", mirror="never", state="running"}'] = 1
    assert_answers(tools, tmp_path, asked_by("fleet", "Not proven"), reported, {"{}": 3.0})
