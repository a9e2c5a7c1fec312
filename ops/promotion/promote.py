"""A promotion from the comparison to its record, and the previews that it needs.

Owns the order of the steps: compare, verification status, gate, approval, stack file, `up`, verification. Each step is
safe to run again. Owns which planned steps count as changes.

Nothing is changed before the approval. The stack file is then replaced at once by the very text that was judged and
previewed. It stays if the `up` fails: it has the new settings, and the same command goes on from there.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ops.errors import OpsError
from ops.policy import MANDATORY, Judgement, judging
from ops.policy.command import judgement_document
from ops.policy.judging import failure, judge
from ops.promotion.difference import Difference, StackSettings, compare
from ops.promotion.record import (
    ProjectVerifications,
    Record,
    VerificationStatus,
    failed_verifications,
    missing_verifications,
)
from ops.pulumi.events import EventLog, Step, resource_of
from ops.pulumi.stack import PulumiStack
from ops.pulumi.stack_file import StackFile, edit
from settings import SettingsError, beside, parse
from settings.files import check

Log = Callable[[str], None]
Ask = Callable[[Record], bool]
REFUSED, PLANNED, NOTHING, DECLINED = "refused", "planned", "nothing to promote", "declined"
PROMOTED, FAILED, UNPROVEN, INTERRUPTED = "promoted", "failed", "not proven", "interrupted"
GOOD = (PLANNED, NOTHING, PROMOTED)
_STEPS = 7


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was asked for. `unproven` is the reason for which a missing or old proof is accepted."""

    source: str
    target: str
    folder: Path
    pack: Path
    pack_config: Path | None
    max_age: timedelta
    verify_now: bool
    unproven: str | None
    dry_run: bool
    within_s: float
    record: Path | None

    def file(self, stack: str) -> Path:
        """The stack's file."""
        return self.folder / f"Pulumi.{stack}.yaml"


@dataclass(frozen=True, kw_only=True, order=True)
class PlannedChange:
    """One change that an `up` would make: create, update, replace or delete, and of what."""

    operation: str
    resource: str

    def __str__(self) -> str:
        return f"{self.operation} {self.resource}"


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What the policy pack found in the target with its new settings, and what an `up` would change there."""

    judgement: Judgement
    planned: tuple[PlannedChange, ...]


@dataclass(frozen=True, kw_only=True)
class StackPreviews:
    """The Pulumi project whose stacks are previewed. `within_s` is the deadline of one preview."""

    folder: Path
    environment: Mapping[str, str] = field(repr=False)
    within_s: float

    def undeployed(self, stack: str, *, always_verified: bool) -> tuple[PlannedChange, ...]:
        """Return how the deployed stack differs from its file; raises OpsError if the preview fails.

        A verification that runs in every `up` is no change.
        """
        preview = self._stack(stack).preview(within_s=self.within_s)
        if not preview.succeeded or preview.log.errors:
            raise OpsError(failure(stack, preview))
        return planned(preview.log, but=_VERIFICATION if always_verified else None)

    def gate(self, stack: str, file: Path, pack: Path, config: Path | None) -> Gate:
        """Return the policy's judgement and the plan for a stack with another stack file."""
        level = judging.configured_level(judging.configuration_files(pack, self.folder, stack, config))
        preview = judging.preview_with_pack(self._stack(stack), pack, config, within_s=self.within_s, config_file=file)
        return Gate(judgement=judge(stack, pack, preview, level), planned=planned(preview.log))

    def _stack(self, name: str) -> PulumiStack:
        return PulumiStack(folder=self.folder, name=name, environment=self.environment)


@dataclass(kw_only=True)
class Promotion:
    """One promotion; `ask` decides after the plan is known, and notes who approved."""

    options: Options
    environment: Mapping[str, str] = field(repr=False)
    log: Log
    ask: Ask
    record: Record = field(init=False)

    def run(self) -> Record:
        """Carry out the promotion as far as it may go; return its record. Raises OpsError if it cannot be judged."""
        options = self.options
        self.record = Record.begin(options.source, options.target, options.folder, self.environment)
        if options.record is not None:
            self.record.keep(options.record)
        try:
            self._steps()
        except (OpsError, SettingsError) as error:
            self.record.end(FAILED, str(error))
            raise
        except BaseException:
            self.record.end(INTERRUPTED)
            raise
        return self.record

    def _steps(self) -> None:
        options = self.options
        before = _text(options.file(options.target))
        found = self._compared()
        if problems := self._source_problems():
            self._refuse(problems)
            return
        with tempfile.TemporaryDirectory(prefix="rt-inventory-promote-") as folder:
            copy = Path(folder) / f"Pulumi.{options.target}.yaml"
            copy.write_text(before, encoding="utf-8")
            copy.chmod(0o600)
            self._stack.set_config(copy, {key: found.wanted[key] for key in found.changed_keys})
            after = _text(copy)
            gate = self._gated(copy)
        if not gate.judgement.passed:
            mandatory = [each for each in gate.judgement.findings if each.level == MANDATORY]
            self._refuse([f"policy {each.rule}: {each.message}" for each in mandatory])
        elif options.dry_run:
            self.record.end(PLANNED if found.changes or gate.planned else NOTHING)
        elif not found.changes and not gate.planned:
            # An earlier promotion may have been interrupted before it had verified.
            self._verify(NOTHING, datetime.now(UTC))
        elif not self.ask(self.record):
            self.record.end(DECLINED)
        else:
            if options.record is None:
                self.record.keep(self.record.default_file(options.folder))
            self._carry_out(before, after)

    def _compared(self) -> Difference:
        """Step 1: what differs, as settings that are good in the target."""
        options = self.options
        self._progress(1, f"compare {options.source} and {options.target}")
        files = beside(options.folder, None)
        source, target = (
            StackSettings(name=stack, settings=check(options.file(stack))[0], values=files[stack])
            for stack in (options.source, options.target)
        )
        _require_no_failback(source, target)
        found = compare(source, target, files)
        try:
            parse(found.wanted, options.target, beside(options.folder, options.target), require_siblings=True)
        except SettingsError as error:
            raise OpsError(
                f"stack {options.target}: its settings must be good with those of {options.source} (nothing was "
                f"changed). Prepare {options.file(options.target).name} for them:\n{error}"
            ) from None
        self.record.note(
            changes=[{"key": each.key, "old": each.old, "new": each.new} for each in found.changes],
            notes=found.notes,
        )
        return found

    def _source_problems(self) -> list[str]:
        """Steps 2 and 3: the reasons why the source is no proof."""
        options = self.options
        how = "verify now" if options.verify_now else "read the latest verifications"
        self._progress(2, f"proof of {options.source}: {how}")
        found = (
            self._verifications.now(options.source, self.log) if options.verify_now else self._latest(options.source)
        )
        self.record.note(proofs=[proof.as_json() for proof in found], withoutVerification=options.unproven)
        problems = failed_verifications(found)
        if options.unproven is None:
            problems += missing_verifications(options.source, found, datetime.now(UTC), options.max_age)
        self._progress(3, f"preview of {options.source}: is it deployed as in its file?")
        always = check(options.file(options.source))[0].verification.when == "always"
        undeployed = self._previews.undeployed(options.source, always_verified=always)
        self.record.note(undeployed=changes_as_json(undeployed))
        if undeployed:
            problems.append(
                f"stack {options.source}: must be deployed as in {options.file(options.source).name} (an `up` would "
                f"{', '.join(map(str, undeployed))}). What is not deployed is not proven: `pulumi up -s "
                f"{options.source}`."
            )
        return problems

    def _gated(self, copy: Path) -> Gate:
        """Step 4: the policy's judgement of the target with its new settings, and what an `up` would change."""
        options = self.options
        self._progress(4, f"policy gate and preview of {options.target} with the new settings")
        gate = self._previews.gate(options.target, copy, options.pack, options.pack_config)
        document = judgement_document(gate.judgement, StackFile(options.folder, options.target))
        self.record.note(policy=document, preview=changes_as_json(gate.planned))
        return gate

    def _carry_out(self, before: str, after: str) -> None:
        """Steps 5 to 7: the stack file, the `up`, the verification."""
        options, file = self.options, self.options.file(self.options.target)
        self._progress(5, f"write {file.name}")

        def judged(now: str) -> str:
            if now != before:
                raise ValueError
            return after

        edit(file, judged, "must stay as it is while it is promoted (somebody changed it). Run this again.")
        self.record.note(written=after != before)
        self._progress(6, f"up of {options.target}")
        began = datetime.now(UTC)
        try:
            self._stack.up(None, self.log)
        except OpsError as error:
            self.record.note(up="failed")
            self.record.end(FAILED, f"{error} {file.name} has the new settings: remove the cause and run this again.")
            return
        self.record.note(up="succeeded")
        self._verify(PROMOTED, began)

    def _verify(self, result: str, since: datetime) -> None:
        """Step 7: every mirror that counts for the target, as it was verified since then, else now."""
        target = self.options.target
        self._progress(7, f"verification of {target}")
        found = self._latest(target)
        if any(proof.proven_at is None or proof.proven_at < since for proof in found):
            found = self._verifications.now(target, self.log)
        self.record.note(verification=[proof.as_json() for proof in found])
        wrong = failed_verifications(found)
        self.record.end(UNPROVEN if wrong else result, "\n".join(wrong) or None)

    def _latest(self, stack: str) -> list[VerificationStatus]:
        return self._verifications.latest(stack)

    def _refuse(self, problems: list[str]) -> None:
        self.record.note(problems=problems)
        self.record.end(REFUSED, "\n".join(problems))

    def _progress(self, number: int, words: str) -> None:
        self.log(f"[{number}/{_STEPS}] {words}")

    @property
    def _stack(self) -> PulumiStack:
        options = self.options
        return PulumiStack(folder=options.folder, name=options.target, environment=self.environment)

    @property
    def _previews(self) -> StackPreviews:
        options = self.options
        return StackPreviews(folder=options.folder, environment=self.environment, within_s=options.within_s)

    @property
    def _verifications(self) -> ProjectVerifications:
        files: Mapping[str, Mapping[str, Any]] = beside(self.options.folder, None)
        return ProjectVerifications(folder=self.options.folder, environment=self.environment, files=files)


def _require_no_failback(*sides: StackSettings) -> None:
    """Raise OpsError if a failback is under way: its steps and this one's would undo each other."""
    for side in sides:
        if moving := [mirror.name for mirror in side.settings.mirrors if mirror.failback is not None]:
            raise OpsError(
                f"stack {side.name}: no failback may be under way (got one of mirror {', '.join(moving)}). Finish it "
                "first: python -m ops failback --help."
            )


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            return opened.read()
    except OSError as error:
        raise OpsError(f"file {file}: must be readable ({error.strerror}). Name a stack that has one.") from None


# Steps after which a resource is as it was.
_NOTHING = {"same", "refresh", "read", "read-replacement", "discard", "discard-replaced", "remove-pending-replace"}
_REPLACEMENT = {"create-replacement", "delete-replaced"}
# Resources without an object: the stack, providers, and this project's components.
_NO_OBJECT = ("pulumi:", "rt-inventory:")
_VERIFICATION = "rt-inventory:verification:Verification"


def planned(log: EventLog, but: str | None = None) -> tuple[PlannedChange, ...]:
    """Return the changes of a preview, each once; `but` is the type of a component whose resources do not count."""
    found = (_change(step) for step in log.steps if not (but and f"{but}$" in step.urn))
    return tuple(sorted({change for change in found if change is not None}))


def changes_as_json(changes: tuple[PlannedChange, ...]) -> list[dict[str, Any]]:
    """Return the changes for a document."""
    return [{"operation": change.operation, "resource": change.resource} for change in changes]


def _change(step: Step) -> PlannedChange | None:
    of = resource_of(step.urn, step.inputs, step.id)
    if step.operation in _NOTHING or of.type.startswith(_NO_OBJECT):
        return None
    operation = "replace" if step.operation in _REPLACEMENT else step.operation
    return PlannedChange(operation=operation, resource=str(of))
