"""What the JMX exporter makes of an MBean's attribute by the project's rules, told without a Java process.

The first rule whose pattern is found in `domain<key=value, ...><>attribute: value` decides; `$1` in names and labels is
a group of it, and a label without a value is left out.
"""

import re
from functools import cache
from typing import Any, NamedTuple

import yaml

from monitoring import jmx


class Series(NamedTuple):
    """One series, with the number of the rule that made it."""

    name: str
    labels: dict[str, str]
    rule: int


@cache
def rules(file: str) -> list[dict[str, Any]]:
    """The rules of a file, parsed once: callers only read them."""
    found: list[dict[str, Any]] = yaml.safe_load(jmx.rules(file))["rules"]
    return found


@cache
def exported(file: str, text: str) -> Series | None:
    """The series of one attribute, None if no rule fits."""
    for number, rule in enumerate(rules(file)):
        match = re.search(rule["pattern"], text)
        if match is None:
            continue

        def filled(template: str, found: re.Match[str] = match) -> str:
            return re.sub(r"\$(\d+)", lambda group: found[int(group[1])] or "", template)

        labels = {key: filled(value) for key, value in rule.get("labels", {}).items()}
        name = re.sub(r"[^a-z0-9_:]", "_", filled(rule["name"]).lower())
        return Series(name, {key: value for key, value in labels.items() if value}, number)
    return None
