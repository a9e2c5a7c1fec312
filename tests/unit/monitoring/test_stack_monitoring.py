"""What the rules of a stack know of it: how many workers, brokers and operators should be there."""

import re
from typing import Any

import pytest

from monitoring import stack_monitoring
from settings import Stack, parse
from tests.support.stack_values import TARGET, with_value

SCALED = {"through": "keda", "minReplicas": 3, "maxReplicas": 6, "lagRecords": 1000, "prometheus": "http://prometheus"}


def stack(**changes: Any) -> Stack:
    values = with_value(with_value(TARGET, "cluster/metrics", {}), "mirrors/0/metrics", {})
    for path, value in {"monitoring": {}, **changes}.items():
        values = with_value(values, path.replace("__", "/"), value)
    return parse(values, "stg")


def expression(alert: str, settings: Stack, **known: Any) -> str | None:
    """The expression of an alert in the rules of a stack; None if it has no such alert."""
    groups = stack_monitoring.rule_groups(settings, "stg", **known)
    return next((rule["expr"] for group in groups for rule in group["rules"] if rule.get("alert") == alert), None)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, 1),
        ({"mirrors__0__replicas": 2}, 2),
        ({"mirrors__0__replicas": 5, "mirrors__0__sourceTasksMax": 8, "mirrors__0__scaling": SCALED}, 3),
    ],
    ids=["by default", "as many as are set", "at least as many as an autoscaler leaves"],
)
def test_workers_are_missed_below_what_the_settings_ask_for(changes: dict[str, Any], wanted: int) -> None:
    settings = stack(**changes)
    assert [mirror.replicas for mirror in stack_monitoring.monitored_mirrors(settings)] == [wanted]
    found = expression("WorkerDown", settings)
    assert found is not None
    assert f"vector({wanted})" in found


@pytest.mark.parametrize(
    ("install", "known", "missed"),
    [("none", {}, False), ("olm", {}, True), ("none", {"operators": 1}, True), ("olm", {"operators": 0}, False)],
)
def test_the_operator_is_missed_where_it_is_scraped(install: str, known: dict[str, int], missed: bool) -> None:
    settings = stack(operator={"install": install})
    assert (expression("OperatorDown", settings, **known) is not None) == missed


@pytest.mark.parametrize(("known", "pods"), [({}, 3), ({"brokers": 5}, 5)])
def test_as_many_brokers_are_missed_as_are_known(known: dict[str, int], pods: int) -> None:
    found = expression("BrokerDown", stack(cluster__brokers=3), **known)
    assert found is not None
    assert found.startswith(f"({pods} - ")


def test_nothing_is_said_of_brokers_that_nobody_scrapes() -> None:
    assert expression("BrokerDown", stack(), brokers=0) is None


@pytest.mark.parametrize(("monitoring", "step"), [({}, "30s"), ({"scrapeSeconds": 120}, "120s")])
def test_rates_of_dashboards_hold_several_scrapes(monitoring: dict[str, Any], step: str) -> None:
    for text in stack_monitoring.dashboard_files(stack(monitoring=monitoring)).values():
        assert set(re.findall(r'"interval": "(\w+)"', text)) == {step}
