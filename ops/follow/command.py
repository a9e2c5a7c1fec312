"""The command `python -m ops follow`: keeps groups at their exact positions on the target, as long as it runs.

Owns options, the rounds and their metrics. Does not own what a round does.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from confluent_kafka import KafkaException
from rich.console import RenderableType

from contract.fields import VerificationError
from kafka.errors import ClusterError
from ops.connection import PROJECT
from ops.console import (
    EXIT_FAILED,
    AdaptiveTable,
    AsJson,
    Column,
    Debug,
    ProjectFolder,
    guard,
    log,
    show,
    until_stopped,
)
from ops.errors import OpsError
from ops.follow.follower import STATES, Follower, Round
from ops.follow.kept_maps import KeptMaps
from ops.inspection.probes import error_text
from ops.metrics.command import TICK_S, serving
from ops.metrics.mirror_metrics import PREFIX, Family
from ops.recovery import break_glass, mirror_context
from ops.recovery.break_glass import BreakGlass
from ops.recovery.mirror_context import MirrorContext

INTERVAL_S = 0.5  # with a round, what is known of a group is younger than a second
RETRY_MAX_S = 30.0
SOURCE_WITHIN_S = 5.0
"""How long a call may take at the source: a round begins without one that is gone, and a failover waits for its end."""
CURRENT_WITHIN_S = 60.0
"""Age of the last round in which both clusters answered, from which on nobody may rely on it."""
_AGE, _SECONDS, _POSITIONS = (f"{PREFIX}_follow_{name}" for name in ("age_seconds", "round_seconds", "positions"))
_HELP = {
    _AGE: "Seconds since a round of ops follow ended in which both clusters were asked; since its start before that.",
    _SECONDS: "How long the last round took.",
    _POSITIONS: "Positions of the mirrored groups by state: exact ones, and why others are not. None once the last "
    f"round is {CURRENT_WITHIN_S:.0f} seconds old.",
}
Stopped = Callable[[], bool]


@dataclass
class FollowMetrics:
    """The last round, for Prometheus."""

    pair: MirrorContext
    ended: float = field(default_factory=time.monotonic)
    seconds: float | None = None
    last: Round | None = None

    @property
    def is_ready(self) -> bool:
        """Whether groups are followed now."""
        return self.last is not None and time.monotonic() - self.ended <= CURRENT_WITHIN_S

    @property
    def families(self) -> list[Family]:
        """What a scrape gets."""
        of = {"stack": self.pair.label, "mirror": self.pair.mirror}
        made = {name: Family(name=name, text=text) for name, text in _HELP.items()}
        made[_AGE].add(time.monotonic() - self.ended, **of)
        made[_SECONDS].add(self.seconds, **of)
        for state, number in self.last.positions.items() if self.last is not None and self.is_ready else ():
            made[_POSITIONS].add(number, **of, state=state)
        return list(made.values())

    def log(self, line: str) -> None:
        """Report a scrape that failed."""
        log(line)


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")] = "stg",
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    once: Annotated[bool, typer.Option("--once", help="One round, then end.")] = False,
    interval_s: Annotated[
        float, typer.Option("--interval", min=0.1, help="Seconds from the start of one round to the next.")
    ] = INTERVAL_S,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="ADDRESS:PORT", help="Serve /metrics there until SIGTERM.")
    ] = None,
    outputs: Annotated[
        Path | None,
        typer.Option(
            "--outputs",
            help="JSON file with the stack's outputs of the mirror, in place of Pulumi; secrets are variables then.",
        ),
    ] = None,
    without_pulumi: BreakGlass = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Keep groups without members on the target exactly where they stand at the source, twice a second.

    Example: [bold]python -m ops follow --stack stg --listen 0.0.0.0:9411[/bold]

    MirrorMaker translates by few pairs of offsets, so that groups read thousands of records again after an unplanned
    failover. This uses all of them, and compares the few records between two where they prove nothing. A group that
    has members on the target, or was set by somebody else there, is left alone. No group is joined.

    Exit 0 when it is ended by a signal, 1 if a position is not exact after --once or a group could not be read, 2 if a
    cluster cannot be asked in the first round.
    """
    with guard(as_json, debug, VerificationError):
        if as_json and not once:
            raise OpsError("follow: --json must be given with --once only. Without it, see --listen.")
        if outputs is not None and without_pulumi:
            raise OpsError("follow: --outputs must not be given with --break-glass. Leave one of them out.")
        known = (
            mirror_context.of_outputs(stack, _read_outputs(outputs), mirror, os.environ, folder)
            if outputs is not None
            else break_glass.loader(without_pulumi)(stack, mirror, os.environ, folder)
        )
        _require_active_source(known)
        metrics = FollowMetrics(known)
        with ExitStack() as opened, until_stopped() as stopped:
            if listen is not None:
                log(f"serving {opened.enter_context(serving(listen, metrics))}")
            with followed(known) as follower:
                found = _timed(follower, metrics)
                log(f"{_summary(found)}; {'done' if once else f'again every {interval_s:g} s until SIGTERM or Ctrl-C'}")
                if not once:
                    repeat(follower, metrics, interval_s, stopped)
                    return
        for problem in found.problems:
            log(problem)
        document = {"stack": known.stack, "mirror": known.mirror, **asdict(found)}
        show(as_json, document, lambda: table(known, found))
    if found.problems or any(number for state, number in found.positions.items() if state != STATES[0]):
        raise typer.Exit(EXIT_FAILED)


@contextmanager
def followed(known: MirrorContext, source_within_s: float = SOURCE_WITHIN_S) -> Iterator[Follower]:
    """Yield a follower of the mirror, both clusters connected; raises ClusterError."""
    source, target = known.source(), known.target()
    for side in (source, target):
        side.connect()
    source.call_within_s = source_within_s
    follower = Follower(known, source, target, KeptMaps(target, known.request.mirror, log))
    try:
        yield follower
    finally:
        follower.close()


def _read_outputs(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no JSON"
        raise OpsError(f"--outputs: {file} must be a JSON file that can be read (got {why}).") from None
    if not isinstance(found, dict):
        raise OpsError(f"--outputs: {file} must hold an object with the stack's outputs (got {type(found).__name__}).")
    return found


def _require_active_source(known: MirrorContext) -> None:
    if known.active != "source" or known.state != "running":
        raise OpsError(
            f"stack {known.stack}: mirror {known.mirror} must be running with an active source while its groups are "
            f"followed (got state {known.state}, active {known.active}). There is nothing to follow now."
        )


def _timed(follower: Follower, metrics: FollowMetrics) -> Round:
    began = time.monotonic()
    found = follower.round()
    metrics.last, metrics.ended = found, time.monotonic()
    metrics.seconds = metrics.ended - began
    return found


def repeat(follower: Follower, metrics: FollowMetrics, interval_s: float, stopped: Stopped) -> None:
    """Do rounds until asked to end. When they begin to fail, or to succeed again, that is reported once.

    A short one after which more positions are unproven is followed by another at once.
    """
    reported: frozenset[str] = frozenset()
    failures, began, unproven, is_hurried = 0, time.monotonic(), 0, False
    while True:
        pause = min(RETRY_MAX_S, interval_s * 2 ** min(failures, 10)) if failures else interval_s * (not is_hurried)
        while not stopped() and (left := began + pause - time.monotonic()) > 0:
            time.sleep(min(TICK_S, left))
        if stopped():
            return
        began, before, is_hurried = time.monotonic(), unproven, False
        try:
            found = _timed(follower, metrics)
            problems, failures, unproven = frozenset(found.problems), 0, found.positions["unproven"]
            is_hurried = unproven > before and time.monotonic() - began < interval_s / 2
        except (ClusterError, OpsError, KafkaException) as error:
            problems, failures = frozenset([f"round failed: {error_text(error)}"]), failures + 1
        for problem in sorted(problems - reported):
            log(problem)
        if reported and not problems:
            log("rounds succeed again")
        reported = problems


def _summary(found: Round) -> str:
    number = sum(found.positions.values())
    return f"{found.positions[STATES[0]]} of {number} positions of {found.groups} groups are exact"


def table(known: MirrorContext, found: Round) -> RenderableType:
    """Return how many positions are in each state."""
    made = AdaptiveTable(f"groups of mirror {known.mirror}", (Column("positions", name=True), Column("", number=True)))
    for state in STATES:
        made.add_row(state, str(found.positions[state]))
    return made


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("follow")(command)
