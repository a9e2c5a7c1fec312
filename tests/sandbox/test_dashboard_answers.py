"""What panels show of made-up series, by Prometheus' own tool."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import yaml

from monitoring.dashboards.expressions import expressions
from sandbox.toolchain import Tools

AT, PROMTOOL_S = "10m", 60
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
    command = [str(tools.promtool), "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROMTOOL_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_largest_lag_is_that_of_any_mirror_whoever_tells_it(tools: Tools, tmp_path: Path) -> None:
    lags = {
        'rt_inventory_mirror_lag_records{stack="stg", mirror="seen"}': 100.0,
        'mirror:lag_records:sum{stack="stg", mirror="seen"}': 7000.0,
        'mirror:lag_records:sum{stack="stg", mirror="unseen"}': 5000.0,
    }
    assert_answers(tools, tmp_path, asked_by("fleet", "Largest lag"), lags, {"{}": 5000.0})


def test_the_fleet_offers_stacks_without_a_mirror_too(tools: Tools, tmp_path: Path) -> None:
    told = {
        'rt_inventory_mirror_state{stack="stg", mirror="mm2", state="running"}': 1.0,
        'kafka_server_replicamanager_partitioncount{stack="dev", cluster="active", pod="a"}': 9.0,
        'ALERTS{stack="silent", alertname="BrokerDown", alertstate="firing"}': 1.0,
        'up{job="prometheus"}': 1.0,
    }
    stacks = {f'{{stack="{stack}"}}': 1.0 for stack in ("dev", "stg", "silent")}
    assert_answers(tools, tmp_path, asked_by("fleet", "variable stack"), told, stacks)
