"""The command `python -m ops status`: one screen for a pair of stacks."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from contract.fields import VerificationError
from ops.connection import PROJECT
from ops.console import EXIT_FAILED, EXIT_UNUSABLE, AsJson, Debug, ProjectFolder, Text, guard, reading, show
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.inspection.snapshot import MirrorSnapshot
from ops.recovery import break_glass, fencing
from ops.recovery.break_glass import BreakGlass
from ops.recovery.fencing import TAKES_WRITES
from ops.recovery.mirror_context import MirrorContext
from ops.status import document as status
from settings import SettingsError

EVERY_S = 5.0


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")] = "stg",
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again and again until Ctrl-C.")] = False,
    every_s: Annotated[
        float, typer.Option("--every", min=1, help="Seconds between two snapshots of --watch.")
    ] = EVERY_S,
    without_pulumi: BreakGlass = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show a pair of stacks on one screen: who is active, clusters, mirror, lag, groups, what a failover costs.

    Example: [bold]python -m ops status --stack stg --watch[/bold]

    Nothing is changed and no group is joined, but with --watch: a source that a failover could not fence is fenced as
    soon as it answers. What groups would read again is computed from offsets alone, so it is
    about right; [bold]offsets show --exact[/bold] counts it by the records. The last verification is that of the last
    [bold]up[/bold], or a newer one whose report is in [bold]reports/[/bold] here. An interrupted failover or failback
    is a problem, and so are groups that would skip records. Exit 0 if all is well, 1 if something is not, 2 if the
    stack's outputs cannot be read or something is unknown.
    """
    with guard(as_json, debug, VerificationError):
        if watch and as_json:
            raise OpsError("status: --watch and --json must not be given together. Call --json again instead.")
        with reading(f"stack {stack}, its mirror and both clusters"):
            load = break_glass.loader(without_pulumi)
            known = load(stack, mirror, os.environ, folder)
            found = None if watch else status.document(snapshot.collect(known, os.environ))
        if found is None:
            _watch(known, every_s, load)
            return
        show(as_json, found, lambda: status.table(found))
    if found["health"] != status.HEALTHY:
        raise typer.Exit(EXIT_UNUSABLE if found["health"] == status.UNKNOWN else EXIT_FAILED)


def _watch(known: MirrorContext, every_s: float, load: Callable[..., MirrorContext]) -> None:
    """Show the screen until Ctrl-C. The stack's outputs are read again each time: the active side may change."""
    with Live(console=Console(), auto_refresh=False, screen=False) as screen:
        try:
            while True:
                began = time.monotonic()
                seen = snapshot.collect(known, os.environ)
                found: dict[str, Any] = status.document(seen)
                screen.update(status.table(found), refresh=True)
                _fence(seen)
                time.sleep(max(0.0, every_s - (time.monotonic() - began)))
                try:
                    known = load(known.stack, known.mirror, os.environ, known.project)
                except OpsError as error:  # an `up` may write the state just now: the next snapshot may succeed
                    screen.update(Text(str(error)), refresh=True)
                    time.sleep(every_s)
        except KeyboardInterrupt:
            return


def _fence(seen: MirrorSnapshot) -> None:
    """Fence a source that takes writes while the target is active; what fails is a problem of the next snapshot."""
    issue = seen.fence_issue
    if issue is not None and issue[0] == TAKES_WRITES:
        with suppress(OpsError, SettingsError):
            fencing.carry_out_declared(seen.pair, os.environ, lambda _: None)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("status")(command)
