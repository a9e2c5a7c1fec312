"""The command `python -m ops size`: how many tasks and workers, how much CPU and memory a mirror needs, and why.

Owns the options and their rules; the arithmetic is in `size_model`. It reads files only and connects to nothing.
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from ops import tables
from ops.errors import OpsError
from ops.size_model import Size, Workload, size
from ops.size_options import Options
from ops.size_stack import Declared, mirror_settings, read_declared, snippet
from ops.size_throughput import MEASURED, NOTHING, read_throughput

EXIT_TOO_SMALL, EXIT_UNUSABLE = 1, 2
_NAME = "NAME"
_LARGEST_RECORD = 100 * 2**20


def command(
    partitions: Annotated[
        str | None, typer.Option("--partitions", metavar="N", help="Partitions of all mirrored topics together.")
    ] = None,
    topics: Annotated[str | None, typer.Option("--topics", metavar="N", help="Mirrored topics. [default: 1]")] = None,
    record_bytes: Annotated[
        str | None, typer.Option("--record-bytes", metavar="N", help="Bytes of a record, key and headers included.")
    ] = None,
    records_per_second: Annotated[
        str | None, typer.Option("--records-per-second", metavar="N", help="At the busiest hour, all topics together.")
    ] = None,
    latency_ms: Annotated[
        str | None, typer.Option("--latency-ms", metavar="MS", help="Round trip between the two sites.")
    ] = None,
    catch_up: Annotated[
        str, typer.Option("--catch-up", metavar="FACTOR", help="Times the rate that must pass after an outage.")
    ] = "2",
    compression_ratio: Annotated[
        str, typer.Option("--compression-ratio", metavar="RATIO", help="4: records shrink to a quarter.")
    ] = "1",
    workers_at: Annotated[
        str, typer.Option("--workers-at", metavar="target|source", help="Side that the workers are near.")
    ] = "target",
    source_brokers: Annotated[
        str | None, typer.Option("--source-brokers", metavar="N", help="[default: from the stack files, else 3]")
    ] = None,
    target_brokers: Annotated[
        str | None, typer.Option("--target-brokers", metavar="N", help="[default: from the stack files, else 3]")
    ] = None,
    broker_buffer: Annotated[
        str,
        typer.Option("--broker-buffer-bytes", metavar="N", help="The far brokers' socket buffers; -1: the system's."),
    ] = "102400",
    worker_cpu: Annotated[
        str, typer.Option("--worker-cpu", metavar="CORES", help="Cores that one worker may have.")
    ] = "2",
    availability: Annotated[
        bool, typer.Option("--availability", help="A worker may be lost: at least 2 replicas, and memory for it.")
    ] = False,
    stack_file: Annotated[
        Path | None,
        typer.Option("--stack-file", metavar="FILE", help="Pulumi.<stack>.yaml that declares the mirror."),
    ] = None,
    mirror: Annotated[str | None, typer.Option("--mirror", help="Mirror; not needed if the file has one.")] = None,
    throughput_file: Annotated[
        Path, typer.Option("--throughput-file", metavar="FILE", help="Result of the throughput benchmark.")
    ] = MEASURED,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of tables.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Size a mirror: tasks, workers, CPU and memory, with the reasoning, from what it has to copy.

    Example: [bold]python -m ops size --partitions 48 --record-bytes 1024 --records-per-second 30000
    --latency-ms 40[/bold]

    With --stack-file, topics, partitions and brokers come from the stack files. Exit 1 if the partitions are too few.
    """
    try:
        found = Options()
        unknown = Declared(mirror=mirror or _NAME, topics=0, partitions=0, source_brokers=None, target_brokers=3)
        known = found.of(lambda: read_declared(stack_file, mirror), unknown) if stack_file else unknown
        if mirror is not None and stack_file is None:
            found.problems.append("--mirror: must come with --stack-file. Name the file that declares it.")
        load = Workload(
            topics=found.count("--topics", topics or str(known.topics or 1)),
            partitions=found.count("--partitions", partitions or (str(known.partitions) if known.partitions else None)),
            record_bytes=found.count("--record-bytes", record_bytes, most=_LARGEST_RECORD),
            records_per_second=found.number("--records-per-second", records_per_second, 0.001, 1e9),
            latency_ms=found.number("--latency-ms", latency_ms, 0, 10_000),
            catch_up=found.number("--catch-up", catch_up, 2, 1000),
            compression_ratio=found.number("--compression-ratio", compression_ratio, 1, 1000),
            workers_at=found.choice("--workers-at", workers_at, ("target", "source")),
            source_brokers=found.count("--source-brokers", source_brokers or str(known.source_brokers or 3)),
            target_brokers=found.count("--target-brokers", target_brokers or str(known.target_brokers)),
            broker_buffer=found.buffer("--broker-buffer-bytes", broker_buffer),
            worker_cpu=found.number("--worker-cpu", worker_cpu, 0.5, 1000),
            availability=availability,
        )
        if not found.problems and load.topics > load.partitions:
            found.problems.append(
                f"--topics: must be <= --partitions (got {load.topics}, partitions {load.partitions}). "
                "Every topic has a partition."
            )
        measured = found.of(lambda: read_throughput(throughput_file), NOTHING)
        if found.problems:
            raise OpsError("\n".join(found.problems))
        result = size(load, measured)
    except OpsError as error:
        if debug:
            raise
        _refuse(str(error), as_json)
        raise typer.Exit(EXIT_UNUSABLE) from error
    _show(known.mirror, result, as_json)
    if not result.feasible:
        raise typer.Exit(EXIT_TOO_SMALL)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("size")(command)


def _refuse(message: str, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"error": message}) + "\n")
    for line in message.splitlines():
        Console(stderr=True, soft_wrap=True).print(f"[red]error:[/red] {escape(line)}", highlight=False)


def _show(mirror: str, result: Size, as_json: bool) -> None:
    if as_json:
        document = {**result.as_json(), "settings": mirror_settings(mirror, result)}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    Console().print(tables.sizing(mirror, result))
    Console(soft_wrap=True).print(escape(snippet(mirror, result)), highlight=False)
