"""Alertmanager's configuration fits the alerts, holds no secret, and every template that it uses exists."""

import re
from pathlib import Path

import pytest

from monitoring.alert_routes import TEMPLATES, Channels, configuration, inhibitions
from monitoring.alerts import Severity
from monitoring.alerts.rendering import ALERTS

ALL = Channels(critical="#page", warning="#watch", info="#daily", quiet="#quiet")


def test_every_severity_has_a_receiver_and_one_without_is_a_warning() -> None:
    found = configuration(ALL, "/run/webhook")
    routes = {tuple(route["matchers"]): route["receiver"] for route in found["route"]["routes"]}
    assert {f'severity="{severity}"' for severity in Severity} <= {matchers[0] for matchers in routes}
    assert {*routes.values(), found["route"]["receiver"]} == {receiver["name"] for receiver in found["receivers"]}
    assert found["route"]["receiver"] == "slack-warning"


def test_a_critical_alert_waits_for_nothing_and_the_rest_is_gathered() -> None:
    waits = {route["receiver"]: route["group_wait"] for route in configuration(ALL, "/run/webhook")["route"]["routes"]}
    assert waits == {"slack-critical": "0s", "slack-warning": "1m", "slack-info": "10m", "slack-quiet": "10m"}


def test_the_page_documents_how_soon_and_how_often() -> None:
    page = (Path(__file__).parents[3] / "docs" / "monitoring.md").read_text("utf-8")
    for route in configuration(ALL, "/run/webhook")["route"]["routes"]:
        name = route["receiver"].removeprefix("slack-")
        paces = (route["group_wait"], route["group_interval"], route["repeat_interval"])
        assert f"| {name} | {' | '.join(paces)} |" in page


def test_a_stage_is_quiet_only_if_a_channel_is_named_for_that() -> None:
    assert "stage" not in str(configuration(Channels(critical="#page"), "/run/webhook")["route"]["routes"])
    quiet = configuration(ALL, "/run/webhook", paging_stages=("live",))["route"]["routes"][0]
    assert quiet["matchers"] == ['stage!~"(live)?"']
    with pytest.raises(ValueError, match="must be at least one"):
        configuration(ALL, "/run/webhook", paging_stages=())


def test_a_channel_that_nobody_names_is_the_webhooks_own() -> None:
    for receiver in configuration(Channels(), "/run/webhook")["receivers"]:
        (slack,) = receiver["slack_configs"]
        assert "channel" not in slack
        assert slack["api_url_file"] == "/run/webhook"
        assert "api_url" not in slack


def test_a_receiver_may_have_a_webhook_of_its_own_and_the_quiet_one_needs_no_channel() -> None:
    found = configuration(Channels(), "/run/webhook", own_files={"critical": "/run/pager", "quiet": "/run/trials"})
    files = {each["name"]: config["api_url_file"] for each in found["receivers"] for config in each["slack_configs"]}
    assert files == {
        "slack-critical": "/run/pager",
        "slack-warning": "/run/webhook",
        "slack-info": "/run/webhook",
        "slack-quiet": "/run/trials",
    }
    assert found["route"]["routes"][0]["receiver"] == "slack-quiet"


def test_what_follows_from_another_alert_exists_and_is_of_the_same_mirror_or_cluster() -> None:
    names = {alert.name for alert in ALERTS}
    for rule in inhibitions():
        said = "".join(rule["source_matchers"] + rule["target_matchers"])
        assert set(re.findall(r"[A-Z]\w+", said)) <= names
        assert "stack" in rule["equal"]
    _, followers = inhibitions()[0]["target_matchers"]
    assert "MirrorDown" not in followers
    assert "RecordsSkipped" not in followers
    assert "VerificationFailed" not in followers


def test_a_critical_alert_silences_a_warning_only_where_all_labels_are_the_same() -> None:
    assert set(inhibitions()[-1]["equal"]) == {"alertname", *(label for alert in ALERTS for label in alert.labels)}


def test_alerts_of_others_neither_silence_nor_are_silenced() -> None:
    for rule in inhibitions():
        assert 'stack=~".+"' in rule["source_matchers"]
        assert 'stack=~".+"' in rule["target_matchers"]


def test_every_template_that_is_used_is_defined_once() -> None:
    text = "".join(path.read_text("utf-8") for path in TEMPLATES)
    defined = re.findall(r'define "([^"]+)"', text)
    used = re.findall(r'template "([^"]+)"', text + str(configuration(ALL, "/run/webhook")))
    assert sorted(defined) == sorted(set(used))
