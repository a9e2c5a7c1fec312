"""What proves that a stage is good: the verifications of its own mirrors, and of those that read from it.

Owns which mirrors count, how green and how fresh a proof must be, and verifying now. Does not own the job.
"""

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ops import verify
from ops.connection import explain_pulumi, no_pulumi, stack_outputs
from ops.errors import OpsError
from ops.exit_codes import explain_exit

ASK_WITHIN_S = 60.0
# The resource of a run, beside Pulumi or in the cluster, by its mirror.
_RUNS = ("{}-verification-run", "{}-verification-pods-run")
Say = Callable[[str], None]
Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The latest verification of one mirror. `verdict` is None if there was none.

    `wanting` are the checks that failed, or had no answer though the stack does not allow that.
    """

    stack: str
    mirror: str
    verdict: str | None
    proven_at: datetime | None
    report: str | None
    wanting: tuple[str, ...] = ()

    @property
    def is_red(self) -> bool:
        """Whether the mirror was found faulty."""
        return self.verdict == "fail" or bool(self.wanting)

    def is_fresh(self, now: datetime, within: timedelta) -> bool:
        """Whether there is a proof that is not too old."""
        return self.verdict is not None and self.proven_at is not None and now - self.proven_at <= within

    def as_json(self) -> dict[str, Any]:
        """Return the proof for a document."""
        return {
            "stack": self.stack,
            "mirror": self.mirror,
            "verdict": self.verdict,
            "provenAt": self.proven_at.isoformat(timespec="seconds") if self.proven_at else None,
            "wanting": list(self.wanting),
            "report": self.report,
        }


@dataclass(frozen=True, kw_only=True)
class Witnesses:
    """Finds the proofs of a project's stacks. `files` are the values of all stack files."""

    folder: Path
    environment: Mapping[str, str]
    files: Mapping[str, Raw]

    def latest(self, stack: str) -> list[Proof]:
        """Return what is known of every mirror that counts for a stack: of stacks that are up, and not at rest."""
        return [proof for name, mirrors, outputs in self._mirrors(stack) for proof in self._of(name, mirrors, outputs)]

    def now(self, stack: str, say: Say) -> list[Proof]:
        """Verify every mirror that counts for a stack now."""
        found = []
        for name, mirrors, outputs in self._mirrors(stack, secrets=True):
            for mirror in mirrors:
                say(f"verification of {mirror} of {name}")
                plan = verify.plan(name, outputs, mirror)
                reports = verify.new_report_dir(plan, self.folder / verify.REPORTS)
                verdict = verify.run(plan, reports, self.environment, say)
                proof = _proof(name, mirror, {**verdict.report, "report": str(verdict.html)}, plan.request)
                found.append(replace(proof, proven_at=datetime.now(UTC)))
        return found

    def _mirrors(self, stack: str, *, secrets: bool = False) -> Iterable[tuple[str, list[str], Raw]]:
        """Stacks that are up with their mirrors that count, and their outputs."""
        up = self._up(stack)
        for name, values in self.files.items():
            declared = [each["name"] for each in values.get("mirrors") or () if name == stack or _reads(each, stack)]
            if not declared or name not in up:
                continue
            outputs = stack_outputs(name, self.environment, self.folder, secrets=secrets)
            yield name, [mirror for mirror, facts in _running(outputs) if _declared(mirror) in declared], outputs

    def _of(self, stack: str, mirrors: list[str], outputs: Raw) -> Iterable[Proof]:
        verifications: Raw = outputs.get("verifications") or {}
        requests: Raw = outputs.get("verificationRequests") or {}
        found = [
            _proof(stack, mirror, verifications.get(mirror) or {}, requests.get(mirror) or {}) for mirror in mirrors
        ]
        # Pods tell the outputs no time, nor did an older release of this project.
        silent = [proof.mirror for proof in found if proof.verdict is not None and proof.proven_at is None]
        times = self._times(stack, silent) if silent else {}
        return [replace(proof, proven_at=times[proof.mirror]) if proof.mirror in times else proof for proof in found]

    def _times(self, stack: str, mirrors: list[str]) -> dict[str, datetime]:
        """When Pulumi last noted a run of each mirror's verification."""
        exported = self._ask(stack, "stack", "export", "--stack", stack)
        resources = (exported.get("deployment") or {}).get("resources") or ()
        noted = {each["urn"].rsplit("::", 1)[-1]: each.get("modified") or each.get("created") for each in resources}
        found = {mirror: [noted[run] for run in map(_filled(mirror), _RUNS) if noted.get(run)] for mirror in mirrors}
        return {mirror: max(map(datetime.fromisoformat, times)) for mirror, times in found.items() if times}

    def _up(self, stack: str) -> set[str]:
        """Stacks of the project that hold something."""
        listed = self._ask(stack, "stack", "ls", "--json")
        return {each["name"].rsplit("/", 1)[-1] for each in listed if each.get("resourceCount") != 0}

    def _ask(self, stack: str, *words: str) -> Any:
        command = ["pulumi", *words, "--non-interactive"]
        try:
            result = subprocess.run(
                command,
                cwd=self.folder,
                env=dict(self.environment),
                capture_output=True,
                text=True,
                timeout=ASK_WITHIN_S,
                check=False,
            )
        except FileNotFoundError as error:
            raise no_pulumi(stack) from error
        except subprocess.TimeoutExpired as error:
            said = f"stack {stack}: `pulumi stack {words[1]}` must end within {ASK_WITHIN_S:.0f} s. Check the backend."
            raise OpsError(said) from error
        if result.returncode != 0:
            told = result.stderr.strip()[-400:] or explain_exit(result.returncode)
            said = f"stack {stack}: `pulumi stack {words[1]}` must succeed ({told})."
            raise OpsError(explain_pulumi(stack, result.stderr, result.returncode) or said)
        return json.loads(result.stdout)


def red(proofs: Iterable[Proof]) -> list[str]:
    """Return a problem for each mirror that was found faulty."""
    return [
        f"mirror {proof.mirror} of stack {proof.stack}: its verification must be green (got {proof.verdict}: "
        f"{', '.join(proof.wanting) or 'no check told'}; report {proof.report or 'nowhere'}). Find the reason, then "
        f"verify again: --verify, or `pulumi up -s {proof.stack}`."
        for proof in proofs
        if proof.is_red
    ]


def lacking(stack: str, proofs: list[Proof], now: datetime, within: timedelta) -> list[str]:
    """Return a problem for each proof that is missing or too old, and one if there is none at all."""
    if not proofs:
        return [
            f"stack {stack}: a mirror of it, or one that reads from it, must be verified (got no such mirror that is "
            "up and runs). Nothing else proves it: deploy the mirror, or say why none is needed: "
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
            "--verify; or say why it is not needed: --without-verification REASON."
        )
    return problems


def _proof(stack: str, mirror: str, found: Raw, request: Raw) -> Proof:
    allowed = set((request.get("limits") or {}).get("allow_unknown") or ())
    wanting = [
        each["name"]
        for each in verify.checks_of(found)
        if each["ok"] is False or (each["ok"] is None and each["name"] not in allowed)
    ]
    return Proof(
        stack=stack,
        mirror=mirror,
        verdict=found.get("verdict"),
        proven_at=datetime.fromisoformat(found["finishedAt"]) if found.get("finishedAt") else None,
        report=found.get("report"),
        wanting=tuple(wanting),
    )


def _running(outputs: Raw) -> Iterable[tuple[str, Raw]]:
    """Mirrors with their facts; one at rest is brought to no end, and so proves nothing."""
    mirrors: Raw = outputs.get("mirrors") or {}
    return [(name, facts) for name, facts in mirrors.items() if facts.get("state", "running") == "running"]


def _declared(mirror: str) -> str:
    """The mirror of the stack file that a direction belongs to."""
    return mirror.removesuffix("-reverse")


def _reads(mirror: Any, stack: str) -> bool:
    return isinstance(mirror, Mapping) and (mirror.get("source") or {}).get("stack") == stack


def _filled(mirror: str) -> Callable[[str], str]:
    return lambda run: run.format(mirror)


def _hours(time: timedelta) -> str:
    return f"{time.total_seconds() / 3600:.0f} h"
