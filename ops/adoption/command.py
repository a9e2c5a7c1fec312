"""`python -m ops import`: writes the stack file and the import file of what exists, and takes it over if asked.

Owns the order of the steps and what is reported. With --adopt nothing changes in the cluster but Pulumi's own
annotations and the owner of the declared fields.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from kubernetes.client import CustomObjectsApi
from rich.console import Console
from rich.markup import escape

from ops.adoption import live as reading
from ops.adoption.declared import (
    Declared,
    change_counts,
    declared_resources,
    differences,
    import_document,
    set_state_inputs,
    surplus,
)
from ops.adoption.describe import described
from ops.adoption.live import Live
from ops.connection import PROJECT
from ops.errors import OpsError
from ops.pulumi.stack import PulumiStack
from settings import NAMESPACE, SettingsError, parse

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
    except OpsError as error:
        if debug:
            raise
        if as_json:
            sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        Console(stderr=True).print(f"[red]error:[/red] {escape(str(error))}", highlight=False)
        raise typer.Exit(EXIT_UNUSABLE) from error
    if as_json:
        sys.stdout.write(json.dumps(outcome, indent=2) + "\n")
    else:
        Console().print("\n".join(_lines(outcome, stack, adopted=adopt)), highlight=False, markup=False)


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
    stack_file.write_text(_HEADER.format(namespace=found.namespace) + text, encoding="utf-8")
    pulumi = PulumiStack(folder=folder, name=stack)
    try:
        pulumi.ensure_exists()
        declared = declared_resources(pulumi)
    except OpsError:
        stack_file.unlink()
        raise
    objects = _by_key(found)
    document = import_document(declared, lambda each: each.object_key in objects)
    import_file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
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
            if each.object_key in objects and _is_equal(each, objects[each.object_key])
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


def _is_equal(each: Declared, live: reading.Object) -> bool:
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
