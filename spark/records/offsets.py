"""Exact translation of consumer group positions, from the records themselves.

MirrorMaker's own translation is a claim that this judges, never an input. The position of a group is found by
counting: the image of the n-th record with some digest at the source is the n-th with that digest on the target.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.records.transforms import PLACE


@dataclass(frozen=True, kw_only=True)
class GroupPosition:
    """Where one group stands in one partition. Offsets are those of the next record to read.

    `lowest` to `highest` are the target offsets that skip nothing and repeat only what stands doubled; `lowest` is the
    exact one. They are None while nothing of the partition lies on the target. `active`: the group has members on the
    target. `unclaimed`: no checkpoint that is left claims an offset as high as the synced one.
    """

    group: str
    topic: str
    partition: int
    committed: int
    synced: int | None
    lowest: int | None = None
    highest: int | None = None
    unread: int = 0
    skipped: int = 0
    repeated: int = 0
    active: bool = False
    unclaimed: bool = False
    judged: bool = False


def translate(found: DataFrame, groups: DataFrame) -> DataFrame:
    """Return the position of each group in each partition, judged against the data.

    `found`: result of `trim`. `groups`: group, topic, partition, committed (source), synced (target, may be null).
    Columns: group, topic, partition, unread, skipped, repeated, lowest, highest. A record is skipped when no image of
    it is left at or after the synced offset, and repeated when it is read already and an image of it is.
    """
    joined = found.join(F.broadcast(groups), PLACE)
    s, later, t = F.size("s"), F.size("later"), F.size("t")
    unread = F.size(F.filter("s", lambda offset: offset >= F.col("committed")))
    ahead = F.size(F.filter("t", lambda offset: offset >= F.col("synced")))
    known = F.col("synced").isNotNull() & (s + later > 0)
    none = F.lit(0)
    # Images of records from the cut on come last: they are neither read nor unread.
    images = F.greatest(t - later, none)
    lowest = F.get(F.col("t"), s - unread)
    highest = F.get(F.col("t"), F.greatest(images - unread, none))
    last_image = F.get(F.col("t"), F.least(s, t) - 1)
    last_copy = F.get(F.col("t"), images - 1)

    def total(value: Column, when: Column) -> Column:
        return F.sum(F.when(when, value).otherwise(none))

    rows = joined.groupBy("group", *PLACE).agg(
        F.sum(unread).alias("unread"),
        total(F.greatest(F.least(unread, t) - ahead, none), known).alias("skipped"),
        total(F.greatest(ahead - unread - later, none), known & (s > unread)).alias("repeated"),
        F.min(F.when(unread > 0, lowest)).alias("first_unread"),
        F.min(F.when((unread > 0) & (images > 0), highest)).alias("last_unread"),
        (F.max(F.when((s > 0) & (t > 0), last_image)) + 1).alias("after_images"),
        (F.max(F.when((s > 0) & (images > 0), last_copy)) + 1).alias("after_copies"),
    )
    return rows.select(
        "group",
        *PLACE,
        "unread",
        "skipped",
        "repeated",
        F.coalesce("first_unread", "after_images").alias("lowest"),
        F.coalesce("last_unread", "after_copies").alias("highest"),
    )
