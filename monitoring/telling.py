"""Whom the alerts of stacks tell, as their settings say: for an Alertmanager of its own, and for the operator's.

Owns how settings become routes. Does not own the routes and texts (`monitoring.alertmanager`).
"""

from pathlib import PurePosixPath
from typing import Any

from monitoring import alertmanager
from monitoring.alertmanager_config import alertmanager_config
from settings.monitoring import Slack

FOLDER = "templates"


def configuration(slack: Slack, folder: str) -> dict[str, Any]:
    """Return what alertmanager.yml holds; `folder` has the Secret's keys as files, where Alertmanager runs."""
    channels = alertmanager.Channels(**slack.channels.model_dump())
    names = [f"{FOLDER}/{path.name}" for path in alertmanager.TEMPLATES]
    own = {receiver: _file(folder, key) for receiver, key in slack.keys.model_dump(exclude_none=True).items()}
    return alertmanager.configuration(channels, _file(folder, slack.key), names, slack.paging_stages, own)


def webhook_files(slack: Slack, folder: str) -> list[str]:
    """Return the files from which that configuration reads addresses, in its order, each once."""
    configs = [config for each in configuration(slack, folder)["receivers"] for config in each["slack_configs"]]
    return list(dict.fromkeys(config["api_url_file"] for config in configs))


def operators(slack: Slack, stack: str) -> dict[str, Any]:
    """Return the spec of the AlertmanagerConfig of a stack, which may share its namespace with others."""
    whole = configuration(slack, "")
    own = {**whole, "route": {**whole["route"], "matchers": [f'stack="{stack}"']}}
    return alertmanager_config(own, templates().values(), slack.secret)


def templates() -> dict[str, str]:
    """Return the files of templates by their names."""
    return {path.name: path.read_text(encoding="utf-8") for path in alertmanager.TEMPLATES}


def _file(folder: str, key: str) -> str:
    return str(PurePosixPath(folder, key))
