"""Options and questions that commands share which change what is running."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ops.errors import OpsError
from ops.recovery import pair
from ops.shell import stderr

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ReportDir = Annotated[Path | None, typer.Option("--report-dir", help="Folder for the verification's reports.")]


def default_report_dir(what: str, known: pair.Pair) -> Path:
    """Return `reports/<stack>-<mirror>-<what>-<UTC time>` below the working directory."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return Path("reports") / f"{known.stack}-{known.mirror}-{what}-{stamp}"


def insist_on_yes(yes: bool, question: str, as_json: bool) -> None:
    """Ask, unless told not to; raises OpsError if the answer is no or nobody is there to answer."""
    if yes:
        return
    if as_json or not (stderr().is_terminal and sys.stdin.isatty()):
        raise OpsError("--yes must be given where nobody can be asked: with --json or without a terminal.")
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:  # Ctrl-C, or the end of the input
        agreed = False
    if not agreed:
        raise OpsError("Nothing was changed.")
