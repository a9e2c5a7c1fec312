"""What alerts look at is there: on a live cluster with a mirror no alert fires, and a dead broker is noticed.

What `ops` and the verification tell is made up here; their own tests compare it with a real pair. In every run all of
it is: test_metrics.py compares the names and labels with those of live brokers and workers, and
test_sandbox_monitoring.py has a dead worker reported.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from monitoring.alerts import Alert, MonitoredCluster, MonitoredMirror, Thresholds
from monitoring.alerts.rendering import ALERTS, REMEMBERED, Scope, render, value_of
from monitoring.metrics import catalog
from monitoring.metrics.catalog import BY_NAME, Part, names_in
from sandbox.toolchain import Tools
from settings.cluster import RULES_KEY
from tests.support.http_client import HTTP
from tests.support.small_cluster import PASSWORD, Kit
from tests.support.waiting import wait_until

from ...support.running_sandbox import Sandbox
from ...support.scraped_metrics import ask, prometheus
from .test_metrics import MIRROR, TOPICS, reading, send, spec
from .test_sandbox_monitoring import STACK, created, monitored, monitored_by

NAMESPACE, CLUSTER = "alert-tests", "alerting"
LIVE = frozenset({Part.WORKER, Part.BROKER, Part.OPERATOR, Part.PROMETHEUS})
SCOPE = Scope(
    stack=STACK,
    mirrors=(MonitoredMirror(name=MIRROR, namespace=NAMESPACE),),
    cluster=MonitoredCluster(name=CLUSTER, namespace=NAMESPACE, pods=1),
    operator=True,
)
MADE_UP = Scope(
    stack="stg",
    mirrors=(MonitoredMirror(name="mm2", namespace="rt-inventory-stg", heartbeats=True, verified=True),),
    cluster=MonitoredCluster(name="rt-inventory-stg", namespace="rt-inventory-stg", pods=1),
    operator=True,
)
FOUND_S, RULED_S = 400.0, 120.0
# Plain rules look at what was scraped every five minutes: they are asked as of the next such moment.
OF_REMEMBERED, REMEMBERED_S = f"[{REMEMBERED}:5m]", 300
# Only these verdicts are made up: pass and fail. Plain rules miss no heartbeat connector if there never was one.
NOT_MADE_UP = {"named": {"VerificationUnknown"}, "plain": {"VerificationUnknown", "HeartbeatMissing"}}


@dataclass(frozen=True)
class Watched:
    """A cluster and its mirror, and Prometheus, which scrapes both and has the stack's rules."""

    kit: Kit
    prometheus: str

    def alerts(self) -> set[str]:
        """Alerts that fire or soon will."""
        return {f"{one['metric']['alertname']} {one['metric']['alertstate']}" for one in ask(self.prometheus, "ALERTS")}


@pytest.fixture(scope="module")
def watched(sandbox: Sandbox) -> Iterator[Watched]:
    with monitored_by(sandbox) as urls:
        kit = Kit(sandbox.state, namespace=NAMESPACE, cluster=CLUSTER)
        try:
            mirrored(kit)
            yield Watched(kit, urls["prometheus"])
        finally:
            kit.remove_cluster(("KafkaMirrorMaker2", MIRROR), *(("KafkaTopic", topic) for topic in TOPICS))


def mirrored(kit: Kit) -> None:
    """Bring up the cluster and its mirror, and give Prometheus the stack's rules."""
    kit.core.create_namespace({"metadata": {"name": NAMESPACE}})
    for name, file in (("broker", catalog.JMX_BROKERS), ("worker", catalog.JMX_WORKERS)):
        body = {"metadata": {"name": name}, "data": {RULES_KEY: catalog.jmx_rules(file)}}
        kit.core.create_namespaced_config_map(NAMESPACE, body)
    kit.create_cluster(metricsConfig=reading("broker"))
    for topic in TOPICS:
        kit.apply("KafkaTopic", topic, {"partitions": 2, "replicas": 1})
        kit.ready("KafkaTopic", topic)
    send(kit)
    kit.secret("source-password", {"password": PASSWORD})
    kit.apply("KafkaMirrorMaker2", MIRROR, {**spec(kit), "metricsConfig": reading("worker")})
    monitored(kit, "kafka", {"strimzi.io/kind": "Kafka"}, "cluster")
    monitored(kit, "kafka-mirror-maker-2", {"strimzi.io/kind": "KafkaMirrorMaker2"}, "mirror")
    monitored(kit, "strimzi-cluster-operator", {"strimzi.io/kind": "cluster-operator"}, None, "http")
    kit.ready("KafkaMirrorMaker2", MIRROR)
    groups = render(STACK, "test", SCOPE.mirrors, Thresholds(), (), "", cluster=SCOPE.cluster, operator=True)
    created(kit, "PrometheusRule", "alerts", {"groups": groups})


def is_live(alert: Alert) -> bool:
    """Whether brokers, workers or the operator tell of it, if nobody else does."""
    applies = alert.mirrors is None or bool(SCOPE.mirrors_of(alert))
    return applies and any(BY_NAME[name].part in LIVE for name in names_in(value_of(alert, SCOPE)))


OF_LIVE_PARTS = [alert for alert in ALERTS if is_live(alert)]


def test_every_value_is_there_where_everything_is_reported(tools: Tools, tmp_path: Path) -> None:
    """The first one: nothing else runs yet."""
    expected = {
        f"{alert.name} ({kind})": value_of(alert, scope)
        for kind, scope in {"named": MADE_UP, "plain": Scope()}.items()
        for alert in ALERTS
        if alert.name not in NOT_MADE_UP[kind]
    }
    assert any(OF_REMEMBERED in value for value in expected.values()), "plain rules look back"
    with prometheus(tools.prometheus, tmp_path) as address:
        looked_back_at_s = REMEMBERED_S * math.ceil(time.time() / REMEMBERED_S)

        def found(value: str) -> list[Any]:
            return ask(address, value, looked_back_at_s if OF_REMEMBERED in value else None)

        silent = set(expected)

        def every_one_has_a_value() -> bool:
            silent.difference_update([name for name in silent if found(expected[name])])
            return not silent

        def at_once() -> bool:
            return all(found(value) for value in expected.values())

        # Rates and slopes need what lies some time apart.
        wait_until("a value of every alert", every_one_has_a_value, FOUND_S, every_s=5, otherwise=lambda: str(silent))
        wait_until("all of them at once", at_once, RULED_S, every_s=5)


@pytest.mark.nightly
@pytest.mark.parametrize("alert", OF_LIVE_PARTS, ids=lambda alert: f"{alert.name}-{alert.severity}")
def test_a_value_is_there_while_all_is_well(watched: Watched, alert: Alert) -> None:
    def found() -> list[Any]:
        send(watched.kit)
        return ask(watched.prometheus, value_of(alert, SCOPE))

    for series in wait_until(f"{alert.name} has a value", found, FOUND_S, every_s=2):
        labels = series["metric"]
        assert labels["stack"] == STACK
        assert set(labels) <= set(alert.labels)
        assert series["value"][1] != "NaN"


@pytest.mark.nightly
def test_no_alert_fires_or_is_about_to_while_all_is_well(watched: Watched) -> None:
    def loaded() -> set[str]:
        reported = HTTP.get(f"{watched.prometheus}/api/v1/rules?type=alert", timeout=10).json()
        rules = [rule for group in reported["data"]["groups"] for rule in group["rules"]]
        assert not [rule for rule in rules if rule["health"] == "err"], rules
        return {rule["name"] for rule in rules if rule["health"] == "ok"}

    wait_until("all rules are evaluated", lambda: loaded() >= {alert.name for alert in OF_LIVE_PARTS}, RULED_S)
    wait_until("nothing is wrong", lambda: not watched.alerts(), RULED_S)


@pytest.mark.nightly
def test_a_worker_that_goes_is_noticed(watched: Watched) -> None:
    watched.kit.delete("KafkaMirrorMaker2", MIRROR)
    wait_until("an alert waits", lambda: "MirrorDown pending" in watched.alerts(), RULED_S)
