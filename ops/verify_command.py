"""The command `python -m ops verify`: runs the verification job and prints the verdict."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ops import tables, verify
from ops.connection import PROJECT, stack_outputs
from ops.errors import OpsError
from ops.shell import EXIT_FAILED, AsJson, Debug, ProjectFolder, guard, say, show
from spark.request.addresses import url_problem


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")] = "stg",
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    report_dir: Annotated[
        Path | None, typer.Option("--report-dir", help="Folder for the reports. [default: reports/STACK-MIRROR-TIME]")
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="URI", help="Folder or s3://bucket/prefix of verified offsets.")
    ] = None,
    push_gateway: Annotated[
        str | None, typer.Option("--push-gateway", metavar="URL", help="Tell this Prometheus push gateway as well.")
    ] = None,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Prove that every record and every group's offset is on the target: run the verification job, print the verdict.

    Example: [bold]python -m ops verify --stack stg[/bold]

    Exit 0 if every check holds, 1 if one fails or could not be made, 2 if the job could not run. With --state only what
    is new since the last run with it is compared. A gateway that cannot be told changes neither verdict nor exit code.
    """
    with guard(as_json, debug):
        if push_gateway is not None and (problem := url_problem(push_gateway)):
            raise OpsError(f"verify: --push-gateway {problem}.")
        planned = verify.plan(stack, stack_outputs(stack, os.environ, folder), mirror)
        reports = report_dir or verify.new_report_dir(planned)
        verdict = verify.run(planned, reports, os.environ, say, state, push_gateway)
        show(as_json, verdict.as_json(), lambda: tables.verdict(verdict))
    if verdict.exit_code:
        raise typer.Exit(EXIT_FAILED)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("verify")(command)
