"""From a preview to a judgement, or to the error that says why there is none."""

from collections.abc import Iterable
from pathlib import Path

from ops.connection import explain_pulumi
from ops.errors import OpsError
from ops.exit_codes import explain_exit
from ops.policy import removals
from ops.policy.events import Log, resource
from ops.policy.findings import EXCEPTIONS_RULE, REMEDIATE, Finding, Judgement, Pack, in_order
from ops.policy.preview import Preview

_LINES_MAX = 30
# The stack and its providers are no resources of anybody's cluster.
_PULUMIS_OWN = "pulumi:"
_TRACEBACK = "Traceback (most recent call last):"
# What follows an error that has been told already.
_ECHO = "an unhandled error occurred: program exited with non-zero exit code"


def judge(stack: str, pack: Path, preview: Preview, removals_level: removals.Level) -> Judgement:
    """Return what was found; raises OpsError if the preview failed for another reason than what was found.

    `removals_level` is that of planned removals.
    """
    log = preview.log
    told = in_order([*_violations(log), *_corrections(log), *removals.findings(log, removals_level)])
    judgement = Judgement(
        stack=stack,
        pack=_pack(pack, log),
        findings=tuple(finding for finding in told if finding.rule != EXCEPTIONS_RULE),
        exceptions=tuple(finding for finding in told if finding.rule == EXCEPTIONS_RULE),
        resources=sum(not each.type.startswith(_PULUMIS_OWN) for each in log.resources.values()),
        complete=log.judged_whole or not log.refused,
    )
    # Pulumi fails a preview with violations; with nothing of that kind the reason is another.
    if log.errors or not log.ended or (not preview.succeeded and judgement.passed):
        raise OpsError(failure(stack, preview))
    if not log.packs:
        raise OpsError(f"stack {stack}: policy pack {pack} must run (got a preview without it).")
    return judgement


def _violations(log: Log) -> Iterable[Finding]:
    known = log.resources
    for violation in log.violations:
        yield Finding(
            rule=violation.rule,
            severity=violation.severity or "unspecified",
            level=violation.level,
            resource=known.get(violation.urn) or resource(violation.urn),
            message=violation.message,
            description=violation.description,
        )


def _corrections(log: Log) -> Iterable[Finding]:
    known = log.resources
    for correction in log.corrections:
        of = known.get(correction.urn) or resource(correction.urn)
        yield Finding(
            rule=correction.rule,
            severity="unspecified",
            level=REMEDIATE,
            resource=of,
            message=f"{of}: `pulumi up` with this pack corrects {', '.join(correction.paths) or 'it'}.",
        )


def _pack(path: Path, log: Log) -> Pack:
    """The engine names a pack of a folder `name|local|folder`."""
    name, version = next(iter(log.packs.items()), (path.resolve().name, ""))
    return Pack(path=str(path), name=name.split("|")[0], version=version)


def failure(stack: str, preview: Preview) -> str:
    """Return why a preview failed, by its own errors; a traceback is told by its last line."""
    errors = [_short(error) for error in preview.log.errors if not error.startswith(_ECHO)]
    if not errors:
        if explained := explain_pulumi(stack, preview.stderr, preview.exit_code):
            return explained
        complaints = [line.strip().removeprefix("error: ") for line in preview.stderr.splitlines()]
        errors = [*preview.log.said[-1:], *filter(None, complaints), *preview.log.premature]
    if not errors and preview.exit_code == 0:
        errors = ["Pulumi wrote no event log; its release must know --event-log"]
    text = "\n  ".join(line for error in errors[:_LINES_MAX] for line in error.splitlines())
    return f"stack {stack}: preview must succeed before it can be judged ({explain_exit(preview.exit_code)}):\n  {text}"


def _short(error: str) -> str:
    head, found, rest = error.partition(_TRACEBACK)
    lines = [line for line in rest.splitlines() if line.strip()]
    return f"{head.strip()} {lines[-1].strip()}" if found and lines else error
