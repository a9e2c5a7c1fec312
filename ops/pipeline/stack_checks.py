"""What a pipeline checks of a deployed stack: its drift, by a refresh that changes nothing, and its mirrors.

Apart from the commands, most of which need neither Pulumi nor the settings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops import verify
from ops.errors import OpsError
from ops.pipeline import DRIFT_WITHIN_S
from ops.pipeline.documents import stack_name
from ops.policy import Change, planned
from ops.pulumi.process import PulumiExit, explain_exit, explain_failure
from ops.pulumi.stack import EngineRun, NotDeployedError, PulumiStack, stack_outputs

# What releases before 3.226 print when all that is wrong is the drift itself; later ones have an exit code for it.
_CHANGED = "no changes were expected but changes occurred"


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


def detect_drift(
    stack: PulumiStack, *, within_s: float = DRIFT_WITHIN_S, watch: Callable[[str], None] | None = None
) -> Drift:
    """Return what drifted; raises OpsError if the refresh fails or does not end within its deadline."""
    refresh = stack.refresh_preview(within_s=within_s, watch=watch)
    changes = tuple(planned(refresh.log.results))
    changed = refresh.exit_code == PulumiExit.UNEXPECTED_CHANGES or (
        refresh.exit_code != 0 and _CHANGED in refresh.stderr
    )
    if refresh.log.errors or not refresh.log.ended or not (refresh.succeeded or changed):
        raise OpsError(_failure(stack.name, refresh))
    if changed and not changes:
        raise OpsError(
            f"stack {stack.name}: refresh found changes that its event log does not contain. Run it by hand."
        )
    return Drift(stack=stack.name, changes=changes)


def _failure(stack: str, refresh: EngineRun) -> str:
    printed = [line.strip().removeprefix("error: ") for line in refresh.stderr.splitlines() if line.strip()]
    errors = [*refresh.log.errors, *printed] or refresh.log.premature_exits
    text = "\n  ".join(line for error in errors for line in error.splitlines())
    wrong = f"stack {stack}: refresh must succeed ({explain_exit(refresh.exit_code)}):\n  {text}"
    return explain_failure(stack, refresh.stderr, refresh.exit_code, refresh.folder) or wrong


Document = dict[str, Any]


def verify_mirrors(
    stack: str,
    outputs: Mapping[str, Any] | None,
    reports: Path,
    environment: Mapping[str, str],
    log: Callable[[str], None],
) -> Document:
    """Return `{stack, mirrors: [verdict], said}`; `outputs` are the stack's, None if it was never deployed.

    If a mirror cannot be judged, the others still are; all messages together are the document's `error`.
    """
    requests: Mapping[str, Any] = (outputs or {}).get("verificationRequests") or {}
    if not requests:
        said = "declares no mirror" if outputs else "is not deployed yet"
        return {"stack": stack, "mirrors": [], "said": f"nothing to verify: stack {stack} {said}"}
    verdicts: list[Document] = []
    failures: list[str] = []
    for mirror in sorted(requests):
        log(f"verify {mirror} of {stack}")
        try:
            planned = verify.plan(stack, outputs or {}, mirror)
            folder = reports / f"{stack_name(stack)}-{mirror}"
            verdicts.append(verify.run(planned, folder, environment, log, index=reports).as_json())
        except OpsError as error:
            failures.append(str(error))
    document: Document = {"stack": stack, "mirrors": verdicts}
    return document | ({"error": "\n".join(failures)} if failures else {})


def all_passed(document: Document) -> bool:
    """Whether every mirror's verdict is `pass`."""
    return "error" not in document and all(each["verdict"] == "pass" for each in document["mirrors"])


def deployed_outputs(stack: str, project: Path, environment: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return the outputs of a stack, None if it was never deployed."""
    try:
        return stack_outputs(stack, environment, project)
    except NotDeployedError:
        return None
