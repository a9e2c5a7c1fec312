"""Pure DataFrame to DataFrame functions that compare two logs by what their records are.

Input rows have the columns of `record_rows.hashed`. `topic` is the source's name on both sides. Only digests, never
keys or values, go through a shuffle. No Python runs per record.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark text uses

from spark.comparison.record_rows import digest

TP = ["topic", "partition"]
"""Columns of a topic partition."""


def digests(records: DataFrame) -> DataFrame:
    """Return topic, partition, offset and the digest of key, value, headers and timestamp (ms) of each record."""
    return records.select(*TP, "offset", digest())


def parts(records: DataFrame) -> DataFrame:
    """Return the columns of `digests`, hashes of key, value and headers apart, timestamp in ms. Null stays null."""
    return records.select(*TP, "offset", digest(), "key", "value", "headers", "timestamp")


def occurrences(source: DataFrame, target: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return one row per partition and digest with the sorted offsets at which it occurs.

    `source` and `target` have the columns of `digests`; `cuts` has topic, partition, cut. Columns: topic, partition,
    digest, s (source offsets before the cut), later (source offsets from the cut on), t (target offsets).
    """
    marked = source.join(F.broadcast(cuts), TP).select(
        *TP, "digest", "offset", F.when(F.col("offset") < F.col("cut"), "s").otherwise("later").alias("side")
    )
    both = marked.unionByName(target.select(*TP, "digest", "offset", F.lit("t").alias("side")))

    def offsets(side: str) -> Column:
        return F.array_sort(F.collect_list(F.when(F.col("side") == side, F.col("offset")))).alias(side)

    return both.groupBy(*TP, "digest").agg(offsets("s"), offsets("later"), offsets("t"))


def _at(array: Column, index: Column) -> Column:
    return F.get(array, index)


def overlap(found: DataFrame) -> DataFrame:
    """Return per partition where the two logs begin to overlap.

    Columns: topic, partition, first_s and first_t (first offsets with an image on the other side), known_t (the first
    offset of the target whose record the source holds too); null where nothing matches. Equal records are aligned from
    the end, because retention removes from the beginning: of several copies the last ones are the images.
    """
    every = F.concat("s", "later")
    surplus = F.size(every) - F.size("t")
    matched = (F.size(every) > 0) & (F.size("t") > 0)
    firsts = {
        "first_s": _at(every, F.greatest(surplus, F.lit(0))),
        "first_t": _at(F.col("t"), F.greatest(-surplus, F.lit(0))),
        "known_t": _at(F.col("t"), F.lit(0)),
    }
    return found.groupBy(*TP).agg(*(F.min(F.when(matched, first)).alias(name) for name, first in firsts.items()))


def trim(found: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return the occurrences without what the source holds in front of trim_s (of `bounds`, null for no bound)."""
    joined = found.join(F.broadcast(bounds.select(*TP, "trim_s")), TP, "left")

    def kept(side: str) -> Column:
        return F.filter(F.col(side), lambda offset: offset >= F.coalesce("trim_s", F.lit(-1))).alias(side)

    return joined.select(*TP, "digest", kept("s"), kept("later"), "t")


def difference(found: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return the occurrences with what one side has more often than the other.

    `bounds`: topic, partition, from_s and from_t (where the overlap begins), known_t, from_end (whether equal records
    are aligned from the end), all null for logs that have removed nothing.
    Adds compared (records of the source that have an image), lost (source offsets without one), extra (target offsets
    that are the image of nothing before or after the cut), aborted (none of them, see `aborted`) and known (the source
    has this digest at all). Which of several identical records is lost or extra is undecidable: the last are named, or
    the first where a log has lost its beginning.
    """
    s, later, t = F.size("s"), F.size("later"), F.size("t")
    from_end = F.coalesce("from_end", F.lit(False))
    return found.join(F.broadcast(bounds), TP, "left").select(
        *found.columns,
        "from_s",
        "from_t",
        "known_t",
        from_end.alias("from_end"),
        F.least(s, t).alias("compared"),
        F.slice("s", F.when(from_end, 1).otherwise(F.least(s, t) + 1), F.greatest(s - t, F.lit(0))).alias("lost"),
        F.slice(
            "t", F.when(from_end, 1).otherwise(F.least(t, s + later) + 1), F.greatest(t - s - later, F.lit(0))
        ).alias("extra"),
        F.slice("t", 1, 0).alias("aborted"),
        (s + later > 0).alias("known"),
    )


def aborted(differences: DataFrame, everything: DataFrame, committed: DataFrame) -> DataFrame:
    """Return the differences with those extra records as aborted that the source holds in aborted transactions.

    `everything` and `committed` have the columns of `digests`: the source read both ways. What only an aborted
    transaction holds stays aborted, however often a mirror has copied it. The overlap begins at the source no later
    than behind the aborted ones that the target holds in front of it: it has removed nothing that is newer.
    """
    both = everything.select(*TP, "digest", "offset", F.lit(1).alias("one")).unionByName(
        committed.select(*TP, "digest", "offset", F.lit(-1).alias("one"))
    )
    undone = both.groupBy(*TP, "digest").agg(F.sum("one").alias("undone"), F.min("offset").alias("at"))
    joined = differences.drop("aborted").join(undone.where("undone > 0"), [*TP, "digest"], "left")
    extra, undone_here = F.size("extra"), F.coalesce("undone", F.lit(0)).cast("int")
    number = F.when(F.col("known"), F.least(extra, undone_here)).otherwise(F.when(undone_here > 0, extra).otherwise(0))
    split = joined.withColumn("number", number).withColumn("aborted", F.slice("extra", F.lit(1), F.col("number")))
    split = split.withColumn("extra", F.slice("extra", F.col("number") + 1, F.size("extra")))
    ahead = ~F.col("known") & (_at(F.col("aborted"), F.lit(0)) < F.col("from_t"))
    older = split.where(ahead).groupBy(*TP).agg(F.min("at").alias("older"))
    begin = F.when(F.col("from_s").isNotNull(), F.least("from_s", "older"))
    return (
        split.join(F.broadcast(older), TP, "left").withColumn("from_s", begin).drop("number", "undone", "at", "older")
    )


def summary(differences: DataFrame) -> DataFrame:
    """Return per partition the exact numbers of records compared, lost, doubled, foreign and aborted.

    last_s is the last offset of the source before the cut with an image, null without any.
    """
    last = F.when(F.col("from_end"), F.size("s")).otherwise(F.col("compared")) - 1
    return differences.groupBy(*TP).agg(
        F.sum("compared").alias("compared"),
        F.max(F.when(F.col("compared") > 0, _at(F.col("s"), last))).alias("last_s"),
        F.sum(F.size("lost")).alias("lost"),
        F.sum(F.when(F.col("known"), F.size("extra")).otherwise(0)).alias("doubled"),
        F.sum(F.when(F.col("known"), 0).otherwise(F.size("extra"))).alias("foreign"),
        F.sum(F.size("aborted")).alias("aborted"),
    )


def offending(differences: DataFrame) -> DataFrame:
    """Return one row per lost, extra or aborted record: topic, partition, digest, kind, source and target offset.

    A doubled record carries the source offset of its original. `repeated` is the further copy of a record that the
    source does not hold, behind one that it holds: doubled too if the first copy has expired. `head`: a lost
    or foreign record stands in front of the overlap, `turn` which of several equal ones of the target it is.
    """
    original = F.coalesce(_at(F.col("s"), F.size("s") - 1), _at(F.col("later"), F.lit(0)))
    none, nowhere = F.lit(False), F.lit(None).cast("long")

    def record(kind: Column, source: Column, target: Column, turn: Column, head: Column) -> Column:
        named = {"kind": kind, "source_offset": source, "target_offset": target, "turn": turn, "head": head}
        return F.struct(*(column.alias(name) for name, column in named.items()))

    def lost(offset: Column) -> Column:
        return record(F.lit("lost"), offset, nowhere, F.lit(0), F.coalesce(offset < F.col("from_s"), none))

    def extra(offset: Column, turn: Column) -> Column:
        again = (_at(F.col("t"), F.lit(0)) < F.col("known_t")) & (offset >= F.col("known_t"))
        kind = F.when(F.col("known"), "doubled").when(again, "repeated").otherwise("foreign")
        head = F.coalesce((kind == "foreign") & (offset < F.col("from_t")), none)
        return record(kind, original, offset, turn, head)

    def undone(offset: Column) -> Column:
        return record(F.lit("aborted"), nowhere, offset, F.lit(0), none)

    # One array for all kinds: each kind a query of its own would read the differences three times.
    every = F.concat(F.transform("lost", lost), F.transform("extra", extra), F.transform("aborted", undone))
    return (
        differences.where((F.size("lost") > 0) | (F.size("extra") > 0) | (F.size("aborted") > 0))
        .select(*TP, "digest", F.explode(every).alias("one"))
        .select(*TP, "digest", "one.*")
    )


def expire(offending: DataFrame, allowed: DataFrame) -> DataFrame:
    """Return the offending records, as many in front of the overlap as are allowed with the kind of expired ones.

    `offending`: topic, partition, kind, source_offset, target_offset, head, turn. `allowed`: topic, partition, kind
    (lost or foreign), expired (the kind to give), records. The nearest to the overlap have expired, of equal ones the
    first; further copies of those are repeated.
    """
    at = F.when(F.col("kind") == "lost", F.col("source_offset")).otherwise(F.col("target_offset"))
    nearest = Window.partitionBy(*TP, "kind", "head").orderBy(F.col("turn") > 0, at.desc())
    joined = offending.withColumn("number", F.row_number().over(nearest)).join(
        F.broadcast(allowed), [*TP, "kind"], "left"
    )
    known = joined.withColumn("gone", F.col("head") & (F.col("number") <= F.coalesce("records", F.lit(0))))
    again = F.max("gone").over(Window.partitionBy(*TP, "digest"))
    kind = (
        F.when(F.col("gone"), F.col("expired"))
        .when(F.col("kind").isin("foreign", "repeated"), F.when(again, "repeated").otherwise("foreign"))
        .otherwise(F.col("kind"))
    )
    return known.withColumn("kind", kind).drop("number", "expired", "records", "gone")


def late(differences: DataFrame) -> DataFrame:
    """Return the images that stand behind a record that followed them at the source: its log, source and target offset.

    `differences`: result of `difference`. Identical records correspond in their order.
    """
    s, later, t = F.size("s"), F.size("later"), F.size("t")
    both = F.least(s, t)
    skipped = {"s": F.greatest(s - t, F.lit(0)), "t": F.greatest(t - s - later, F.lit(0))}
    sliced = differences.where(both > 0).select(
        *TP,
        "digest",
        *(
            F.slice(side, F.when(F.col("from_end"), number + 1).otherwise(1), both).alias(side)
            for side, number in skipped.items()
        ),
    )
    images = sliced.select(*TP, "digest", F.explode(F.arrays_zip("s", "t")).alias("image"))
    ahead = Window.partitionBy(*TP).orderBy("image.t").rowsBetween(Window.unboundedPreceding, -1)
    return (
        images.withColumn("newest", F.max("image.s").over(ahead))
        .where("newest > image.s")
        .select(*TP, "digest", F.col("image.s").alias("source_offset"), F.col("image.t").alias("target_offset"))
    )


def last_by_key(source: DataFrame, target: DataFrame, cuts: DataFrame) -> DataFrame:
    """Return per key of a compacted partition its last record on each side.

    Inputs have the columns of `parts`. Columns: topic, partition, key, s and t (struct of offset, digest,
    value of the last record, null for none), later (digests of the source's records from the cut on), newest (struct of
    offset and value of the last one of these, null for none).
    """
    record = F.struct("offset", "digest", "value")
    marked = source.join(F.broadcast(cuts), TP).select(
        *TP, "key", record.alias("record"), (F.col("offset") >= F.col("cut")).alias("after"), F.lit(True).alias("at")
    )
    other = target.select(*TP, "key", record.alias("record"), F.lit(False).alias("after"), F.lit(False).alias("at"))
    return (
        marked.unionByName(other)
        .groupBy(*TP, "key")
        .agg(
            F.max(F.when(F.col("at") & ~F.col("after"), F.col("record"))).alias("s"),
            F.max(F.when(~F.col("at"), F.col("record"))).alias("t"),
            F.collect_set(F.when(F.col("after"), F.col("record.digest"))).alias("later"),
            F.max(F.when(F.col("after"), F.struct("record.offset", "record.value"))).alias("newest"),
        )
    )


def compacted_difference(found: DataFrame) -> DataFrame:
    """Return the result of `last_by_key` with kind: same, lost, foreign, altered, later or superseded.

    A tombstone equals an absent key. A target record that the source wrote after the cut is out of scope. So is one
    whose key the source has after the cut only: its cleaner may have dropped the older record, which is superseded.
    The target's drops none before it has a newer one, see `superseded`, but both of a key that was deleted since.
    """
    s_live = F.col("s").isNotNull() & F.col("s.value").isNotNull()
    t_live = F.col("t").isNotNull() & F.col("t.value").isNotNull()
    kind = (
        F.when(F.col("s.digest").eqNullSafe(F.col("t.digest")) | (~s_live & ~t_live), "same")
        .when(F.array_contains("later", F.coalesce(F.col("t.digest"), F.lit(""))), "later")
        .when(F.col("s").isNull() & (F.size("later") > 0), "superseded")
        .when(F.col("t").isNull() & F.col("newest").isNotNull() & F.col("newest.value").isNull(), "superseded")
        .when(s_live & F.col("t").isNull(), "lost")
        .when(F.col("s").isNull() & t_live, "foreign")
        .otherwise("altered")
    )
    known = F.col("s").isNotNull() | F.col("t").isNotNull()
    return found.where(known).select("*", kind.alias("kind"))


def never_dropped(found: DataFrame, topic_partitions: DataFrame, side: str) -> DataFrame:
    """Return the result of `compacted_difference` for these partitions, of which the log of a side drops no key.

    What it lacks is `foreign` at the source (side `s`), `lost` on the target (`t`).
    """
    kept = F.broadcast(topic_partitions.withColumn("kept", F.lit(True)))
    lacks = F.col("kept") & F.col(side).isNull() & (F.col("kind") == "superseded")
    kind = "foreign" if side == "s" else "lost"
    return found.join(kept, TP, "left").withColumn("kind", F.when(lacks, kind).otherwise(F.col("kind"))).drop("kept")


def superseded(found: DataFrame, source: DataFrame | None, target: DataFrame | None) -> DataFrame:
    """Return the result of `compacted_difference` without what a cleaner may have dropped while the logs are compared.

    `source` and `target` are the records behind the ends that are compared, with the columns of `parts`, None for none.
    A record is dropped once its own log has a newer one of its key.
    """
    newer = [
        records.select(*TP, "key", F.lit(kind).alias("lacks"))
        for records, kind in ((source, "foreign"), (target, "lost"))
        if records is not None
    ]
    if not newer:
        return found
    keys = reduce(DataFrame.unionByName, newer).distinct()
    lacking = [F.when(F.col("kind") == kind, kind) for kind in ("foreign", "lost")]
    return (
        found.withColumn("lacks", F.coalesce(*lacking))
        .join(keys.withColumn("excused", F.lit(True)), [*TP, "key", "lacks"], "left")
        .withColumn("kind", F.when(F.col("excused"), "superseded").otherwise(F.col("kind")))
        .drop("lacks", "excused")
    )


def one_sided_keys(found: DataFrame, bounds: DataFrame) -> DataFrame:
    """Return the keys of `compacted_difference` that offend, as `offending` does; head: it may have expired.

    `bounds` as in `difference`: in front of them is what retention may have removed on the other side.
    """
    head = F.when(F.col("kind") == "lost", F.col("s.offset") < F.col("from_s")).when(
        F.col("kind") == "foreign", F.col("t.offset") < F.col("from_t")
    )
    return found.join(F.broadcast(bounds), TP, "left").select(
        *TP,
        F.coalesce("t.digest", "s.digest").alias("digest"),
        "kind",
        F.col("s.offset").alias("source_offset"),
        F.col("t.offset").alias("target_offset"),
        F.coalesce(head, F.lit(False)).alias("head"),
        F.lit(0).alias("turn"),
    )
