"""Monitoring: nothing without the setting, nothing of the Prometheus Operator without it, and then everything once."""

import json
from typing import Any

import pulumi
import pytest

from monitoring.alerts import rendering

from ...support.pulumi_engine import Engine, mirror, target, up

POD_MONITOR, RULE, ROUTES, CONFIG_MAP = (
    "v1:PodMonitor",
    "v1:PrometheusRule",
    "v1alpha1:AlertmanagerConfig",
    "v1:ConfigMap",
)
OWN = {
    "app.kubernetes.io/name": "rt-inventory-monitoring",
    "app.kubernetes.io/instance": "kafka-stg",
    "app.kubernetes.io/part-of": "rt-inventory",
}
SELECTED = {"release": "prometheus"}
SLACK: dict[str, Any] = {
    "secret": "alerts",
    "key": "address",
    "channels": {"critical": "#kafka-pager", "warning": "#kafka"},
}
ONE_MIB = 1024 * 1024


def watched_stack(monitoring: dict[str, Any] | None, **settings: Any) -> dict[str, Any]:
    cluster = {"name": "kafka-stg", "namespace": "stg", "protect": False, "metrics": {}}
    given = {"cluster": cluster, "mirrors": [mirror(metrics={})], **settings}
    return target(**given, **({} if monitoring is None else {"monitoring": monitoring}))


def made(monitoring: dict[str, Any] | None, **settings: Any) -> Engine:
    engine = Engine()
    up(engine, watched_stack(monitoring, **settings))
    return engine


def dashboards(engine: Engine) -> dict[tuple[str, str], dict[str, Any]]:
    return {place: each for place, each in engine.all(CONFIG_MAP).items() if "-dashboard-" in place[1]}


def test_without_the_setting_there_is_nothing() -> None:
    engine = made(None)
    assert not [engine.all(kind) for kind in (POD_MONITOR, RULE, ROUTES) if engine.all(kind)]
    assert not dashboards(engine)


def test_without_the_operator_nothing_of_it_is_declared() -> None:
    engine = made({"dashboards": {}, "slack": SLACK})
    assert not [engine.all(kind) for kind in (POD_MONITOR, RULE, ROUTES) if engine.all(kind)]
    assert dashboards(engine)


def test_each_kind_of_pod_has_a_monitor_beside_it() -> None:
    engine = made({"operator": True}, operator={"install": "olm", "namespace": "strimzi", "watchedNamespaces": ["stg"]})
    assert set(engine.all(POD_MONITOR)) == {
        ("stg", "kafka-stg-brokers"),
        ("stg", "kafka-stg-workers"),
        ("strimzi", "kafka-stg-operator"),
    }


def test_an_operator_of_somebody_elses_is_theirs_to_watch() -> None:
    assert set(made({"operator": True}).all(POD_MONITOR)) == {
        ("stg", "kafka-stg-brokers"),
        ("stg", "kafka-stg-workers"),
    }


def test_a_stack_without_metrics_and_mirrors_has_neither_monitor_nor_rules() -> None:
    engine = made({"operator": True}, cluster={"name": "kafka-stg", "namespace": "stg", "protect": False}, mirrors=[])
    assert not engine.all(POD_MONITOR)
    assert not engine.all(RULE)


def test_prometheus_and_alertmanager_select_the_resources_by_their_labels() -> None:
    engine = made({"operator": True, "labels": SELECTED, "slack": SLACK})
    found = [each for kind in (POD_MONITOR, RULE, ROUTES) for each in engine.all(kind).values()]
    assert len(found) == 4
    assert all(each["metadata"]["labels"] == OWN | SELECTED for each in found)


def test_the_rules_are_the_stacks_own_and_every_alert_says_whose_it_is() -> None:
    engine = made({"operator": True, "stage": "production", "alertsOff": ["TaskRetries"]})
    spec = engine.all(RULE)["stg", "kafka-stg-alerts"]["spec"]
    rules = [rule for group in spec["groups"] for rule in group["rules"] if "alert" in rule]
    assert {rule["alert"] for rule in rules} < {alert.name for alert in rendering.ALERTS} - {"TaskRetries"}
    assert {(rule["labels"]["stage"], rule["labels"]["namespace"]) for rule in rules} == {("production", "stg")}
    assert all('stack="stg"' in rule["expr"] for rule in rules if "MirrorDown" in rule["alert"])


def test_the_settings_reach_the_rules() -> None:
    chosen = {
        "operator": True, "thresholds": {"lagSeconds": 77}, "runbookUrl": "https://wiki.example.com/kafka",
        "grafanaUrl": "https://grafana.example.com",
    }  # fmt: skip
    spec = made(chosen).all(RULE)["stg", "kafka-stg-alerts"]["spec"]
    rules = [rule for group in spec["groups"] for rule in group["rules"] if rule.get("alert") == "MirrorLagSeconds"]
    assert "> 77" in rules[0]["expr"]
    assert rules[0]["annotations"]["runbook_url"] == "https://wiki.example.com/kafka#mirrorlagseconds"
    assert rules[0]["annotations"]["dashboard_url"].startswith("https://grafana.example.com/d/")


def test_slack_is_reported_in_the_channels_that_are_set_with_the_address_of_the_secret() -> None:
    engine = made({"operator": True, "slack": {**SLACK, "channels": {**SLACK["channels"], "quiet": "#trials"}}})
    spec = engine.all(ROUTES)["stg", "kafka-stg-alerts"]["spec"]
    configs = {each["name"]: config for each in spec["receivers"] for config in each["slackConfigs"]}
    assert {name: config.get("channel") for name, config in configs.items()} == {
        "slack-critical": "#kafka-pager",
        "slack-warning": "#kafka",
        "slack-info": None,
        "slack-quiet": "#trials",
    }
    assert all(config["apiURL"] == {"name": "alerts", "key": "address"} for config in configs.values())
    assert "api_url" not in str(spec)


def test_a_severity_has_the_webhook_of_its_own_key_and_the_quiet_its_own() -> None:
    engine = made({"operator": True, "slack": {**SLACK, "keys": {"critical": "pager", "quiet": "trials"}}})
    spec = engine.all(ROUTES)["stg", "kafka-stg-alerts"]["spec"]
    keys = {each["name"]: config["apiURL"] for each in spec["receivers"] for config in each["slackConfigs"]}
    assert {name: key["key"] for name, key in keys.items()} == {
        "slack-critical": "pager",
        "slack-warning": "address",
        "slack-info": "address",
        "slack-quiet": "trials",
    }
    assert {key["name"] for key in keys.values()} == {"alerts"}


def test_routes_take_the_alerts_of_their_own_stack_only() -> None:
    spec = made({"operator": True, "slack": SLACK}).all(ROUTES)["stg", "kafka-stg-alerts"]["spec"]
    assert spec["route"]["matchers"] == [{"name": "stack", "matchType": "=", "value": "stg"}]
    assert not made({"operator": True}).all(ROUTES)


def test_a_list_that_holds_metrics_back_is_reported_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", reported.append)
    metrics = {"type": "strimziMetricsReporter", "allowList": ["kafka_connect_.*"]}
    engine = made({"operator": True}, mirrors=[mirror(metrics=metrics)])
    assert engine.all(RULE)
    assert not [text for text in reported if "allowList" in text]
    metrics["allowList"] = ["kafka_connect_mirror_.*"]
    made({"operator": True}, mirrors=[mirror(metrics=metrics)])
    (text,) = (text for text in reported if "allowList" in text)
    assert text.startswith("mirror mm2: metrics.allowList leaves out kafka_connect_connect_worker_")


def test_dashboards_are_config_maps_that_the_sidecar_takes() -> None:
    engine = made({"dashboards": {"folder": "Kafka", "namespace": "grafana", "labels": {"dashboards": "yes"}}})
    found = dashboards(engine)
    assert {namespace for namespace, _ in found} == {"grafana"}
    assert {name for _, name in found} >= {"kafka-stg-dashboard-rt-inventory-mirror"}
    for each in found.values():
        assert each["metadata"]["annotations"] == {"grafana_folder": "Kafka"}
        assert each["metadata"]["labels"] == OWN | {"dashboards": "yes"}
        ((file, text),) = each["data"].items()
        assert file == f"{json.loads(text)['uid']}.json"
        assert len(text.encode()) < ONE_MIB
    assert not [each for each in dashboards(made({"dashboards": {}})).values() if "annotations" in each["metadata"]]


def test_dashboards_link_the_runbook_that_is_set() -> None:
    found = dashboards(made({"dashboards": {}, "runbookUrl": "https://wiki.example.com/kafka"}))
    assert all("https://wiki.example.com/kafka" in "".join(each["data"].values()) for each in found.values())


def test_it_comes_when_there_is_something_to_watch() -> None:
    other = {"source": {"stack": "dev", "alias": "two", "user": "rt-inv-dev-user"}, "metrics": {}}
    engine = made({"operator": True}, mirrors=[mirror(metrics={}), mirror(name="other", **other)])
    needed = {urn.rsplit("::", 1)[-1] for urn in engine.asked("monitoring").dependencies}
    assert {"cluster-kafka", "mm2-mirror", "other-mirror"} <= needed


def test_the_stack_outputs_say_where_everything_is() -> None:
    engine = Engine()
    seen = up(engine, watched_stack({"operator": True, "slack": SLACK, "dashboards": {}}))
    reported = seen.exports["monitoring"]
    assert reported["stage"] == "stg"
    assert reported["podMonitors"] == ["stg/kafka-stg-brokers", "stg/kafka-stg-workers"]
    assert reported["prometheusRules"] == reported["alertmanagerConfigs"] == ["stg/kafka-stg-alerts"]
    assert "stg/kafka-stg-dashboard-rt-inventory-fleet" in reported["dashboards"]
    assert up(Engine(), target()).exports["monitoring"] is None


def test_a_second_workers_namespace_has_a_monitor_of_its_own() -> None:
    other = mirror(
        name="other",
        namespace="elsewhere",
        metrics={},
        source={"stack": "dev", "alias": "two", "user": "rt-inv-dev-user"},
    )
    engine = made({"operator": True}, mirrors=[mirror(metrics={}), other])
    assert ("elsewhere", "kafka-stg-workers") in engine.all(POD_MONITOR)
