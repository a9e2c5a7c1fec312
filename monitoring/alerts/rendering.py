"""Rendering of alerts: the `groups` of Prometheus' rule files, which are those of a PrometheusRule as well.

`Scope` has the selectors of one stack or of everything that is scraped, and the expressions for what is missing.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from monitoring.alerts import (
    CERTIFICATES,
    KAFKA,
    OF_OPERATOR,
    Alert,
    AlertGroup,
    MonitoredCluster,
    MonitoredMirror,
    Thresholds,
    declared,
)
from monitoring.alerts.audit import AUDIT
from monitoring.alerts.mirror import GROUPS, LAG, MIRROR, RECORDINGS, TASKS
from monitoring.alerts.verification import STATUS, VERIFICATION

ALERT_GROUPS = (MIRROR, LAG, GROUPS, TASKS, KAFKA, CERTIFICATES, VERIFICATION, AUDIT, STATUS)
ALERTS = tuple(alert for group in ALERT_GROUPS for alert in group.alerts)
Group = dict[str, Any]
Texts = Mapping[str, str]
_TOKEN = re.compile(r"<([a-z_][a-z_0-9 ]*)>")
WORKERS = "kafka-mirror-maker-2"
BROKERS = "kafka"
OPERATOR = "strimzi-cluster-operator"
ANY = ".+"
# How long a plain rule file, which names no mirrors, remembers what was scraped once.
REMEMBERED = "2d"
# How long a pod may be silent before it counts as gone, so that one after the other may restart.
RESTARTING = "5m"


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One stack with its mirrors and its cluster; or, without a stack, everything that Prometheus scrapes.

    `cluster` is None where the brokers are not monitored, `operator` false where the operator is not.
    """

    stack: str | None = None
    mirrors: tuple[MonitoredMirror, ...] = ()
    cluster: MonitoredCluster | None = None
    operator: bool = False

    @property
    def selector(self) -> str:
        """Matcher of everything that belongs to the stack."""
        return f'stack=~"{ANY}"' if self.stack is None else f'stack="{self.stack}"'

    def mirrors_of(self, alert: Alert) -> tuple[MonitoredMirror, ...]:
        """Return the mirrors that an alert is for."""
        return tuple(mirror for mirror in self.mirrors if alert.mirrors is not None and alert.mirrors(mirror))

    def tokens(self, mirrors: Sequence[MonitoredMirror]) -> Mapping[str, str]:
        """Return the text that replaces each `<token>` in expressions, for an alert about these mirrors."""
        known = {
            "stack": self.selector,
            "mirror": f"{self.selector},{_one_of('mirror', [mirror.name for mirror in mirrors])}",
            "ready": self._ready(mirrors),
            "authorities": self._authorities(),
            "missing pods": self._missing_pods(),
            "missing workers": self._missing_workers(mirrors),
            "operators": self._operators(),
            "at work": self._at_work(),
        }
        cluster = [] if self.cluster is None else [self.cluster.name]
        return {**known, "cluster": f"{self.selector},{_one_of('cluster', cluster)}"}

    def none_of(self, series: str, mirrors: Sequence[MonitoredMirror]) -> str:
        """Return a zero for each mirror that should have this series, also where nothing is scraped of it."""
        if self.stack is None:
            return f"0 * max by (stack, mirror) (max_over_time({series}[{REMEMBERED}]))"
        return self._each(mirrors, lambda _: 0)

    def _ready(self, mirrors: Sequence[MonitoredMirror]) -> str:
        """Whether the operator calls the mirrors ready, with the labels of all other series."""
        where = _one_of("resource_namespace", sorted({mirror.namespace for mirror in mirrors}))
        names = _one_of("name", [mirror.name for mirror in mirrors])
        state = _copied(f'strimzi_resource_state{{kind="KafkaMirrorMaker2",{where},{names}}}', "mirror", "name")
        if self.stack is not None:
            return _labelled(state, stack=self.stack)
        return self._of_whose_stack(state, WORKERS, "mirror")

    def _authorities(self) -> str:
        """When the authorities expire that the operator made, in seconds since 1970."""
        clusters = [] if self.cluster is None else [self.cluster.name]
        namespaces = {mirror.namespace for mirror in self.mirrors} | (
            {self.cluster.namespace} if self.cluster else set()
        )
        where = f"{_one_of('resource_namespace', sorted(namespaces))},{_one_of('cluster', clusters)}"
        expires = _copied(f"strimzi_certificate_expiration_timestamp_ms{{{where}}} / 1000", "certificate", "type")
        if self.stack is not None:
            return _labelled(expires, stack=self.stack)
        return self._of_whose_stack(expires, BROKERS, "cluster")

    def _of_whose_stack(self, series: str, job: str, resource: str) -> str:
        """The operator exports no stack: take it from the pods of the same resource."""
        pods = f'up{{job="{job}",{self.selector}}}'
        whose = f"max by (namespace, {resource}, stack) ({pods} >= bool 0)"
        named = _copied(series, "namespace", "resource_namespace")
        return f"{named} * on (namespace, {resource}) group_left (stack) {whose}"

    def _missing_pods(self) -> str:
        """How many pods of the cluster have not answered for some minutes: in a rolling restart each is away briefly.

        A pod counts once, also where its restart has made it another target.
        """
        up = f'up{{job="{BROKERS}",{self.selector},{_one_of("cluster", [self.cluster.name] if self.cluster else [])}}}'
        answering = f"sum by (stack, cluster) (max by (stack, cluster, pod) (max_over_time({up}[{RESTARTING}])))"
        if self.stack is None or self.cluster is None:
            pods = f"count by (stack, cluster) (count by (stack, cluster, pod) ({up}))"
            were = f"max_over_time({pods}[{REMEMBERED}:5m])"
            return f"{were} - ({answering} or 0 * {were})"
        none = _labelled("vector(0)", stack=self.stack, cluster=self.cluster.name)
        return f"{self.cluster.pods} - ({answering} or {none})"

    def _missing_workers(self, mirrors: Sequence[MonitoredMirror]) -> str:
        """How many workers of each mirror answer less than half of the time, or are not there at all.

        Workers that an autoscaler has added count only while they are scraped, as all do without settings.
        """
        up = f'up{{job="{WORKERS}",{self.selector},{_one_of("mirror", [mirror.name for mirror in mirrors])}}}'
        answered = f"max by (stack, mirror, pod) (avg_over_time({up}[15m]))"
        bad = f"sum by (stack, mirror) ({answered} < bool 0.5)"
        if self.stack is None:
            return bad
        wanted = self._each(mirrors, lambda mirror: mirror.replicas)
        none = self._each(mirrors, lambda _: 0)
        missing = f"({wanted}) - (sum by (stack, mirror) ({answered} >= bool 0.5) or {none})"
        return f"{missing} > {bad} or {bad} or {missing}"

    def _each(self, mirrors: Sequence[MonitoredMirror], number: Callable[[MonitoredMirror], int]) -> str:
        """A number for each mirror of the stack."""
        return " or ".join(
            _labelled(f"vector({number(mirror)})", stack=self.stack or "", mirror=mirror.name) for mirror in mirrors
        )

    def _operators(self) -> str:
        """How many operators of the stack answer."""
        up = f'up{{job="{OPERATOR}",{self.selector}}}'
        if self.stack is None:
            return f"sum by (stack) ({up}) or 0 * max by (stack) (max_over_time({up}[{REMEMBERED}]))"
        return f"sum by (stack) ({up}) or {_labelled('vector(0)', stack=self.stack)}"

    def _at_work(self) -> str:
        """A clause that leaves out mirrors that were stopped on purpose; without a stack, no settings name them."""
        if self.stack is not None:
            return ""
        return f'unless on (stack, mirror) rt_inventory_mirror_state{{{self.selector},state=~"paused|stopped"}} == 1'


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
    """Return the rule groups of a stack, or with `stack=None` those for whatever is scraped.

    Args:
        stack: name of the stack.
        stage: label `stage` of every alert.
        mirrors: the stack's mirrors.
        thresholds: the numbers that alerts compare with.
        off: names of alerts that are left out.
        runbook_url: address to which the alert's anchor is added.
        cluster: the stack's cluster; None for a stack without rules about brokers.
        operator: whether there are rules about the stack's own operator.
        namespace: label of each alert: routes of the Prometheus Operator get only alerts of their own namespace.
        grafana_url: address of Grafana, for links to the dashboard of the cause.

    Raises:
        UnknownAlertError: `off` names an alert that does not exist.
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
            tokens = {**_numbers(thresholds), **scope.tokens(scope.mirrors_of(alert))}
            links = _links(alert, group, runbook_url, grafana_url)
            guard = "" if alert.yields_to in off else alert.guard
            rules.append(_rule(replace(alert, guard=guard), _value(alert, scope, tokens), tokens, labels, links))
        rendered.append({"name": f"rt-inventory.{group.name}", "rules": rules})
    return [group for group in rendered if group["rules"]]


def value_of(alert: Alert, scope: Scope) -> str:
    """Return the expression of an alert without its comparison: it has a result in a healthy system."""
    return _value(alert, scope, scope.tokens(scope.mirrors_of(alert)))


def _applies(alert: Alert, scope: Scope) -> bool:
    if scope.stack is None:
        return True
    if alert.labels == OF_OPERATOR:
        return scope.operator
    if alert.labels == ("stack", "cluster"):
        return scope.cluster is not None
    if alert.mirrors is None:
        return bool(scope.mirrors or scope.cluster)
    return bool(scope.mirrors_of(alert))


def _recordings(scope: Scope) -> Iterator[dict[str, Any]]:
    running = [mirror for mirror in scope.mirrors if mirror.running]
    for recording in RECORDINGS:
        if scope.stack is None or (running if recording.of_mirrors else scope.cluster is not None):
            yield {"record": recording.name, "expr": _filled(recording.value, scope.tokens(running))}


def _value(alert: Alert, scope: Scope, tokens: Texts) -> str:
    missed = f" or {scope.none_of(alert.missed, scope.mirrors_of(alert))}" if alert.missed else ""
    return _filled(alert.value + missed, tokens)


def _rule(alert: Alert, value: str, tokens: Texts, labels: Texts, links: Texts) -> dict[str, Any]:
    threshold = tokens[alert.threshold] if isinstance(alert.threshold, str) else _number(alert.threshold)
    compared = f"({value}) {alert.comparison} {threshold}"
    at_work = tokens["at work"] if alert.mirrors not in (None, declared) else ""
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
        labels = [label for label in ("stack", "mirror", "cluster") if label in alert.labels]
        chosen = "&".join(f"var-{label}={{{{ $labels.{label} }}}}" for label in labels)
        links["dashboard_url"] = f"{grafana_url.rstrip('/')}/d/{group.dashboard_of(alert)}?{chosen}"
    return links


def _numbers(thresholds: Thresholds) -> dict[str, str]:
    return {name: _number(value) for name, value in asdict(thresholds).items()}


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _filled(text: str, tokens: Texts) -> str:
    return _TOKEN.sub(lambda found: tokens[found[1]], text)


def _one_of(label: str, values: Sequence[str]) -> str:
    return f'{label}=~"{"|".join(values) or ANY}"' if len(values) != 1 else f'{label}="{values[0]}"'


def _labelled(series: str, **labels: str) -> str:
    for label, value in labels.items():
        series = f'label_replace({series}, "{label}", "{value}", "", "")'
    return series


def _copied(series: str, label: str, source: str) -> str:
    return f'label_replace({series}, "{label}", "$1", "{source}", "(.+)")'


PATH = Path(__file__).parent.parent / "rules" / "rt-inventory.yaml"
STAGE = "production"
RUNBOOK_URL = "docs/alerts.md"
_HEAD = """\
# Written by `venv/bin/python -m monitoring write`: do not edit. For every stack that a Prometheus scrapes; a stack with
# the setting `rt-inventory:monitoring` gets rules of its own, with its mirrors and its stage.
"""


def text() -> str:
    """Return the content of the rule file."""
    groups = render(None, STAGE, (), Thresholds(), (), RUNBOOK_URL)
    return _HEAD + yaml.safe_dump({"groups": groups}, sort_keys=False, width=118, allow_unicode=True)
