"""The rule file for a Prometheus without the operator: for every stack, mirror and cluster that it scrapes."""

from pathlib import Path

import yaml

from monitoring.alerts.model import Thresholds
from monitoring.alerts.rendering import render

PATH = Path(__file__).parent.parent / "rules" / "rt-inventory.yaml"
STAGE = "production"
RUNBOOK_URL = "docs/alerts.md"
_HEAD = """\
# Written by `venv/bin/python -m monitoring write`: do not edit. For every stack that a Prometheus scrapes; a stack with
# the setting `rt-inventory:monitoring` gets rules of its own, which know its mirrors and its stage.
"""


def text() -> str:
    """Return what the rule file holds."""
    groups = render(None, STAGE, (), Thresholds(), (), RUNBOOK_URL)
    return _HEAD + yaml.safe_dump({"groups": groups}, sort_keys=False, width=118, allow_unicode=True)
