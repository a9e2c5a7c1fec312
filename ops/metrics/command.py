"""The command `python -m ops metrics`: what `ops status` shows, for Prometheus."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client import generate_latest, push_to_gateway, write_to_textfile
from prometheus_client.openmetrics import exposition as openmetrics
from rich.text import Text

from contract.fields import url_problem
from ops.connection import PROJECT
from ops.console import EXIT_FAILED, EXIT_UNUSABLE, AsJson, Debug, ProjectFolder, guard, log, show, until_stopped
from ops.errors import OpsError
from ops.metrics.collector import CollectorProcess, MetricsSnapshot, Task, as_document, collect
from ops.metrics.exporter import serve
from ops.metrics.mirror_metrics import registry

JOB = "rt_inventory_status"
EVERY_S = 30.0
PUSH_DEADLINE_S = 10.0


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")] = "stg",
    mirror: Annotated[
        str | None, typer.Option("--mirror", help="Mirror; without it all mirrors of the stack are inspected.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Replace this file at once, NAME.prom of a textfile collector.")
    ] = None,
    push_gateway: Annotated[
        str | None,
        typer.Option("--push-gateway", metavar="URL", help="Push to this gateway, as the group of --mirror."),
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="ADDRESS:PORT", help="Serve /metrics there until SIGTERM.")
    ] = None,
    every_s: Annotated[
        float, typer.Option("--every", min=1, help="Seconds between the beginnings of two snapshots of --listen.")
    ] = EVERY_S,
    verified: Annotated[
        bool, typer.Option("--verification/--no-verification", help="Report the last verification as well.")
    ] = True,
    as_openmetrics: Annotated[
        bool, typer.Option("--openmetrics", help="OpenMetrics on stdout in place of Prometheus' text format.")
    ] = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Report to Prometheus what [bold]ops status[/bold] shows of a pair of stacks, and how the last verification ended.

    Examples: [bold]python -m ops metrics --stack stg --file /var/lib/node_exporter/stg.prom[/bold] now and then, or
    [bold]python -m ops metrics --stack stg --listen 127.0.0.1:9410[/bold] once.

    Without --file, --push-gateway and --listen the metrics go to stdout. Nothing is changed and no group is joined.
    What is unknown has no series. rt_inventory_status_error reports a snapshot that fails, wherever metrics go.

    Exit 0 if everything was inspected, 1 if something of a mirror could not be, 2 if a snapshot failed or the metrics
    could not be written. Ended by a signal --listen exits with 0.
    """
    with guard(as_json, debug):
        _require_consistent_options(mirror, file, push_gateway, listen, as_json=as_json, as_openmetrics=as_openmetrics)
        if listen is not None:
            task = Task(stack=stack, mirror=mirror, folder=str(folder.resolve()), verified=verified)
            with until_stopped() as stopped:
                serve(listen, every_s, CollectorProcess(task, os.environ), log, stopped)
            return
        found = collect(stack, mirror, os.environ, folder, verified=verified, debug=debug)
        if file is not None:
            _write(file, found)
        if push_gateway is not None:
            _push(push_gateway, found, mirror)
        if as_json:
            show(as_json, as_document(found), lambda: Text())
        elif file is None and push_gateway is None:
            encode = openmetrics.generate_latest if as_openmetrics else generate_latest
            sys.stdout.write(encode(registry(found.families)).decode())
    for line in (*(f"snapshot failed: {why}" for why in dict.fromkeys(found.errors.values())), *found.unknown):
        log(line)
    if found.errors:
        raise typer.Exit(EXIT_UNUSABLE)
    if found.unknown:
        raise typer.Exit(EXIT_FAILED)


def _require_consistent_options(
    mirror: str | None,
    file: Path | None,
    push_gateway: str | None,
    listen: str | None,
    *,
    as_json: bool,
    as_openmetrics: bool,
) -> None:
    """Refuse options that do not go together."""
    ends = {"--file": file is not None, "--push-gateway": push_gateway is not None, "--json": as_json}
    ends["--openmetrics"] = as_openmetrics
    given = [name for name, yes in ends.items() if yes]
    if listen is not None and given:
        raise OpsError(f"metrics: --listen and {given[0]} must not be given together. Each scrape asks for its format.")
    if as_openmetrics and len(given) > 1:
        raise OpsError(f"metrics: --openmetrics and {given[0]} must not be given together. It is for stdout alone.")
    if push_gateway is not None and mirror is None:
        raise OpsError(
            "metrics: --mirror must be given with --push-gateway (got none). A snapshot that fails before it knows the "
            "mirrors would leave their last numbers at the gateway as if they were of now."
        )
    if push_gateway is not None and (problem := url_problem(push_gateway)):
        raise OpsError(f"metrics: --push-gateway {problem}.")


def _write(file: Path, found: MetricsSnapshot) -> None:
    try:
        write_to_textfile(str(file), registry(found.families))
    except OSError as error:
        raise OpsError(f"metrics: --file must be writable (got {file}: {error.strerror}).") from None


def _push(url: str, found: MetricsSnapshot, mirror: str | None) -> None:
    """Replace the group of the mirror, also by a snapshot that failed: no number of an earlier one stays."""
    try:
        key = {"stack": found.stack, "mirror": mirror}
        push_to_gateway(url, JOB, registry(found.families), grouping_key=key, timeout=PUSH_DEADLINE_S)
    except OSError as error:
        raise OpsError(f"metrics: --push-gateway must take the metrics (got {url}: {error}).") from None


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("metrics")(command)
