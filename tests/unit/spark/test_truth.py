"""The comparison against the oracle: on thousands of made-up pairs of logs it finds what is true, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.group_positions import GroupPosition

from ...support import oracle
from ...support.compared_logs import TOPIC, Sizes, found_without_spark
from ...support.generated_cases import cases
from ...support.oracle import Logs, Record

EXAMPLES = cases(30)
# Of doubled records either may be called the copy, of altered ones with one key either may be the original.
NAMED = ("lost", "foreign", "aborted", "wrong_partition")


def unique(number: int) -> Record:
    """A record that no other number makes; parts that are null, empty or shared by many are among them."""
    name = b"%d" % number
    return (
        Record(b"k%d" % (number % 3), name),
        Record(None, name),
        Record(b"k", None, (("n", name),)),
        Record(b"", b"", (), number + 1),
        Record(b"k", name, (("h", None), ("h", b"")), 5),
    )[number % 5]


def letter(number: int) -> Record:
    """One of three records."""
    return Record(b"key", b"abc"[number % 3 : number % 3 + 1])


@dataclass(frozen=True)
class World:
    """What may happen to a log. `same` makes identical records, `restarts` a mirror that copies records again."""

    same: bool = False
    retention: bool = False
    restarts: bool = False
    tail: bool = False
    partitions: int = 1


@st.composite
def faulty(draw: st.DrawFn, world: World) -> dict[int, Logs]:
    """Pairs of logs of one topic with several faults at once."""
    small = st.integers(0, 40)
    numbers = iter(range(10_000))
    strangers = iter(range(10_000, 20_000))
    make = letter if world.same else unique
    sources = {
        part: [make(draw(small) if world.same else next(numbers)) for _ in range(draw(small))]
        for part in range(world.partitions)
    }
    targets = {part: list(records) for part, records in sources.items()}
    aborted: dict[int, list[Record]] = {part: [] for part in sources}
    # Of doubled records in another order nobody can tell which one is the copy: one or the other.
    doubles = not world.retention or world.restarts
    doubled = ["double"] if doubles and (world.same or draw(st.booleans())) else []
    doubled += ["restart"] if doubled and world.restarts else []
    moved = [] if doubled or world.tail or world.retention else ["swap", "move"]
    aged = ["late", "stamp"] if world.retention else []
    faults = ["drop", "foreign", "abort", "alter", *doubled, *moved, *aged, *([] if world.same else ["stray"])]
    kinds = sorted(draw(st.lists(st.sampled_from(faults), max_size=4)), key=lambda kind: kind in doubled)
    if world.restarts:  # of records that stand there three times nobody can tell which are the images in order
        del kinds[sum(kind not in doubled for kind in kinds) + 1 :]
    for kind in kinds:
        part = draw(st.sampled_from(sorted(sources)))
        records = targets[part]
        low = draw(st.integers(0, max(len(records) - 1, 0)))
        high = min(len(records), low + draw(st.integers(1, 12)))
        to = draw(st.integers(0, len(records)))
        if kind == "drop":
            del records[low:high]
        elif kind == "double":
            records[max(high, to) : max(high, to)] = records[low:high]
        elif kind == "restart":
            records += records[low:]
        elif kind == "late":  # the mirror began at `latest`
            del records[:low]
        elif kind == "stamp":  # the broker's own timestamps, in all of the log or up to somewhere
            end = draw(st.sampled_from([high, len(records)]))
            records[:end] = [altered(record, "timestamp", next(strangers)) for record in records[:end]]
        elif kind == "foreign":
            records[to:to] = [unique(next(strangers)) for _ in range(high - low)]
        elif kind == "abort":
            new = [unique(next(strangers)) for _ in range(high - low + 1)]
            aborted[part] += new
            records[to:to] = new
        elif kind == "alter" and records:
            part_name = draw(st.sampled_from(oracle.PARTS))
            records[low] = altered(records[low], part_name, next(strangers))
        elif kind == "swap" and high - low > 1:
            records[low], records[low + 1] = records[low + 1], records[low]
        elif kind == "move":
            block = records[low:high]
            del records[low:high]
            records[min(to, len(records)) : min(to, len(records))] = block
        elif kind == "stray" and records and world.partitions > 1:
            other = targets[(part + 1) % world.partitions]
            other.insert(draw(st.integers(0, len(other))), records.pop(low))
    return {part: draw(placed(world, sources[part], targets[part], aborted[part])) for part in sources}


def altered(record: Record, part: str, number: int) -> Record:
    """The record with one part changed: to another one, or from null to empty."""
    name = b"other%d" % number
    if part == "timestamp":
        return replace(record, timestamp=record.timestamp + 1_000_000 + number)
    if part == "headers":
        return replace(record, headers=(*record.headers, ("other", name)))
    if part == "key":
        return replace(record, key=b"" if record.key is None else name)
    return replace(record, value=b"" if record.value is None and record.headers else name)


@st.composite
def placed(draw: st.DrawFn, world: World, source: list[Record], target: list[Record], aborted: list[Record]) -> Logs:
    """Both logs with offsets that have holes, a cut, and retention."""
    entries: list[tuple[str, Record]] = [("data", record) for record in source]
    for record in aborted:
        entries.insert(draw(st.integers(0, len(entries))), ("aborted", record))
    offsets = draw(ascending(len(entries)))
    data = [(n, record) for n, (kind, record) in zip(offsets, entries, strict=True) if kind == "data"]
    undone = [(n, record) for n, (kind, record) in zip(offsets, entries, strict=True) if kind == "aborted"]
    end = offsets[-1] + 1 if offsets else draw(st.integers(0, 3))
    cut = end
    if world.tail and data:
        cut = draw(st.sampled_from([n for n, _ in data] + [end]))
        undone = [(n, record) for n, record in undone if n < cut]
    there = list(zip(draw(ascending(len(target))), target, strict=True))
    starts = [0, 0]
    if world.retention:
        data, starts[0] = draw(retained(data, end))
        starts[0] = min(starts[0], cut)
        there, starts[1] = draw(retained(there, there[-1][0] + 1 if there else 0))
    undone = [one for one in undone if one[0] >= starts[0]]
    stable = draw(st.sampled_from([end, *(n for n, _ in data if n >= cut)]))
    return Logs(
        source=[one for one in data if one[0] < stable],
        target=there,
        cut=cut,
        source_start=starts[0],
        target_start=starts[1],
        aborted=undone,
        pending=[one for one in data if one[0] >= stable],
    )


@st.composite
def ascending(draw: st.DrawFn, count: int) -> list[int]:
    """So many offsets; transaction markers and compaction leave holes."""
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 5]), min_size=count, max_size=count))
    found, at = [], -1
    for step in steps:
        at += step
        found.append(at)
    return found


@st.composite
def retained(draw: st.DrawFn, log: list[tuple[int, Record]], end: int) -> tuple[list[tuple[int, Record]], int]:
    """The log without a beginning, and its new start."""
    gone = draw(st.one_of(st.just(0), st.integers(0, len(log))))
    start = 0 if not gone else log[gone][0] if gone < len(log) else end
    return log[gone:], start


LIVE = World(tail=True)


@EXAMPLES
@given(faulty(LIVE), st.integers(0, 120), st.integers(0, 120), st.sampled_from([0, 1, 2, 11]))
def test_positions_are_judged_by_all_that_is_known(
    partitions: dict[int, Logs], committed: int, synced: int, bits: int
) -> None:
    (logs,) = partitions.values()
    at_source = {record for _, record in [*logs.source, *logs.pending]}
    once = {record: n for n, record in reversed(logs.target) if record in at_source}  # others are counted in Spark
    positioned(replace(logs, target=sorted((n, record) for record, n in once.items())), committed, synced, bits)


def positioned(logs: Logs, committed: int, synced: int, bits: int) -> None:
    """The comparison places a group where the oracle does."""
    one = GroupPosition(group="g", topic=TOPIC, partition=0, committed=committed, synced=synced)
    _, (found,) = found_without_spark({0: logs}, Sizes(bits=bits), [one])
    truth = oracle.position(logs, committed, synced)
    assert found.judged
    assert (found.skipped, found.repeated, found.lowest) == (truth.skipped, truth.repeated, truth.lowest)
    every = [*logs.source, *logs.pending]
    # In runs that are not read, because nothing of the target is left for them, every offset counts as a record.
    assert found.unread >= sum(offset >= committed for offset, _ in every)


def test_a_group_that_stands_far_behind_the_cut_is_placed_in_what_differs_there_too() -> None:
    records = [unique(number) for number in range(60)]
    arrived = [*records[:30], records[31], records[30], *records[32:40], *records[41:56]]
    source, target = list(enumerate(records)), list(enumerate(arrived, 7))
    for committed, synced in ((30, 45), (32, 38), (41, 60), (50, 40), (58, 62), (60, 40)):
        positioned(Logs(source=source, target=target, cut=3), committed, synced, bits=1)


SIZES = st.builds(
    Sizes,
    bits=st.sampled_from([0, 1, 2, 3, 11]),
    batch=st.integers(1, 12),
    large=st.sampled_from([3, 99]),
    window_bits=st.sampled_from([0, 1, 2, 11]),
)


def check(partitions: Mapping[int, Logs], sizes: Sizes, *, topic_partitions: bool = True) -> None:
    """The comparison finds exactly what is true."""
    truths = oracle.judge(partitions)
    results, _ = found_without_spark(partitions, sizes)
    for result in results:
        truth = truths[result.partition]
        counts = {one.kind: one.count for one in result.findings}
        assert len(counts) == len(result.findings)
        assert counts == truth.counts(), f"partition {result.partition}"
        assert result.compared == truth.compared
        for one in result.findings:
            wanted = sorted(truth.found[one.kind])
            if topic_partitions and one.kind in NAMED:
                got = [(_at(s.source_offset), _at(s.target_offset)) for s in one.samples]
                every = [(tp.source, tp.target) for tp in wanted]
                # Of a large stretch the middle is not read.
                assert got == every[:20] if sizes.large > len(every) else set(got) <= set(every), one.kind
            if one.kind == "lost":
                assert sum(run.records for run in one.runs) == one.count


def _at(offset: int | None) -> int:
    return -1 if offset is None else offset


@EXAMPLES
@given(faulty(World()), SIZES)
def test_faults_in_one_partition_are_found_with_their_places(partitions: dict[int, Logs], sizes: Sizes) -> None:
    check(partitions, sizes)


@EXAMPLES
@given(faulty(World(partitions=3)), SIZES)
def test_faults_across_partitions_are_found_with_their_places(partitions: dict[int, Logs], sizes: Sizes) -> None:
    check(partitions, sizes)


@EXAMPLES
@given(faulty(World(retention=True)), SIZES)
def test_what_expired_is_reported_from_what_is_lost(partitions: dict[int, Logs], sizes: Sizes) -> None:
    check(partitions, sizes)


@EXAMPLES
@given(faulty(World(retention=True, restarts=True, partitions=2)), SIZES)
def test_what_was_copied_again_is_doubled_whatever_the_source_has_removed_since(
    partitions: dict[int, Logs], sizes: Sizes
) -> None:
    check(partitions, sizes)


@EXAMPLES
@given(faulty(World(tail=True)), SIZES)
def test_what_came_after_the_cut_is_out_of_scope(partitions: dict[int, Logs], sizes: Sizes) -> None:
    check(partitions, sizes)


@EXAMPLES
@given(faulty(World(tail=True, retention=True, partitions=2)), SIZES)
def test_everything_at_once_is_found(partitions: dict[int, Logs], sizes: Sizes) -> None:
    check(partitions, sizes)


@EXAMPLES
@given(faulty(World(same=True)), SIZES)
def test_identical_records_are_counted(partitions: dict[int, Logs], sizes: Sizes) -> None:
    check(partitions, sizes, topic_partitions=False)


def log(letters: str, start: int = 0) -> list[tuple[int, Record]]:
    return [(start + n, Record(None, one.encode())) for n, one in enumerate(letters) if one != "."]


def only(logs: Logs, **counts: int) -> None:
    """The comparison and the oracle find these numbers and nothing else."""
    check({0: logs}, Sizes(bits=11))
    results, _ = found_without_spark({0: logs}, Sizes(bits=11))
    assert {one.kind: one.count for one in results[0].findings} == counts


def test_what_was_aborted_stays_aborted_however_often_it_was_copied() -> None:
    only(Logs(source=log("ab..c"), aborted=log("xy", 2), target=log("abxyxyc"), cut=5), aborted=4)


def test_one_of_several_identical_records_that_is_lost_does_not_change_the_order() -> None:
    check({0: Logs(source=log("xpqx"), target=log("pqx"), cut=4)}, Sizes(bits=11), topic_partitions=False)


def test_a_source_that_retention_emptied_leaves_nothing_foreign() -> None:
    only(Logs(source=[], target=log("abc"), cut=3, source_start=3), expired_at_source=3)


def test_what_the_mirror_copied_of_an_open_transaction_and_from_behind_it_is_not_foreign() -> None:
    only(Logs(source=log("ab"), pending=log("cde", 2), target=log("abcd"), cut=2))
    only(Logs(source=log("ab"), pending=log("ac", 2), target=log("abac"), cut=2))
    only(Logs(source=log("abc"), pending=log("de", 3), target=log("abbxcde"), cut=2), doubled=1, foreign=1)


def test_an_open_transaction_hides_no_other_fault() -> None:
    only(Logs(source=log("abc"), pending=log("de", 3), target=log("axde"), cut=3), altered=1, lost=1)
    only(Logs(source=log("a..b"), aborted=log("yz", 1), pending=log("cd", 4), target=log("ayzbcd"), cut=4), aborted=2)


def test_what_is_copied_again_behind_the_image_of_the_cut_is_left_to_the_next_run() -> None:
    only(Logs(source=log("abcd"), target=log("abcdcd"), cut=2))
    only(Logs(source=log("abcd"), target=log("abbcd"), cut=2), doubled=1)


@pytest.mark.parametrize(
    ("source", "cut", "target", "bits"),
    [("pqabcde", 4, "pqcabcde", 0), ("pqarbcde", 4, "pqcarbcde", 1), ("pqrstuvwxyz", 8, "pqyrstuvwxyz", 2)],
)
def test_a_record_that_is_left_to_the_next_run_is_not_in_front_of_what_is_verified(
    source: str, cut: int, target: str, bits: int
) -> None:
    (result,), _ = found_without_spark({0: Logs(source=log(source), target=log(target), cut=cut)}, Sizes(bits=bits))
    assert not result.findings
    assert all(there <= 2 for _, there in result.anchors)


def test_a_record_that_strayed_into_a_partition_that_only_the_target_has_is_in_the_wrong_one() -> None:
    arrived = Logs(source=log("abcd"), target=log("acd"), cut=4)
    partitions = {0: arrived, 1: Logs(source=[], target=log("bx"), cut=0)}
    check(partitions, Sizes(bits=11))
    results, _ = found_without_spark(partitions, Sizes(bits=11))
    kinds = {(result.partition, one.kind): one.count for result in results for one in result.findings}
    assert kinds == {(0, "wrong_partition"): 1, (1, "foreign"): 1}
    partitions[1] = Logs(source=[], target=log("..bx"), cut=0, target_start=2)
    check(partitions, Sizes(bits=11))
