"""Chunks, alignment and difference of two logs against counting, without Spark: thousands of small logs."""

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import example, given
from hypothesis import strategies as st

from kafka.group_positions import NONE
from kafka.topic_partition import TopicPartition
from spark.comparison import chunks
from spark.comparison.chunks import Chunk
from spark.comparison.classification import Sources, classify
from spark.comparison.difference import Difference, Matched, MismatchedWindow, Row, difference
from spark.comparison.findings import Finding
from spark.comparison.logs import Logs, Window
from spark.comparison.placing import Judged, Placing

from ...support.generated_cases import cases
from ...support.slow_placing import Position, SlowPlacing

BITS = 2  # chunks of four records on average
PLACE = TopicPartition("items", 0)
Log = list[tuple[int, str]]


def words(content: str) -> tuple[int, int]:
    digest = hashlib.sha256(content.encode()).digest()
    return int.from_bytes(digest[:8]), int.from_bytes(digest[8:16])


def row(offset: int, content: str) -> Row:
    a, b = words(content)
    return Row(offset, f"{a:016x}{b:016x}", hash(content), 0, 0, 0)


def pieces(log: Log, batches: Sequence[int] = ()) -> list[Chunk]:
    """The pieces that a scan gives when its batches end at these positions."""
    found: list[Chunk] = []
    before = None
    for low, high in zip([0, *batches], [*batches, len(log)], strict=True):
        part = log[low:high]
        if part:
            a, b = (np.array(column, dtype=np.uint64) for column in zip(*(words(one) for _, one in part), strict=True))
            columns = chunks.pieces(np.array([at for at, _ in part]), a, b, BITS, before)
            found += chunks.in_order(
                column.view(np.int64) if column.dtype == np.uint64 else column for column in columns
            )
            before = int(a[-1])
    return found


def window(log: Log, windows: Sequence[Window]) -> list[Row]:
    return [row(at, one) for at, one in log if any(part.low <= at < part.high for part in windows)]


def compared(source: Log, target: Log, cut: int) -> tuple[Logs, Difference, list[Finding]]:
    before, later = [one for one in source if one[0] < cut], [one for one in source if one[0] >= cut]
    logs = Logs(cut, pieces(before), pieces(later), pieces(target))
    found = closely(logs, source, target, whole=False)
    if found.lost and logs.beyond:
        found = closely(logs, source, target, whole=True)
    committed: dict[tuple[tuple[str, int], str], tuple[int, int]] = {}
    for at, one in reversed(source):
        key = (PLACE, row(at, one).digest)
        committed[key] = (committed.get(key, (0, 0))[0] + 1, at)
    return logs, found, classify({PLACE: found}, Sources(committed=committed))[PLACE]


def closely(logs: Logs, source: Log, target: Log, *, whole: bool) -> Difference:
    detail = logs.detail(whole=whole)
    return difference(
        MismatchedWindow(
            cut=logs.cut,
            source=window(source, detail.source),
            target=window(target, detail.target),
            matched=logs.matched,
            missing=detail.missing,
        )
    )


def later(logs: Logs, source: Log, target: Log) -> Difference:
    """What stands behind the image of the cut, where the rest is read without it."""
    detail = logs.later()
    ours, theirs = window(source, detail.source), window(target, detail.target)
    stretches = MismatchedWindow(cut=logs.cut, source=ours, target=theirs, matched=logs.matched, missing=detail.missing)
    return difference(stretches)


@st.composite
def logs(draw: st.DrawFn) -> tuple[Log, Log, int]:
    """A source with holes, a target after some faults, and a cut."""
    live = draw(st.booleans())  # which identical record is the later one cannot be reported: then there are none
    numbers = st.integers(0, 1000 if live else draw(st.sampled_from([3, 1000])))
    contents = [str(number) for number in draw(st.lists(numbers, max_size=60, unique=live))]
    offset, source = draw(st.integers(0, 5)), []
    for content in contents:
        source.append((offset, content))
        offset += 1 + draw(st.sampled_from([0, 0, 0, 1]))
    images = [content for _, content in source]
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["drop", "double", "foreign", "swap", "move", "tail"]))
        at = draw(st.integers(0, len(images)))
        size = draw(st.integers(1, 12))
        if kind == "drop":
            del images[at : at + size]
        elif kind == "double":
            images[at:at] = images[max(0, at - size) : at]
        elif kind == "foreign":
            images.insert(at, f"foreign {draw(st.integers(0, 3))}")
        elif kind == "swap" and 0 < at < len(images):
            images[at - 1], images[at] = images[at], images[at - 1]
        elif kind == "move":
            block = images[at : at + size]
            del images[at : at + size]
            to = draw(st.integers(0, len(images)))
            images[to:to] = block
        elif kind == "tail":
            del images[len(images) - min(size, len(images)) :]
    target = [(100 + number, content) for number, content in enumerate(images)]
    cut = draw(st.integers(0, offset)) if live else offset
    return source, target, cut


def counts(findings: list[Finding]) -> dict[str, int]:
    return {finding.kind: finding.count for finding in findings}


@cases(200)
@given(logs())
@example(([(0, "a"), (1, "b")], [(0, "b"), (1, "a")], 2))
def test_what_is_found_agrees_with_counting(case: tuple[Log, Log, int]) -> None:
    source, target, cut = case
    _, _, findings = compared(source, target, cut)
    found = counts(findings)
    at_source = Counter(one for _, one in source)
    before = Counter(one for at, one in source if at < cut)
    there = Counter(one for _, one in target)
    lost = sum(max(0, before[one] - there[one]) for one in before)
    assert found.get("lost", 0) + found.get("altered", 0) == lost
    if cut > max((at for at, _ in source), default=-1):
        extra = there - at_source
        assert found.get("doubled", 0) == sum(number for one, number in extra.items() if one in at_source)
        foreign = sum(number for one, number in extra.items() if one not in at_source)
        assert found.get("foreign", 0) + found.get("altered", 0) == foreign


@cases(150)
@given(logs(), st.lists(st.integers(0, 60), max_size=4))
def test_chunks_do_not_depend_on_how_the_log_was_split(case: tuple[Log, Log, int], splits: list[int]) -> None:
    source, _, _ = case
    parts = sorted(at for at in splits if at <= len(source))
    assert chunks.joined(pieces(source, parts)) == chunks.joined(pieces(source))


def numbers(*offsets: int | None) -> npt.NDArray[np.int64]:
    return np.array([NONE if at is None else at for at in offsets], dtype=np.int64)


def of_one(judged: Judged, at: int) -> Position:
    """What is found of one of several positions."""
    found = {name: int(values[at]) for name, values in vars(judged).items()}
    return Position(**{name: None if value == NONE else value for name, value in found.items()})


@cases(200)
@given(logs(), st.data())
def test_positions_agree_with_walking_the_logs(case: tuple[Log, Log, int], data: st.DataObject) -> None:
    """All positions at once are what each is by counting records, and what the formula for a single one gives."""
    source, _, cut = case
    unique = {one: at for at, one in reversed(source)}
    source = sorted((at, one) for one, at in unique.items())
    kept = [one for at, one in source if data.draw(st.booleans()) or at % 3]
    swapped = bool(kept) and data.draw(st.booleans())  # what is out of order may have to be counted instead
    if swapped:
        kept.insert(data.draw(st.integers(0, len(kept) - 1)), kept.pop())
    target = [(50 + 2 * number, one) for number, one in enumerate(kept)]
    found_logs, found, _ = compared(source, target, cut)
    behind = () if found.lost and found_logs.beyond else (later(found_logs, source, target),)
    asked = st.tuples(st.integers(0, 130), st.none() | st.integers(40, 200))
    positions = data.draw(st.lists(asked, min_size=1, max_size=12))
    committed, synced = numbers(*(one for one, _ in positions)), numbers(*(one for _, one in positions))
    placing, slow = (made(found_logs.matched, [found, *behind]) for made in (Placing, SlowPlacing))
    holed = placing.holed(committed, synced[synced != NONE])
    assert set(holed) == slow.holed(committed.tolist(), [one for _, one in positions if one is not None])
    placing.know(holed, numbers(*(at for at, _ in source)), numbers(*(at for at, _ in target)))
    slow.offsets = {
        pair: (
            [at for at, _ in source if pair.source_first <= at <= pair.source_last],
            [at for at, _ in target if pair.target_first <= at <= pair.target_last],
        )
        for pair in holed
    }
    image = {one: at for at, one in target}
    scope = [(at, image.get(one)) for at, one in source]
    every = [there for _, there in scope if there is not None]
    judged = placing.judge(committed, synced)
    for number, (read, reached) in enumerate(positions):
        position = of_one(judged, number)
        assert position == slow.position(read, reached)
        if swapped:
            continue
        unread = [(at, there) for at, there in scope if at >= read]
        assert position.unread == len(unread)
        ahead = [there for _, there in unread if there is not None]
        assert position.lowest == (min(ahead) if ahead else max(every) + 1 if every else None)
        if reached is not None:
            repeated = [at for at, there in scope if at < read and there is not None and there >= reached]
            skipped = [there for _, there in unread if there is not None and there < reached]
            assert (position.skipped, position.repeated) == (len(skipped), len(repeated))


def test_a_group_that_stands_behind_the_cut_skips_what_lies_in_front_of_its_synced_offset() -> None:
    placing = Placing([Matched(0, 199, 0, 199, 200)], [])
    judged = placing.judge(numbers(150, 150, 150), numbers(190, 120, None))
    assert [of_one(judged, at) for at in range(3)] == [
        Position(lowest=150, back=190, unread=50, skipped=40, repeated=0),
        Position(lowest=150, back=120, unread=50, skipped=0, repeated=30),
        Position(lowest=150, back=None, unread=50, skipped=0, repeated=0),
    ]


@cases(150)
@given(st.data())
def test_rows_out_of_order_are_counted_as_the_formula_for_one_position_does(data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 70))
    found = Difference(images=list(zip(range(0, 3 * size, 3), data.draw(st.permutations(range(size))), strict=True)))
    asked = st.tuples(st.integers(0, 3 * size + 2), st.integers(0, size + 2))
    positions = data.draw(st.lists(asked, min_size=1, max_size=20))
    judged = Placing([], [found]).judge(*(numbers(*column) for column in zip(*positions, strict=True)))
    slow = SlowPlacing([], [found])
    assert [of_one(judged, at) for at in range(len(positions))] == [slow.position(*one) for one in positions]


def test_a_chunk_holds_records_in_their_order() -> None:
    one, other = ([(0, "a"), (1, "b"), (2, "c")], [(0, "b"), (1, "a"), (2, "c")])
    first, second = (chunks.joined(pieces(log)) for log in (one, other))
    assert [chunk.signature for chunk in first] != [chunk.signature for chunk in second]


def test_equal_records_in_a_row_make_one_chunk() -> None:
    content = next(str(number) for number in range(100) if words(str(number))[0] % 2**BITS == 0)
    assert len(chunks.joined(pieces([(at, content) for at in range(500)], [7, 100]))) == 1


def test_a_block_that_moved_is_out_of_order_and_not_lost() -> None:
    source = [(at, f"record {at}") for at in range(200)]
    moved = [*source[:50], *source[60:150], *source[50:60], *source[150:]]
    _, _, findings = compared(source, [(at, one) for at, (_, one) in enumerate(moved)], 200)
    assert counts(findings) == {"out_of_order": 10}


def test_what_stands_between_a_gap_and_the_end_is_reported_apart() -> None:
    source = [(at, f"record {at}") for at in range(300)]
    kept = [*source[5:100], *source[110:290]]
    _, _, findings = compared(source, [(at, one) for at, (_, one) in enumerate(kept)], 300)
    (lost,) = findings
    runs = [(run.first, run.last, run.records, run.where) for run in lost.runs]
    assert (lost.kind, lost.count) == ("lost", 25)
    assert runs == [(0, 4, 5, "head"), (100, 109, 10, "gap"), (290, 299, 10, "tail")]
