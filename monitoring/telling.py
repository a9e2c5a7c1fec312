"""Whom the alerts of stacks tell, as their settings say: for an Alertmanager of its own, and for the operator's.

Owns how settings become routes. Does not own the routes and texts (`monitoring.alertmanager`).
"""

from typing import Any

from monitoring import alertmanager
from monitoring.alertmanager_config import alertmanager_config
from settings.monitoring import Slack

FOLDER = "templates"


def configuration(slack: Slack, url_file: str) -> dict[str, Any]:
    """Return what alertmanager.yml holds; `url_file` has the webhook's address, where Alertmanager runs."""
    channels = alertmanager.Channels(**slack.channels.model_dump())
    names = [f"{FOLDER}/{path.name}" for path in alertmanager.TEMPLATES]
    return alertmanager.configuration(channels, url_file, names, slack.paging_stages)


def operators(slack: Slack, stack: str) -> dict[str, Any]:
    """Return the spec of the AlertmanagerConfig of a stack, which may share its namespace with others."""
    whole = configuration(slack, "")
    own = {**whole, "route": {**whole["route"], "matchers": [f'stack="{stack}"']}}
    return alertmanager_config(own, templates().values(), slack.secret, slack.key)


def templates() -> dict[str, str]:
    """Return the files of templates by their names."""
    return {path.name: path.read_text(encoding="utf-8") for path in alertmanager.TEMPLATES}
