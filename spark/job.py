"""Order of the verification: clusters, cut, wait, comparison, groups, checks."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark.errors import PySparkException

from spark.checks.judge import judge
from spark.clusters import metadata, positions, waiting
from spark.clusters.cluster import Cluster, Partition, Topic
from spark.clusters.lag import LagMeter
from spark.clusters.waiting import CutState, Deadline
from spark.errors import SessionError
from spark.facts import Facts
from spark.progress import Progress
from spark.records.compare import Comparison, Extent
from spark.records.findings import PartitionResult
from spark.records.offsets import GroupPosition
from spark.records.sources import session
from spark.report.document import document
from spark.request.model import Request
from spark.state.ledger import Ledger
from spark.state.store import Store

SMALL_RECORDS = 1_000_000  # on both sides together
Compared = tuple[list[PartitionResult], list[GroupPosition]]


def verify(
    request: Request, environment: Mapping[str, str], progress: Progress, store: Store | None = None
) -> dict[str, Any]:
    """Return the content of report.json; raises VerificationError when nothing can be judged.

    With a store, partitions go on from the offsets that earlier runs have verified, where these still hold.
    """
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
    reader = positions.open_reader(target, request)
    meter = LagMeter(source, request, reader, places)
    meter.at_cut()
    with ThreadPoolExecutor(2) as pool:
        states = pool.submit(waiting.connectors, request, deadline, progress)
        target_topics = waiting.target_topics(target, request, source_topics, deadline, progress)
        known = pool.submit(metadata.settled, request, environment, source, target, source_topics, deadline, progress)
        state = waiting.past_cut(source, request, reader, starts, cut, deadline, progress, meter.sample)
        occupied = [place for place in places if cut[place] > starts[place]]
        groups = waiting.group_positions(source, target, request, occupied, deadline, progress)
        connector_states, known_metadata = states.result(), known.result()
    progress.step("wait for the mirror", began)

    extents = _extents(request, source, target, source_topics, target_topics, starts, state)
    ledger = Ledger(store, request, source, target) if store is not None else None
    results, judged = _compare(request, environment, extents, groups, progress, ledger)
    meter.at_end()
    if reader is not None:
        reader.close()
    if ledger is not None:
        ledger.keep(extents, results, progress)
    facts = Facts(
        request=request,
        source_topics=source_topics,
        target_topics=target_topics,
        cut=state,
        connectors=connector_states,
        metadata=known_metadata,
        partitions=results,
        groups=judged,
        lag=meter.lag,
        resumed=ledger.resumed if ledger is not None else {},
        state=ledger.document() if ledger is not None else None,
    )
    return document(facts, judge(facts), started_at, progress.steps)


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
    ledger: Ledger | None,
) -> Compared:
    whole = extents
    if ledger is not None:
        began = time.monotonic()
        extents = ledger.forward(whole, groups, progress)
        progress.step("load the state", began)
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
            if ledger is not None and (topics := ledger.again(found[0])):
                progress(f"comparing {len(topics)} topics whole, to tell what their findings are")
                again = [one for one in whole if one.topic in topics]
                there = [one for one in groups if one.topic in topics]
                found = _replaced(found, Comparison(spark, request, again).run(there, progress))
        except (PySparkException, Py4JError) as error:
            raise SessionError(_spark_failure(error, request.secrets)) from None
        progress.step("compare", began)
        return found


def _replaced(found: Compared, again: Compared) -> Compared:
    """Return the results with those of some topics replaced, in the same order."""
    results = {(one.topic, one.partition): one for one in (*found[0], *again[0])}
    positions = {(one.group, one.topic, one.partition): one for one in (*found[1], *again[1])}
    return [results[place] for place in sorted(results)], list(positions.values())


def _spark_failure(error: Exception, secrets: Iterable[str]) -> str:
    """Return the one line that tells why Spark could not read the clusters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:") or "org.apache.kafka" in line]
    reason = (causes or lines or [type(error).__name__])[-1 if causes else 0]
    for secret in secrets:
        reason = reason.replace(secret, "[secret]")
    return f"Spark: must be able to read the records of both clusters (got {reason[:400]}). Check the users' ACLs."
