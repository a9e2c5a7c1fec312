"""What the JMX exporter makes of an MBean's attribute by the project's rules, computed without a Java process.

The first rule whose pattern is found in `domain<key=value, ...><>attribute: value` decides; `$1` in names and labels is
a group of it, and a label without a value is left out.
"""

import re
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

import yaml

from monitoring.metrics import catalog


class Series(NamedTuple):
    """One series, with the number of the rule that made it."""

    name: str
    labels: dict[str, str]
    rule: int


@cache
def rules(file: str) -> list[dict[str, Any]]:
    """The rules of a file, parsed once: callers only read them."""
    found: list[dict[str, Any]] = yaml.safe_load(catalog.jmx_rules(file))["rules"]
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


def let_in(file: str, text: str) -> bool:
    """Whether the exporter reads the attribute's MBean at all: only those of `includeObjectNames` are."""
    domain, _, rest = text.partition("<")
    keys = dict(_KEY.findall(rest.partition("><>")[0]))
    return any(_fits(pattern, domain, keys) for pattern in _object_names(file))


_KEY = re.compile(r'([\w-]+)=("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)')


@cache
def _object_names(file: str) -> list[str]:
    found: list[str] = yaml.safe_load(catalog.jmx_rules(file))["includeObjectNames"]
    return found


def _fits(pattern: str, domain: str, keys: dict[str, str]) -> bool:
    wanted_domain, _, properties = pattern.partition(":")
    entries = properties.split(",")
    wanted = dict(entry.split("=", 1) for entry in entries if entry != "*")
    if (
        wanted_domain != domain
        or not wanted.keys() <= keys.keys()
        or ("*" not in entries and wanted.keys() != keys.keys())
    ):
        return False
    return all(fnmatchcase(keys[key], value) for key, value in wanted.items())
