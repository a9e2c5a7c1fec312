"""The alerts' cases as `promtool test rules` reads them."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from monitoring.alerts import ALERTS, Severity, Thresholds, render
from monitoring.alerts.plain import RUNBOOK_URL, STAGE
from tests.monitoring.cases import CASES, HEALTHY, NAMED, Case, Fired

Document = dict[str, Any]
PLAIN = render(None, STAGE, (), Thresholds(), (), RUNBOOK_URL)
RULES = {"named": NAMED, "plain": PLAIN}
HEALTHY_AT = "85m"
# Settings tell the rules of a stack what is stopped; nothing is to be asked of those then.
OF_PLAIN_ALONE = ("stopped after a failover",)
_VALUE = re.compile(r"{{[^}]*\$value[^}]*}}")
_LABEL = re.compile(r"{{ \$labels\.(\w+) }}")


def write(folder: Path, cases: Iterable[Case] = CASES, rules: Mapping[str, list[Document]] = RULES) -> list[Path]:
    """Write rules and cases; returns the files that promtool is to be called with."""
    written = []
    cases = tuple(cases)
    for kind, groups in rules.items():
        (folder / f"{kind}.rules.yaml").write_text(yaml.safe_dump({"groups": groups}), "utf-8")
        # Rules are evaluated as often as values come: a day in minutes takes promtool long.
        for interval in sorted({case.interval for case in cases}):
            chosen = [_test(case) for case in cases if (case.rules, case.interval) == (kind, interval)]
            tests = [*chosen, *(_healthy(kind) if interval == "1m" else ())]
            document = {"rule_files": [f"{kind}.rules.yaml"], "evaluation_interval": interval, "tests": tests}
            written.append(folder / f"{kind}.{interval}.test.yaml")
            written[-1].write_text(yaml.safe_dump(document), "utf-8")
    return written


def rule(kind: str, alert: str, severity: str) -> Document:
    """Return the rendered rule of an alert."""
    found: Document = next(
        rule
        for group in RULES[kind]
        for rule in group["rules"]
        if rule.get("alert") == alert and rule["labels"]["severity"] == severity
    )
    return found


def _test(case: Case) -> Document:
    expected = [_expected(case, fired) for fired in case.fires]
    return {
        "name": f"{case.alert}: {case.name}",
        "interval": case.interval,
        "input_series": [{"series": name, "values": values.strip()} for name, values in case.series.items()],
        "alert_rule_test": [{"eval_time": case.at, "alertname": case.alert, "exp_alerts": expected}],
    }


def _expected(case: Case, fired: Fired) -> Document:
    rendered = rule(case.rules, case.alert, fired.severity)
    said = iter(fired.said)
    annotations = {
        name: _LABEL.sub(lambda found: fired.labels.get(found[1], ""), _VALUE.sub(lambda _: next(said), text))
        for name, text in rendered["annotations"].items()
        if name != "summary"
    }
    return {
        "exp_labels": {**rendered["labels"], **fired.labels, "severity": Severity(fired.severity).value},
        "exp_annotations": {**annotations, "summary": fired.summary},
    }


def _healthy(kind: str) -> list[Document]:
    names = sorted({alert.name for alert in ALERTS})
    return [
        {
            "name": f"healthy: {name}",
            "interval": "1m",
            "input_series": [{"series": one, "values": values.strip()} for one, values in series.items()],
            "alert_rule_test": [{"eval_time": HEALTHY_AT, "alertname": alert, "exp_alerts": []} for alert in names],
        }
        for name, series in HEALTHY.items()
        if kind == "plain" or name not in OF_PLAIN_ALONE
    ]
