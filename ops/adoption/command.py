"""`python -m ops import`: writes the stack file and the import file of what exists, and takes it over if asked.

Owns the order of the steps and what is reported, and what the program declares: where the live objects differ from it,
and the state after the import. With --adopt nothing changes in the cluster but Pulumi's own annotations and the owner
of the declared fields.

After `pulumi import` the state of a custom resource lacks its spec, because Pulumi has no schema of it. Where the live
object is what the program declares, the declaration is written there, so that the next preview finds no difference.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from kubernetes.client import CustomObjectsApi
from rich.console import Console

from contract.files import replace_text
from ops.adoption import live as reading
from ops.adoption.describe import described
from ops.adoption.live import Live
from ops.connection import PROJECT
from ops.console import escape
from ops.errors import OpsError
from ops.pulumi.stack import PulumiStack
from settings import NAMESPACE, SettingsError, parse

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


EXIT_UNUSABLE = 2
ROUNDS_MAX = 4
_HEADER = "# Describes what existed in namespace {namespace} when it was adopted.\n"


def command(
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the cluster to adopt.")],
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack to adopt it into; its file must not exist yet.")],
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Kafka or EventStreams resource; not needed if there is one.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--folder", "-C", help="Folder of Pulumi.yaml, where the files are written.")
    ] = PROJECT,
    context: Annotated[
        str | None, typer.Option("--context", help="Context of the kubeconfig. [default: current]")
    ] = None,
    no_mirrors: Annotated[bool, typer.Option("--no-mirrors", help="Leave the namespace's mirrors out.")] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Also run the import, so that the next preview shows no change.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of text.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Adopt a cluster with its users, topics and mirrors that exist already: read them, write the stack's files.

    Example: [bold]python -m ops import --namespace kafka --stack prod --adopt[/bold]

    Writes Pulumi.STACK.yaml and import.STACK.json. Without --adopt, continue with `pulumi import --file
    import.STACK.json`. With --adopt only annotations by which Pulumi waits change in the cluster, and who
    owns the declared fields: Pulumi instead of kubectl. Exit 2 if something cannot be adopted.
    """
    try:
        found = reading.read(namespace, cluster, context)
        if no_mirrors:
            found = replace(found, mirrors=[])
        outcome = _write(found, stack, folder)
        if adopt:
            outcome |= _adopt(found, PulumiStack(folder=folder, name=stack), context)
    except (OpsError, OSError) as error:
        if debug:
            raise
        if as_json:
            sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        Console(stderr=True).print(f"[red]error:[/red] {escape(str(error))}", highlight=False)
        raise typer.Exit(EXIT_UNUSABLE) from error
    if as_json:
        sys.stdout.write(json.dumps(outcome, indent=2) + "\n")
    else:
        Console().print("\n".join(map(escape, _lines(outcome, stack, adopted=adopt))), highlight=False)


def _write(found: Live, stack: str, folder: Path) -> dict[str, Any]:
    stack_file, import_file = folder / f"Pulumi.{stack}.yaml", folder / f"import.{stack}.json"
    if stack_file.exists():
        raise OpsError(f"stack {stack}: {stack_file} must not exist yet. Choose another --stack, or move it away.")
    values = described(found)
    try:
        parse(values, stack)
    except SettingsError as error:
        problems = "\n".join(f"  {problem}" for problem in error.problems)
        raise OpsError(
            f"namespace {found.namespace}: what exists must be describable by the settings:\n{problems}\nCorrect it in "
            "the cluster first; nothing was written."
        ) from None
    text = yaml.safe_dump({"config": {f"{NAMESPACE}:{key}": value for key, value in values.items()}}, sort_keys=False)
    replace_text(stack_file, _HEADER.format(namespace=found.namespace) + text)
    pulumi = PulumiStack(folder=folder, name=stack)
    try:
        pulumi.ensure_exists()
        declared = declared_resources(pulumi)
    except OpsError:
        stack_file.unlink()
        raise
    objects = _by_key(found)
    document = import_document(declared, lambda each: each.object_key in objects)
    replace_text(import_file, json.dumps(document, indent=2) + "\n")
    return {
        "stackFile": str(stack_file),
        "importFile": str(import_file),
        "resources": sum("id" in entry for entry in document["resources"]),
        "differences": _differences(declared, objects),
    }


def _adopt(found: Live, pulumi: PulumiStack, context: str | None) -> dict[str, Any]:
    pulumi.import_resources(pulumi.folder / f"import.{pulumi.name}.json")
    objects, api, settled = _by_key(found), reading.connect(context), set[str]()
    differences_: list[str] = []
    taken = _take_over(api, declared_resources(pulumi), objects)
    # What depends on another object's status, as a mirror on its cluster's address, is known once that is settled.
    for _ in range(ROUNDS_MAX):
        declared = declared_resources(pulumi)
        differences_ = _differences(declared, objects)
        equal = {
            each.urn: each
            for each in declared
            if each.object_key in objects and _is_as_declared(each, objects[each.object_key])
        }
        new = {urn: each for urn, each in equal.items() if urn not in settled}
        if not new:
            break
        for each in new.values():
            if each.waits:
                reading.annotate(api, objects[each.object_key], each.waits)
        set_state_inputs(pulumi, {urn: each.inputs for urn, each in new.items() if each.inputs is not None})
        settled |= set(new)
    return {"adopted": len(settled), "takenOver": taken, "changes": change_counts(pulumi), "differences": differences_}


def _take_over(
    api: CustomObjectsApi, declared: list[Declared], objects: dict[tuple[str, str, str], reading.Object]
) -> dict[str, list[str]]:
    """Make Pulumi the owner of kubectl's fields of the adopted objects; return kubectl's names by kind and name."""
    found = {
        f"{each.object_key[0]} {each.object_key[2]}": reading.take_over(
            api, objects[each.object_key], (each.inputs or {}).get("metadata") or {}
        )
        for each in declared
        if each.object_key in objects and "spec" in objects[each.object_key]
    }
    return {name: managers for name, managers in found.items() if managers}


def _is_as_declared(each: Declared, live: reading.Object) -> bool:
    return each.is_known and not own_differences(each, live)


def _by_key(found: Live) -> dict[tuple[str, str, str], reading.Object]:
    namespace: reading.Object = {"kind": "Namespace", "metadata": {"name": found.namespace}}
    owned = [found.cluster, *found.pools, *found.users, *found.topics, *found.mirrors]
    places = {
        (str(each["kind"]), str(each["metadata"]["namespace"]), str(each["metadata"]["name"])): each for each in owned
    }
    return {("Namespace", "", found.namespace): namespace, **places}


def _differences(declared: list[Declared], objects: dict[tuple[str, str, str], reading.Object]) -> list[str]:
    return [
        f"{each.object_key[0]} {each.object_key[2]}: {difference}"
        for each in declared
        if each.is_known and each.object_key in objects
        for difference in own_differences(each, objects[each.object_key])
    ]


def own_differences(each: Declared, live: reading.Object) -> list[str]:
    """Return where an object is not what is declared; Pulumi's own annotations are settled later."""
    inputs = each.inputs or {}
    marks = {"labels": inputs["metadata"].get("labels") or {}, "annotations": each.annotations}
    marked = list(differences(marks, live["metadata"], "metadata"))
    if "spec" not in live or "spec" not in inputs:
        return marked
    pair = inputs["spec"], live["spec"]
    return [*marked, *differences(*pair, "spec"), *surplus(*pair, "spec")]


def _lines(outcome: dict[str, Any], stack: str, *, adopted: bool) -> list[str]:
    lines = [
        f"{outcome['stackFile']}: the settings of {outcome['resources']} resources",
        f"{outcome['importFile']}: what `pulumi import` takes over",
        *(f"  the settings differ: {difference}" for difference in outcome["differences"]),
    ]
    if not adopted:
        return [*lines, f"next: pulumi import --file {outcome['importFile']} --stack {stack}, or --adopt here"]
    changes = ", ".join(f"{count} to {operation}" for operation, count in outcome["changes"].items()) or "no change"
    taken = outcome["takenOver"]
    by = ", ".join(sorted({manager for managers in taken.values() for manager in managers}))
    return [
        *lines,
        *([f"taken over from {by}: {', '.join(taken)}; change them in the stack file from now on"] if taken else []),
        f"adopted {outcome['adopted']} resources; the next preview shows {changes}",
        "mirrors are not verified yet: set verification.when to on-change once the file is as you want it",
    ]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("import")(command)
