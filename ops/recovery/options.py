"""Options and questions that commands share which change what is running."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ops.errors import OpsError
from ops.recovery import pair
from ops.shell import EXIT_FAILED, EXIT_INTERRUPTED, say, stderr

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DRY_RUN_ENDED = "Nothing was changed. The same command without --dry-run carries this out."
ReportDir = Annotated[Path | None, typer.Option("--report-dir", help="Folder for the verification's reports.")]


def default_report_dir(what: str, known: pair.Pair) -> Path:
    """Return `reports/<stack>-<mirror>-<what>-<UTC time>` below the working directory."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Path("reports") / f"{known.stack}-{known.mirror}-{what}-{stamp}"


def insist_on_yes(yes: bool, question: str, as_json: bool) -> None:
    """Ask, unless told not to; raises OpsError if nobody is there to answer.

    Raises typer.Exit with exit code 1 if the answer is no: that is no error, but nothing was done. Raises it with
    `EXIT_INTERRUPTED` after Ctrl-C or the end of the input.
    """
    if yes:
        return
    if as_json or not _somebody_is_there():
        raise OpsError("--yes must be given where nobody can be asked: with --json or without a terminal.")
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        say("Nothing was changed.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if not agreed:
        say("Nothing was changed.")
        raise typer.Exit(EXIT_FAILED)


def _somebody_is_there() -> bool:
    return stderr().is_terminal and sys.stdin.isatty()
