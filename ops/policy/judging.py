"""Turns a preview into a judgement, or into an error with the reason why there is none.

A policy pack never receives resources that are deleted or replaced: it judges what is to exist, and its rule
`deletion-protection` requires that these be protected. This module finds such planned removals in the preview and
reports them under the same name, with the level and the exceptions that the pack's configuration gives that rule.

Three files configure the pack for a stack, each on top of the one before: the pack's own `config.<stack>.json`, which
the pack reads itself and only for stacks of the project around it, `policy.<stack>.json` beside the stack file, and a
file that is given. Pulumi takes one file, so the last two are merged if both are there. The pack reports unknown rules
and options.
"""

import contextlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml

from ops.errors import OpsError
from ops.policy import (
    ADVISORY,
    EXCEPTIONS_RULE,
    MANDATORY,
    REMEDIATE,
    Finding,
    Judgement,
    Pack,
    in_order,
)
from ops.pulumi.events import EventLog, Step, resource_of, value_at
from ops.pulumi.process import explain_exit, explain_failure
from ops.pulumi.stack import EngineRun, PulumiStack
from settings.names import EXCEPTION
from settings.platform import CLUSTER_KINDS, annotation_domain

RULE = "deletion-protection"
DESCRIPTION = "Nothing that holds records or lets clients in is deleted or replaced."
_SECRET = "Secret"  # noqa: S105 - a kind of resource
_ALL, _LEVEL = "all", "enforcementLevel"
_LEVELS = {MANDATORY: MANDATORY, REMEDIATE: MANDATORY, ADVISORY: ADVISORY, "disabled": None}
_UNTIL = re.compile(r"until (\d{4}-\d{2}-\d{2}): *(\S.*)", re.DOTALL)
Level = str | None
# What goes with an object of a kind, by API group ("" for the core one).
_LOST = {
    **{
        (group, kind): words
        for group in CLUSTER_KINDS
        for kind, words in {
            **dict.fromkeys(CLUSTER_KINDS.values(), "All of its records go with it."),
            "KafkaNodePool": "Its brokers go with it, and with them their replicas.",
            "KafkaTopic": "Its records go with it.",
        }.items()
    },
    ("", "PersistentVolumeClaim"): "The records on its volume may go with it.",
    ("", _SECRET): "Clients and mirrors can log in no longer.",
    ("", "Namespace"): "Everything in it goes with it.",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "Every resource of its kind goes with it.",
}
_PROTECTED = "Pulumi protects it, so an update stops."


def configured_level(files: Iterable[Path]) -> Level:
    """Return the rule's level by the files that configure the pack, the last one counts most; None if it is disabled.

    The pack itself reports what else is wrong with a configuration.
    """
    found: Level = MANDATORY
    for document in map(read_configuration, files):
        for key in (_ALL, RULE):
            settings = document.get(key)
            given = settings.get(_LEVEL) if isinstance(settings, dict) else settings
            found = _LEVELS[given] if isinstance(given, str) and given in _LEVELS else found
    return found


def removal_findings(log: EventLog, found_at: Level) -> Iterator[Finding]:
    """Yield a finding for each planned removal that matters. A replacement shows as several steps and counts once.

    What Pulumi itself refuses to remove is found at every level and in spite of exceptions: the update would stop.
    """
    logins = _logins(log)
    removed = {step.urn: step for step in log.steps if step.removes}
    unseen = {urn: Step(urn=urn, operation=operation) for urn, operation in log.refused.items()}
    for urn, step in {**unseen, **removed}.items():
        lost = _lost(step, logins)
        if urn in log.refused:
            yield _finding(step, MANDATORY, f"{lost} {_PROTECTED}".strip())
        elif lost and found_at is not None:
            exempt = next(filter(None, map(_exempt, (step, *(logins or {}).get(step.id, [])))), None)
            yield _lifted(step, exempt) if exempt else _finding(step, found_at, lost)


def _finding(step: Step, found_at: str, consequence: str) -> Finding:
    of = resource_of(step.urn, step.inputs, step.id)
    return Finding(
        rule=RULE,
        severity="critical",
        level=found_at,
        resource=of,
        message=f"{of}: must stay (got {step.removes}). {consequence}",
        description=DESCRIPTION,
    )


def _lifted(step: Step, exception: str) -> Finding:
    of = resource_of(step.urn, step.inputs, step.id)
    return Finding(
        rule=EXCEPTIONS_RULE,
        severity="low",
        level=ADVISORY,
        resource=of,
        message=f"{of}: {RULE} is lifted from its {step.removes} {exception}",
    )


def _exempt(step: Step) -> str | None:
    """The exception that lifts the rule from the resource today; one that cannot be read lifts nothing."""
    value = str(step.annotations.get(f"{EXCEPTION}{RULE}", "")).strip()
    match = _UNTIL.fullmatch(value)
    try:
        return value if match and datetime.now(UTC).date() <= date.fromisoformat(match[1]) else None
    except ValueError:
        return None


def _lost(step: Step, logins: Mapping[str, list[Step]] | None) -> str:
    """What goes with the object, "" if nothing that matters. `logins` are the Secrets that matter, None for all."""
    group, kind = _kind(step.urn)
    if kind == _SECRET and logins is not None and step.id not in logins:
        return ""
    if group in CLUSTER_KINDS and step.annotations.get(f"{annotation_domain(group)}/managed") == "false":
        return ""  # the operator then leaves the topic alone
    return _LOST.get((group, kind), "")


def _logins(log: EventLog) -> Mapping[str, list[Step]] | None:
    """The users of each Secret with a password, by the id of the Secret; None if the preview has no user."""
    users = [step for step in log.steps if _kind(step.urn)[1] == "KafkaUser"]
    found: dict[str, list[Step]] = {}
    for user in users:
        reference = value_at(user.inputs, "spec", "authentication", "password", "valueFrom", "secretKeyRef")
        namespace, name = value_at(user.inputs, "metadata", "namespace"), value_at(reference, "name")
        found.setdefault(f"{namespace}/{name}" if namespace else str(name), []).append(user)
    return found if users else None


def _kind(urn: str) -> tuple[str, str]:
    """API group and kind of a Kubernetes object, two empty strings for anything else."""
    package, _, rest = resource_of(urn).type.partition(":")
    version, _, kind = rest.rpartition(":")
    group = version.partition("/")[0]
    return ("" if group == "core" else group, kind) if package == "kubernetes" else ("", "")


_LINES_MAX = 30
# The stack and its providers are no resources of anybody's cluster.
_PULUMIS_OWN = "pulumi:"
_TRACEBACK = "Traceback (most recent call last):"
# What follows an error that has been reported already.
_ECHO = "an unhandled error occurred: program exited with non-zero exit code"


def judge(stack: str, pack: Path, preview: EngineRun, removals_level: Level) -> Judgement:
    """Return the judgement of a preview.

    Args:
        stack: name of the stack.
        pack: folder of the policy pack.
        preview: a preview that the pack judged.
        removals_level: level of planned removals; None leaves them out.

    Raises:
        OpsError: the preview failed for another reason than a mandatory finding, or ran without the pack.
    """
    log = preview.log
    every = in_order([*_violations(log), *_corrections(log), *removal_findings(log, removals_level)])
    judgement = Judgement(
        stack=stack,
        pack=_pack(pack, log),
        findings=tuple(finding for finding in every if finding.rule != EXCEPTIONS_RULE),
        exceptions=tuple(finding for finding in every if finding.rule == EXCEPTIONS_RULE),
        resources=sum(not each.type.startswith(_PULUMIS_OWN) for each in log.resources.values()),
        complete=log.analyzed_stack or not log.refused,
    )
    # Pulumi fails a preview with violations; with nothing of that kind the reason is another.
    if log.errors or not log.ended or (not preview.succeeded and judgement.passed):
        raise OpsError(failure(stack, preview))
    if not log.packs:
        raise OpsError(f"stack {stack}: policy pack {pack} must run (got a preview without it).")
    return judgement


def _violations(log: EventLog) -> Iterable[Finding]:
    known = log.resources
    for violation in log.violations:
        yield Finding(
            rule=violation.rule,
            severity=violation.severity or "unspecified",
            level=violation.level,
            resource=known.get(violation.urn) or resource_of(violation.urn),
            message=violation.message,
            description=violation.description,
        )


def _corrections(log: EventLog) -> Iterable[Finding]:
    known = log.resources
    for correction in log.remediations:
        of = known.get(correction.urn) or resource_of(correction.urn)
        yield Finding(
            rule=correction.rule,
            severity="unspecified",
            level=REMEDIATE,
            resource=of,
            message=f"{of}: `pulumi up` with this pack corrects {', '.join(correction.paths) or 'it'}.",
        )


def _pack(path: Path, log: EventLog) -> Pack:
    """The engine names a pack of a folder `name|local|folder`."""
    name, version = next(iter(log.packs.items()), (path.resolve().name, ""))
    return Pack(path=str(path), name=name.split("|")[0], version=version)


def failure(stack: str, preview: EngineRun) -> str:
    """Return why a preview failed, by its own errors; of a traceback the last line."""
    errors = [_short(error) for error in preview.log.errors if not error.startswith(_ECHO)]
    if not errors:
        if explained := explain_failure(stack, preview.stderr, preview.exit_code, preview.folder):
            return explained
        complaints = [line.strip().removeprefix("error: ") for line in preview.stderr.splitlines()]
        errors = [*preview.log.program_errors[-1:], *filter(None, complaints), *preview.log.premature_exits]
    if not errors and preview.exit_code == 0:
        errors = ["Pulumi wrote no event log; its release must know --event-log"]
    text = "\n  ".join(line for error in errors[:_LINES_MAX] for line in error.splitlines())
    return f"stack {stack}: preview must succeed before it can be judged ({explain_exit(preview.exit_code)}):\n  {text}"


def _short(error: str) -> str:
    head, found, rest = error.partition(_TRACEBACK)
    lines = [line for line in rest.splitlines() if line.strip()]
    return f"{head.strip()} {lines[-1].strip()}" if found and lines else error


Configuration = dict[str, Any]


def configuration_files(pack: Path, folder: Path, stack: str, given: Path | None) -> list[Path]:
    """Return every file that configures the pack for a stack, the last one counts most.

    Args:
        pack: folder of the policy pack.
        folder: folder of the project's Pulumi.yaml and stack files.
        stack: name of the stack, with or without organization and project.
        given: a file on top of all others.
    """
    own = pack / f"config.{_stack_name(stack)}.json"
    return [*([own] if own.is_file() and _configures(pack, folder) else []), *files_on_top(folder, stack, given)]


def files_on_top(folder: Path, stack: str, given: Path | None) -> list[Path]:
    """Return those of `configuration_files` that the pack does not find by itself."""
    beside = folder / f"policy.{_stack_name(stack)}.json"
    return [*([beside] if beside.is_file() else []), *([given] if given else [])]


@contextlib.contextmanager
def merged_file(chosen: Sequence[Path]) -> Iterator[Path | None]:
    """Yield one file with the content of these, which is temporary if there are several; None if there are none."""
    if len(chosen) < 2:
        yield next(iter(chosen), None)
        return
    with tempfile.TemporaryDirectory(prefix="rt-inventory-policy-") as folder:
        file = Path(folder) / "policy.json"
        file.write_text(json.dumps(merge_files(chosen)), encoding="utf-8")
        yield file


def preview_with_pack(
    stack: PulumiStack,
    pack: Path,
    given: Path | None,
    *,
    within_s: float,
    config_file: Path | None = None,
    watch: Callable[[str], None] | None = None,
) -> EngineRun:
    """Run a preview that the policy pack judges, configured for the stack.

    Args:
        stack: the stack to preview.
        pack: folder of the policy pack.
        given: a configuration on top of the stack's own.
        within_s: seconds after which the preview is given up.
        config_file: used in place of the stack file.
        watch: called from time to time with a line of the preview's progress.
    """
    with merged_file(files_on_top(stack.folder, stack.name, given)) as pack_config:
        return stack.preview(
            within_s=within_s, pack=pack, pack_config=pack_config, config_file=config_file, watch=watch
        )


def merge_files(files: Sequence[Path]) -> Configuration:
    """Return one configuration of several files: of a rule that two configure, the later options and level count."""
    found: Configuration = {}
    for file in files:
        content = read_configuration(file)
        if _LEVEL in _as_options(content.get(_ALL, {})):  # the later file's level counts for all rules
            found = {rule: kept for rule, settings in found.items() if (kept := _without_level(settings))}
        for rule, settings in content.items():
            options = {**_as_options(found.get(rule, {})), **_as_options(settings)}
            found[rule] = options if isinstance(found.get(rule), dict) or isinstance(settings, dict) else settings
    return found


def read_configuration(file: Path) -> Configuration:
    """Return the content of a file; raises OpsError if it is no JSON object."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise OpsError(f"file {file}: must be a configuration that exists ({error.strerror}).") from error
    except ValueError as error:
        raise OpsError(f"file {file}: must be JSON ({error}).") from error
    if not isinstance(content, dict):
        raise OpsError(f"file {file}: must be an object with a key per rule (got {type(content).__name__}).")
    return content


def _without_level(settings: object) -> Configuration:
    return {key: value for key, value in _as_options(settings).items() if key != _LEVEL}


def _as_options(settings: object) -> Configuration:
    return dict(settings) if isinstance(settings, dict) else {_LEVEL: settings}


def _stack_name(stack: str) -> str:
    """A stack's name without organization and project."""
    return stack.rsplit("/", 1)[-1]


def _configures(pack: Path, folder: Path) -> bool:
    """Whether the pack's own files are for stacks of this project. They are for any if the pack lies in no project."""
    around, project = _project_name(pack.resolve().parent), _project_name(folder)
    return around is None or project is None or around == project


def _project_name(folder: Path) -> str | None:
    file = folder / "Pulumi.yaml"
    if not file.is_file():
        return None
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError):
        return None  # Pulumi reports what is wrong with it
    return str(content["name"]) if isinstance(content, dict) and "name" in content else None
