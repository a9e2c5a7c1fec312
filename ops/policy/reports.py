"""A judgement as documents for programs: JSON of our own, and SARIF 2.1.0 for code scanning.

Every finding has a place, the line of the stack file that names its resource, and a fingerprint that is the same in
every run, so that a service can tell new findings from known ones.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ops.policy.findings import MANDATORY, Finding, Judgement, fingerprints
from ops.policy.rules import Rule, of_findings
from ops.policy.stack_file import StackFile

_LEVELS = {MANDATORY: "error", "advisory": "warning"}
# GitHub reads the words from these numbers: critical from 9.0, high from 7.0, medium from 4.0, low above 0.
_SCORES = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}
Document = dict[str, Any]


def as_json(judgement: Judgement, file: StackFile) -> Document:
    """Return the document that `--json` prints.

    `{stack, pack: {path, name, version}, findings: [FINDING], exceptions: [FINDING], summary}`, where FINDING is
    `{rule, severity, level, resource: {urn, type, name}, message, location: {file, line}, fingerprint}` with severity
    critical, high, medium, low or unspecified, and level mandatory, advisory or remediate (what an update with this
    pack corrects by itself). `exceptions` are what rules were lifted from. `summary` is `{passed, complete, resources,
    mandatory, advisory, remediate, exceptions, severities}`: passed if nothing mandatory was found, complete unless the
    preview stopped before the rules over the whole stack, the rest are numbers.
    """
    return {
        "stack": judgement.stack,
        "pack": {"path": judgement.pack.path, "name": judgement.pack.name, "version": judgement.pack.version},
        "findings": [*_entries(judgement.findings, file)],
        "exceptions": [*_entries(judgement.exceptions, file)],
        "summary": judgement.summary(),
    }


def as_sarif(judgement: Judgement, file: StackFile, known: Mapping[str, Rule]) -> Document:
    """Return the SARIF log: mandatory findings are errors, advisory ones warnings, the rest and exceptions notes.

    Its category is the stack, so that what is uploaded for one stack does not close what was found in another.
    """
    told = [*judgement.findings, *judgement.exceptions]
    rules = of_findings(told, known)
    positions = {name: position for position, name in enumerate(rules)}
    noted = frozenset(judgement.exceptions)
    results = [
        {
            "ruleId": finding.rule,
            "ruleIndex": positions[finding.rule],
            "level": "note" if finding in noted else _LEVELS.get(finding.level, "note"),
            "message": {"text": finding.message},
            "locations": [_location(finding, file)],
            "partialFingerprints": {"primaryLocationLineHash": mark},
            "properties": {"severity": finding.severity, "enforcementLevel": finding.level},
        }
        for finding, mark in zip(told, fingerprints(told), strict=True)
    ]
    driver = {
        "name": judgement.pack.name,
        **({"version": judgement.pack.version} if judgement.pack.version else {}),
        "rules": [_rule(name, rule, severity) for name, (rule, severity) in rules.items()],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"policy/{judgement.stack}/"},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _entries(findings: tuple[Finding, ...], file: StackFile) -> Iterator[Document]:
    for finding, mark in zip(findings, fingerprints(findings), strict=True):
        of = finding.resource
        yield {
            "rule": finding.rule,
            "severity": finding.severity,
            "level": finding.level,
            "resource": {"urn": of.urn, "type": of.type, "name": of.name},
            "message": finding.message,
            "location": {"file": file.uri, "line": file.line(of)},
            "fingerprint": mark,
        }


def _location(finding: Finding, file: StackFile) -> Document:
    of = finding.resource
    return {
        "physicalLocation": {"artifactLocation": {"uri": file.uri}, "region": {"startLine": file.line(of)}},
        "logicalLocations": [{"fullyQualifiedName": of.urn, "name": str(of), "kind": "resource"}],
    }


def _rule(name: str, rule: Rule, severity: str) -> Document:
    score = {"security-severity": _SCORES[severity]} if severity in _SCORES else {}
    return {
        "id": name,
        "name": "".join(word.capitalize() for word in name.split("-")),
        "shortDescription": {"text": rule.description},
        "fullDescription": {"text": rule.description},
        "help": {"text": rule.help, "markdown": rule.help},
        "properties": {"tags": ["security"] if score else [], **score},
    }
