"""`python -m monitoring write`: writes the dashboards, the rule file and the tables of docs/monitoring.md.

`python -m monitoring check` exits with 1 and names what is stale; nothing is changed.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from monitoring import dashboards
from monitoring.alerts import Alert, MonitoredCluster, MonitoredMirror, Thresholds, rendering
from monitoring.alerts.mirror import RECORDINGS
from monitoring.alerts.rendering import ALERT_GROUPS, RUNBOOK_URL, STAGE, render
from monitoring.dashboards import (
    Documents,
    cluster,
    expressions,
    fleet,
    groups,
    mirror,
    of_panel,
    pages,
    panels_of,
    verification,
)
from monitoring.metrics.catalog import METRICS, Metric, Part, names_in

PAGE = Path(__file__).parent.parent / "docs" / "monitoring.md"
_PARTS: Mapping[Part, str] = {
    Part.WORKER: "Workers of a mirror",
    Part.BROKER: "Brokers",
    Part.OPERATOR: "Strimzi's cluster operator",
    Part.VERIFICATION: "The verification",
    Part.AUDIT: "The audit",
    Part.OPS: "The exporter of `ops`",
    Part.PROMETHEUS: "Prometheus itself",
}
_LIMITS = Thresholds()


def with_tables(page: str, found: Documents) -> str:
    """Return the page with its tables made of these dashboards; raises ValueError where a mark is missing."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"{PAGE.name}: must hold `{begin.strip()}` and `{end.strip()}` once each. Put them back.")
        before, rest = page.split(begin)
        page = before + begin + table(found) + end + rest.split(end)[1]
    return page


def metrics_table(found: Documents) -> str:
    """Return a table for each part that exposes metrics, with the alerts and dashboards that use them."""
    users, parts = _users(found), []
    for part, title in _PARTS.items():
        rows = (
            (
                f"`{metric.name}`",
                metric.kind.value,
                metric.unit or "-",
                ", ".join(metric.labels) or "-",
                f"{metric.help}{_origin(metric)}",
                ", ".join(users.get(metric.name, ())) or "-",
            )
            for metric in METRICS
            if metric.part is part
        )
        table = _table(("metric", "kind", "unit", "labels", "what, and from where", "used by"), rows)
        parts.append(f"### {title}\n{table}")
    return "\n".join(parts)


def recordings_table(found: Documents) -> str:
    """Return the recording rules with the metrics that they are made of, and who asks for them."""
    asked, users = _rules("record"), _users(found)
    rows = (
        (f"`{each.name}`", _code(asked[each.name, ""]), ", ".join(users.get(each.name, ())) or "-")
        for each in RECORDINGS
    )
    return _table(("recording rule", "made of", "used by"), rows)


def alerts_table(_: Documents) -> str:
    """Return every alert with its limit, its metrics, and the dashboard of its cause."""
    asked = _rules("alert")
    rows = (
        (
            f"[{alert.name}]({RUNBOOK_URL.removeprefix('docs/')}#{alert.anchor})",
            alert.severity.value,
            alert.hold.replace("<verification_age_hours>", str(_LIMITS.verification_age_hours)),
            _limit(alert),
            _code(asked[alert.name, alert.severity.value]),
            f"`{group.dashboard_of(alert)}`",
        )
        for group in ALERT_GROUPS
        for alert in group.alerts
    )
    return _table(("alert", "severity", "for", "threshold", "metrics", "dashboard"), rows)


def panels_table(found: Documents) -> str:
    """Return every panel with its description and its metrics."""
    parts = []
    for document in found.values():
        rows = (
            (
                panel["title"],
                panel["description"],
                _code(name for each in of_panel(document, panel) for name in each.metrics),
            )
            for panel in panels_of(document)
        )
        table = _table(("panel", "description", "metrics"), rows)
        parts.append(f"### {document['title']}\n`{document['uid']}`. {document['description']}\n\n{table}")
    return "\n".join(parts)


TABLES: Mapping[str, Callable[[Documents], str]] = {
    "alerts": alerts_table,
    "recording rules": recordings_table,
    "panels": panels_table,
    "metrics": metrics_table,
}


def _rules(kind: str) -> dict[tuple[str, str], set[str]]:
    """Metrics of each rule of a stack by its name and severity, with those that only its conditions ask for."""
    mirror = MonitoredMirror(name="mirror", namespace="namespace", heartbeats=True, verified=True)
    cluster = MonitoredCluster(name="cluster", namespace="namespace", pods=3)
    groups = render("stack", STAGE, (mirror,), _LIMITS, (), RUNBOOK_URL, cluster=cluster, operator=True)
    found = (rule for group in groups for rule in group["rules"] if kind in rule)
    return {(rule[kind], rule.get("labels", {}).get("severity", "")): names_in(rule["expr"]) for rule in found}


def _users(dashboards: Documents) -> dict[str, list[str]]:
    """Who asks for a metric: recording rules, alerts and dashboards, in this order, each once."""
    found: dict[str, list[str]] = {}
    for name, user in _uses(dashboards):
        users = found.setdefault(name, [])
        if user not in users:
            users.append(user)
    return found


def _uses(dashboards: Documents) -> Iterator[tuple[str, str]]:
    for kind in ("record", "alert"):
        for (rule, _), asked in _rules(kind).items():
            yield from ((name, rule) for name in asked)
    for each in expressions(dashboards):
        yield from ((name, f"`{each.dashboard}`") for name in each.metrics)


def _origin(metric: Metric) -> str:
    """Where a metric comes from, unless its section's title names it."""
    return f" `{metric.origin}`" if ":type=" in metric.origin else ""


def _limit(alert: Alert) -> str:
    """The comparison; a threshold that a stack may set has its name in the settings."""
    if not isinstance(alert.threshold, str):
        return f"{alert.comparison} {alert.threshold:g}"
    first, *rest = alert.threshold.split("_")
    key = first + "".join(word.capitalize() for word in rest)
    return f"{alert.comparison} {getattr(_LIMITS, alert.threshold):g} (`{key}`)"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(set(names))) or "-"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; a bar inside a cell would end it."""
    first, *others = (
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in (head, *rows)
    )
    return "".join([first, "|---" * len(head) + "|\n", *others])


ROOT = Path(__file__).parent.parent
PAGES = (fleet, mirror, groups, verification, cluster)
_HINT = "Run `venv/bin/python -m monitoring write` and commit what it writes.\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if something is stale."""
    parser = argparse.ArgumentParser(prog="python -m monitoring", description="What is generated for monitoring.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="write dashboards, the rule file and the tables of docs/monitoring.md")
    commands.add_parser("check", help="exit 1 and name what is not as it would be written")
    return write() if parser.parse_args(arguments).command == "write" else check()


def write() -> int:
    """Write what is stale; return 0."""
    for path, text in stale():
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{_shown(path)}: {'removed' if text is None else 'written'}\n")
    return 0


def check() -> int:
    """Name what is stale; return 1 if anything is."""
    found = [path for path, _ in stale()]
    sys.stdout.writelines(f"{_shown(path)}: stale\n" for path in found)
    if found:
        sys.stderr.write(_HINT)
    return 1 if found else 0


def stale() -> Iterator[tuple[Path, str | None]]:
    """Yield each file that is not as it should be, with what it should hold; None where it should not be."""
    for path, text in _generated():
        if text is None or not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path, text


def built() -> Documents:
    """Return every dashboard as it is drawn now, by its uid and in the order of the committed ones."""
    drawn = (pages.finished(each.page(RUNBOOK_URL).build()) for each in PAGES)
    return {document["uid"]: document for document in sorted(drawn, key=lambda each: str(each["uid"]))}


def _generated() -> Iterator[tuple[Path, str | None]]:
    drawn = built()
    files = {dashboards.FOLDER / f"{uid}.json": dashboards.text(document) for uid, document in drawn.items()}
    yield from files.items()
    yield from ((path, None) for path in sorted(dashboards.FOLDER.glob("*.json")) if path not in files)
    yield rendering.PATH, rendering.text()
    yield PAGE, with_tables(PAGE.read_text(encoding="utf-8"), drawn)


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    sys.exit(main())
