"""Command line and order of the verification: request, clusters, cut, wait, comparison, groups, checks, report."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark.errors import PySparkException

from spark import checks, report, waiting
from spark.checks import Check
from spark.cluster import Cluster, Partition, Topic
from spark.compare import Comparison, Extent
from spark.errors import RequestError, SessionError, VerificationError
from spark.findings import PartitionResult
from spark.offsets import GroupPosition
from spark.request import Request, load
from spark.sources import java_properties, session
from spark.waiting import CutState, Deadline

STOPPED = 130
SMALL_RECORDS = 1_000_000  # on both sides together


class Progress:
    """Says on standard error what is being done, each line once in a row, and remembers how long each step took."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.steps: list[dict[str, Any]] = []
        self._last = ""

    def __call__(self, text: str) -> None:
        """Say one line, unless it is the one said last."""
        if text != self._last:
            sys.stderr.write(f"[{time.monotonic() - self.started:6.1f} s] {text}\n")
            sys.stderr.flush()
        self._last = text

    def step(self, name: str, began: float) -> None:
        """Record that a step that began at this monotonic time has ended."""
        self.steps.append({"step": name, "seconds": round(time.monotonic() - began, 2)})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns 0 all checks hold, 1 one does not, 2 wrong request or cluster out of reach."""
    parser = argparse.ArgumentParser(prog="python -m spark", description="Verify a MirrorMaker 2 mirror.")
    parser.add_argument("--request", type=Path, required=True, help="JSON file that says what to verify")
    parser.add_argument("--report-dir", type=Path, required=True, help="folder for report.json, .html and junit.xml")
    parser.add_argument("--state", help="not supported yet: every run compares everything")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    progress = Progress()
    try:
        if options.state:
            raise RequestError([f"--state: must not be given (got {options.state}). Every run compares everything."])
        request = load(options.request, os.environ)
        java_properties(request.source)
        java_properties(request.target)
        result = verify(request, os.environ, progress)
        _write(options.report_dir, result, request)
    except VerificationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("stopped before the end, no report written\n")
        return STOPPED
    _tell(result, options.report_dir)
    return int(result["exit_code"])


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _write(folder: Path, result: dict[str, Any], request: Request) -> None:
    try:
        report.write(folder, result, request.secrets)
    except OSError as error:
        raise RequestError([f"--report-dir: must be a folder to write to (got {folder}: {error.strerror})"]) from None


def _tell(result: Mapping[str, Any], folder: Path) -> None:
    for check in result["checks"]:
        if check["ok"] is not True:
            word = "failed" if check["ok"] is False else "unknown"
            sys.stdout.write(f"{check['name']} {word}: {check['observed']} (expected {check['expected']})\n")
    sys.stdout.write(
        f"verdict {result['verdict']}: {result['records_compared']} records compared in {result['seconds']} s, "
        f"report {folder / 'report.html'}\n"
    )


def verify(request: Request, environment: Mapping[str, str], progress: Progress) -> dict[str, Any]:
    """Return the content of report.json; raises VerificationError when nothing can be judged."""
    started_at = datetime.now(UTC)
    source, target = Cluster(request.source), Cluster(request.target)
    began = time.monotonic()
    progress(f"connecting to {request.source.alias} and {request.target.alias}")
    with ThreadPoolExecutor(2) as pool:
        for connection in [pool.submit(source.connect), pool.submit(target.connect)]:
            connection.result()
    source_topics = source.topics(request.mirror.carries_topic)
    places = [(topic.name, number) for topic in source_topics.values() for number in topic.replicas]
    starts = source.starts(places)
    cut = source.ends(places, request.limits.isolation)
    progress.step("connect and take the cut", began)
    progress(f"cut: {len(places)} partitions of {len(source_topics)} topics, {_total(starts, cut)} offsets")

    began = time.monotonic()
    deadline = Deadline(request.limits.mirror_wait_seconds)
    with ThreadPoolExecutor(1) as pool:
        states = pool.submit(waiting.connectors, request, deadline, progress)
        target_topics = waiting.target_topics(target, request, source_topics, deadline, progress)
        state = waiting.past_cut(source, target, request, starts, cut, deadline, progress)
        occupied = [place for place in places if cut[place] > starts[place]]
        groups = waiting.group_positions(source, target, request, occupied, deadline, progress)
        connector_states = states.result()
    progress.step("wait for the mirror", began)

    extents = _extents(request, source, target, source_topics, target_topics, starts, state)
    results, positions = _compare(request, environment, extents, groups, progress)
    mirror, limits = request.mirror, request.limits
    found = [
        checks.topics_present(mirror, source_topics, target_topics),
        checks.partitions_match(mirror, source_topics, target_topics),
        checks.replication_factor(mirror, target_topics),
        checks.connectors_running(connector_states, mirror.connect_url),
        checks.records_complete(results),
        checks.records_unique(results, limits),
        checks.records_intact(results),
        checks.groups_synced(positions),
        checks.groups_no_loss(positions),
        checks.groups_reread_bounded(positions, limits),
    ]
    return _document(request, started_at, state, found, results, positions, progress)


def _total(starts: Mapping[Partition, int], ends: Mapping[Partition, int]) -> int:
    return sum(ends[place] - starts[place] for place in starts)


def _extents(
    request: Request,
    source: Cluster,
    target: Cluster,
    source_topics: Mapping[str, Topic],
    target_topics: Mapping[str, Topic],
    starts: Mapping[Partition, int],
    state: CutState,
) -> list[Extent]:
    """Return what to read. The target's ends are read before the source's: what is there is then at the source too."""
    there = [(topic.name, number) for topic in target_topics.values() for number in topic.replicas]
    target_ends = target.ends(there, request.limits.isolation)
    target_starts = target.starts(there)
    source_ends = source.ends(starts, request.limits.isolation)
    found = []
    for place, start in starts.items():
        name = request.mirror.target_topic(place[0])
        compacted = source_topics[place[0]].compacted or (name in target_topics and target_topics[name].compacted)
        found.append(
            Extent(
                topic=place[0],
                partition=place[1],
                source_start=start,
                cut=state.cut[place],
                source_end=source_ends[place],
                target_topic=name,
                target_start=target_starts.get((name, place[1]), 0),
                target_end=target_ends.get((name, place[1]), 0),
                position=(state.positions or {}).get(place),
                compacted=compacted,
            )
        )
    return found


def _compare(
    request: Request,
    environment: Mapping[str, str],
    extents: list[Extent],
    groups: list[GroupPosition],
    progress: Progress,
) -> tuple[list[PartitionResult], list[GroupPosition]]:
    if all(one.cut == one.source_start and one.target_end == one.target_start for one in extents):
        places = (one for one in extents)
        empty = [
            PartitionResult(one.topic, one.partition, one.source_start, one.cut, one.target_start, one.target_end)
            for one in places
        ]
        return empty, groups
    began = time.monotonic()
    progress("starting Spark")
    total = sum(one.source_end - one.source_start + one.target_end - one.target_start for one in extents)
    with session(environment, small=total < SMALL_RECORDS) as spark:
        progress.step("start Spark", began)
        began = time.monotonic()
        progress("comparing records")
        try:
            found = Comparison(spark, request, extents).run(groups, progress)
        except (PySparkException, Py4JError) as error:
            raise SessionError(_spark_failure(error, request.secrets)) from None
        progress.step("compare", began)
        return found


def _spark_failure(error: Exception, secrets: Iterable[str]) -> str:
    """Return the one line that tells why Spark could not read the clusters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:") or "org.apache.kafka" in line]
    reason = (causes or lines or [type(error).__name__])[-1 if causes else 0]
    for secret in secrets:
        reason = reason.replace(secret, "[secret]")
    return f"Spark: must be able to read the records of both clusters (got {reason[:400]}). Check the users' ACLs."


def _document(
    request: Request,
    started_at: datetime,
    state: CutState,
    found: list[Check],
    results: list[PartitionResult],
    positions: list[GroupPosition],
    progress: Progress,
) -> dict[str, Any]:
    verdict, exit_code = checks.verdict(found, request.limits)
    finished_at = datetime.now(UTC)
    return {
        "verdict": verdict,
        "exit_code": exit_code,
        "mirror": request.mirror.name,
        "source": {"alias": request.source.alias, "user": request.source.user},
        "target": {"alias": request.target.alias, "user": request.target.user},
        "started_at": started_at.isoformat(timespec="seconds"),
        "finished_at": finished_at.isoformat(timespec="seconds"),
        "seconds": round((finished_at - started_at).total_seconds(), 1),
        "cut": {
            "waited_seconds": round(state.waited_s, 1),
            "position_known": state.positions is not None,
            "behind": [f"{topic}-{partition}" for topic, partition in state.behind],
            "offsets": {f"{topic}-{partition}": end for (topic, partition), end in sorted(state.cut.items())},
        },
        "records_compared": sum(result.compared for result in results),
        "allowed_unknown": list(request.limits.allow_unknown),
        "checks": [check.document() for check in found],
        "partitions": [
            {
                **{name: value for name, value in vars(result).items() if name != "findings"},
                "position": (state.positions or {}).get((result.topic, result.partition)),
                "findings": [finding.document() for finding in result.findings],
            }
            for result in results
        ],
        "groups": [vars(position) for position in positions],
        "steps": progress.steps,
    }
