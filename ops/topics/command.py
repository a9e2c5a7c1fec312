"""The commands `python -m ops topics ...`: list and describe the topics of a site's cluster, and delete some.

Owns which deletions are refused, and the question before. Topics that a stack declares are changed in its stack file.
"""

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ops.connection import PROJECT, from_outputs
from ops.console import EXIT_FAILED, AsJson, Debug, ProjectFolder, guard, log, show, stderr
from ops.errors import OpsError
from ops.pulumi.stack import stack_outputs
from ops.recovery.operation import Yes, require_yes
from ops.topics import cluster
from ops.topics.cluster import Inventory, Partition, Role, TopicAdmin
from settings.text import format_count

Stack = Annotated[str, typer.Option("--stack", "-s", help="Stack of the cluster.")]
User = Annotated[str | None, typer.Option("--user", help="User of the stack; not needed if it has only one.")]
Names = Annotated[list[str], typer.Argument(help="Topics, as the cluster names them.")]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""Topics of a site's cluster: list, describe, delete.

The role of a topic comes from the stack's outputs: [bold]declared[/bold] in the stack file, [bold]mirrored[/bold] by a
mirror of the stack, [bold]internal[/bold] to Kafka, Connect or MirrorMaker, or [bold]other[/bold].""",
)


@app.command("list")
def list_command(
    stack: Stack,
    user: User = None,
    with_internal: Annotated[bool, typer.Option("--internal", help="Show internal topics too.")] = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the topics that the user may describe, with their role.

    Example: [bold]python -m ops topics list --stack stg[/bold]
    """
    with guard(as_json, debug):
        admin, known = _connected(stack, user, folder)
        rows = [
            _row(name, partitions, known)
            for name, partitions in admin.topics().items()
            if with_internal or known.role(name) is not Role.INTERNAL
        ]
        show(as_json, {"stack": stack, "topics": rows}, lambda: _list(stack, rows))


@app.command("describe")
def describe_command(
    topics: Names,
    stack: Stack,
    user: User = None,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show partitions, replicas, offsets and the settings that a topic has of its own.

    Example: [bold]python -m ops topics describe items --stack stg[/bold]
    """
    with guard(as_json, debug):
        admin, known = _connected(stack, user, folder)
        there = admin.topics()
        found = []
        for topic in _existing(topics, there, stack):
            partitions = [one.as_json() for one in admin.offsets(topic, there[topic])]
            row = _row(topic, there[topic], known) | {"config": admin.settings(topic)}
            found.append(row | {"partitions": partitions})
        show(as_json, {"stack": stack, "topics": found}, lambda: Group(*map(_description, found)))


@app.command("delete")
def delete_command(
    topics: Names,
    stack: Stack,
    user: User = None,
    mirrored: Annotated[
        bool, typer.Option("--mirrored", help="Delete remote topics of a mirror of the stack, too.")
    ] = False,
    yes: Yes = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Delete topics with all their records, after a question.

    Example: [bold]python -m ops topics delete scratch --stack stg[/bold]

    Refused are internal topics, topics that the stack declares, and without --mirrored those that a mirror writes. If
    one is refused, none is deleted. Exit 1 if Kafka deleted not all of them.
    """
    with guard(as_json, debug):
        admin, known = _connected(stack, user, folder)
        chosen = _existing(topics, admin.topics(), stack)
        if refused := [reason for topic in chosen if (reason := _refusal(topic, known, stack, mirrored=mirrored))]:
            raise OpsError("\n".join(refused))
        for topic in chosen:
            stderr().print(f"delete {escape(topic)} with all its records", highlight=False)
        require_yes(yes, f"Delete {format_count(len(chosen), 'topic')} of stack {stack}?", as_json)
        failed = admin.delete(chosen)
        deleted = [topic for topic in chosen if topic not in failed]
        document = {"stack": stack, "deleted": deleted, "failed": failed}
        show(as_json, document, lambda: "\n".join(f"deleted: {escape(topic)}" for topic in deleted))
        for topic, reason in failed.items():
            log(f"error: topic {topic}: must be open to deletion by the user ({reason}). Grant it Delete on the topic.")
    if failed:
        raise typer.Exit(EXIT_FAILED)


def register(parent: typer.Typer) -> None:
    """Add the commands to the command line."""
    parent.add_typer(app, name="topics")


def _connected(stack: str, user: str | None, folder: Any) -> tuple[TopicAdmin, Inventory]:
    outputs = stack_outputs(stack, os.environ, folder)
    return TopicAdmin(from_outputs(stack, outputs, user)), cluster.of_outputs(stack, outputs, os.environ)


def _existing(topics: Sequence[str], known: dict[str, list[Partition]], stack: str) -> list[str]:
    for topic in topics:
        if topic not in known:
            raise cluster.missing(stack, topic, known)
    return list(dict.fromkeys(topics))


def _refusal(topic: str, known: Inventory, stack: str, *, mirrored: bool) -> str | None:
    """Why a topic is not deleted, None if it may be."""
    role = known.role(topic)
    if role is Role.INTERNAL:
        return (
            f"topic {topic}: must not be internal to Kafka, Connect or MirrorMaker (got an internal topic). Without it "
            "positions are lost and records are copied again. Leave it."
        )
    if topic in known.declared:
        return (
            f"topic {topic}: must not be declared (stack {stack} declares it, and its operator would make it again). "
            f"Take it out of rt-inventory:topics in Pulumi.{stack}.yaml and run `pulumi up -s {stack}`."
        )
    if role is Role.MIRRORED and not mirrored:
        return (
            f"topic {topic}: must not be written by a mirror (got mirror {known.mirror_of(topic)}). Applications need "
            "it after a failover, and while the original is there the mirror makes it again without the records that "
            "it has passed. If that is meant: --mirrored."
        )
    return None


def _row(name: str, partitions: Sequence[Partition], known: Inventory) -> dict[str, Any]:
    return {
        "name": name,
        "role": known.role(name).value,
        "mirror": known.mirror_of(name) if known.role(name) is Role.MIRRORED else None,
        "partitionCount": len(partitions),
        "replicationFactor": max((len(one.replicas) for one in partitions), default=0),
        "underReplicated": sum(len(one.in_sync) < len(one.replicas) for one in partitions),
    }


def _list(stack: str, rows: Sequence[dict[str, Any]]) -> RenderableType:
    table = Table(title=f"stack {escape(stack)}: {format_count(len(rows), 'topic')}", title_justify="left")
    table.add_column("topic", overflow="fold")
    table.add_column("role", overflow="fold")
    for column in ("partitions", "replicas", "not in sync"):
        table.add_column(column, justify="right")
    for row in rows:
        role = f"{row['role']} by {row['mirror']}" if row["mirror"] else row["role"]
        counts = (row[key] for key in ("partitionCount", "replicationFactor", "underReplicated"))
        table.add_row(escape(row["name"]), escape(role), *map(str, counts))
    return table


def _description(topic: dict[str, Any]) -> RenderableType:
    title = f"{topic['name']}: {topic['role']}, {format_count(topic['partitionCount'], 'partition')}"
    table = Table(title=escape(title), title_justify="left")
    columns = ("partition", "leader", "replicas", "in sync", "log start", "log end")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    for row in topic["partitions"]:
        lists = (",".join(map(str, row[key])) for key in ("replicas", "inSyncReplicas"))
        table.add_row(
            *map(str, (row["partition"], row["leader"])),
            *lists,
            *map(str, (row["logStartOffset"], row["logEndOffset"])),
        )
    return Group(table, *(f"{escape(key)}={escape(value)}" for key, value in topic["config"].items()))
