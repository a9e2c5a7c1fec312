"""What differs between a stack's state and what is there: Pulumi's refresh, only shown, with its event log read.

Nothing is changed, neither in the cluster nor in the state.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.connection import PROJECT, explain_pulumi
from ops.errors import OpsError
from ops.exit_codes import PulumiExit, explain_exit
from ops.policy import preview
from ops.policy.changes import Change, planned

WITHIN_S = 600.0
# What releases before 3.226 print when all that is wrong is the drift itself; later ones have an exit code for it.
_CHANGED = "no changes were expected but changes occurred"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One refresh to show. `within_s` is its deadline."""

    stack: str
    folder: Path = PROJECT
    within_s: float = WITHIN_S

    def command(self, log: Path) -> list[str]:
        """Return Pulumi's command line."""
        shown = ["--preview-only", "--expect-no-changes", "--non-interactive", "--color", "never"]
        return ["pulumi", "refresh", "--stack", self.stack, *shown, "--event-log", str(log)]


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What drifted in a stack."""

    stack: str
    changes: tuple[Change, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        return {
            "stack": self.stack,
            "drifted": bool(self.changes),
            "changes": [each.as_json() for each in self.changes],
        }


def detect(
    request: Request, environment: Mapping[str, str] = os.environ, watch: Callable[[str], None] | None = None
) -> Drift:
    """Return what drifted; raises OpsError if the refresh could not be made."""
    seen = preview.run(request, environment, watch)
    changes = tuple(planned(seen.log.results))
    changed = seen.exit_code == PulumiExit.UNEXPECTED_CHANGES or (seen.exit_code != 0 and _CHANGED in seen.stderr)
    if seen.log.errors or not seen.log.ended or not (seen.succeeded or changed):
        raise OpsError(_failure(request.stack, seen))
    if changed and not changes:
        raise OpsError(
            f"stack {request.stack}: refresh found changes that its event log does not tell. Run it by hand."
        )
    return Drift(stack=request.stack, changes=changes)


def _failure(stack: str, seen: preview.Preview) -> str:
    lines = [line.strip().removeprefix("error: ") for line in seen.stderr.splitlines() if line.strip()]
    told = [*seen.log.errors, *lines] or seen.log.premature
    said = "\n  ".join(line for error in told for line in error.splitlines())
    wrong = f"stack {stack}: refresh must succeed ({explain_exit(seen.exit_code)}):\n  {said}"
    return explain_pulumi(stack, seen.stderr, seen.exit_code) or wrong
