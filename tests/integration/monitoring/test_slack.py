"""Alerts reach the Slack channel that is theirs, say what is wrong and what to do, and say when it is over."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from monitoring.alert_routes import TEMPLATES, Channels, configuration
from monitoring.alerts.rendering import ALERTS
from sandbox.toolchain import Tools

from ...support.slack_webhook import Alertmanager, Message, Slack, alertmanager, hasty, slack

CHANNELS = Channels(critical="#mirror-page", warning="#mirror-watch", info="#mirror-daily", quiet="#mirror-quiet")
ANNOTATIONS = {
    "summary": "Connector es-src->es-tgt of stg does not run",
    "description": "It is failed & waits.",
    "runbook_url": "https://runbook.test/docs/alerts.md#connectornotrunning",
    "dashboard_url": "https://grafana.test/d/rt-inventory-mirror?var-mirror=mm2",
}
AMTOOL_S = 20


class Routed(NamedTuple):
    """An Alertmanager and what it posts to."""

    alertmanager: Alertmanager
    slack: Slack


@pytest.fixture(scope="module")
def routed(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Routed]:
    folder = tmp_path_factory.mktemp("alertmanager")
    with slack() as heard:
        (folder / "webhook").write_text(heard.url, "utf-8")
        config = hasty(configuration(CHANNELS, str(folder / "webhook")))
        with alertmanager(tools, folder, config) as running:
            yield Routed(running, heard)


def labels(alert: str, severity: str = "critical", stage: str = "production", **others: str) -> dict[str, str]:
    return {"alertname": alert, "severity": severity, "stage": stage, "stack": "stg", **others}


def of_alert(name: str, status: str = "") -> Callable[[Message], bool]:
    def is_it(message: Message) -> bool:
        title = message["attachments"][0]["title"]
        return f" {name} " in f"{title} " and title.startswith(f"[{status}")

    return is_it


@pytest.mark.parametrize(
    ("severity", "stage", "channel", "color"),
    [
        ("critical", "production", "#mirror-page", "danger"),
        ("critical", "prod", "#mirror-page", "danger"),
        ("warning", "production", "#mirror-watch", "warning"),
        ("info", "production", "#mirror-daily", "#439fe0"),
        ("critical", "dev", "#mirror-quiet", "danger"),
        ("info", "dev", "#mirror-quiet", "#439fe0"),
        ("critical", "", "#mirror-page", "danger"),
    ],
)
def test_a_severity_and_a_stage_have_their_channel(
    routed: Routed, severity: str, stage: str, channel: str, color: str
) -> None:
    name = f"Of{severity}{stage or 'none'}"
    routed.alertmanager.alert(labels(name, severity, stage, mirror=name), ANNOTATIONS)
    message = routed.slack.reported(of_alert(name, severity.upper()))
    assert message["channel"] == channel
    assert message["attachments"][0]["color"] == color


def test_a_message_says_what_is_wrong_where_and_what_to_do_and_later_that_it_is_over(routed: Routed) -> None:
    said = labels("ConnectorNotRunning", mirror="mm2", connector="es-src->es-tgt")
    routed.alertmanager.alert(said, ANNOTATIONS)
    (attachment,) = routed.slack.reported(of_alert("ConnectorNotRunning", "CRITICAL"))["attachments"]
    assert attachment["title"] == attachment["fallback"] == "[CRITICAL] ConnectorNotRunning · stg / mm2"
    assert attachment["title_link"] == ANNOTATIONS["dashboard_url"]
    first, second, place, *links = attachment["text"].strip().splitlines()
    assert first == "*Connector es-src-&gt;es-tgt of stg does not run*"
    assert second == "It is failed &amp; waits."
    since = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    assert re.fullmatch(rf"severity `critical`, stage `production`, stack `stg`, mirror `mm2`, since {since}", place), (
        place
    )
    assert links == [f"<{ANNOTATIONS['runbook_url']}|What to do>", f"<{ANNOTATIONS['dashboard_url']}|Dashboard>"]

    routed.alertmanager.alert(said, ANNOTATIONS, ended=True)
    over = routed.slack.reported(of_alert("ConnectorNotRunning", "RESOLVED"))
    (attachment,) = over["attachments"]
    assert over["channel"] == "#mirror-page"
    assert attachment["color"] == "good"
    struck = "~Connector es-src-&gt;es-tgt of stg does not run~"
    assert re.match(rf":white_check_mark: {struck} since {since}\n", attachment["text"])


def test_tasks_of_a_mirror_stand_in_one_message_and_too_many_are_counted(routed: Routed) -> None:
    for number in range(10):
        reported = {**ANNOTATIONS, "summary": f"Task {number} does not run"}
        routed.alertmanager.alert(labels("TaskNotRunning", mirror="mm3", task=str(number)), reported)
    message = routed.slack.reported(lambda one: "(10)" in one["attachments"][0]["title"])
    (attachment,) = message["attachments"]
    assert attachment["title"] == "[CRITICAL] TaskNotRunning · stg / mm3 (10)"
    assert attachment["text"].count("does not run*") == 8
    assert "The first 8 of 10" in attachment["text"]


def test_a_link_that_leads_nowhere_is_left_out(routed: Routed) -> None:
    routed.alertmanager.alert(
        labels("Relative", mirror="x"), {"summary": "A", "runbook_url": "docs/alerts.md#relative"}
    )
    (attachment,) = routed.slack.reported(of_alert("Relative"))["attachments"]
    assert "docs/alerts.md" not in attachment["text"]
    assert attachment["title_link"].startswith("http://alertmanager.test")


def test_what_follows_from_something_graver_is_not_reported(routed: Routed) -> None:
    routed.alertmanager.alert(labels("MirrorDown", mirror="gone"), ANNOTATIONS)
    routed.slack.reported(of_alert("MirrorDown"))
    routed.alertmanager.alert(labels("MirrorLagSeconds", "warning", mirror="gone"), ANNOTATIONS)
    routed.alertmanager.alert(labels("RecordsSkipped", mirror="gone"), ANNOTATIONS)
    routed.alertmanager.alert(labels("MirrorLagRising", "warning", mirror="there"), ANNOTATIONS)
    routed.slack.reported(of_alert("RecordsSkipped"))
    routed.slack.reported(of_alert("MirrorLagRising"))
    assert routed.alertmanager.suppressed() == {"MirrorLagSeconds"}
    assert not [one for one in routed.slack.messages if of_alert("MirrorLagSeconds")(one)]


def test_a_critical_alert_silences_its_own_warning_only(routed: Routed) -> None:
    routed.alertmanager.alert(labels("CertificateExpiresSoon", certificate="a"), ANNOTATIONS)
    routed.slack.reported(of_alert("CertificateExpiresSoon", "CRITICAL"))
    routed.alertmanager.alert(labels("CertificateExpiresSoon", "warning", certificate="a"), {"summary": "Of a"})
    routed.alertmanager.alert(labels("CertificateExpiresSoon", "warning", certificate="b"), {"summary": "Of b"})
    (attachment,) = routed.slack.reported(of_alert("CertificateExpiresSoon", "WARNING"))["attachments"]
    assert "Of b" in attachment["text"]
    assert "Of a" not in attachment["text"]


def test_alerts_of_others_do_not_silence_each_other(routed: Routed) -> None:
    volume = {"alertname": "VolumeFillingUp", "stage": "production"}
    routed.alertmanager.alert({**volume, "severity": "critical", "persistentvolumeclaim": "data-0"}, {"summary": "0"})
    routed.slack.reported(of_alert("VolumeFillingUp", "CRITICAL"))
    routed.alertmanager.alert({**volume, "severity": "warning", "persistentvolumeclaim": "data-1"}, {"summary": "1"})
    routed.slack.reported(of_alert("VolumeFillingUp", "WARNING"))


def test_the_webhook_is_known_by_its_file_alone(routed: Routed, tools: Tools) -> None:
    shown = subprocess.run(
        [str(tools.amtool), "config", "show", f"--alertmanager.url={routed.alertmanager.url}"],
        capture_output=True,
        text=True,
        timeout=AMTOOL_S,
        check=True,
    )
    assert routed.slack.url not in shown.stdout
    assert "api_url_file" in shown.stdout
    assert set(routed.slack.paths) == {"/services/T0/B0/made-up"}


@pytest.mark.parametrize("channels", [CHANNELS, Channels()], ids=["all", "none"])
def test_amtool_accepts_it_and_finds_a_receiver_for_every_alert(
    tools: Tools, tmp_path: Path, channels: Channels
) -> None:
    path = tmp_path / "alertmanager.yml"
    path.write_text(yaml.safe_dump(configuration(channels, "/run/secrets/slack")), "utf-8")
    (tmp_path / "slack.tmpl").write_text(TEMPLATES[0].read_text("utf-8"), "utf-8")

    def amtool(*arguments: str) -> str:
        command = [str(tools.amtool), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=AMTOOL_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert "1 templates" in amtool("check-config", str(path))
    for severity in {alert.severity for alert in ALERTS}:
        for stage, quiet in (("production", False), ("dev", channels.quiet is not None)):
            chosen = amtool(
                "config", "routes", "test", f"--config.file={path}", f"severity={severity}", f"stage={stage}"
            )
            assert chosen == ("slack-quiet" if quiet else f"slack-{severity}")
