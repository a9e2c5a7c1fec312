"""Who hears of an alert, how soon and how often, and what is left out because something graver says it already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from monitoring.alerts import ALERT_GROUPS, ALERTS, Severity

Config = dict[str, Any]
TEMPLATES = (Path(__file__).with_name("slack.tmpl"),)
PAGING_STAGES = ("production", "prod")
QUIET = "quiet"
_NO_FILES: Mapping[str, str] = MappingProxyType({})
# One message for one thing at one place; which task, group or certificate stands in it.
_TOGETHER = ["alertname", "severity", "stage", "stack", "mirror", "cluster"]
# Every alert of a stack has this label, and hardly any of others.
_OURS = 'stack=~".+"'
# How soon the first message, news of the same, and the same once more.
_PACES = {
    Severity.CRITICAL: {"group_wait": "0s", "group_interval": "1m", "repeat_interval": "1h"},
    Severity.WARNING: {"group_wait": "1m", "group_interval": "10m", "repeat_interval": "12h"},
    Severity.INFO: {"group_wait": "10m", "group_interval": "1h", "repeat_interval": "24h"},
}
_QUIET_PACE = _PACES[Severity.INFO]
# A mirror without workers has no tasks that run, copies nothing and translates no positions. What it has left out
# before does not follow from that.
_OF_WORKERS = ("mirror", "lag", "groups", "tasks")
_FOLLOWS_FROM_NOTHING = {"MirrorDown", "RecordsSkipped"}


@dataclass(frozen=True, kw_only=True)
class Channels:
    """A Slack channel for each severity, and one for all alerts of stages that page nobody; None is the webhook's own.

    A webhook of a Slack app has one channel and ignores these.
    """

    critical: str | None = None
    warning: str | None = None
    info: str | None = None
    quiet: str | None = None


def configuration(
    channels: Channels,
    webhook_file: str,
    templates: Sequence[str] = ("slack.tmpl",),
    paging_stages: Sequence[str] = PAGING_STAGES,
    own_files: Mapping[str, str] = _NO_FILES,
) -> Config:
    """Return what alertmanager.yml holds; raises ValueError without a stage that pages.

    `webhook_file`, `own_files` and `templates` are paths where Alertmanager runs. A file holds a webhook's address, a
    secret; `own_files` are those of a severity or of the quiet that have a webhook of their own. Without a channel or
    a file for the quiet every stage is told by severity alone.
    An alert without a stage is told like those of the stages that page: silence must be asked for.
    """
    if not paging_stages:
        raise ValueError("paging stages: must be at least one (got none). Name the stages whose alerts wake people.")
    quiet = channels.quiet is not None or QUIET in own_files
    told = [*(severity.value for severity in Severity), *([QUIET] if quiet else ())]
    return {
        "route": {
            "receiver": _name(Severity.WARNING.value),
            "group_by": _TOGETHER,
            **_PACES[Severity.WARNING],
            "routes": [
                *([_quietly(paging_stages)] if quiet else ()),
                *(_by_severity(severity) for severity in Severity),
            ],
        },
        "inhibit_rules": inhibitions(),
        "receivers": [_receiver(name, getattr(channels, name), own_files.get(name, webhook_file)) for name in told],
        "templates": list(templates),
    }


def inhibitions() -> list[Config]:
    """Return which alerts are not told while another fires."""
    of_workers = [alert.name for group in ALERT_GROUPS if group.name in _OF_WORKERS for alert in group.alerts]
    followers = dict.fromkeys(name for name in of_workers if name not in _FOLLOWS_FROM_NOTHING)
    labels = sorted({label for alert in ALERTS for label in alert.labels})
    return [
        _inhibition('alertname="MirrorDown"', f'alertname=~"{"|".join(followers)}"', "stack", "mirror"),
        _inhibition('alertname="ConnectorNotRunning"', 'alertname="TaskNotRunning"', "stack", "mirror", "connector"),
        _inhibition('alertname="BrokerDown"', 'alertname="UnderReplicatedPartitions"', "stack", "cluster"),
        _inhibition('severity="critical"', 'severity=~"warning|info"', "alertname", *labels),
    ]


def _quietly(paging_stages: Sequence[str]) -> Config:
    return {"matchers": [f'stage!~"({"|".join(paging_stages)})?"'], "receiver": _name(QUIET), **_QUIET_PACE}


def _by_severity(severity: Severity) -> Config:
    return {"matchers": [f'severity="{severity}"'], "receiver": _name(severity.value), **_PACES[severity]}


def _inhibition(source: str, target: str, *equal: str) -> Config:
    """Labels that neither alert has count as equal, so that alerts of others would silence each other."""
    return {"source_matchers": [_OURS, source], "target_matchers": [_OURS, target], "equal": list(equal)}


def _receiver(name: str, channel: str | None, webhook_file: str) -> Config:
    slack = {
        "send_resolved": True,
        "api_url_file": webhook_file,
        **({"channel": channel} if channel else {}),
        **{field: f'{{{{ template "rt_inventory.slack.{part}" . }}}}' for field, part in _PARTS.items()},
    }
    return {"name": _name(name), "slack_configs": [slack]}


_PARTS = {"title": "title", "title_link": "link", "text": "text", "color": "color", "fallback": "title"}


def _name(receiver: str) -> str:
    return f"slack-{receiver}"
