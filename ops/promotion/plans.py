"""What an `up` would do, as previews tell it: whether a stack is deployed as its file says, and what a gate found.

Owns which planned steps count as changes. Changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.errors import OpsError
from ops.policy import configuration, preview, removals
from ops.policy.events import Log, Step, resource
from ops.policy.findings import Judgement
from ops.policy.judging import failure, judge

# Steps after which a resource is as it was.
_NOTHING = {"same", "refresh", "read", "read-replacement", "discard", "discard-replaced", "remove-pending-replace"}
_REPLACEMENT = {"create-replacement", "delete-replaced"}
# Resources that stand for no object: the stack, providers, and this project's components.
_NO_OBJECT = ("pulumi:", "rt-inventory:")
_VERIFICATION = "rt-inventory:verification:Verification"


@dataclass(frozen=True, kw_only=True, order=True)
class Planned:
    """One change that an `up` would make: create, update, replace or delete, and of what."""

    operation: str
    resource: str

    def __str__(self) -> str:
        return f"{self.operation} {self.resource}"


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What the policy pack found in the target with its new settings, and what an `up` would change there."""

    judgement: Judgement
    planned: tuple[Planned, ...]


@dataclass(frozen=True, kw_only=True)
class Project:
    """The Pulumi project whose stacks are previewed. `within_s` is the deadline of one preview."""

    folder: Path
    environment: Mapping[str, str]
    within_s: float

    def undeployed(self, stack: str, *, always_verified: bool) -> tuple[Planned, ...]:
        """Return what is not deployed as the stack's file says; raises OpsError if the preview fails.

        A verification that runs in every `up` is no change.
        """
        request = preview.Request(stack=stack, folder=self.folder, pack=None, config=None, within_s=self.within_s)
        seen = preview.run(request, self.environment, None)
        if not seen.succeeded or seen.log.errors:
            raise OpsError(failure(stack, seen))
        return planned(seen.log, but=_VERIFICATION if always_verified else None)

    def gate(self, stack: str, file: Path, pack: Path, config: Path | None) -> Gate:
        """Return the policy's judgement and the plan for a stack with another stack file."""
        level = removals.level(configuration.files(pack, self.folder, stack, config))
        request = preview.Request(
            stack=stack, folder=self.folder, pack=pack, config=config, within_s=self.within_s, stack_file=file
        )
        seen = preview.run(request, self.environment, None)
        return Gate(judgement=judge(stack, pack, seen, level), planned=planned(seen.log))


def planned(log: Log, but: str | None = None) -> tuple[Planned, ...]:
    """Return the changes of a preview, each once; `but` is the type of a component whose resources do not count."""
    found = (_change(step) for step in log.steps if not (but and f"{but}$" in step.urn))
    return tuple(sorted({change for change in found if change is not None}))


def as_json(changes: tuple[Planned, ...]) -> list[dict[str, Any]]:
    """Return the changes for a document."""
    return [{"operation": change.operation, "resource": change.resource} for change in changes]


def _change(step: Step) -> Planned | None:
    of = resource(step.urn, step.inputs, step.id)
    if step.operation in _NOTHING or of.type.startswith(_NO_OBJECT):
        return None
    operation = "replace" if step.operation in _REPLACEMENT else step.operation
    return Planned(operation=operation, resource=str(of))
