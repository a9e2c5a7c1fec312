"""The record of a promotion, and the verifications on which it rests. It contains no secret.

Owns the document and its file: who, when, from what to what, and the findings of each step. It is written again after
each step, so that an interrupted promotion leaves one too. Owns which mirrors' verifications count: the latest of the
stage's own mirrors and of those that read from it, with which verdict and of which age. Does not own the job.
"""

import getpass
import json
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from contract.files import replace_text
from ops import verify
from ops.pulumi.stack import PulumiStack, typed_outputs

VERSION = 1
FOLDER = "promotions"
GIT_WITHIN_S = 20.0
# Who started a pipeline, by what runs it.
_ACTORS = ("GITHUB_ACTOR", "GITLAB_USER_LOGIN")


@dataclass
class Record:
    """The document, and the file that it is written to; None while there is nothing to keep."""

    document: dict[str, Any]
    file: Path | None

    @classmethod
    def begin(cls, source: str, target: str, folder: Path, environment: Mapping[str, str]) -> "Record":
        """Return the record of a promotion that begins now."""
        return cls(
            {
                "version": VERSION,
                "from": source,
                "to": target,
                "by": who(environment),
                "startedAt": now(),
                "finishedAt": None,
                "result": "started",
                "error": None,
                "git": commit(folder, source, target),
            },
            None,
        )

    def note(self, **fields: Any) -> None:
        """Add the findings of a step; with a file the record is written at once."""
        self.document |= fields
        self._write()

    def end(self, result: str, error: str | None = None) -> None:
        """Add the result, and the error if there is one."""
        self.note(result=result, error=error, finishedAt=now())

    def keep(self, file: Path) -> None:
        """Write the record to a file, now and after each further step."""
        self.file = file
        self._write()

    def default_file(self, folder: Path) -> Path:
        """Return `promotions/<UTC time>-<from>-<to>.json` in the project's folder."""
        started = datetime.fromisoformat(self.document["startedAt"])
        return folder / FOLDER / f"{started:%Y%m%dT%H%M%SZ}-{self.document['from']}-{self.document['to']}.json"

    def _write(self) -> None:
        if self.file is not None:
            replace_text(self.file, json.dumps(self.document, indent=2) + "\n")


def who(environment: Mapping[str, str]) -> str:
    """Return who promotes: who started the pipeline, else the user of this machine."""
    named = next((environment[name] for name in _ACTORS if environment.get(name)), None)
    if named is not None:
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def commit(folder: Path, source: str, target: str) -> dict[str, Any] | None:
    """Return the project's commit and whether the two stack files differ from it; None outside of git."""
    files = [f"Pulumi.{stack}.yaml" for stack in (source, target)]
    try:
        head, changed = (_git(folder, *words) for words in (("rev-parse", "HEAD"), ("status", "--porcelain", *files)))
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": head, "uncommitted": bool(changed)}


def now() -> str:
    """Return this moment, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=GIT_WITHIN_S, check=True)
    return result.stdout.strip()


# The resource of a run, beside Pulumi or in the cluster, by its mirror.
_RUNS = ("{}-verification-run", "{}-verification-pods-run")
Log = Callable[[str], None]
Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class VerificationStatus:
    """The latest verification of one mirror. `verdict` is None if there was none.

    `unmet` are the checks that failed, or had no answer though the stack does not allow that.
    """

    stack: str
    mirror: str
    verdict: str | None
    proven_at: datetime | None
    report: str | None
    unmet: tuple[str, ...] = ()

    @property
    def is_red(self) -> bool:
        """Whether a check of the mirror failed."""
        return self.verdict == "fail" or bool(self.unmet)

    def is_fresh(self, now: datetime, within: timedelta) -> bool:
        """Whether there is a verification that is not too old."""
        return self.verdict is not None and self.proven_at is not None and now - self.proven_at <= within

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON."""
        return {
            "stack": self.stack,
            "mirror": self.mirror,
            "verdict": self.verdict,
            "provenAt": self.proven_at.isoformat(timespec="seconds") if self.proven_at else None,
            "wanting": list(self.unmet),
            "report": self.report,
        }


@dataclass(frozen=True, kw_only=True)
class ProjectVerifications:
    """Verifications of a project's stacks. `files` are the values of all stack files."""

    folder: Path
    environment: Mapping[str, str] = field(repr=False)
    files: Mapping[str, Raw]

    def latest(self, stack: str) -> list[VerificationStatus]:
        """Return the latest verification of every mirror that counts for a stack: running, of a deployed stack."""
        return [proof for name, mirrors, outputs in self._mirrors(stack) for proof in self._of(name, mirrors, outputs)]

    def now(self, stack: str, log: Log) -> list[VerificationStatus]:
        """Verify every mirror that counts for a stack now."""
        found = []
        for name, mirrors, outputs in self._mirrors(stack, secrets=True):
            for mirror in mirrors:
                log(f"verification of {mirror} of {name}")
                plan = verify.plan(name, outputs, mirror)
                reports = verify.new_report_dir(plan, self.folder / verify.REPORTS)
                verdict = verify.run(plan, reports, self.environment, log)
                proof = _status(name, mirror, {**verdict.report, "report": str(verdict.html)}, plan.request)
                found.append(replace(proof, proven_at=datetime.now(UTC)))
        return found

    def _mirrors(self, stack: str, *, secrets: bool = False) -> Iterable[tuple[str, list[str], Raw]]:
        """Stacks that are up with their mirrors that count, and their outputs."""
        up = self._stack(stack).deployed_stacks()
        for name, values in self.files.items():
            declared = [each["name"] for each in values.get("mirrors") or () if name == stack or _reads(each, stack)]
            if not declared or name not in up:
                continue
            outputs = self._stack(name).outputs(secrets=secrets)
            yield name, [mirror for mirror in _running(name, outputs) if _declared(mirror) in declared], outputs

    def _of(self, stack: str, mirrors: list[str], outputs: Raw) -> Iterable[VerificationStatus]:
        verifications: Raw = outputs.get("verifications") or {}
        requests: Raw = outputs.get("verificationRequests") or {}
        found = [
            _status(stack, mirror, verifications.get(mirror) or {}, requests.get(mirror) or {}) for mirror in mirrors
        ]
        # A verification in pods writes no time into the outputs, nor did an older release of this project.
        untimed = [proof.mirror for proof in found if proof.verdict is not None and proof.proven_at is None]
        times = self._times(stack, untimed) if untimed else {}
        return [replace(proof, proven_at=times[proof.mirror]) if proof.mirror in times else proof for proof in found]

    def _times(self, stack: str, mirrors: list[str]) -> dict[str, datetime]:
        """The time at which Pulumi last changed the resource of each mirror's verification."""
        exported = self._stack(stack).export_state()
        resources = (exported.get("deployment") or {}).get("resources") or ()
        changed_at = {
            each["urn"].rsplit("::", 1)[-1]: each.get("modified") or each.get("created") for each in resources
        }
        found = {
            mirror: [changed_at[run] for run in map(_filled(mirror), _RUNS) if changed_at.get(run)]
            for mirror in mirrors
        }
        return {mirror: max(map(datetime.fromisoformat, times)) for mirror, times in found.items() if times}

    def _stack(self, name: str) -> PulumiStack:
        return PulumiStack(folder=self.folder, name=name, environment=self.environment)


def failed_verifications(proofs: Iterable[VerificationStatus]) -> list[str]:
    """Return a problem for each mirror whose verification failed."""
    return [
        f"mirror {proof.mirror} of stack {proof.stack}: its verification must be green (got {proof.verdict}: "
        f"{', '.join(proof.unmet) or 'no check named'}; report {proof.report or 'nowhere'}). Find the reason, then "
        f"verify again: --verify, or `pulumi up -s {proof.stack}`."
        for proof in proofs
        if proof.is_red
    ]


def missing_verifications(stack: str, proofs: list[VerificationStatus], now: datetime, within: timedelta) -> list[str]:
    """Return a problem for each verification that is missing or too old, and one if no mirror counts at all.

    Args:
        stack: the stack whose settings are promoted.
        proofs: the latest verification of each mirror that counts for it.
        now: the present time.
        within: the greatest age that is accepted.
    """
    if not proofs:
        return [
            f"stack {stack}: a mirror of it, or one that reads from it, must be verified (got no such mirror that is "
            "up and runs). Nothing else proves the stack: deploy the mirror, or give the reason why none is needed: "
            "--without-verification REASON."
        ]
    problems = []
    for proof in proofs:
        if proof.is_red or proof.is_fresh(now, within):
            continue
        if proof.verdict is None or proof.proven_at is None:
            got = "got none"
        else:
            got = f"got one {_hours(now - proof.proven_at)} old, allowed {_hours(within)}"
        problems.append(
            f"mirror {proof.mirror} of stack {proof.stack}: its verification must be recent ({got}). Verify it now: "
            "--verify; or give the reason why it is not needed: --without-verification REASON."
        )
    return problems


def _status(stack: str, mirror: str, found: Raw, request: Raw) -> VerificationStatus:
    # What the run forgave, where it says so: of a stack's `allowUnknown` it forgives less once there are records.
    forgiven = found.get("allowed_unknown", (request.get("limits") or {}).get("allow_unknown"))
    allowed = set() if found.get("passed") is False else set(forgiven or ())
    unmet = [
        each["name"]
        for each in verify.checks_of(found)
        if each["ok"] is False or (each["ok"] is None and each["name"] not in allowed)
    ]
    return VerificationStatus(
        stack=stack,
        mirror=mirror,
        verdict=found.get("verdict"),
        proven_at=datetime.fromisoformat(found["finishedAt"]) if found.get("finishedAt") else None,
        report=found.get("report"),
        unmet=tuple(unmet),
    )


def _running(stack: str, outputs: Raw) -> list[str]:
    """Names of the running mirrors; one that is paused or stopped never catches up, and so proves nothing."""
    return [name for name, mirror in typed_outputs(stack, outputs).mirrors.items() if mirror.is_running]


def _declared(mirror: str) -> str:
    """The mirror of the stack file that a direction belongs to."""
    return mirror.removesuffix("-reverse")


def _reads(mirror: Any, stack: str) -> bool:
    return isinstance(mirror, Mapping) and (mirror.get("source") or {}).get("stack") == stack


def _filled(mirror: str) -> Callable[[str], str]:
    return lambda run: run.format(mirror)


def _hours(time: timedelta) -> str:
    return f"{time.total_seconds() / 3600:.0f} h"
