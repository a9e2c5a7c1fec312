"""The commands `produce` and `consume`: send random records, read them as a member of a consumer group.

`python -m ops` has them, and `python -m ops.demo_client` alone, without the packages of other commands. Both run up to
a number of records, or with `--forever` until SIGTERM or Ctrl-C.
"""

import os
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from rich.console import Group, RenderableType
from rich.table import Table

from ops.connection import DEFAULT_TOPIC, PROJECT, Connection, from_environment, from_outputs
from ops.console import (
    EXIT_FAILED,
    AsJson,
    Debug,
    ProjectFolder,
    escape,
    guard,
    log,
    progress,
    pulse,
    show,
    until_stopped,
)
from ops.demo_client import DeliveryLog, Kind, consumer, events, keys_file, producer
from ops.demo_client.consumer import COMMIT_S, WAIT_S, Goal, Read
from ops.demo_client.producer import Sent
from ops.errors import OpsError

Stack = Annotated[str | None, typer.Option("--stack", "-s", help="Stack to learn the cluster from, for example dev.")]
User = Annotated[str | None, typer.Option("--user", help="User of the stack. [default: the only one of applications]")]
Topic = Annotated[
    str | None, typer.Option("--topic", "-t", help=f"Topic. [default: $SOURCE_TOPIC, else {DEFAULT_TOPIC}]")
]
KeysOut = Annotated[
    Path | None, typer.Option("--keys-out", help="File to write a line per record to: partition, offset, record id.")
]
Forever = Annotated[
    bool, typer.Option("--forever", help="Go on until SIGTERM or Ctrl-C, then end cleanly with a summary.")
]
app = typer.Typer(
    name="clients",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="""Demo clients: send random records, read them as a consumer group.

The variables KAFKA_BROKERS, KAFKA_USER, KAFKA_PWD, KAFKA_CERT, KAFKA_SECURITY_PROTOCOL, KAFKA_SASL_MECHANISM and
SOURCE_TOPIC say where. Exit codes: 0 done; 1 not every record arrived; 2 wrong usage, or a cluster that cannot be used.
""",
)


def topic_of(given: str | None) -> str:
    """Return the topic that was given, else the environment's, else the default."""
    return given or os.environ.get("SOURCE_TOPIC") or DEFAULT_TOPIC


def connection_of(stack: str | None, user: str | None, folder: Path) -> Connection:
    """Return how to reach the cluster of a stack of the project in `folder`, without a stack the environment's."""
    if stack is None:
        return from_environment(os.environ)
    from ops.pulumi.stack import stack_outputs  # it needs the settings, which the demo clients' image does not have

    return from_outputs(stack, stack_outputs(stack, os.environ, folder), user)


COUNT = 100


def produce(
    stack: Stack = None,
    topic: Topic = None,
    kind: Annotated[Kind, typer.Option("--kind", "-k", help="Inventory movements, or products.")] = Kind.ITEMS,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help=f"Number of records. [default: {COUNT}]")
    ] = None,
    forever: Forever = False,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.01, help="Records per second. [default: no limit]")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Same seed, same records, byte by byte.")] = None,
    user: User = None,
    keys_out: KeysOut = None,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Send random events: JSON, keyed by store and SKU or by product, acks=all, idempotent.

    Example: [bold]python -m ops produce --stack dev --count 1000 --rate 200[/bold]

    Example: [bold]python -m ops produce --stack dev --kind products --forever --rate 5[/bold]

    Every delivery is accounted for; one that fails makes the command exit 1.
    """
    with guard(as_json, debug):
        _check_produce(count, forever, rate)
        name, number = topic_of(topic), None if forever else count or COUNT
        with ExitStack() as around:
            # Before the first contact: a container's first process ignores a signal for which it has no handler.
            stopped = around.enter_context(until_stopped()) if forever else lambda: False
            client, client_errors = producer.connect(connection_of(stack, user, folder), name)
            title = f"produce {name}"
            sent = producer.send(
                client,
                name,
                events(kind, number, seed),
                rate=rate,
                # Without end, deliveries would fail for ever once the user is not let in any more.
                stopped=lambda: stopped() or (forever and client_errors.final()),
                each=around.enter_context(keys_file(keys_out)),
                progress=pulse(title, log) if forever else around.enter_context(progress(title, number)),
            )
        if forever and client_errors.final():
            raise client_errors.error()
        show(as_json, sent.as_json(), lambda: _sent_table(sent))
    if sent.failed:
        raise typer.Exit(EXIT_FAILED)


def _check_produce(count: int | None, forever: bool, rate: float | None) -> None:
    problems = []
    if forever and count is not None:
        problems.append("--count must not be given with --forever, which has no end")
    if forever and rate is None:
        problems.append("--rate must be given with --forever: without a limit it fills the cluster's disks")
    if problems:
        raise OpsError(f"produce: {'; '.join(problems)}.")


def consume(
    stack: Stack = None,
    group: Annotated[str, typer.Option("--group", "-g", help="Consumer group to be a member of.")] = "rt-inventory-ops",
    topic: Topic = None,
    maximum: Annotated[int | None, typer.Option("--max", "-n", min=1, help="Stop after this many records.")] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the end of the topic as it is when reading begins.")
    ] = False,
    forever: Forever = False,
    wait_s: Annotated[
        float | None,
        typer.Option("--wait", min=1, help=f"Give up when no record came for this many seconds. [default: {WAIT_S:g}]"),
    ] = None,
    auto_commit: Annotated[
        bool, typer.Option("--auto-commit", help="Let the client commit in the background instead of by command.")
    ] = False,
    no_commit: Annotated[bool, typer.Option("--no-commit", help="Read only; leave the group's position.")] = False,
    print_records: Annotated[
        bool, typer.Option("--print", help="Show each record on stderr: partition, offset, timestamp, key, value.")
    ] = False,
    user: User = None,
    keys_out: KeysOut = None,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Read records as a member of a consumer group and commit exactly what was handed over.

    Example: [bold]python -m ops consume --stack dev --group orders --max 400 --print[/bold]

    The group goes on where it last committed; without a commit it starts at the beginning. Commits are made once at the
    end, with --forever every few seconds. Exit 1 if fewer records came than asked for.
    """
    with guard(as_json, debug):
        _check_consume(maximum, until_end, forever, wait_s, auto_commit, no_commit)
        name = topic_of(topic)
        wait = None if forever else wait_s or WAIT_S
        with ExitStack() as around:
            # Before the first contact: a container's first process ignores a signal for which it has no handler.
            stopped = around.enter_context(until_stopped()) if forever else lambda: False
            client, client_errors = consumer.connect(
                connection_of(stack, user, folder), name, group, auto_commit=auto_commit
            )
            title = f"consume {name} as {group}"
            each = around.enter_context(keys_file(keys_out))
            outcome = consumer.read(
                client,
                name,
                group,
                Goal(maximum=maximum, until_end=until_end, wait_s=wait, stopped=stopped),
                client_errors,
                commit=not (auto_commit or no_commit),
                commit_s=COMMIT_S if forever else None,
                store=(lambda message: client.store_offsets(message=message)) if auto_commit else None,
                hand_over=_say_record if print_records else lambda _: None,
                each=each,
                progress=pulse(title, log) if forever else around.enter_context(progress(title, maximum)),
            )
        show(as_json, outcome.as_json(), lambda: _read_table(outcome))
        if not outcome.complete:
            log(f"consume: no record came for {wait:g} s; {outcome.account.total} were read.")
    if not outcome.complete:
        raise typer.Exit(EXIT_FAILED)


def _check_consume(
    maximum: int | None, until_end: bool, forever: bool, wait_s: float | None, auto_commit: bool, no_commit: bool
) -> None:
    problems = []
    if (maximum is not None) + until_end + forever != 1:
        problems.append("one of --max N, --until-end and --forever must be given. It says when to stop")
    if forever and wait_s is not None:
        problems.append("--wait must not be given with --forever, which never gives up")
    if auto_commit and no_commit:
        problems.append("--auto-commit and --no-commit must not be given together")
    if problems:
        raise OpsError(f"consume: {'; '.join(problems)}.")


def _say_record(message: Any) -> None:
    key, value = (part.decode("utf-8", "replace") if part else "null" for part in (message.key(), message.value()))
    log(f"{message.partition()} {message.offset()} {_timestamp(message)} {key} {value}")


def _timestamp(message: Any) -> str:
    """The record's time in UTC to the millisecond, `-` if it has none or one that no calendar has."""
    kind, milliseconds = message.timestamp()
    if kind == TIMESTAMP_NOT_AVAILABLE:
        return "-"
    seconds, rest = divmod(milliseconds, 1000)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"
    except (OverflowError, ValueError, OSError):
        return "-"


def _partitions(title: str, account: DeliveryLog) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("partition", "records", "first offset", "last offset"):
        table.add_column(column, justify="right")
    for row in account.as_json():
        table.add_row(*(str(row[key]) for key in ("partition", "records", "firstOffset", "lastOffset")))
    return table


def _sent_table(outcome: Sent) -> RenderableType:
    """Return what was delivered per partition, and why deliveries failed."""
    title = f"{outcome.topic}: {outcome.account.total} delivered, {outcome.failed} failed, {outcome.seconds:.1f} s"
    reasons = [f"[red]{count} failed: {escape(reason)}[/red]" for reason, count in outcome.failures.items()]
    return Group(_partitions(title, outcome.account), *reasons)


def _read_table(outcome: Read) -> RenderableType:
    """Return what was read per partition and whether it was committed."""
    committed = "committed" if outcome.committed else "no commit at the end"
    title = f"{outcome.topic} as {outcome.group}: {outcome.account.total} records, {committed}, {outcome.seconds:.1f} s"
    return _partitions(title, outcome.account)


def register(app: typer.Typer) -> None:
    """Add both commands to the command line."""
    app.command("produce")(produce)
    app.command("consume")(consume)


register(app)

if __name__ == "__main__":
    app()
