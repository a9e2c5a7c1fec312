"""A case of an alert: what Prometheus has scraped, and which alerts fire at a moment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from monitoring.alerts import MonitoredCluster, MonitoredMirror, Thresholds
from monitoring.alerts.rendering import Scope, render

Rules = Literal["named", "plain"]
NAMESPACE, STACK, MIRROR, CLUSTER = "rt-inventory-stg", "stg", "mm2", "rt-inventory-stg"
RUNBOOK_URL, GRAFANA_URL = "https://runbook.test/docs/alerts.md", "https://grafana.test"
SCRAPED_PODS = 3
SCOPE = Scope(
    stack=STACK,
    mirrors=(
        MonitoredMirror(name=MIRROR, namespace=NAMESPACE, heartbeats=True, verified=True, replicas=2),
        MonitoredMirror(name="resting", namespace=NAMESPACE, running=False, heartbeats=True, verified=True),
        MonitoredMirror(name="plainest", namespace=NAMESPACE, checkpoints=False),
    ),
    cluster=MonitoredCluster(name=CLUSTER, namespace=NAMESPACE, pods=SCRAPED_PODS),
    operator=True,
)


def named(thresholds: Thresholds) -> list[dict[str, Any]]:
    """Return the rules of the stack with these numbers."""
    return render(
        STACK,
        "production",
        SCOPE.mirrors,
        thresholds,
        (),
        RUNBOOK_URL,
        cluster=SCOPE.cluster,
        operator=SCOPE.operator,
        namespace=NAMESPACE,
        grafana_url=GRAFANA_URL,
    )


NAMED = named(Thresholds())


@dataclass(frozen=True, kw_only=True)
class Fired:
    """One alert that fires: its own labels, its summary, and what its description says where the value stands."""

    labels: Mapping[str, str]
    summary: str
    severity: str
    said: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Case:
    """What happens with one alert at `at`. `series` are values by minute, in the notation of promtool.

    `rules` are those of a stack whose mirrors are named, or the plain file for everything that is scraped.
    """

    alert: str
    name: str
    series: Mapping[str, str]
    at: str
    fires: tuple[Fired, ...] = ()
    rules: Rules = "named"
    interval: str = "1m"


def in_both(*cases: Case) -> Iterator[Case]:
    """Each case with both kinds of rules."""
    for case in cases:
        for rules in get_args(Rules):
            yield replace(case, name=f"{case.name} ({rules})", rules=rules)


def also_at(case: Case, *moments: str) -> Iterator[Case]:
    """A case at its own moment and at others."""
    for at in (case.at, *moments):
        yield replace(case, name=f"{case.name}, until {at}", at=at)


def of(metric: str, mirror: str = MIRROR, **labels: str) -> str:
    """Return a series of a mirror."""
    return _series(metric, stack=STACK, mirror=mirror, **labels)


def of_worker(metric: str, mirror: str = MIRROR, pod: str = "mm2-0", **labels: str) -> str:
    """Return a series that a worker exposes."""
    target = {"job": "kafka-mirror-maker-2", "stack": STACK, "namespace": NAMESPACE, "mirror": mirror, "pod": pod}
    return _series(metric, **target, **labels)


def of_broker(metric: str, pod: str = "stg-0", **labels: str) -> str:
    """Return a series that a broker exposes."""
    target = {"job": "kafka", "stack": STACK, "namespace": NAMESPACE, "cluster": CLUSTER, "pod": pod}
    return _series(metric, **target, **labels)


def of_operator(metric: str, **labels: str) -> str:
    """Return a series that the operator exposes: it knows no stacks."""
    return _series(metric, job="strimzi-cluster-operator", resource_namespace=NAMESPACE, **labels)


def of_certificate(name: str) -> str:
    """Return the series of a certificate's end as `ops` exports it."""
    return of("rt_inventory_certificate_expiry_timestamp_seconds", certificate=name)


def _series(metric: str, **labels: str) -> str:
    matchers = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{matchers}}}"
