"""The command `python -m ops size`: the tasks, workers, CPU and memory that a mirror needs, and why.

Owns the options, their rules, which topics a stack file declares and the settings to paste; the arithmetic is in
`ops.sizing.model`. It reads files only and connects to nothing.
"""

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
import yaml
from rich.console import Console, Group, RenderableType
from rich.table import Table

from ops.console import escape
from ops.errors import OpsError
from ops.sizing.clients import MEASURED, NOTHING, read_throughput
from ops.sizing.model import Size, Workload, size
from settings import NAMESPACE, SettingsError, Stack
from settings.files import load
from settings.mirrors import Mirror
from settings.names import copied
from settings.text import format_count

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
        str | None,
        typer.Option("--latency-ms", metavar="MS", help="Round trip between the sites. [default: source.latencyMs]"),
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
        unknown = Declared(
            mirror=mirror or _NAME, topics=0, partitions=0, source_brokers=None, target_brokers=3, latency_ms=None
        )
        known = found.of(lambda: read_declared(stack_file, mirror), unknown) if stack_file else unknown
        if mirror is not None and stack_file is None:
            found.problems.append("--mirror: must come with --stack-file. Name the file that declares it.")
        load = Workload(
            topics=found.count("--topics", topics or str(known.topics or 1)),
            partitions=found.count("--partitions", partitions or (str(known.partitions) if known.partitions else None)),
            record_bytes=found.count("--record-bytes", record_bytes, most=_LARGEST_RECORD),
            records_per_second=found.number("--records-per-second", records_per_second, 0.001, 1e9),
            latency_ms=found.number("--latency-ms", latency_ms or known.latency, 0, 10_000),
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
    Console().print(_table(mirror, result))
    Console(soft_wrap=True).print(escape(snippet(mirror, result)), highlight=False)


def _table(mirror: str, size: Size) -> RenderableType:
    """Return the steps that lead to a mirror's size, the size, advice and the measurement that it rests on."""
    title = f"mirror {mirror}: {format_count(size.tasks, 'task')}, {format_count(size.replicas, 'replica')}"
    table = Table(title=title if size.feasible else f"mirror {mirror}: too few partitions", title_justify="left")
    for column in ("step", "calculation", "result"):
        table.add_column(column, overflow="fold")
    for step in size.steps:
        table.add_row(step.about, escape(step.calculation), step.result)
    worker = (
        f"a worker: {size.cpu_per_worker:g} cores requested, {size.cpu_limit:g} at most, "
        f"{size.memory_mib} MiB of memory, heap {size.heap_mib} MiB"
    )
    return Group(table, worker, *map(escape, size.advice), f"measured: {escape(size.measured)}")


T = TypeVar("T")
_SMALLEST_BUFFER = 1024


@dataclass
class Options:
    """Reads options and remembers what is wrong with them; a wrong one reads as a value that works."""

    problems: list[str] = field(default_factory=list)

    def of(self, read: Callable[[], T], otherwise: T) -> T:
        """Return what `read` returns; `otherwise`, with its problem remembered, if it raises OpsError."""
        try:
            return read()
        except OpsError as error:
            self.problems.append(str(error))
            return otherwise

    def number(self, name: str, text: str | None, least: float, most: float) -> float:
        """Return a number within its limits."""
        try:
            value = float(text or "")
        except ValueError:
            value = math.nan
        if least <= value <= most:
            return value
        return self._wrong(name, text, f"a number from {least:g} to {most:g}", least)

    def count(self, name: str, text: str | None, most: int = 1_000_000) -> int:
        """Return a whole number from 1."""
        value = _whole(text)
        if value is not None and 1 <= value <= most:
            return value
        return self._wrong(name, text, f"a whole number from 1 to {most}", 1)

    def buffer(self, name: str, text: str) -> int:
        """Return a socket's buffer in bytes, -1 for the system's choice."""
        value = _whole(text)
        if value is not None and (value == -1 or value >= _SMALLEST_BUFFER):
            return value
        return self._wrong(name, text, f"-1 (the system chooses) or a whole number >= {_SMALLEST_BUFFER}", -1)

    def choice(self, name: str, text: str, allowed: Sequence[str]) -> str:
        """Return one of the allowed words."""
        return text if text in allowed else self._wrong(name, text, f"one of {', '.join(allowed)}", allowed[0])

    def _wrong(self, name: str, text: str | None, rule: str, otherwise: T) -> T:
        got = "nothing" if text is None else repr(text)
        self.problems.append(f"{name}: must be {rule} (got {got}).")
        return otherwise


def _whole(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None


@dataclass(frozen=True)
class Declared:
    """A mirror, and the topics, partitions and brokers that the stack files declare for it; None is not known here."""

    mirror: str
    topics: int
    partitions: int
    source_brokers: int | None
    target_brokers: int
    latency_ms: int | None

    @property
    def latency(self) -> str | None:
        """The round trip as an option gives it."""
        return None if self.latency_ms is None else str(self.latency_ms)


def read_declared(path: Path, mirror: str | None) -> Declared:
    """Return what the stack file declares for a mirror, topics by the source stack's file beside it; raises OpsError.

    Without such a file the topics are those that this stack declares and the mirror copies.
    """
    stack = _load(path)
    chosen = _mirror(path, stack, mirror)
    source = None
    if chosen.source.stack is not None:
        beside = path.with_name(f"Pulumi.{chosen.source.stack}{path.suffix}")
        source = _load(beside) if beside.exists() else None
    topics = [topic for topic in (source or stack).topics if copied(topic.name, chosen.topics, chosen.topics_exclude)]
    return Declared(
        mirror=chosen.name,
        topics=len(topics),
        partitions=sum(topic.partitions for topic in topics),
        source_brokers=_source_brokers(chosen, source),
        target_brokers=stack.cluster.broker_count,
        latency_ms=chosen.source.latency_ms,
    )


def mirror_settings(name: str, size: Size) -> dict[str, Any]:
    """Return the keys of one entry of `mirrors` that give the mirror this size."""
    memory = f"{size.memory_mib}Mi"
    heap = f"{size.heap_mib}m"
    entry: dict[str, Any] = {
        "name": name,
        "sourceTasksMax": size.tasks,
        "replicas": size.replicas,
        "resources": {
            "requests": {"cpu": f"{size.cpu_per_worker:g}", "memory": memory},
            "limits": {"cpu": f"{size.cpu_limit:g}", "memory": memory},
        },
        "jvm": {"xms": heap, "xmx": heap},
    }
    overrides = {"producer": size.producer, "consumer": size.consumer}
    return entry | {key: dict(values) for key, values in overrides.items() if values}


def snippet(name: str, size: Size) -> str:
    """Return those keys as YAML of a stack file."""
    text: str = yaml.safe_dump({f"{NAMESPACE}:mirrors": [mirror_settings(name, size)]}, sort_keys=False)
    return text


def _load(path: Path) -> Stack:
    try:
        return load(path)
    except SettingsError as error:
        raise OpsError(str(error)) from None


def _mirror(path: Path, stack: Stack, name: str | None) -> Mirror:
    names = [mirror.name for mirror in stack.mirrors]
    if name is None and len(names) == 1:
        return stack.mirrors[0]
    if name not in names:
        got = "nothing" if name is None else repr(name)
        raise OpsError(
            f"--mirror: must be a mirror of {path} (got {got}, allowed {', '.join(names) or 'none, it declares none'})."
        )
    return next(mirror for mirror in stack.mirrors if mirror.name == name)


def _source_brokers(mirror: Mirror, source: Stack | None) -> int | None:
    if mirror.source.external is not None:
        return mirror.source.external.cluster.brokers
    return source.cluster.broker_count if source else None
