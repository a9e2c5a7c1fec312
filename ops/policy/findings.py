"""What a judgement consists of: findings on resources, how grave each is, and their order.

Owns the words for severities and levels. Knows nothing of Pulumi's events or of any form of report.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MANDATORY, ADVISORY, REMEDIATE = "mandatory", "advisory", "remediate"
# From grave to light; "unspecified" is what a rule without a severity reports.
SEVERITIES = ("critical", "high", "medium", "low", "unspecified")
LEVELS = (MANDATORY, ADVISORY, REMEDIATE)
# The rule with which the pack tells what its exceptions lift. It reports facts, so it stands apart.
EXCEPTIONS_RULE = "active-exceptions"
_GOT = re.compile(r"\([^()]*\)")


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource as a finding names it: `name` is the object's own if it is known, else Pulumi's."""

    urn: str
    type: str
    name: str

    @property
    def kind(self) -> str:
        """The last part of the type, for example KafkaTopic."""
        return self.type.rsplit(":", 1)[-1]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a rule found. `description` is what the rule says of itself, if it was told."""

    rule: str
    severity: str
    level: str
    resource: Resource
    message: str
    description: str = field(default="", compare=False)

    @property
    def order(self) -> tuple[int, int, str, str, str, str]:
        """Mandatory ones first, then by severity; the rest keeps runs alike."""
        rank = LEVELS.index(self.level) if self.level in LEVELS else len(LEVELS)
        gravity = SEVERITIES.index(self.severity) if self.severity in SEVERITIES else len(SEVERITIES)
        return rank, gravity, self.rule, self.resource.name, self.resource.urn, self.message


@dataclass(frozen=True, kw_only=True)
class Pack:
    """The pack that judged: its folder, and the name and version by which it calls itself."""

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
        """Return the numbers that `--json` tells."""
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
    """Return one per finding, the same in every run as long as rule, resource and kind of trouble are.

    What stands in parentheses, as the value that was found, does not count. Findings that are then alike are numbered.
    """
    seen: Counter[str] = Counter()
    marks = []
    for finding in findings:
        text = "\0".join((finding.rule, finding.resource.urn, _GOT.sub("", finding.message)))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        seen[digest] += 1
        marks.append(f"{digest}:{seen[digest]}")
    return marks
