"""The comparison of one run: what an earlier run verified is left out, Spark is asked for the rest.

Owns what is compared with Spark at all. Does not own how, see records/compare.py, nor the state, see state/.
"""

import time
from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.clusters import checkpoints
from spark.clusters.cluster import Partition
from spark.clusters.groups import Groups
from spark.errors import SessionError
from spark.progress import Progress
from spark.records import failures, stopping
from spark.records.compare import Compared, Comparison
from spark.records.extents import Extent
from spark.records.findings import PartitionResult
from spark.records.offsets import GroupPosition
from spark.records.starting import Starting
from spark.request.model import Request
from spark.state.ledger import Ledger

_SMALL_RECORDS = 1_000_000  # on both sides together
_CLAIM = "\0"  # begins no group's name
Truth = dict[tuple[str, int, int], tuple[int | None, int | None]]


def is_small(records: int) -> bool:
    """True if so few records on both sides together are compared soonest by a JVM that compiles in haste."""
    return records < _SMALL_RECORDS


def claims(request: Request, groups: Groups, cut: Mapping[Partition, int]) -> list[GroupPosition]:
    """Return what MirrorMaker claims as positions to translate."""
    wanted = {groups.place(one, request.mirror): (one.topic, one.partition) for one in groups.positions}
    return [
        GroupPosition(group=f"{_CLAIM}{offset}", topic=topic, partition=number, committed=offset, synced=None)
        for topic, number, offset in checkpoints.claims(groups.claims, wanted, cut)
    ]


def parted(judged: Sequence[GroupPosition]) -> tuple[list[GroupPosition], Truth]:
    """Return the groups' positions, and where the offsets that MirrorMaker claims to know really are."""
    truth = {
        (one.topic, one.partition, one.committed): (one.lowest, one.highest)
        for one in judged
        if one.group.startswith(_CLAIM)
    }
    return [one for one in judged if not one.group.startswith(_CLAIM)], truth


def compare(
    request: Request,
    starting: Starting,
    extents: list[Extent],
    groups: list[GroupPosition],
    claimed: list[GroupPosition],
    progress: Progress,
    ledger: Ledger | None,
) -> Compared:
    """Return the result of each partition and each position; raises SessionError when Spark cannot do it."""
    whole = extents
    if ledger is not None:
        began = time.monotonic()
        extents = ledger.forward(whole, groups, progress)
        progress.step("load the state", began)
    # A claim about what an earlier run verified is worth no second reading: it is not judged.
    starts = {(one.topic, one.partition): one.source_start for one in extents}
    groups = [*groups, *(one for one in claimed if one.committed >= starts[one.topic, one.partition])]
    if all(one.cut == one.source_start and one.target_end == one.target_start for one in extents):
        return Compared([_nothing(one) for one in extents], groups)
    progress("starting Spark")
    total = sum(one.source_last - one.source_start + one.target_end - one.target_start for one in extents)
    spark: SparkSession | None = None
    try:
        spark = starting.session(small=is_small(total))
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


def _nothing(one: Extent) -> PartitionResult:
    return PartitionResult(one.topic, one.partition, one.source_start, one.cut, one.target_start, one.target_end)
