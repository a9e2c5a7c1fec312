"""The command `ops audit`: runs the audit of a mirror of a stack, as long as it is not stopped.

The audit is a process of its own, like the verification. Owns options and the request; neither reads nor judges.
"""

import math
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from contract.documents import STANDARD_INPUT, unnamed_file
from ops.connection import PROJECT
from ops.console import Debug, ProjectFolder, guard, log, terminated_gently
from ops.pulumi.stack import stack_outputs
from ops.verify import REPORTS, follow, plan


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")] = "stg",
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    report_dir: Annotated[
        Path | None,
        typer.Option("--report-dir", help="Folder for the report and the state. [default: reports/STACK-MIRROR-audit]"),
    ] = None,
    bucket_s: Annotated[int, typer.Option("--bucket", min=1, max=86_400, help="Seconds of a bucket.")] = 60,
    within_s: Annotated[
        int, typer.Option("--within", min=1, max=86_400, help="Seconds after its end in which its records must arrive.")
    ] = 60,
    every_s: Annotated[
        int, typer.Option("--every", min=1, max=86_400, help="Seconds from the start of one reading to the next.")
    ] = 20,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="ADDRESS:PORT", help="Serve /metrics there.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="One reading, then end.")] = False,
    folder: ProjectFolder = PROJECT,
    debug: Debug = False,
) -> None:
    """Count and digest the records of both sides by time, until it is stopped, and say where and when some are missing.

    Example: [bold]python -m ops audit --stack stg --listen 127.0.0.1:9404[/bold]

    It begins with the next whole bucket, and goes on where it stopped if it is started again with the same folder. Exit
    0 if nothing was at fault, 1 if a bucket was, 2 if a side could not be read or a bucket is unknown, 130 or 143 if it
    was stopped.
    """
    with guard(False, debug), terminated_gently():
        planned = plan(stack, stack_outputs(stack, os.environ, folder), mirror)
        reports = (report_dir or REPORTS / f"{planned.stack}-{planned.mirror}-audit").resolve()
        arguments = ["--state", str(reports / "state"), "--report", str(reports / "audit.json")]
        arguments += ["--bucket", str(bucket_s), "--within", str(within_s), "--every", str(every_s)]
        arguments += ["--metrics", listen] if listen is not None else []
        arguments += ["--once"] if once else []
        with unnamed_file(planned.request) as request:
            job = [sys.executable, "-m", "spark", "audit", "--request", STANDARD_INPUT, *arguments]
            code, _ = follow(job, {**os.environ, **planned.secrets}, log, math.inf, request)
        log(f"report: {reports / 'audit.html'}")
    if code:
        raise typer.Exit(code)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("audit")(command)
