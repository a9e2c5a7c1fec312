"""Routes of alerts: the configuration of an Alertmanager, with Slack as receiver, and the same as a custom resource.

The Prometheus Operator's AlertmanagerConfig names fields differently, splits matchers, reads webhook addresses from
Secrets only and has no template files: a text that uses a template brings it along. The webhook's address is in a file
or a Secret only, never in the configuration.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from monitoring.alerts import Severity
from monitoring.alerts.rendering import ALERT_GROUPS, ALERTS
from settings.monitoring import Slack

FOLDER = "templates"


def slack_configuration(slack: Slack, folder: str) -> dict[str, Any]:
    """Return the content of alertmanager.yml.

    Args:
        slack: the settings of Slack.
        folder: folder on Alertmanager's machine that has the keys of Slack's Secret as files.
    """
    channels = Channels(**slack.channels.model_dump())
    names = [f"{FOLDER}/{path.name}" for path in TEMPLATES]
    own = {receiver: _file(folder, key) for receiver, key in slack.keys.model_dump(exclude_none=True).items()}
    return configuration(channels, _file(folder, slack.key), names, slack.paging_stages, own)


def webhook_files(slack: Slack, folder: str) -> list[str]:
    """Return the files from which that configuration reads addresses, in its order, each once."""
    configs = [config for each in slack_configuration(slack, folder)["receivers"] for config in each["slack_configs"]]
    return list(dict.fromkeys(config["api_url_file"] for config in configs))


def slack_resource(slack: Slack, stack: str) -> dict[str, Any]:
    """Return the spec of the AlertmanagerConfig of a stack, which may share its namespace with others."""
    everything = slack_configuration(slack, "")
    own = {**everything, "route": {**everything["route"], "matchers": [f'stack="{stack}"']}}
    return alertmanager_config(own, templates().values(), slack.secret)


def templates() -> dict[str, str]:
    """Return the files of templates by their names."""
    return {path.name: path.read_text(encoding="utf-8") for path in TEMPLATES}


def _file(folder: str, key: str) -> str:
    return str(PurePosixPath(folder, key))


Config = dict[str, Any]
TEMPLATES = (Path(__file__).with_name("slack.tmpl"),)
PAGING_STAGES = ("production", "prod")
QUIET = "quiet"
_NO_FILES: Mapping[str, str] = MappingProxyType({})
# One message for each mirror or cluster and alert; its text names the task, group or certificate.
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
    """Return the content of alertmanager.yml. All paths are those on Alertmanager's machine.

    An alert without a stage is routed like those of the stages that page: silence must be configured.

    Args:
        channels: Slack's channels. Without a channel or a file for the quiet, the severity alone decides the receiver
            of every stage.
        webhook_file: file with the address of the webhook, a secret.
        templates: files of templates.
        paging_stages: stages whose alerts page somebody.
        own_files: files of webhooks that a severity or the quiet has for itself.

    Raises:
        ValueError: there is no stage that pages.
    """
    if not paging_stages:
        raise ValueError("paging stages: must be at least one (got none). Name the stages whose alerts wake people.")
    quiet = channels.quiet is not None or QUIET in own_files
    receivers = [*(severity.value for severity in Severity), *([QUIET] if quiet else ())]
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
        "receivers": [
            _receiver(name, getattr(channels, name), own_files.get(name, webhook_file)) for name in receivers
        ],
        "templates": list(templates),
    }


def inhibitions() -> list[Config]:
    """Return the rules by which an alert is not sent while another fires."""
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
    """A rule for alerts of stacks alone: labels that neither alert has count as equal, so others would match too."""
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


Spec = dict[str, Any]
# Alertmanager refuses a matcher that it cannot read, and so does this.
_MATCHER = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?P<type>=~|!~|!=|=)\s*(?P<value>.*?)\s*")
_DEFINITION = re.compile(r'\{\{-?\s*define\s+"(?P<name>[^"]+)"\s*-?\}\}')
_USE = re.compile(r'\{\{-?\s*template\s+"(?P<name>[^"]+)"')
_BLOCK = re.compile(r"\{\{-?\s*(?P<word>define|if|range|with|block|end)\b")
_ADDRESS = ("api_url", "api_url_file")


def alertmanager_config(config: Mapping[str, Any], templates: Iterable[str], secret: str) -> Spec:
    """Return the spec of an AlertmanagerConfig.

    Args:
        config: content of alertmanager.yml.
        templates: texts of its files of templates.
        secret: name of the Secret with the webhooks' addresses. Its keys are the names of the files of addresses, as in
            a Secret that is mounted as a folder.

    Raises:
        ValueError: a matcher cannot be parsed, or a text uses a template that is not defined.
    """
    defined = {name: text for each in templates for name, text in definitions(each).items()}

    def written(text: str) -> str:
        return with_definitions(text, defined)

    return {
        "route": _route(config["route"]),
        "receivers": [_resource_receiver(each, written, secret) for each in config["receivers"]],
        **(
            {"inhibitRules": [_resource_inhibition(each) for each in found]}
            if (found := config.get("inhibit_rules"))
            else {}
        ),
    }


def definitions(text: str) -> dict[str, str]:
    """Return what a file of Go's templates defines, each with its `define` and `end`."""
    found: dict[str, str] = {}
    depth, begin, name = 0, 0, ""
    for block in _BLOCK.finditer(text):
        if block["word"] == "end":
            depth -= 1
            if depth == 0 and name:
                found[name] = text[begin : text.index("}}", block.end()) + 2]
                name = ""
        else:
            if depth == 0 and (definition := _DEFINITION.match(text, block.start())) is not None:
                begin, name = block.start(), definition["name"]
            depth += 1
    return found


def with_definitions(text: str, defined: Mapping[str, str]) -> str:
    """Return a text with what it uses in front of it, and what that uses."""
    needed: dict[str, str] = {}
    open_names = _USE.findall(text)
    while open_names:
        name = open_names.pop(0)
        if name in needed:
            continue
        if name not in defined:
            raise ValueError(f"template {name}: must be defined (allowed {', '.join(sorted(defined)) or 'none'}).")
        needed[name] = defined[name]
        open_names += _USE.findall(defined[name])
    return "".join(needed[name] for name in sorted(needed)) + text


def _route(route: Mapping[str, Any]) -> Spec:
    found = {_camel(key): value for key, value in route.items() if key not in ("matchers", "routes")}
    if "matchers" in route:
        found["matchers"] = [_matcher(each) for each in route["matchers"]]
    if "routes" in route:
        found["routes"] = [_route(each) for each in route["routes"]]
    return found


def _matcher(text: str) -> Spec:
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise ValueError(f"matcher {text}: must be label, =, !=, =~ or !~, and a value.")
    value = found["value"]
    quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return {"name": found["name"], "matchType": found["type"], "value": value[1:-1] if quoted else value}


def _resource_inhibition(rule: Mapping[str, Any]) -> Spec:
    return {
        "sourceMatch": [_matcher(each) for each in rule["source_matchers"]],
        "targetMatch": [_matcher(each) for each in rule["target_matchers"]],
        **({"equal": list(rule["equal"])} if "equal" in rule else {}),
    }


def _resource_receiver(receiver: Mapping[str, Any], written: Callable[[str], str], secret: str) -> Spec:
    found: Spec = {"name": receiver["name"]}
    if "slack_configs" in receiver:
        found["slackConfigs"] = [
            {"apiURL": {"name": secret, "key": PurePosixPath(each["api_url_file"]).name}, **_texts(each, written)}
            for each in receiver["slack_configs"]
        ]
    return found


def _texts(value: Any, written: Callable[[str], str]) -> Any:
    """A part of a receiver with the resource's names of fields, every text with the templates that it uses."""
    if isinstance(value, Mapping):
        return {_camel(key): _texts(item, written) for key, item in value.items() if key not in _ADDRESS}
    if isinstance(value, list | tuple):
        return [_texts(item, written) for item in value]
    return written(value) if isinstance(value, str) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("URL" if each == "url" else each.capitalize() for each in rest)
