"""`python -m ops consume`: a demo client that reads as a member of a group, up to a goal or until told to stop."""

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from ops import consumer, tables
from ops.accounting import keys_file
from ops.client_options import Forever, KeysOut, Stack, Topic, User, connection_of, topic_of
from ops.connection import PROJECT
from ops.consumer import COMMIT_S, WAIT_S, Goal
from ops.endless import pulse, until_told
from ops.errors import OpsError
from ops.shell import EXIT_FAILED, AsJson, Debug, ProjectFolder, guard, progress, say, show


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("consume")(command)


def command(
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
        _check(maximum, until_end, forever, wait_s, auto_commit, no_commit)
        name = topic_of(topic)
        wait = None if forever else wait_s or WAIT_S
        with ExitStack() as around:
            # Before the first contact: a container's first process ignores a signal for which it has no handler.
            told = around.enter_context(until_told()) if forever else lambda: False
            client, troubles = consumer.connect(
                connection_of(stack, user, folder), name, group, auto_commit=auto_commit
            )
            title = f"consume {name} as {group}"
            each = around.enter_context(keys_file(keys_out))
            outcome = consumer.read(
                client,
                name,
                group,
                Goal(maximum=maximum, until_end=until_end, wait_s=wait, told=told),
                troubles,
                commit=not (auto_commit or no_commit),
                commit_s=COMMIT_S if forever else None,
                store=(lambda message: client.store_offsets(message=message)) if auto_commit else None,
                hand_over=_say_record if print_records else lambda _: None,
                each=each,
                progress=pulse(title, say) if forever else around.enter_context(progress(title, maximum)),
            )
        show(as_json, outcome.as_json(), lambda: tables.read(outcome))
        if not outcome.complete:
            say(f"consume: no record came for {wait:g} s; {outcome.account.total} were read.")
    if not outcome.complete:
        raise typer.Exit(EXIT_FAILED)


def _check(
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
    say(f"{message.partition()} {message.offset()} {_timestamp(message)} {key} {value}")


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
