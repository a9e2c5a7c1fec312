"""Alerts as Prometheus reads them: the `groups` of a rule file, which are those of a PrometheusRule as well."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from monitoring.alerts.catalog import ALERT_GROUPS, ALERTS
from monitoring.alerts.model import OF_OPERATOR, Alert, AlertGroup, MonitoredCluster, MonitoredMirror, Thresholds
from monitoring.alerts.recordings import RECORDINGS
from monitoring.alerts.scope import Scope

Group = dict[str, Any]
Texts = Mapping[str, str]
_TOKEN = re.compile(r"<([a-z_][a-z_0-9 ]*)>")


class UnknownAlertError(ValueError):
    """An alert is switched off that does not exist."""


def render(
    stack: str | None,
    stage: str,
    mirrors: Sequence[MonitoredMirror],
    thresholds: Thresholds,
    off: Collection[str],
    runbook_url: str,
    *,
    cluster: MonitoredCluster | None = None,
    operator: bool = False,
    namespace: str | None = None,
    grafana_url: str | None = None,
) -> list[Group]:
    """Return the rules of a stack, or with `stack=None` rules for whatever is scraped; raises UnknownAlertError.

    `off` names alerts that are left out. Without `cluster` nothing is said of brokers, without `operator` nothing of
    the stack's own operator, except in rules for everything.
    `namespace` becomes a label of each alert: the Prometheus Operator's routes see only alerts of their namespace.
    """
    known = {alert.name for alert in ALERTS}
    if unknown := sorted(set(off) - known):
        raise UnknownAlertError(
            f"alertsOff: must name alerts (got {', '.join(unknown)}, allowed {', '.join(sorted(known))}). Correct it."
        )
    scope = Scope(stack=stack, mirrors=tuple(mirrors), cluster=cluster, operator=operator)
    labels = {"stage": stage, **({"namespace": namespace} if namespace else {})}
    rendered = [{"name": "rt-inventory.recordings", "rules": [*_recordings(scope)]}]
    for group in ALERT_GROUPS:
        wanted = (alert for alert in group.alerts if alert.name not in off and _applies(alert, scope))
        rules = []
        for alert in wanted:
            tokens = {**_numbers(thresholds), **scope.tokens(scope.concerned(alert))}
            links = _links(alert, group, runbook_url, grafana_url)
            guard = "" if alert.yields_to in off else alert.guard
            rules.append(_rule(replace(alert, guard=guard), _value(alert, scope, tokens), tokens, labels, links))
        rendered.append({"name": f"rt-inventory.{group.name}", "rules": rules})
    return [group for group in rendered if group["rules"]]


def value_of(alert: Alert, scope: Scope) -> str:
    """Return what an alert looks at, without its comparison: it has a result in a healthy system."""
    return _value(alert, scope, scope.tokens(scope.concerned(alert)))


def _applies(alert: Alert, scope: Scope) -> bool:
    if scope.stack is None:
        return True
    if alert.labels == OF_OPERATOR:
        return scope.operator
    if alert.labels == ("stack", "cluster"):
        return scope.cluster is not None
    if alert.mirrors is None:
        return bool(scope.mirrors or scope.cluster)
    return bool(scope.concerned(alert))


def _recordings(scope: Scope) -> Iterator[dict[str, Any]]:
    running = [mirror for mirror in scope.mirrors if mirror.running]
    for recording in RECORDINGS:
        if scope.stack is None or (running if recording.of_mirrors else scope.cluster is not None):
            yield {"record": recording.name, "expr": _filled(recording.value, scope.tokens(running))}


def _value(alert: Alert, scope: Scope, tokens: Texts) -> str:
    missed = f" or {scope.none_of(alert.missed, scope.concerned(alert))}" if alert.missed else ""
    return _filled(alert.value + missed, tokens)


def _rule(alert: Alert, value: str, tokens: Texts, labels: Texts, links: Texts) -> dict[str, Any]:
    threshold = tokens[alert.threshold] if isinstance(alert.threshold, str) else _number(alert.threshold)
    compared = f"({value}) {alert.comparison} {threshold}"
    at_work = tokens["at work"] if alert.mirrors is not None else ""
    return {
        "alert": alert.name,
        "expr": _filled(" ".join(part for part in (compared, alert.guard, at_work) if part), tokens),
        "for": _filled(alert.hold, tokens),
        "labels": {"severity": alert.severity.value, **labels},
        "annotations": {
            "summary": _filled(alert.summary, tokens),
            "description": _filled(alert.description, tokens),
            **links,
        },
    }


def _links(alert: Alert, group: AlertGroup, runbook_url: str, grafana_url: str | None) -> dict[str, str]:
    links = {"runbook_url": f"{runbook_url}#{alert.anchor}"}
    if grafana_url:
        shown = [label for label in ("stack", "mirror", "cluster") if label in alert.labels]
        chosen = "&".join(f"var-{label}={{{{ $labels.{label} }}}}" for label in shown)
        links["dashboard_url"] = f"{grafana_url.rstrip('/')}/d/{group.dashboard_of(alert)}?{chosen}"
    return links


def _numbers(thresholds: Thresholds) -> dict[str, str]:
    return {name: _number(value) for name, value in asdict(thresholds).items()}


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _filled(text: str, tokens: Texts) -> str:
    return _TOKEN.sub(lambda found: tokens[found[1]], text)
