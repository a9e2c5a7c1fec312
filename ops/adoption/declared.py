"""What the program declares of an adopted cluster, where the live objects differ, and the state after the import.

After `pulumi import` the state of a custom resource lacks its spec, because Pulumi has no schema of it. Where the live
object is what the program declares, the declaration is written there, so that the next preview finds no difference.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ops.pulumi.stack import PulumiStack

_WAITS = "pulumi.com/"
_MANAGED_BY = "app.kubernetes.io/managed-by"
Inputs = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One resource that the program declares: its URN, type, parent, and inputs if it is not a component."""

    urn: str
    type: str
    parent: str | None
    inputs: Inputs | None

    @property
    def name(self) -> str:
        """Pulumi's name of the resource."""
        return self.urn.rsplit("::", 1)[-1]

    @property
    def is_known(self) -> bool:
        """Whether its inputs are known: what depends on an object that is not there yet is only a placeholder."""
        return self.inputs is not None and not isinstance(self.inputs.get("spec"), str)

    @property
    def object_key(self) -> tuple[str, str, str]:
        """Kind, namespace and name of the Kubernetes object."""
        metadata = (self.inputs or {}).get("metadata") or {}
        return str((self.inputs or {}).get("kind")), str(metadata.get("namespace", "")), str(metadata.get("name"))

    @property
    def id(self) -> str:
        """Pulumi's id of the Kubernetes object."""
        return "/".join(part for part in self.object_key[1:] if part)

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations of the object without those with which Pulumi waits."""
        return {key: value for key, value in self._annotations().items() if not key.startswith(_WAITS)}

    @property
    def waits(self) -> dict[str, str]:
        """Annotations with which Pulumi waits for the object; without them in the object a preview shows a change."""
        return {key: value for key, value in self._annotations().items() if key.startswith(_WAITS)}

    def _annotations(self) -> dict[str, str]:
        annotations = ((self.inputs or {}).get("metadata") or {}).get("annotations") or {}
        return {key: str(value) for key, value in annotations.items()}


def declared_resources(stack: PulumiStack) -> list[Declared]:
    """Return what a preview creates or changes, in order of registration, without what it only reads."""
    found = []
    for step in stack.preview_document(client_side_apply=True)["steps"]:
        new = step.get("newState") or {}
        if step["op"] in ("read", "refresh", "delete") or new.get("type") == "pulumi:pulumi:Stack":
            continue
        found.append(
            Declared(
                urn=step["urn"],
                type=new["type"],
                parent=new.get("parent"),
                inputs=_declared_inputs(new) if new.get("custom") else None,
            )
        )
    return found


def change_counts(stack: PulumiStack) -> dict[str, int]:
    """Return the number of resources that a preview changes, by operation."""
    summary: dict[str, int] = stack.preview_document()["changeSummary"]
    return {operation: count for operation, count in summary.items() if operation not in ("same", "read")}


def set_state_inputs(stack: PulumiStack, inputs: Mapping[str, Inputs]) -> None:
    """Write the inputs of resources, by URN, into the stack's state. Secrets in it stay encrypted."""
    state = stack.export_state()
    for resource in state["deployment"]["resources"]:
        if resource["urn"] in inputs:
            resource["inputs"] = inputs[resource["urn"]]
            resource["outputs"]["__inputs"] = inputs[resource["urn"]]
    stack.import_state(state)


def import_document(declared: list[Declared], exists: Callable[[Declared], bool]) -> dict[str, Any]:
    """Return the file that `pulumi import` reads: the components, and below them the objects that exist.

    Args:
        declared: all that the program declares, in order of registration.
        exists: whether the object of a resource exists in the cluster.
    """
    components = {each.urn for each in declared if each.inputs is None}
    resources = []
    for each in declared:
        entry: dict[str, Any] = {"type": each.type, "name": each.name}
        if each.parent in components:
            entry["parent"] = str(each.parent).rsplit("::", 1)[-1]
        if each.inputs is None:
            entry["component"] = True
        elif exists(each):
            entry |= {"id": each.id, "version": version("pulumi-kubernetes")}
        else:
            continue
        resources.append(entry)
    return {"resources": resources}


def _declared_inputs(new: Mapping[str, Any]) -> Inputs:
    """A resource's inputs without the label that the provider adds when it applies on the client's side."""
    inputs: Inputs = dict(new.get("inputs") or {})
    metadata = dict(inputs.get("metadata") or {})
    labels = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key != _MANAGED_BY}
    return {**inputs, "metadata": {**metadata, **({"labels": labels} if labels else {})}}


def differences(declared: Any, live: Any, where: str = "") -> Iterator[str]:
    """Yield the paths at which the live value lacks what is declared; its other values are left out.

    `where` is the path of both values.
    """
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        for key, value in declared.items():
            step = f"[{key}]" if "." in key else f".{key}"
            yield from differences(value, live.get(key), f"{where}{step}")
    elif isinstance(declared, list) and isinstance(live, list) and len(declared) == len(live):
        for index, (one, other) in enumerate(zip(declared, live, strict=True)):
            yield from differences(one, other, f"{where}[{index}]")
    elif not _is_equal(declared, live):
        yield f"{where.lstrip('.')} (declared {_text(declared)}, there {_text(live)})"


def surplus(declared: Any, live: Any, where: str = "") -> Iterator[str]:
    """Yield the paths of what the live value has and the declaration does not: an update would remove it."""
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        for key, value in live.items():
            step = f"[{key}]" if "." in key else f".{key}"
            if key in declared:
                yield from surplus(declared[key], value, f"{where}{step}")
            elif value not in (None, {}, []):
                yield f"{where}{step}".lstrip(".") + " (there, and the settings cannot express it)"
    elif isinstance(declared, list) and isinstance(live, list) and len(declared) == len(live):
        for index, (one, other) in enumerate(zip(declared, live, strict=True)):
            yield from surplus(one, other, f"{where}[{index}]")


def _is_equal(declared: Any, live: Any) -> bool:
    empty: tuple[Any, ...] = (None, {}, [])
    return bool(declared == live or (declared in empty and live in empty))


def _text(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return "a mapping" if isinstance(value, Mapping) else f"a list of {len(value)}"
    return "nothing" if value is None else repr(value)
