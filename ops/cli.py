"""The command line: `python -m ops COMMAND`. Results on stdout, progress on stderr."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ops import consume_command, produce_command, render, size, tables, verify
from ops.adoption.command import command as adopt
from ops.connection import stack_outputs
from ops.offsets import command as offsets
from ops.policy import command as policy
from ops.promotion import command as promote
from ops.recovery import failback_command, failover_command, status_command
from ops.shell import EXIT_FAILED, AsJson, Debug, guard, say, show

app = typer.Typer(
    name="ops",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="""Work with the clusters of a stack: send records, read them as a consumer group, verify the mirror.

[bold]--stack NAME[/bold] finds the cluster through the stack's Pulumi outputs (the environment decides the backend);
in the sandbox, first: [bold]eval "$(python -m sandbox env)"[/bold]. Without a stack the variables KAFKA_BROKERS,
KAFKA_USER, KAFKA_PWD, KAFKA_CERT, KAFKA_SECURITY_PROTOCOL and KAFKA_SASL_MECHANISM do.

Results go to stdout, progress to stderr. Exit codes: 0 done; 1 a check failed or not every record arrived;
2 wrong usage, or a cluster or stack that cannot be used.""",
)


@app.command("verify")
def verify_command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")] = "stg",
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the stack has one.")] = None,
    report_dir: Annotated[
        Path | None, typer.Option("--report-dir", help="Folder for the reports. [default: reports/STACK-MIRROR-TIME]")
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="URI", help="Folder or s3://bucket/prefix of verified offsets.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Prove that every record and every group's offset is on the target: run the verification job, print the verdict.

    Example: [bold]python -m ops verify --stack stg[/bold]

    Exit 0 if every check holds, 1 if one fails or could not be made, 2 if the job could not run. With --state only what
    is new since the last run with it is compared.
    """
    with guard(as_json, debug):
        planned = verify.plan(stack, stack_outputs(stack, os.environ), mirror)
        folder = report_dir or verify.default_report_dir(planned)
        verdict = verify.run(planned, folder, os.environ, say, state)
        show(as_json, verdict.as_json(), lambda: tables.verdict(verdict))
    if verdict.exit_code:
        raise typer.Exit(EXIT_FAILED)


produce_command.register(app)
consume_command.register(app)
render.register(app)
app.command("import")(adopt)
size.register(app)
policy.register(app)
offsets.register(app)
status_command.register(app)
promote.register(app)
failover_command.register(app)
failback_command.register(app)


def main() -> None:
    """Run the command line."""
    app()
