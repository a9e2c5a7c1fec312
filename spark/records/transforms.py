"""Pure DataFrame to DataFrame functions that compare two logs by what their records are.

Input rows have the Kafka source's columns: topic, partition, offset, key, value, headers, timestamp. `topic` is the
source's name on both sides. Only digests, never keys or values, go through a shuffle. No Python runs per record.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.records.digests import digest, hashes

PLACE = ["topic", "partition"]


def digests(records: DataFrame) -> DataFrame:
    """Return topic, partition, offset and the digest of key, value, headers and timestamp (ms) of each record."""
    return records.select(*PLACE, "offset", digest())


def parts(records: DataFrame) -> DataFrame:
    """Return the columns of `digests`, hashes of key, value and headers apart, timestamp in ms. Null stays null."""
    return records.select(*PLACE, "offset", digest(), *hashes())


def occurrences(source: DataFrame, target: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return one row per partition and digest with the sorted offsets at which it occurs.

    `source` and `target` have the columns of `digests`; `cuts` has topic, partition, cut. Columns: topic, partition,
    digest, s (source offsets before the cut), later (source offsets from the cut on), t (target offsets).
    """
    marked = source.join(F.broadcast(cuts), PLACE).select(
        *PLACE, "digest", "offset", F.when(F.col("offset") < F.col("cut"), "s").otherwise("later").alias("side")
    )
    both = marked.unionByName(target.select(*PLACE, "digest", "offset", F.lit("t").alias("side")))

    def offsets(side: str) -> Column:
        return F.array_sort(F.collect_list(F.when(F.col("side") == side, F.col("offset")))).alias(side)

    return both.groupBy(*PLACE, "digest").agg(offsets("s"), offsets("later"), offsets("t"))


def _at(array: Column, index: Column) -> Column:
    return F.get(array, index)


def overlap(found: DataFrame) -> DataFrame:
    """Return per partition the first source and target offset that have an image on the other side.

    Columns: topic, partition, first_s, first_t; null where nothing matches. Equal records are aligned from the end,
    because retention removes from the beginning.
    """
    every = F.concat("s", "later")
    surplus = F.size(every) - F.size("t")
    matched = (F.size(every) > 0) & (F.size("t") > 0)
    first_s = _at(every, F.greatest(surplus, F.lit(0)))
    first_t = _at(F.col("t"), F.greatest(-surplus, F.lit(0)))
    return found.groupBy(*PLACE).agg(
        F.min(F.when(matched, first_s)).alias("first_s"), F.min(F.when(matched, first_t)).alias("first_t")
    )


def trim(found: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return the occurrences from the bounds on. `bounds`: topic, partition, from_s, from_t, null for no bound."""
    joined = found.join(F.broadcast(bounds), PLACE, "left")

    def kept(side: str, bound: str) -> Column:
        return F.filter(F.col(side), lambda offset: offset >= F.coalesce(F.col(bound), F.lit(-1))).alias(side)

    expired_s = (F.size("s") - F.size(kept("s", "from_s"))).alias("expired_s")
    expired_t = (F.size("t") - F.size(kept("t", "from_t"))).alias("expired_t")
    later = kept("later", "from_s")
    return joined.select(*PLACE, "digest", kept("s", "from_s"), later, kept("t", "from_t"), expired_s, expired_t)


def difference(found: DataFrame) -> DataFrame:
    """Return the occurrences with what one side has more often than the other.

    Adds compared (records of the source that have an image), lost (source offsets without one), extra (target offsets
    that are the image of nothing before or after the cut), aborted (none of them, see `aborted`) and known (the source
    has this digest at all). Which of several identical records is lost or extra cannot be told: the last are named.
    """
    s, later, t = F.size("s"), F.size("later"), F.size("t")
    return found.select(
        "*",
        F.least(s, t).alias("compared"),
        F.slice("s", F.least(s, t) + 1, F.greatest(s - t, F.lit(0))).alias("lost"),
        F.slice("t", F.least(t, s + later) + 1, F.greatest(t - s - later, F.lit(0))).alias("extra"),
        F.slice("t", 1, 0).alias("aborted"),
        (s + later > 0).alias("known"),
    )


def aborted(differences: DataFrame, everything: DataFrame, committed: DataFrame) -> DataFrame:
    """Return the differences with those extra records as aborted that the source holds in aborted transactions.

    `everything` and `committed` have the columns of `digests`: the source read both ways. What only an aborted
    transaction holds stays aborted, however often a mirror has copied it.
    """
    both = everything.select(*PLACE, "digest", F.lit(1).alias("one")).unionByName(
        committed.select(*PLACE, "digest", F.lit(-1).alias("one"))
    )
    undone = both.groupBy(*PLACE, "digest").agg(F.sum("one").alias("undone")).where("undone > 0")
    joined = differences.drop("aborted").join(undone, [*PLACE, "digest"], "left")
    extra, undone_here = F.size("extra"), F.coalesce("undone", F.lit(0)).cast("int")
    number = F.when(F.col("known"), F.least(extra, undone_here)).otherwise(F.when(undone_here > 0, extra).otherwise(0))
    split = joined.withColumn("number", number).withColumn("aborted", F.slice("extra", F.lit(1), F.col("number")))
    return split.withColumn("extra", F.slice("extra", F.col("number") + 1, F.size("extra"))).drop("number", "undone")


def summary(differences: DataFrame) -> DataFrame:
    """Return per partition the exact numbers of records compared, lost, extra and expired on each side."""
    return differences.groupBy(*PLACE).agg(
        F.sum("compared").alias("compared"),
        F.sum(F.size("lost")).alias("lost"),
        F.sum(F.when(F.col("known"), F.size("extra")).otherwise(0)).alias("doubled"),
        F.sum(F.when(F.col("known"), 0).otherwise(F.size("extra"))).alias("foreign"),
        F.sum(F.size("aborted")).alias("aborted"),
        F.sum("expired_s").alias("expired_s"),
        F.sum("expired_t").alias("expired_t"),
    )


def offending(differences: DataFrame) -> DataFrame:
    """Return one row per lost, extra or aborted record: topic, partition, digest, kind, source and target offset.

    A doubled record carries the source offset of its original.
    """
    lost = differences.where(F.size("lost") > 0).select(
        *PLACE,
        "digest",
        F.lit("lost").alias("kind"),
        F.explode("lost").alias("source_offset"),
        F.lit(None).cast("long").alias("target_offset"),
    )
    original = F.coalesce(_at(F.col("s"), F.size("s") - 1), _at(F.col("later"), F.lit(0)))
    extra = differences.where(F.size("extra") > 0).select(
        *PLACE,
        "digest",
        F.when(F.col("known"), "doubled").otherwise("foreign").alias("kind"),
        original.alias("source_offset"),
        F.explode("extra").alias("target_offset"),
    )
    undone = differences.where(F.size("aborted") > 0).select(
        *PLACE,
        "digest",
        F.lit("aborted").alias("kind"),
        F.lit(None).cast("long").alias("source_offset"),
        F.explode("aborted").alias("target_offset"),
    )
    return lost.unionByName(extra).unionByName(undone)


def late(found: DataFrame) -> DataFrame:
    """Return the images that stand behind a record that followed them at the source: place, source and target offset.

    `found`: occurrences. Identical records correspond in their order.
    """
    both = F.least(F.size("s"), F.size("t"))
    sliced = found.where(both > 0).select(*PLACE, "digest", *(F.slice(side, 1, both).alias(side) for side in "st"))
    images = sliced.select(*PLACE, "digest", F.explode(F.arrays_zip("s", "t")).alias("image"))
    ahead = Window.partitionBy(*PLACE).orderBy("image.t").rowsBetween(Window.unboundedPreceding, -1)
    return (
        images.withColumn("newest", F.max("image.s").over(ahead))
        .where("newest > image.s")
        .select(*PLACE, "digest", F.col("image.s").alias("source_offset"), F.col("image.t").alias("target_offset"))
    )


def last_by_key(source: DataFrame, target: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return per key of a compacted partition its last record on each side.

    Inputs have the columns of `parts`. Columns: topic, partition, key, s and t (struct of offset, digest,
    value of the last record, null for none), later (digests of the source's records from the cut on).
    """
    record = F.struct("offset", "digest", "value")
    marked = source.join(F.broadcast(cuts), PLACE).select(
        *PLACE, "key", record.alias("record"), (F.col("offset") >= F.col("cut")).alias("after"), F.lit(True).alias("at")
    )
    other = target.select(*PLACE, "key", record.alias("record"), F.lit(False).alias("after"), F.lit(False).alias("at"))
    return (
        marked.unionByName(other)
        .groupBy(*PLACE, "key")
        .agg(
            F.max(F.when(F.col("at") & ~F.col("after"), F.col("record"))).alias("s"),
            F.max(F.when(~F.col("at"), F.col("record"))).alias("t"),
            F.collect_set(F.when(F.col("after"), F.col("record.digest"))).alias("later"),
        )
    )


def compacted_difference(found: DataFrame) -> DataFrame:
    """Return the result of `last_by_key` with kind: same, lost, foreign, altered or later.

    A tombstone equals an absent key. A target record that the source wrote after the cut is out of scope. So is a key
    of one side only that the source wrote again after the cut: the other log may have dropped the older record.
    """
    s_live = F.col("s").isNotNull() & F.col("s.value").isNotNull()
    t_live = F.col("t").isNotNull() & F.col("t.value").isNotNull()
    kind = (
        F.when(F.col("s.digest").eqNullSafe(F.col("t.digest")) | (~s_live & ~t_live), "same")
        .when(F.array_contains("later", F.coalesce(F.col("t.digest"), F.lit(""))), "later")
        .when((F.col("s").isNull() | F.col("t").isNull()) & (F.size("later") > 0), "later")
        .when(s_live & F.col("t").isNull(), "lost")
        .when(F.col("s").isNull() & t_live, "foreign")
        .otherwise("altered")
    )
    known = F.col("s").isNotNull() | F.col("t").isNotNull()
    return found.where(known).select("*", kind.alias("kind"))


def expired_keys(found: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return the result of `compacted_difference` with the kinds expired_at_target and expired_at_source besides.

    `bounds` as in `trim`: in front of them stands what retention removed on the other side.
    """
    at_target = (F.col("kind") == "lost") & (F.col("s.offset") < F.col("from_s"))
    at_source = (F.col("kind") == "foreign") & (F.col("t.offset") < F.col("from_t"))
    kind = F.when(at_target, "expired_at_target").when(at_source, "expired_at_source").otherwise(F.col("kind"))
    return found.join(F.broadcast(bounds), PLACE, "left").withColumn("kind", kind).drop("from_s", "from_t")
