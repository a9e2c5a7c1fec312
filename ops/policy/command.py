"""`python -m ops policy`: shows what the policy pack finds in a stack's preview, for people and for pipelines.

A judgement is shown as a table for people, as JSON, and as SARIF 2.1.0 for code scanning. Every finding has a location,
the line of the stack file that names its resource, and a fingerprint that is the same in every run, so that a service
can separate new findings from known ones. What rules mean comes from the schema beside the pack's configuration;
without that file the findings describe them.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table

from contract.files import PRIVATE, replace_text
from ops.connection import PROJECT
from ops.console import escape
from ops.errors import OpsError
from ops.pipeline import documents
from ops.policy import (
    ADVISORY,
    MANDATORY,
    REMEDIATE,
    SEVERITIES,
    Change,
    Finding,
    Judgement,
    fingerprints,
    judging,
    planned,
)
from ops.policy.judging import judge
from ops.pulumi.stack import PulumiStack
from ops.pulumi.stack_file import StackFile
from settings.text import format_count

EXIT_FAILED, EXIT_UNUSABLE, EXIT_INTERRUPTED = 1, 2, 130
WITHIN_S = 600.0
# Without a terminal, whose width is known, as in a pipeline's log.
_WIDTH = 160
_LEVELS = {MANDATORY: "error", "advisory": "warning"}
# GitHub reads the words from these numbers: critical from 9.0, high from 7.0, medium from 4.0, low above 0.
_SCORES = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}
Document = dict[str, Any]


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack whose preview is judged.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a table.")] = False,
    sarif: Annotated[
        Path | None, typer.Option("--sarif", help="File to also write the findings to, as SARIF for code scanning.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder to also write preview-STACK.json (what changes and is found) and .sarif to."
        ),
    ] = None,
    pack: Annotated[Path, typer.Option("--pack", help="Folder of the policy pack.")] = PROJECT / "policies",
    config: Annotated[
        Path | None, typer.Option("--config", help="JSON file that configures the rules, on top of policy.STACK.json.")
    ] = None,
    folder: Annotated[Path, typer.Option("--folder", "-C", help="Folder of Pulumi.yaml.")] = PROJECT,
    within_s: Annotated[float, typer.Option("--within", min=1, help="Seconds after which to give up.")] = WITHIN_S,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show what Pulumi wrote, and the traceback of an error.")
    ] = False,
) -> None:
    """Judge what an update of a stack would do: run the policy pack over its preview and show what it finds.

    Example: [bold]python -m ops policy --stack stg --sarif policy.sarif[/bold]

    Deleting or replacing what holds records is found too (rule deletion-protection). Nothing is changed. Exit 0 if
    nothing mandatory is found, 1 if something is, 2 if the preview failed or did not end.
    """
    if out is not None:
        _forget(out, stack)
    try:
        judgement, changes = _judgement(PulumiStack(folder=folder, name=stack), pack, config, within_s, debug=debug)
        file = StackFile(folder, stack)
        for target in _sarif_files(sarif, out, stack):
            _write(target, as_sarif(judgement, file, describe_rules(pack)))
        if out is not None:
            changed = {"changes": [change.as_json() for change in changes]}
            _write(documents.file(out, documents.PREVIEW, stack), judgement_document(judgement, file) | changed)
    except (OpsError, OSError) as error:
        if out is not None:
            with suppress(OSError):  # of the same full disk: the error itself is what has to be shown
                _write(documents.file(out, documents.PREVIEW, stack), {"stack": stack, "error": str(error)})
        if debug:
            raise
        if as_json:
            sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        _stderr().print(f"[red]error:[/red] {escape(str(error))}", highlight=False)
        raise typer.Exit(EXIT_UNUSABLE) from error
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        _write(None, judgement_document(judgement, file))
    else:
        _stdout().print(judgement_table(judgement), highlight=False)
    if not judgement.passed:
        raise typer.Exit(EXIT_FAILED)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("policy")(command)


def _forget(out: Path, stack: str) -> None:
    """Remove what an earlier run left, which would pass for this one's if it is killed."""
    for suffix in (".json", ".sarif"):
        documents.file(out, documents.PREVIEW, stack).with_suffix(suffix).unlink(missing_ok=True)


def _sarif_files(sarif: Path | None, out: Path | None, stack: str) -> list[Path]:
    return [
        *([sarif] if sarif else []),
        *([documents.file(out, documents.PREVIEW, stack).with_suffix(".sarif")] if out else []),
    ]


def _judgement(
    stack: PulumiStack, pack: Path, config: Path | None, within_s: float, *, debug: bool
) -> tuple[Judgement, list[Change]]:
    level = judging.configured_level(judging.configuration_files(pack, stack.folder, stack.name, config))
    with _progress(stack.name) as watch:
        preview = judging.preview_with_pack(stack, pack, config, within_s=within_s, watch=watch)
    if debug:
        _stderr().print(escape(preview.stdout + preview.stderr), highlight=False)
    return judge(stack.name, pack, preview, level), planned(preview.log.steps)


def _write(file: Path | None, document: Document) -> None:
    text = json.dumps(document, indent=2) + "\n"
    if file is None:
        sys.stdout.write(text)
    else:
        replace_text(file, text, new_mode=PRIVATE)


@contextmanager
def _progress(stack: str) -> Iterator[Callable[[str], None] | None]:
    """Show what the preview is doing in a line on a terminal's stderr."""
    console = _stderr()
    if not console.is_terminal:
        yield None
        return
    with console.status(f"preview of {escape(stack)}") as status:
        yield lambda doing: status.update(f"preview of {escape(stack)}: {escape(doing)}")


def _stdout() -> Console:
    wide = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console() if wide else Console(width=_WIDTH)


def _stderr() -> Console:
    return Console(stderr=True, soft_wrap=True)


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


def judgement_document(judgement: Judgement, file: StackFile) -> Document:
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
    every = [*judgement.findings, *judgement.exceptions]
    rules = rules_of(every, known)
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
        for finding, mark in zip(every, fingerprints(every), strict=True)
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


SCHEMA = "config.schema.json"
_LEVEL = "enforcementLevel"


def describe_rules(pack: Path) -> dict[str, Rule]:
    """Return the rules that the pack's schema describes, and the one that is judged here; {} of the pack's if none."""
    try:
        document = json.loads((pack / SCHEMA).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        document = {}
    found = _mapping(_mapping(document).get("properties"))
    rules = {name: Rule(description=_text(entry), options=_options(entry)) for name, entry in found.items()}
    return {judging.RULE: Rule(description=judging.DESCRIPTION)} | {
        name: rule for name, rule in rules.items() if rule.description
    }


def rules_of(findings: Iterable[Finding], known: Mapping[str, Rule]) -> dict[str, tuple[Rule, str]]:
    """Return the rules of these findings, by name in alphabetical order, each with the gravest severity found."""
    rules: dict[str, tuple[Rule, str]] = {}
    for finding in findings:
        rule = known.get(finding.rule) or Rule(description=finding.description or finding.rule)
        _, severity = rules.get(finding.rule, (rule, finding.severity))
        rules[finding.rule] = rule, min(severity, finding.severity, key=SEVERITIES.index)
    return dict(sorted(rules.items()))


def _options(entry: Any) -> dict[str, str]:
    """Options of a rule's entry, or of one of its forms: a rule is configured by a level or by an object."""
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


_COLORS = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan"}
_STOPPED = "The preview stopped at what Pulumi protects: rules over the whole stack were not judged."


def judgement_table(judged: Judgement) -> RenderableType:
    """Return the table, or one line if nothing was found."""
    return Group(*_parts(judged))


def _parts(judged: Judgement) -> Iterator[RenderableType]:
    pack = f"{judged.pack.name} {judged.pack.version}".strip()
    where = f"stack {judged.stack}, {format_count(judged.resources, 'resource')}, pack {pack}"
    if judged.findings:
        yield _findings(judged.findings)
    if judged.exceptions:
        yield _exceptions(judged.exceptions)
    if not judged.complete:
        yield f"[yellow]{_STOPPED}[/yellow]"
    counts = [
        f"{judged.count(MANDATORY)} mandatory",
        f"{judged.count(ADVISORY)} advisory",
        *([f"{judged.count(REMEDIATE)} corrected by an update"] if judged.count(REMEDIATE) else []),
        *([format_count(len(judged.exceptions), "active exception")] if judged.exceptions else []),
    ]
    words = ", ".join(counts) if judged.findings or judged.exceptions else "nothing found"
    color = "green" if judged.passed else "red"
    yield f"[{color}]{words}[/{color}]: {escape(where)}"


def _findings(findings: tuple[Finding, ...]) -> Table:
    table = Table(show_lines=True)
    for column in ("severity", "level", "rule"):
        table.add_column(column, no_wrap=True)
    for column in ("resource", "message"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        color = _COLORS.get(finding.severity)
        table.add_row(
            f"[{color}]{finding.severity}[/{color}]" if color else finding.severity,
            finding.level,
            escape(finding.rule),
            escape(str(finding.resource)),
            escape(finding.message),
        )
    return table


def _exceptions(findings: tuple[Finding, ...]) -> Table:
    table = Table(title="Active exceptions", title_justify="left", show_lines=True)
    for column in ("resource", "exception"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(escape(str(finding.resource)), escape(finding.message))
    return table
