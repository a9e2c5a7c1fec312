"""Order of the verification: clusters, cut, wait, comparison, groups, checks."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.checks.judge import judge
from spark.clusters import canary, checkpoints, counting, metadata, positions, tls, waiting
from spark.clusters import groups as consumer_groups
from spark.clusters.cluster import Cluster, Partition, Topic
from spark.clusters.contents import contents
from spark.clusters.groups import Groups
from spark.clusters.lag import LagMeter
from spark.clusters.waiting import CutState, Deadline
from spark.errors import ClusterError, SessionError
from spark.facts import Facts
from spark.progress import Progress
from spark.records import failures, showing, stopping
from spark.records.compare import Compared, Comparison
from spark.records.extents import Extent
from spark.records.findings import PartitionResult
from spark.records.offsets import GroupPosition
from spark.records.retention import expired_meanwhile
from spark.records.starting import Starting
from spark.report.document import document
from spark.request.model import Request
from spark.state.ledger import Ledger
from spark.state.store import Store

CLAIM = "\0"  # begins no group's name
SMALL_RECORDS = 1_000_000  # on both sides together


def verify(
    facts: Facts,
    environment: Mapping[str, str],
    progress: Progress,
    started_at: datetime | None = None,
    store: Store | None = None,
    *,
    show_values: bool = False,
) -> dict[str, Any]:
    """Return the content of report.json; raises VerificationError when nothing can be judged.

    `facts` holds the request, and is filled with what the run learns, even if it has to stop. With a store, partitions
    go on from the offsets that earlier runs have verified, where these still hold.
    """
    with Starting(environment, progress) as starting:
        return _verify(facts, environment, progress, started_at or datetime.now(UTC), store, starting, show_values)


def _verify(
    facts: Facts,
    environment: Mapping[str, str],
    progress: Progress,
    started_at: datetime,
    store: Store | None,
    starting: Starting,
    show_values: bool,
) -> dict[str, Any]:
    request = facts.request
    source, target = Cluster(request.source), Cluster(request.target)
    began = time.monotonic()
    facts.stage = f"connecting to {request.source.alias} and {request.target.alias}"
    progress(facts.stage)
    _connect(source, target)
    _warn(facts, progress)
    facts.stage = "taking the cut"
    facts.source_topics = source_topics = source.topics(request.mirror.carries_topic, request.mirror.named_topics)
    facts.absent_topics = sorted(set(request.mirror.named_topics) - set(source_topics))
    places = [(topic.name, number) for topic in source_topics.values() for number in topic.replicas]
    starts = source.starts(places)
    cut = source.ends(places, request.limits.isolation)
    facts.cut = CutState(cut)
    progress.step("connect and take the cut", began)
    progress(f"cut: {len(places)} partitions of {len(source_topics)} topics, {_total(starts, cut)} offsets")

    began = time.monotonic()
    facts.stage = "waiting for the mirror"
    deadline = Deadline(request.limits.mirror_wait_seconds)
    denied: dict[str, str] = {}
    reader, unknown = positions.open_reader(target, request, progress)
    meter = LagMeter(source, request, reader, places)
    meter.at_cut()
    with ThreadPoolExecutor(3) as pool:
        try:
            sent = None
            if request.mirror.canary is not None:
                there = source_topics.get(request.mirror.canary.topic)
                sent = pool.submit(canary.send, source, target, request, there.replicas if there else (), deadline)
            states = pool.submit(waiting.connectors, request, deadline, progress)
            facts.target_topics = waiting.target_topics(target, request, source_topics, deadline, progress)
            if store is None and _total(starts, cut):  # with a state there may be nothing to read
                starting.begin(small=2 * _total(starts, cut) < SMALL_RECORDS)
            known = pool.submit(
                metadata.settled, request, environment, source, target, source_topics, deadline, progress
            )
            facts.cut = waiting.past_cut(source, request, reader, starts, cut, deadline, progress, meter.sample)
            facts.cut.unknown = unknown
            occupied = [place for place in places if cut[place] > starts[place]]
            groups = consumer_groups.read(source, target, request, occupied, deadline, progress, denied)
            facts.absent_groups = consumer_groups.absent(source, request, denied)
            facts.connectors, facts.metadata = states.result(), known.result()
            if sent is not None:
                progress("waiting for the canary to arrive on the target")
                facts.canary = sent.result()
            facts.loops = target.names(request.mirror.is_loop)
        except BaseException:
            deadline.give_up()
            raise
    facts.groups, facts.denied_groups, facts.waited = groups, denied, True
    progress.step("wait for the mirror", began)

    facts.stage = "comparing records"
    extents = _extents(request, source, target, source_topics, facts.target_topics, starts, facts.cut)
    counted = (((one.target_topic, one.partition), one.target_counts_from) for one in extents)
    facts.warnings += counting.told(counted)
    ledger = Ledger(store, request, source, target) if store is not None else None
    try:
        asked = _claims(request, groups, cut)
        compared = _compare(request, starting, extents, groups.positions, asked, progress, ledger)
        facts.partitions, judged = compared.partitions, compared.groups
    except SessionError:
        _ask_again(source, target, facts)
        raise
    facts.stage = "judging"
    groups.positions = [one for one in judged if not one.group.startswith(CLAIM)]
    facts.truth = {
        (one.topic, one.partition, one.committed): (one.lowest, one.highest)
        for one in judged
        if one.group.startswith(CLAIM)
    }
    meter.at_end()
    facts.lag = meter.lag
    if reader is not None:
        reader.close()
    facts.source_starts_after = source.starts(places)
    held = {(one.target_topic, one.partition): one.place for one in extents if _exists(one, facts.target_topics)}
    facts.target_starts_after = {held[place]: start for place, start in target.starts(held).items()}
    facts.partitions = expired_meanwhile(facts.partitions, facts.source_starts_after, facts.target_starts_after)
    if show_values:
        facts.stage = "reading the samples"
        ours, theirs = showing.wanted(facts.partitions, request.mirror)
        known_contents = contents(source, ours), contents(target, theirs)
        facts.partitions = showing.shown(facts.partitions, request.mirror, *known_contents)
    if ledger is not None:
        ledger.keep(extents, facts.partitions, progress)
        facts.resumed, facts.state = ledger.resumed, ledger.document()
    return document(facts, judge(facts), started_at, progress.steps)


def _connect(source: Cluster, target: Cluster) -> None:
    """Connect to both sides at the same time; raises one ClusterError that tells what is wrong with either."""
    with ThreadPoolExecutor(2) as pool:
        try:
            ended = [
                connection.exception() for connection in [pool.submit(source.connect), pool.submit(target.connect)]
            ]
        except BaseException:
            source.give_up()
            target.give_up()
            raise
    problems = [error for error in ended if error is not None]
    if not problems:
        return
    if all(isinstance(error, ClusterError) for error in problems):
        raise ClusterError("\n".join(map(str, problems)))
    raise next(error for error in problems if not isinstance(error, ClusterError))


def _ask_again(source: Cluster, target: Cluster, facts: Facts) -> None:
    """Raise a ClusterError if a side refuses by now what Spark could not do either: it names broker, right and user."""
    for cluster, topics in ((source, facts.source_topics), (target, facts.target_topics)):
        seen = cluster.topics(topics.__contains__, topics)
        cluster.starts((topic.name, number) for topic in seen.values() for number in topic.replicas)


def _warn(facts: Facts, progress: Progress) -> None:
    """Tell which certificates end soon: tomorrow's run would fail for them."""
    for side in (facts.request.source, facts.request.target):
        for line in tls.warnings(side.client_config):
            facts.warnings.append(f"{side.role} {side.alias}: {line}")
            progress(f"warning: {facts.warnings[-1]}")


def _exists(extent: Extent, topics: Mapping[str, Topic]) -> bool:
    return extent.target_topic in topics and extent.partition in topics[extent.target_topic].replicas


def _total(starts: Mapping[Partition, int], ends: Mapping[Partition, int]) -> int:
    return sum(ends[place] - starts[place] for place in starts)


def _claims(request: Request, groups: Groups, cut: Mapping[Partition, int]) -> list[GroupPosition]:
    """Return what MirrorMaker claims as positions to translate."""
    wanted = {groups.place(one, request.mirror): (one.topic, one.partition) for one in groups.positions}
    return [
        GroupPosition(group=f"{CLAIM}{offset}", topic=topic, partition=number, committed=offset, synced=None)
        for topic, number, offset in checkpoints.claims(groups.claims, wanted, cut)
    ]


def _extents(
    request: Request,
    source: Cluster,
    target: Cluster,
    source_topics: Mapping[str, Topic],
    target_topics: Mapping[str, Topic],
    starts: Mapping[Partition, int],
    state: CutState,
) -> list[Extent]:
    """Return what to read. The target's ends are read before the source's: what is there is then at the source too.

    The last stable offsets are read last: they lie below the ends only where a transaction is open.
    """
    there = [(topic.name, number) for topic in target_topics.values() for number in topic.replicas]
    target_ends = target.ends(there, request.limits.isolation)
    target_starts = target.starts(there)
    counted = counting.offsets(target, request.mirror, there)
    pending_ends = source.ends(starts, "read_uncommitted")
    source_ends = source.ends(starts, request.limits.isolation)
    found = []
    for place, start in starts.items():
        name = request.mirror.target_topic(place[0])
        copy = (name, place[1])
        counts_from = min(counted.get(copy, 0), target_ends.get(copy, 0))
        compacted = source_topics[place[0]].compacted or (name in target_topics and target_topics[name].compacted)
        found.append(
            Extent(
                topic=place[0],
                partition=place[1],
                source_start=start,
                cut=state.cut[place],
                source_end=source_ends[place],
                pending_end=pending_ends[place],
                target_topic=name,
                target_start=max(target_starts.get(copy, 0), counts_from),
                target_counts_from=counts_from,
                target_end=target_ends.get(copy, 0),
                position=(state.positions or {}).get(place),
                compacted=compacted,
            )
        )
    return found


def _compare(
    request: Request,
    starting: Starting,
    extents: list[Extent],
    groups: list[GroupPosition],
    claims: list[GroupPosition],
    progress: Progress,
    ledger: Ledger | None,
) -> Compared:
    whole = extents
    if ledger is not None:
        began = time.monotonic()
        extents = ledger.forward(whole, groups, progress)
        progress.step("load the state", began)
    # A claim about what an earlier run verified is worth no second reading: it is not judged.
    starts = {(one.topic, one.partition): one.source_start for one in extents}
    groups = [*groups, *(one for one in claims if one.committed >= starts[one.topic, one.partition])]
    if all(one.cut == one.source_start and one.target_end == one.target_start for one in extents):
        places = (one for one in extents)
        empty = [
            PartitionResult(one.topic, one.partition, one.source_start, one.cut, one.target_start, one.target_end)
            for one in places
        ]
        return Compared(empty, groups)
    progress("starting Spark")
    total = sum(one.source_last - one.source_start + one.target_end - one.target_start for one in extents)
    spark: SparkSession | None = None
    try:
        spark = starting.session(small=total < SMALL_RECORDS)
        began = time.monotonic()
        progress("comparing records")
        compared = Comparison(spark, request, extents).run(groups, progress)
        if ledger is not None and (topics := ledger.again(compared.partitions)):
            progress(f"comparing {len(topics)} topics whole, to tell what their findings are")
            again = [one for one in whole if one.topic in topics]
            there = [one for one in groups if one.topic in topics]
            compared = compared.replaced(Comparison(spark, request, again).run(there, progress))
    except (PySparkException, Py4JError, OSError, EOFError) as error:  # the last two: a connection to the JVM that ends
        raise SessionError(failures.message(error, request, stopping.death(spark) if spark else None)) from None
    progress.step("compare", began)
    return compared
