"""The commands `python -m ops topics ...`: lists, describes and deletes topics of a site's cluster.

Owns the requests to Kafka's admin client and the confirmation. Topics that a stack declares are changed in its stack
file. Does not own the role of a topic, nor which deletions are refused (`roles.py`).
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import typer
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, OffsetSpec, ResourceType  # type: ignore[attr-defined]  # the package does not list what it re-exports
from rich.console import Group, RenderableType
from rich.table import Table

from ops.connection import CONTACT_TIMEOUT_S, PROJECT, ClientErrors, Connection, client_settings, from_outputs
from ops.console import EXIT_FAILED, AsJson, Debug, ProjectFolder, Text, escape, guard, log, show, stderr
from ops.errors import OpsError
from ops.pulumi.stack import stack_outputs
from ops.recovery.operation import Yes, require_yes
from ops.topics.roles import Inventory, Role, inventory_of, refusals
from settings.text import format_count

_TRY_S = 2.0
_CALL_S = 20.0
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the package has no types here
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the package has no types here


@dataclass(frozen=True, kw_only=True)
class Partition:
    """One topic partition: its brokers, its log start offset and its log end offset (None if not known)."""

    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None = None
    end: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the partition for a document."""
        return {
            "partition": self.number,
            "leader": self.leader,
            "replicas": [*self.replicas],
            "inSyncReplicas": [*self.in_sync],
            "logStartOffset": self.start,
            "logEndOffset": self.end,
        }


class TopicAdmin:
    """A cluster's topics as one user. Every method raises OpsError with the reason if Kafka refuses."""

    def __init__(self, connection: Connection) -> None:
        self._client_errors = ClientErrors(connection)
        self._name = connection.name
        self._admin = AdminClient(client_settings(connection, self._client_errors))

    def topics(self) -> dict[str, list[Partition]]:
        """Return the partitions of every topic that the user may describe, by topic."""
        end = time.monotonic() + CONTACT_TIMEOUT_S
        while True:
            try:
                found = self._admin.list_topics(timeout=_TRY_S).topics
            except KafkaException as error:
                self._admin.poll(0)
                if self._client_errors.final() or time.monotonic() >= end:
                    raise self._client_errors.error(error.args[0]) from None
            else:
                return {name: [_partition(one) for one in found[name].partitions.values()] for name in sorted(found)}

    def offsets(self, topic: str, partitions: Sequence[Partition]) -> list[Partition]:
        """Return a topic's partitions, as `topics` returned them, by number and with both offsets."""
        topic_partitions = [TopicPartition(topic, one.number) for one in partitions]
        starts, ends = (self._offsets(dict.fromkeys(topic_partitions, spec)) for spec in (_EARLIEST, _LATEST))
        return [
            Partition(
                number=one.number,
                leader=one.leader,
                replicas=one.replicas,
                in_sync=one.in_sync,
                start=starts[one.number],
                end=ends[one.number],
            )
            for one in sorted(partitions, key=lambda each: each.number)
        ]

    def settings(self, topic: str) -> dict[str, str]:
        """Return the configuration that was set for this topic alone, without sensitive values."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = self._call(self._admin.describe_configs([resource], request_timeout=_CALL_S)[resource])
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {
            name: str(entry.value)
            for name, entry in sorted(entries.items())
            if entry.source == own and not entry.is_sensitive
        }

    def delete(self, topics: Iterable[str]) -> dict[str, str]:
        """Delete topics with all their records; return Kafka's reason for each topic that it did not delete."""
        refused: dict[str, str] = {}
        for topic, future in self._admin.delete_topics([*topics], request_timeout=_CALL_S).items():
            try:
                future.result()
            except KafkaException as error:
                refused[topic] = str(error.args[0].str())
        return refused

    def _offsets(self, wanted: Mapping[TopicPartition, OffsetSpec]) -> dict[int, int]:
        found = self._admin.list_offsets(cast("dict[TopicPartition, OffsetSpec]", wanted), request_timeout=_CALL_S)
        return {tp.partition: self._call(future).offset for tp, future in found.items()}

    def _call(self, future: Any) -> Any:
        try:
            return future.result()
        except KafkaException as error:
            raise self._client_errors.error(error.args[0]) from None


def missing_topic(cluster: str, topic: str, visible: Iterable[str]) -> OpsError:
    """Return the error for a topic that does not exist, or that the user may not describe.

    `cluster` is the stack of the cluster, `visible` all topics that the user may describe.
    """
    allowed = ", ".join(sorted(each for each in visible if not each.startswith("__"))) or "none"
    return OpsError(
        f"cluster {cluster}: topic {topic} must exist and be open to the user (got none, allowed {allowed})."
    )


def _partition(found: Any) -> Partition:
    return Partition(number=found.id, leader=found.leader, replicas=tuple(found.replicas), in_sync=tuple(found.isrs))


Stack = Annotated[str, typer.Option("--stack", "-s", help="Stack of the cluster.")]
User = Annotated[str | None, typer.Option("--user", help="User of the stack. [default: the only one of mirrors]")]
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
        admin, inventory = _connected(stack, user, folder)
        rows = [
            _row(name, partitions, inventory)
            for name, partitions in admin.topics().items()
            if with_internal or inventory.role(name) is not Role.INTERNAL
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
        admin, inventory = _connected(stack, user, folder)
        visible = admin.topics()
        found = []
        for topic in _existing(topics, visible, stack):
            partitions = [one.as_json() for one in admin.offsets(topic, visible[topic])]
            row = _row(topic, visible[topic], inventory) | {"config": admin.settings(topic)}
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

    Refused are internal topics, topics that the stack declares, those that applications use after a failover, also of
    topics alone, and without --mirrored those that a mirror writes. If one is refused, none is deleted. Exit 1 if Kafka
    deleted not all of them.
    """
    with guard(as_json, debug):
        admin, inventory = _connected(stack, user, folder)
        chosen = _existing(topics, admin.topics(), stack)
        if refused := refusals(chosen, inventory, stack, mirrored=mirrored):
            raise OpsError("\n".join(refused))
        for topic in chosen:
            stderr().print(f"delete {escape(topic)} with all its records", highlight=False)
        require_yes(yes, f"Delete {format_count(len(chosen), 'topic')} of stack {stack}?", as_json)
        failed = admin.delete(chosen)
        deleted = [topic for topic in chosen if topic not in failed]
        document = {"stack": stack, "deleted": deleted, "failed": failed}
        show(as_json, document, lambda: Text("\n".join(f"deleted: {topic}" for topic in deleted)))
        for topic, reason in failed.items():
            log(f"error: topic {topic}: must be open to deletion by the user ({reason}). Grant it Delete on the topic.")
    if failed:
        raise typer.Exit(EXIT_FAILED)


def register(parent: typer.Typer) -> None:
    """Add the commands to the command line."""
    parent.add_typer(app, name="topics")


def _connected(stack: str, user: str | None, folder: Any) -> tuple[TopicAdmin, Inventory]:
    outputs = stack_outputs(stack, os.environ, folder)
    # A mirror's user may describe more than applications may: its internal topics too.
    return TopicAdmin(from_outputs(stack, outputs, user, as_mirror=True)), inventory_of(stack, outputs, os.environ)


def _existing(topics: Sequence[str], visible: dict[str, list[Partition]], stack: str) -> list[str]:
    for topic in topics:
        if topic not in visible:
            raise missing_topic(stack, topic, visible)
    return list(dict.fromkeys(topics))


def _row(name: str, partitions: Sequence[Partition], inventory: Inventory) -> dict[str, Any]:
    return {
        "name": name,
        "role": inventory.role(name).value,
        "mirror": inventory.mirror_of(name) if inventory.role(name) is Role.MIRRORED else None,
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
