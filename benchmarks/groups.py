"""What many consumer groups cost `status`, the plan, `failover` and `failback`: seconds, peak memory, journal bytes.

Run: `python -m benchmarks.groups`. Two brokers of its own for each number of groups and partitions; it leaves nothing
but the results file. Measured are the functions behind the commands (`group_steps.py`), each in a process of its own.
Judged is what means something on another machine: whether ten times the groups take ten times as long, and what a
group costs beside the reading of one after the other. Exit 1 if a bound is missed.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # the package does not list what it re-exports

from benchmarks import group_steps, tables
from benchmarks.clusters import SOURCE, TARGET, BenchmarkError, Clusters, running
from kafka import in_flight
from sandbox.operator.java_processes import kafka_version
from sandbox.state import PROJECT
from sandbox.toolchain import ToolchainError, locate

RESULT = tables.RESULTS / "groups.json"
SHAPES = ("1000x100", "10000x100", "1000x1000")
TOPIC, POSITIONS_TOPIC, CHECKPOINTS_TOPIC = "events", "mirror-offsets", "source.checkpoints.internal"
RECORDS = 500
"""In each partition: offsets below that are told apart by 9 bits, which is what the journal has to keep."""
BROKER_HEAP_MIB = 2048
STEP_WITHIN_S, WRITTEN_WITHIN_S, SET_WITHIN_S = 3600.0, 120.0, 60.0
GROWTH_MAX, TO_ALONE_MAX = 1.3, 0.8
AGREEING = ("status", "plan", "unplanned failover: offsets", "planned failover: offsets", "failback: offsets")
_UNKNOWN = ["lag", "checkpoints_consistent", "standby_read_only"]


@dataclass(frozen=True)
class Shape:
    """How many groups there are, and how many partitions each of them reads."""

    groups: int
    partitions: int

    @classmethod
    def of(cls, text: str) -> "Shape":
        """Return the shape of a text such as `1000x100`."""
        groups, _, partitions = text.partition("x")
        return cls(int(groups), int(partitions))

    @staticmethod
    def name(group: int) -> str:
        """The name of a group."""
        return f"group-{group:05}"

    def committed(self, group: int, partition: int) -> int:
        """Where a group stands at the source, as if by chance; checkpoint and target are one behind."""
        mixed = zlib.crc32(struct.pack(">ii", group, partition))
        return 1 + mixed % (RECORDS - 1)


def fill(clusters: Clusters, shape: Shape) -> None:
    """Write records, committed offsets and a mirror's checkpoints; every other partition is not on the target yet."""
    began_ms = int(time.time() * 1000) - 3_600_000
    compacted = {"cleanup.policy": "compact"}
    internal = [NewTopic(name, 1, 1, config=compacted) for name in (POSITIONS_TOPIC, CHECKPOINTS_TOPIC)]
    for side, more in ((SOURCE, []), (TARGET, internal)):
        admin = clusters.admin(side)  # named, because its futures end with it
        for future in admin.create_topics([NewTopic(TOPIC, shape.partitions, 1), *more]).values():
            future.result(timeout=SET_WITHIN_S)
        places = ((number, at) for at in range(RECORDS) for number in range(shape.partitions))
        rows = ((TOPIC, number, b"", f"{number} {at}".encode(), began_ms + at) for number, at in places)
        _write(clusters.client(side), rows)
    _write(clusters.client(TARGET), _positions(shape))
    _write(clusters.client(TARGET), _checkpoints(shape))
    everywhere = range(shape.partitions)
    _commit(clusters, SOURCE, shape, [(number, 0) for number in everywhere])
    _commit(clusters, TARGET, shape, [(number, 1) for number in everywhere[::2]])


Record = tuple[str, int, bytes, bytes, int]
"""Topic, partition, key, value and timestamp (0: now)."""


def _positions(shape: Shape) -> Iterator[Record]:
    """What Connect keeps of a source connector that has copied everything (OffsetStorageWriter)."""
    for number in range(shape.partitions):
        key = ["source->target.MirrorSourceConnector", {"cluster": "source", "partition": number, "topic": TOPIC}]
        yield POSITIONS_TOPIC, 0, json.dumps(key).encode(), json.dumps({"offset": RECORDS - 1}).encode(), 0


def _checkpoints(shape: Shape) -> Iterator[Record]:
    """One for each position (org.apache.kafka.connect.mirror.Checkpoint)."""
    for at in range(shape.groups):
        group, topic = _text(shape.name(at)), _text(TOPIC)
        for number in range(shape.partitions):
            upstream = shape.committed(at, number)
            key, value = group + topic + struct.pack(">i", number), struct.pack(">hqq", 0, upstream, upstream - 1)
            yield CHECKPOINTS_TOPIC, 0, key, value + _text(""), 0


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _write(client: Mapping[str, str], rows: Iterator[Record]) -> None:
    in_order = {"enable.idempotence": True}  # also where a busy broker answers so late that records are sent again
    producer = Producer({**client, **in_order, "linger.ms": 20, "queue.buffering.max.messages": 200_000})
    for topic, partition, key, value, moment in rows:
        while True:
            try:
                producer.produce(topic, value, key or None, partition, timestamp=moment)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(WRITTEN_WITHIN_S):
        raise BenchmarkError(f"records must be written within {WRITTEN_WITHIN_S:.0f} s of the last one.")


def _commit(clusters: Clusters, side: str, shape: Shape, behind: Sequence[tuple[int, int]]) -> None:
    """Set each group's offsets in these partitions, so much behind where it stands at the source."""
    admin = clusters.admin(side)

    def send(at: int) -> Any:
        parts = [TopicPartition(TOPIC, number, shape.committed(at, number) - less) for number, less in behind]
        asked = [ConsumerGroupTopicPartitions(shape.name(at), parts)]
        return admin.alter_consumer_group_offsets(asked, request_timeout=SET_WITHIN_S)[shape.name(at)]

    left, deadline = list(range(shape.groups)), time.monotonic() + SET_WITHIN_S
    while left:
        refused: dict[int, object] = {}
        for at, answer, error in in_flight.answers(left, send):
            errors = [part.error for part in answer.topic_partitions if part.error is not None] if answer else [error]
            refused |= dict.fromkeys([at] if errors else [], errors[0] if errors else None)
        left = list(refused)  # the topic of the offsets is made, and loaded, when the first group asks for it
        if left and time.monotonic() > deadline:
            raise BenchmarkError(f"offsets of {len(left)} groups must be set (got {refused[left[0]]}).")


def measure(clusters: Clusters, shape: Shape, folder: Path) -> list[dict[str, Any]]:
    """Return the rows of one shape."""
    request = {
        "source": {"alias": "source", "client_config": clusters.client(SOURCE)},
        "target": {"alias": "target", "client_config": clusters.client(TARGET)},
        "mirror": {
            "name": "mm2",
            "topics": [TOPIC],
            "groups": ["group-.*"],
            "offset_storage_topic": POSITIONS_TOPIC,
            "topic_configs": {"sync": False},
        },
        "limits": {"mirror_wait_seconds": 10, "deadline_seconds": int(STEP_WITHIN_S), "allow_unknown": _UNKNOWN},
    }
    path = folder / "request.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    environment = {**os.environ, **clusters.tools.spark_environment}
    found = []
    for name in group_steps.STEPS:
        rows = _measured(name, path, folder, environment)
        tables.log(f"  {shape.groups} x {shape.partitions}: {rows}")
        found += [{"groups": shape.groups, "partitions": shape.partitions, **row} for row in rows]
    return found


def _measured(name: str, request: Path, folder: Path, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows of one process of `group_steps`; it is ended with everything that it has started if this one is."""
    command = [sys.executable, "-m", "benchmarks.group_steps", name, str(request), str(folder)]
    with subprocess.Popen(command, cwd=PROJECT, env=dict(environment), stdout=subprocess.PIPE, text=True) as child:
        try:
            output, _ = child.communicate(timeout=STEP_WITHIN_S)
        except BaseException:
            child.terminate()
            raise
    if child.returncode:
        raise BenchmarkError(f"{name}: must exit with 0 (got {child.returncode}).")
    found: list[dict[str, Any]] = json.loads(output)
    return found


def ratios(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what is judged: growth with the number of groups, and what a group costs beside one read alone."""
    seconds = {(row["partitions"], row["what"], row["groups"]): row["seconds"] for row in rows}
    found = []
    for partitions, what, groups in sorted(seconds):
        few = [one for one in (groups // 10,) if (partitions, what, one) in seconds]
        if what in AGREEING and few and groups == 10 * few[0]:
            value = seconds[partitions, what, groups] / seconds[partitions, what, few[0]] / 10
            found.append(_ratio(f"{what}: {groups} groups, to ten times {few[0]}", value, GROWTH_MAX))
    alone = {row["partitions"]: row["seconds"] / row["groups"] for row in rows if row["what"].startswith("read, one")}
    for row in rows:
        if row["what"] == "read":
            value = row["seconds"] / row["groups"] / alone[row["partitions"]]
            name = f"a group of {row['partitions']} partitions among {row['groups']}, to one read alone"
            found.append(_ratio(name, value, TO_ALONE_MAX))
    return found


def _ratio(name: str, value: float, most: float) -> dict[str, Any]:
    return {"name": name, "value": round(value, 3), "most": most, "holds": value <= most}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its result; return the exit code (0 all bounds hold, 1 one does not, 2 not made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument(
        "--shapes", nargs="+", default=SHAPES, metavar="GROUPSxPARTITIONS", help="sizes (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    given = parser.parse_args(arguments)
    tables.clean_up_on_sigterm()
    began, described, rows = time.monotonic(), tables.describe(), list[dict[str, Any]]()
    try:
        tools = locate()
        for shape in map(Shape.of, given.shapes):
            with (
                tempfile.TemporaryDirectory(prefix="rt-inventory-groups-") as folder,
                running(tools, broker_heap_mib=BROKER_HEAP_MIB, with_worker=False) as clusters,
            ):
                tables.log(f"writing {shape.groups} groups of {shape.partitions} partitions")
                fill(clusters, shape)
                rows += measure(clusters, shape, Path(folder))
    except (BenchmarkError, ToolchainError) as error:
        tables.log(f"error: {error}")
        return 2
    judged = ratios(rows)
    tables.keep(
        given.output,
        {
            "benchmark": "groups",
            "date": tables.today(),
            "machine": described,
            "versions": {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]},
            "rows": rows,
            "ratios": judged,
            "seconds": round(time.monotonic() - began),
        },
    )
    for one in judged:
        tables.log(f"{one['name']}: {one['value']} of at most {one['most']}")
    tables.log(f"written: {given.output}")
    return 0 if all(one["holds"] for one in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
