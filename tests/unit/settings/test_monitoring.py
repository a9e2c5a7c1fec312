"""Monitoring: off unless asked for, the alerts' own numbers and names, and no webhook's address in a stack file."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest

from monitoring import alerts
from monitoring.alert_routes import PAGING_STAGES
from monitoring.alerts import rendering
from settings import hints, parse
from settings.__main__ import main
from settings.monitoring import AlertName, Severity, Thresholds

from ...support.stack_values import SOURCE, TARGET, Values, with_value
from .test_rules import problems

ADDRESS = "https://hooks.slack.com/services/T000/B000/hunter2"
OTHER = "https://chat.example.com/hooks/hunter2"


def monitored(values: Values = TARGET, **settings: Any) -> Values:
    found = with_value(values, "monitoring", settings)
    for index, _ in enumerate(found.get("mirrors", [])):
        found = with_value(found, f"mirrors/{index}/metrics", {})
    return found


def test_there_is_none_unless_asked_for() -> None:
    assert parse(TARGET, "stg").monitoring is None


def test_it_asks_every_30_seconds_and_expects_no_operator_of_prometheus() -> None:
    found = parse(monitored(), "stg").monitoring
    assert found is not None
    assert (found.scrape_seconds, found.operator, found.dashboards, found.slack) == (30, False, None, None)


def test_the_sidecar_finds_dashboards_by_its_usual_label() -> None:
    found = parse(monitored(dashboards={}), "stg").monitoring
    assert found is not None
    assert found.dashboards is not None
    assert dict(found.dashboards.labels) == {"grafana_dashboard": "1"}


def test_the_numbers_are_those_of_the_alerts() -> None:
    assert Thresholds().model_dump() == asdict(alerts.Thresholds())


def test_the_names_are_those_of_the_alerts() -> None:
    assert set(get_args(AlertName)) == {alert.name for alert in rendering.ALERTS}
    assert set(get_args(Severity)) == {severity.value for severity in alerts.Severity}


@pytest.mark.parametrize(
    ("settings", "key", "reported"),
    [
        ({"alertsOff": ["MirorDown"]}, "alertsOff[0]", "(got 'MirorDown', allowed MirrorDown, "),
        ({"alertsOff": ["MirorDown"]}, "alertsOff[0]", "Did you mean MirrorDown?"),
        ({"alertsOff": ["MirrorDown", "MirrorDown"]}, "alertsOff", "must name an alert once (got MirrorDown twice)"),
        ({"scrapeSeconds": 1}, "scrapeSeconds", "must be >= 5 (got 1, allowed 5..120)"),
        ({"thresholds": {"lagSeconds": 0}}, "thresholds.lagSeconds", "must be >= 1 (got 0)"),
        ({"thresholds": {"lag": 1}}, "thresholds.lag", "must be a known key"),
        (
            {"thresholds": {"lagSeconds": 1800}},
            "thresholds.lagSeconds",
            "lagSeconds must be < lagCriticalSeconds (got 1800, lagCriticalSeconds 1800). The warning comes first.",
        ),
        (
            {"thresholds": {"certificateWarningDays": 5}},
            "thresholds.certificateWarningDays",
            "certificateWarningDays must be > certificateCriticalDays (got 5, certificateCriticalDays 7)",
        ),
        (
            {"thresholds": {"offsetCommitFailureRatio": 1}},
            "thresholds.offsetCommitFailureRatio",
            "must be < 1.0 (got 1, allowed 0 to below 1)",
        ),
        ({"thresholds": {"statusAgeSeconds": 86_401}}, "thresholds.statusAgeSeconds", "must be <= 86400 (got 86401, "),
        ({"labels": {"my label": "x"}}, "labels", "must have keys as labels of Kubernetes have them"),
        ({"labels": {"release": "a b"}}, "labels", "must have values as labels of Kubernetes have them"),
        ({"dashboards": {"labels": {"-": "1"}}}, "dashboards.labels", "must have keys as labels of Kubernetes"),
        ({"runbookUrl": "runbook.md"}, "runbookUrl", "must be an address such as"),
        ({"runbookUrl": "https://wiki.example.com/kafka#alerts"}, "runbookUrl", "must be an address such as"),
        ({"runbookUrl": "https://wiki.example.com/{{kafka}}"}, "runbookUrl", "without braces (got"),
        ({"grafanaUrl": "https://{grafana}/"}, "grafanaUrl", "without braces (got"),
        ({"slack": {}}, "slack.secret", "must be given"),
        ({"slack": {"secret": "Alerts"}}, "slack.secret", "must be a name for Kubernetes"),
        ({"slack": {"secret": "alerts", "key": ""}}, "slack.key", "must be a key of a Secret: letters, digits"),
        ({"slack": {"secret": "alerts", "key": "a b/c"}}, "slack.key", "must be a key of a Secret: letters, digits"),
        ({"slack": {"secret": "alerts", "keys": {"quiet": "a b"}}}, "slack.keys.quiet", "must be a key of a Secret"),
        ({"slack": {"secret": "alerts", "keys": {"fatal": "a"}}}, "slack.keys.fatal", "must be a known key"),
        ({"slack": {"secret": "alerts", "channels": {"fatal": "#a"}}}, "slack.channels.fatal", "must be a known key"),
        (
            {"slack": {"secret": "alerts", "channels": {"critical": "kafka"}}},
            "slack.channels.critical",
            "must be a channel such as '#kafka-alerts' in quotes, a person such as '@ana', or a channel's id (got",
        ),
        ({"slack": {"secret": "alerts", "pagingStages": []}}, "slack.pagingStages", "must have at least 1 entry"),
        ({"stage": "Production"}, "stage", "must be a name for Kubernetes"),
    ],
)
def test_one_mistake_is_reported_with_its_key(settings: dict[str, Any], key: str, reported: str) -> None:
    ((found, message),) = problems(monitored(**settings))
    assert found == f"monitoring.{key}"
    assert message.startswith("monitoring: ")
    assert reported in message


def test_several_mistakes_are_reported_together() -> None:
    values = monitored(scrapeSeconds=0, labels={"": "x"}, slack={"key": "url"})
    assert {key for key, _ in problems(values)} == {
        "monitoring.scrapeSeconds",
        "monitoring.labels",
        "monitoring.slack.secret",
    }


@pytest.mark.parametrize("address", [ADDRESS, OTHER, "hooks.slack.com/services/hunter2"])
@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("monitoring/slack", "monitoring.slack"),
        ("monitoring/slack/secret", "monitoring.slack.secret"),
        ("monitoring/slack/key", "monitoring.slack.key"),
        ("monitoring/slack/keys/critical", "monitoring.slack.keys.critical"),
        ("monitoring/slack/channels/info", "monitoring.slack.channels.info"),
        ("monitoring/slack/address", "monitoring.slack.address"),
        ("verification/slackWebhook/secret", "verification.slackWebhook.secret"),
    ],
)
def test_the_address_of_a_webhook_is_refused_wherever_it_is_written_and_not_repeated(
    path: str, key: str, address: str
) -> None:
    slack = {} if path == "monitoring/slack" else {"slack": {"secret": "alerts", "channels": {}}}
    found = problems(with_value(monitored(**slack), path, address))
    assert "hunter2" not in str(found)
    reported = dict(found)[key]
    assert "must not be in a stack file (got a webhook's address, not repeated here)" in reported
    assert reported.endswith("Put it into a Secret and name that one.")


@pytest.mark.parametrize("channel", ["#kafka-alerts", "@ana", "C024BE91L", "#betrieb-störungen"])
def test_channels_have_the_names_that_slack_gives_them(channel: str) -> None:
    found = parse(monitored(operator=True, slack={"secret": "alerts", "channels": {"critical": channel}}), "stg")
    assert found.monitoring is not None
    assert found.monitoring.slack is not None
    assert found.monitoring.slack.channels.critical == channel


def test_stages_that_page_are_those_of_production() -> None:
    found = parse(monitored(slack={"secret": "alerts", "channels": {"quiet": "#trials"}}), "stg").monitoring
    assert found is not None
    assert found.slack is not None
    assert found.slack.paging_stages == PAGING_STAGES


def test_a_mirror_without_metrics_would_be_down_for_ever() -> None:
    ((key, message),) = problems(with_value(TARGET, "monitoring", {}))
    assert key == "mirrors[0].metrics"
    assert "mirror mm2: metrics must be given where there is monitoring (got nothing)" in message


def test_what_has_no_effect_is_hinted_at() -> None:
    values = monitored(labels={"release": "prometheus"}, slack={"secret": "alerts"})
    parse(values, "stg")
    found = {hint.key: hint.message for hint in hints(values, "stg", {"dev": SOURCE})}
    assert "nothing watches them. Write `metrics: {}`" in found["cluster.metrics"]
    assert "`python -m ops render --as prometheus`" in found["monitoring.slack"]
    assert "of no use without monitoring.operator" in found["monitoring.labels"]


def test_rules_of_somebody_elses_must_give_the_names_of_the_alerts() -> None:
    own = {"configMap": "rules", "key": "rules.yaml"}
    values = with_value(with_value(monitored(), "cluster/metrics", own), "mirrors/0/metrics", own)
    found = {hint.key: hint.message for hint in hints(values, "stg", {"dev": SOURCE})}
    assert "mirror mm2: the rules in rules must give the names of" in found["mirrors[0].metrics.configMap"]
    assert "cluster passive: the rules in rules must give" in found["cluster.metrics.configMap"]
    values = with_value(with_value(values, "mirrors/0/metrics", {}), "cluster/metrics", {})
    assert not [hint for hint in hints(values, "stg", {"dev": SOURCE}) if "metrics" in hint.key]


def test_there_is_no_hint_where_all_has_an_effect() -> None:
    values = monitored(operator=True, labels={"release": "prometheus"}, slack={"secret": "alerts"})
    values = with_value(values, "cluster/metrics", {})
    keys = [hint.key for hint in hints(values, "stg", {})]
    assert not [key for key in keys if key.startswith(("monitoring", "cluster"))]


def test_check_shows_the_hints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(
        "config:\n  rt-inventory:cluster: {name: active, namespace: active}\n  rt-inventory:monitoring: {}\n"
    )
    assert main(["check", str(file)]) == 0
    assert "hint: rt-inventory:cluster.metrics: cluster active: its brokers expose" in capsys.readouterr().out
