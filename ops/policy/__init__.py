"""What the policy pack finds in a stack's preview, for people, pipelines and code scanning.

Here is what a judgement consists of: findings and planned changes, each about one resource. It owns the names of
severities, levels and operations, and their order. It names properties, never their values.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ops.pulumi.events import Resource, Step, resource_of

MANDATORY, ADVISORY, REMEDIATE = "mandatory", "advisory", "remediate"
# From grave to light; "unspecified" is what a rule without a severity reports.
SEVERITIES = ("critical", "high", "medium", "low", "unspecified")
LEVELS = (MANDATORY, ADVISORY, REMEDIATE)
# The rule with which the pack reports what its exceptions lift. It is no finding, so it is listed apart.
EXCEPTIONS_RULE = "active-exceptions"
_GOT = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a rule found. `description` is the rule's own description, if there is one."""

    rule: str
    severity: str
    level: str
    resource: Resource
    message: str
    description: str = field(default="", compare=False)

    @property
    def order(self) -> tuple[int, int, str, str, str, str]:
        """Mandatory ones first, then by severity; the rest makes the order the same in every run."""
        rank = LEVELS.index(self.level) if self.level in LEVELS else len(LEVELS)
        gravity = SEVERITIES.index(self.severity) if self.severity in SEVERITIES else len(SEVERITIES)
        return rank, gravity, self.rule, self.resource.name, self.resource.urn, self.message


@dataclass(frozen=True, kw_only=True)
class Pack:
    """The pack that judged: its folder, and its own name and version."""

    path: str
    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What was found in one stack. `complete` is false where the preview stopped before rules over the whole stack."""

    stack: str
    pack: Pack
    findings: tuple[Finding, ...]
    exceptions: tuple[Finding, ...]
    resources: int
    complete: bool = True

    @property
    def passed(self) -> bool:
        """Whether nothing mandatory was found."""
        return not self.count(MANDATORY)

    def count(self, level: str) -> int:
        """Return the number of findings of a level."""
        return sum(finding.level == level for finding in self.findings)

    def summary(self) -> dict[str, Any]:
        """Return the numbers that `--json` prints."""
        severities = Counter(finding.severity for finding in self.findings)
        return {
            "passed": self.passed,
            "complete": self.complete,
            "resources": self.resources,
            **{level: self.count(level) for level in LEVELS},
            "exceptions": len(self.exceptions),
            "severities": {severity: severities[severity] for severity in SEVERITIES if severities[severity]},
        }


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return each finding once, the gravest first."""
    return tuple(sorted(set(findings), key=lambda finding: finding.order))


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """Return one per finding, the same in every run as long as rule, resource and kind of problem are.

    Text in parentheses, such as the value that was found, does not count. Findings that are then equal are numbered.
    """
    seen: Counter[str] = Counter()
    marks = []
    for finding in findings:
        text = "\0".join((finding.rule, finding.resource.urn, _GOT.sub("", finding.message)))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        seen[digest] += 1
        marks.append(f"{digest}:{seen[digest]}")
    return marks


# Pulumi's own words; of several steps for one resource the first of these is what happens to it.
_OPERATIONS = {
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "delete": "delete",
    "import": "import",
    "create": "create",
    "update": "update",
}
_PULUMIS_OWN = "pulumi:"


@dataclass(frozen=True, kw_only=True)
class Change:
    """What happens to one resource; `paths` name the properties that differ."""

    operation: str
    resource: Resource
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f"{self.operation} {self.resource}"
        return f"{what}: {', '.join(self.paths)}" if self.paths else what

    def as_json(self) -> dict[str, Any]:
        """Return the change for a document."""
        return {
            "operation": self.operation,
            "kind": self.resource.kind,
            "name": self.resource.name,
            "urn": self.resource.urn,
            "paths": [*self.paths],
        }


def planned(steps: Iterable[Step]) -> list[Change]:
    """Return what the steps change, each resource once, in the plan's order; components are not resources."""
    by_urn: dict[str, list[Step]] = {}
    for step in steps:
        if step.custom and step.operation in _OPERATIONS and not resource_of(step.urn).type.startswith(_PULUMIS_OWN):
            by_urn.setdefault(step.urn, []).append(step)
    return [_change(urn, of) for urn, of in by_urn.items()]


def _change(urn: str, steps: list[Step]) -> Change:
    gravest = min(steps, key=lambda step: [*_OPERATIONS].index(step.operation))
    return Change(
        operation=_OPERATIONS[gravest.operation],
        resource=resource_of(urn, gravest.inputs, gravest.id),
        paths=tuple(dict.fromkeys(path for step in steps for path in step.paths)),
    )
