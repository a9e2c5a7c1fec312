"""What the rules of a pack say of themselves, from the schema of its configuration that lies beside it.

A pack without that file is judged all the same; its rules are then described by their findings.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ops.policy import removals
from ops.policy.findings import SEVERITIES, Finding

SCHEMA = "config.schema.json"
_LEVEL = "enforcementLevel"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule's description and its options with what each means."""

    description: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def help(self) -> str:
        """Return the description, with the options if there are any."""
        lines = [f"- {name}: {meaning}" if meaning else f"- {name}" for name, meaning in self.options.items()]
        return "\n".join([self.description, *(["", "Options:", *lines] if lines else [])])


def described(pack: Path) -> dict[str, Rule]:
    """Return the rules that the pack's schema describes, and the one that is judged here; {} of the pack's if none."""
    try:
        document = json.loads((pack / SCHEMA).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        document = {}
    found = _mapping(_mapping(document).get("properties"))
    rules = {name: Rule(description=_text(entry), options=_options(entry)) for name, entry in found.items()}
    return {removals.RULE: Rule(description=removals.DESCRIPTION)} | {
        name: rule for name, rule in rules.items() if rule.description
    }


def of_findings(findings: Iterable[Finding], known: Mapping[str, Rule]) -> dict[str, tuple[Rule, str]]:
    """Return the rules of these findings, by name in alphabetical order, each with the gravest severity found."""
    rules: dict[str, tuple[Rule, str]] = {}
    for finding in findings:
        rule = known.get(finding.rule) or Rule(description=finding.description or finding.rule)
        _, severity = rules.get(finding.rule, (rule, finding.severity))
        rules[finding.rule] = rule, min(severity, finding.severity, key=SEVERITIES.index)
    return dict(sorted(rules.items()))


def _options(entry: Any) -> dict[str, str]:
    """Options stand below the entry, or below one of its forms: a rule is configured by a level or by an object."""
    forms = [entry, *(_mapping(entry).get("oneOf") or [])]
    return {
        name: _text(option)
        for form in forms
        for name, option in _mapping(_mapping(form).get("properties")).items()
        if name != _LEVEL
    }


def _text(value: Any) -> str:
    return str(_mapping(value).get("description") or "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
