"""The alerts' cases as `promtool test rules` reads them, and how promtool is asked."""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from monitoring.alerts import Severity, Thresholds
from monitoring.alerts.rendering import ALERTS, RUNBOOK_URL, STAGE, render
from sandbox.toolchain import Tools
from tests.support.alert_cases import CASES, HEALTHY, NAMED, Case, Fired

from .waiting import at_most

Document = dict[str, Any]
PLAIN = render(None, STAGE, (), Thresholds(), (), RUNBOOK_URL)
RULES = {"named": NAMED, "plain": PLAIN}
HEALTHY_AT = "85m"
PROMTOOL_S = at_most(300)
# The settings name what is stopped: the rules of a stack leave it out.
OF_PLAIN_ALONE = ("stopped after a failover",)
_VALUE = re.compile(r"{{[^}]*\$value[^}]*}}")
_LABEL = re.compile(r"{{ \$labels\.(\w+) }}")


def write(
    folder: Path,
    cases: Iterable[Case] = CASES,
    rules: Mapping[str, list[Document]] = RULES,
    systems: Mapping[str, Mapping[str, str]] = HEALTHY,
) -> list[Path]:
    """Write rules, cases and healthy systems; returns the files that promtool is to be called with.

    A case has the rules of its own alert beside it: evaluating all of them in each minute of each case takes minutes.
    """
    written = []
    cases = tuple(cases)
    for kind, groups in rules.items():
        written.append(_written(folder, f"{kind}.all", groups, "1m", _healthy(kind, systems)))
        # Rules are evaluated as often as values come: a day in minutes takes promtool long.
        for alert, interval in sorted({(case.alert, case.interval) for case in cases if case.rules == kind}):
            chosen = [case for case in cases if (case.rules, case.alert, case.interval) == (kind, alert, interval)]
            name = f"{kind}.{alert}.{interval}"
            written.append(_written(folder, name, [*_of_alert(alert, groups)], interval, [*map(_test, chosen)]))
    return written


def _written(folder: Path, name: str, groups: list[Document], interval: str, tests: list[Document]) -> Path:
    (folder / f"{name}.rules.yaml").write_text(yaml.safe_dump({"groups": groups}), "utf-8")
    document = {"rule_files": [f"{name}.rules.yaml"], "evaluation_interval": interval, "tests": tests}
    path = folder / f"{name}.test.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def _of_alert(alert: str, groups: Iterable[Document]) -> Iterator[Document]:
    for group in groups:
        if rules := [rule for rule in group["rules"] if rule.get("alert") == alert]:
            yield {**group, "rules": rules}


def promtool(tools: Tools, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What promtool says, and how it ends."""
    command = [str(tools.promtool), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PROMTOOL_S, check=False)


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


def _healthy(kind: str, systems: Mapping[str, Mapping[str, str]]) -> list[Document]:
    names = sorted({alert.name for alert in ALERTS})
    return [
        {
            "name": f"healthy: {name}",
            "interval": "1m",
            "input_series": [{"series": one, "values": values.strip()} for one, values in series.items()],
            "alert_rule_test": [{"eval_time": HEALTHY_AT, "alertname": alert, "exp_alerts": []} for alert in names],
        }
        for name, series in systems.items()
        if kind == "plain" or name not in OF_PLAIN_ALONE
    ]
