"""`python -m ops produce`: a demo client that sends random events, a number of them or until it is told to stop."""

from contextlib import ExitStack
from typing import Annotated

import typer

from ops import producer, tables
from ops.accounting import keys_file
from ops.client_options import Forever, KeysOut, Stack, Topic, User, connection_of, topic_of
from ops.connection import PROJECT
from ops.endless import pulse, until_told
from ops.errors import OpsError
from ops.events import Kind, events
from ops.shell import EXIT_FAILED, AsJson, Debug, ProjectFolder, guard, progress, say, show

COUNT = 100


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("produce")(command)


def command(
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
        _check(count, forever, rate)
        name, number = topic_of(topic), None if forever else count or COUNT
        with ExitStack() as around:
            # Before the first contact: a container's first process ignores a signal for which it has no handler.
            told = around.enter_context(until_told()) if forever else lambda: False
            client, troubles = producer.connect(connection_of(stack, user, folder), name)
            title = f"produce {name}"
            sent = producer.send(
                client,
                name,
                events(kind, number, seed),
                rate=rate,
                # Without end, deliveries would fail for ever once the user is not let in any more.
                told=lambda: told() or (forever and troubles.final()),
                each=around.enter_context(keys_file(keys_out)),
                progress=pulse(title, say) if forever else around.enter_context(progress(title, number)),
            )
        if forever and troubles.final():
            raise troubles.error()
        show(as_json, sent.as_json(), lambda: tables.sent(sent))
    if sent.failed:
        raise typer.Exit(EXIT_FAILED)


def _check(count: int | None, forever: bool, rate: float | None) -> None:
    problems = []
    if forever and count is not None:
        problems.append("--count must not be given with --forever, which has no end")
    if forever and rate is None:
        problems.append("--rate must be given with --forever: without a limit it fills the cluster's disks")
    if problems:
        raise OpsError(f"produce: {'; '.join(problems)}.")
