"""Every alert is whole: its cases, its texts, its section in the runbook, and metrics that exist."""

import dataclasses
import re
from collections import Counter
from typing import Any

import pytest

from kafka import retention
from monitoring.alerts import Alert, MonitoredCluster, MonitoredMirror, Severity, Thresholds, rendering
from monitoring.alerts.mirror import RECORDINGS, RETENTION_MARGIN
from monitoring.alerts.rendering import ALERT_GROUPS, ALERTS, Scope, UnknownAlertError, render, value_of
from monitoring.metrics.catalog import BY_NAME, names_in
from tests.support.alert_cases import CASES, SCOPE
from tests.support.promtool import RULES
from tests.support.runbook_commands import alerts as sections

MIRROR = MonitoredMirror(name="mm2", namespace="there", heartbeats=True, verified=True)
CLUSTER = MonitoredCluster(name="stg", namespace="there", pods=3)
SCOPES = {"plain": Scope(), "named": SCOPE}
by_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: f"{alert.name}-{alert.severity}")


def rendered(*mirrors: MonitoredMirror, off: tuple[str, ...] = (), **more: Any) -> dict[str, list[dict[str, Any]]]:
    """Rules of the stack stg by the name of their alert."""
    groups = render("stg", "test", mirrors, Thresholds(), off, "https://runbook.test/a.md", **more)
    found: dict[str, list[dict[str, Any]]] = {}
    for rule in (rule for group in groups for rule in group["rules"]):
        found.setdefault(rule.get("alert", "recording"), []).append(rule)
    return found


@by_alert
def test_every_alert_has_a_case_that_fires_and_one_that_does_not(alert: Alert) -> None:
    cases = [case for case in CASES if case.alert == alert.name]
    assert [case for case in cases if alert.severity in {fired.severity for fired in case.fires}]
    assert [case for case in cases if not case.fires]


def test_cases_are_of_alerts_and_reported_apart() -> None:
    assert {case.alert for case in CASES} == {alert.name for alert in ALERTS}
    assert not [name for name, count in Counter((case.alert, case.name) for case in CASES).items() if count > 1]


@by_alert
def test_every_alert_says_what_is_wrong_and_has_a_section_in_the_runbook(alert: Alert) -> None:
    assert alert.summary
    assert "$labels.stack" in alert.summary + alert.description
    assert set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.description)) <= set(alert.labels)
    assert alert.name in sections()


def test_the_runbook_has_no_section_of_an_alert_that_does_not_exist() -> None:
    assert set(sections()) == {alert.name for alert in ALERTS}


@pytest.mark.parametrize("kind", RULES)
def test_every_metric_is_in_the_catalogue(kind: str) -> None:
    for rule in (rule for group in RULES[kind] for rule in group["rules"]):
        assert names_in(rule["expr"]) <= set(BY_NAME), rule


@pytest.mark.parametrize("kind", RULES)
def test_every_rule_is_rendered_whole(kind: str) -> None:
    rules = [rule for group in RULES[kind] for rule in group["rules"]]
    assert not [rule for rule in rules if re.search(r"<[a-z]", str(rule))]
    alerts = [rule for rule in rules if "alert" in rule]
    assert len(alerts) == len(ALERTS)
    for rule in alerts:
        assert {"severity", "stage"} <= set(rule["labels"])
        assert {"summary", "description", "runbook_url"} <= set(rule["annotations"])
        assert re.fullmatch(r"\d+[mhd]", rule["for"])


@by_alert
@pytest.mark.parametrize("scope", SCOPES)
def test_a_value_is_what_is_compared(alert: Alert, scope: str) -> None:
    value = value_of(alert, SCOPES[scope])
    expressions = [r["expr"] for group in RULES[scope] for r in group["rules"] if r.get("alert") == alert.name]
    assert [one for one in expressions if one.startswith(f"({value}) {alert.comparison} ")]
    assert names_in(value)


def test_a_critical_alert_lies_beyond_its_warning() -> None:
    numbers = dataclasses.asdict(Thresholds())
    for name in {alert.name for alert in ALERTS if sum(one.name == alert.name for one in ALERTS) > 1}:
        warning, critical = (
            next(one for one in ALERTS if (one.name, one.severity) == (name, severity))
            for severity in (Severity.WARNING, Severity.CRITICAL)
        )
        assert critical.value == warning.value
        rises = numbers[str(critical.threshold)] > numbers[str(warning.threshold)]
        assert rises == (warning.comparison == ">")


def test_every_threshold_decides_something_and_can_be_changed() -> None:
    for field in dataclasses.fields(Thresholds):
        changed = dataclasses.replace(Thresholds(), **{field.name: 123_456})
        groups = render(None, "test", (), changed, (), "")
        assert "123456" in str(groups), field.name


def test_what_rests_on_purpose_alarms_nobody() -> None:
    resting = dataclasses.replace(MIRROR, running=False)
    assert set(rendered(resting)) == {"CertificateExpiresSoon", "StatusFails", "RetentionOvertakesMirror"}
    both = rendered(MIRROR, dataclasses.replace(resting, name="mm2-reverse"))
    del both["RetentionOvertakesMirror"]  # retention does not rest
    assert "mm2-reverse" not in str(both)


def test_retention_is_judged_by_the_numbers_of_the_status() -> None:
    assert (Thresholds().retention_left_seconds, RETENTION_MARGIN) == (retention.STANDING_S, retention.MARGIN)


def test_only_what_a_mirror_has_is_missed() -> None:
    assert {"HeartbeatMissing", "VerificationStale", "VerificationMissing"} <= set(rendered(MIRROR))
    bare = rendered(MonitoredMirror(name="mm2", namespace="there", checkpoints=False))
    missing = {
        "HeartbeatMissing",
        "VerificationStale",
        "VerificationMissing",
        "CheckpointTooOld",
        "GroupWithoutPosition",
        "GroupOffsetNotSynced",
    }
    assert not missing & set(bare)
    assert "VerificationFailed" in bare


def test_nothing_is_said_of_brokers_that_nobody_scrapes() -> None:
    kafka = {alert.name for group in ALERT_GROUPS if group.name == "kafka" for alert in group.alerts}
    assert not kafka & set(rendered(MIRROR))
    assert kafka <= set(rendered(cluster=CLUSTER))
    assert not rendered()
    assert "OperatorDown" not in rendered(MIRROR, cluster=CLUSTER)
    assert set(rendered(operator=True)) == {"OperatorDown"}


def test_an_alert_can_be_switched_off_by_its_name_only() -> None:
    assert "TaskRetries" not in rendered(MIRROR, off=("TaskRetries",))
    with pytest.raises(UnknownAlertError, match=r"alertsOff: must name alerts \(got Typo, allowed .*MirrorDown"):
        rendered(MIRROR, off=("Typo",))


def test_what_an_alert_leaves_to_another_it_says_itself_once_that_is_off() -> None:
    yielding = [alert for alert in ALERTS if alert.yields_to]
    assert {alert.yields_to for alert in yielding} == {"MirrorNotReady"}
    with_it, without = rendered(MIRROR), rendered(MIRROR, off=("MirrorNotReady",))
    for alert in yielding:
        assert "strimzi_resource_state" in with_it[alert.name][0]["expr"]
        assert "strimzi_resource_state" not in without[alert.name][0]["expr"]


def test_links_lead_to_the_section_and_to_the_dashboard_of_the_mirror() -> None:
    (down,) = rendered(MIRROR, namespace="there", grafana_url="https://grafana.test/")["MirrorDown"]
    assert down["labels"]["namespace"] == "there"
    assert down["annotations"]["runbook_url"] == "https://runbook.test/a.md#mirrordown"
    assert down["annotations"]["dashboard_url"] == (
        "https://grafana.test/d/rt-inventory-mirror?var-stack={{ $labels.stack }}&var-mirror={{ $labels.mirror }}"
    )
    (without,) = rendered(MIRROR)["MirrorDown"]
    assert "namespace" not in without["labels"]
    assert "dashboard_url" not in without["annotations"]


def test_recorded_names_say_level_metric_and_operations() -> None:
    for recording in RECORDINGS:
        assert re.fullmatch(r"(mirror|cluster):[a-z_]+:[a-z0-9_]+", recording.name)


def test_the_plain_rule_file_is_fresh() -> None:
    stale = "stale: run `venv/bin/python -m monitoring write`"
    assert rendering.PATH.read_text(encoding="utf-8") == rendering.text(), stale
