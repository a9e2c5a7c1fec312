"""What a plan does to each resource, for people who judge a change. Names properties, never their values."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ops.policy.events import Step, resource
from ops.policy.findings import Resource

# Pulumi's own words; of several steps for one resource the first of these is what happens to it.
_OPERATIONS = {
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "delete": "delete",
    "import": "import",
    "create": "create",
    "update": "update",
}
_PULUMIS_OWN = "pulumi:"


@dataclass(frozen=True, kw_only=True)
class Change:
    """What happens to one resource; `paths` name the properties that differ."""

    operation: str
    resource: Resource
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f"{self.operation} {self.resource}"
        return f"{what}: {', '.join(self.paths)}" if self.paths else what

    def as_json(self) -> dict[str, Any]:
        """Return the change for a document."""
        return {
            "operation": self.operation,
            "kind": self.resource.kind,
            "name": self.resource.name,
            "urn": self.resource.urn,
            "paths": [*self.paths],
        }


def planned(steps: Iterable[Step]) -> list[Change]:
    """Return what the steps change, each resource once, in the plan's order; components are not resources."""
    by_urn: dict[str, list[Step]] = {}
    for step in steps:
        if step.custom and step.operation in _OPERATIONS and not resource(step.urn).type.startswith(_PULUMIS_OWN):
            by_urn.setdefault(step.urn, []).append(step)
    return [_change(urn, of) for urn, of in by_urn.items()]


def _change(urn: str, steps: list[Step]) -> Change:
    gravest = min(steps, key=lambda step: [*_OPERATIONS].index(step.operation))
    return Change(
        operation=_OPERATIONS[gravest.operation],
        resource=resource(urn, gravest.inputs, gravest.id),
        paths=tuple(dict.fromkeys(path for step in steps for path in step.paths)),
    )
