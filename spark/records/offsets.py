"""Exact translation of consumer group positions, from the records themselves.

MirrorMaker's own translation is a claim that this judges, never an input. The position of a group is found by
counting: the image of the n-th record with some digest at the source is the n-th with that digest on the target. What
came after the cut counts as far as it has arrived: a group that works stands there.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.records.transforms import PLACE


def translate(found: DataFrame, groups: DataFrame) -> DataFrame:
    """Return the position of each group in each partition, judged against the data.

    `found`: result of `trim`. `groups`: group, topic, partition, committed (source), synced (target, may be null).
    Columns: group, topic, partition, unread, skipped, repeated, lowest, highest. A record is skipped when no image of
    it is left at or after the synced offset, and repeated when it is read already and an image of it is.
    """
    joined = found.join(F.broadcast(groups), PLACE)
    none = F.lit(0)
    t = F.size("t")
    # Of records from the cut on those without an image are on their way: nothing of them can be skipped yet.
    arrived = F.greatest(F.least(F.size("later"), t - F.size("s")), none)
    every = F.concat("s", F.slice("later", F.lit(1), arrived))
    s = F.size(every)
    unread = F.size(F.filter(every, lambda offset: offset >= F.col("committed")))
    ahead = F.size(F.filter("t", lambda offset: offset >= F.col("synced")))
    known = F.col("synced").isNotNull() & (s > 0)
    lowest = F.get(F.col("t"), s - unread)
    highest = F.get(F.col("t"), F.greatest(t - unread, none))
    last_image = F.get(F.col("t"), F.least(s, t) - 1)
    last_copy = F.get(F.col("t"), t - 1)

    def total(value: Column, when: Column) -> Column:
        return F.sum(F.when(when, value).otherwise(none))

    rows = joined.groupBy("group", *PLACE).agg(
        F.sum(F.size(F.filter(F.concat("s", "later"), lambda offset: offset >= F.col("committed")))).alias("unread"),
        total(F.greatest(F.least(unread, t) - ahead, none), known).alias("skipped"),
        total(F.greatest(ahead - unread, none), known & (s > unread)).alias("repeated"),
        F.min(F.when(unread > 0, lowest)).alias("first_unread"),
        F.min(F.when((unread > 0) & (t > 0), highest)).alias("last_unread"),
        (F.max(F.when((s > 0) & (t > 0), last_image)) + 1).alias("after_images"),
        (F.max(F.when((s > 0) & (t > 0), last_copy)) + 1).alias("after_copies"),
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
