"""The run-length map of offset syncs, against a mirror that delays, replaces and loses them, and restarts."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka.checkpoints import OffsetSync, decode_sync
from kafka.offset_syncs import UNEVEN_SYNCS, OffsetMap
from kafka.topic_partition import TopicPartition
from tests.support.generated_cases import cases
from tests.unit.kafka.test_checkpoints import sync

OFFSET_LAG_MAX = 5
Step = tuple[str, int]
RECORD, GAP, TARGET_ONLY, PERIODIC, BUSY, FREE, LOST, RESTART = (
    "record",
    "gap of the source",
    "offset that only the target has",
    "offset flush",
    "no sync may be sent",
    "syncs may be sent",
    "the next sync is lost",
    "restart of the task",
)


@dataclass
class SimulatedMirror:
    """One partition as MirrorSourceTask and OffsetSyncWriter copy it (Kafka 3.5 and later).

    `copies` are the target offsets of each source record, `written` the syncs in the order of their topic.
    """

    copies: dict[int, list[int]] = field(default_factory=dict)
    written: list[OffsetSync] = field(default_factory=list)
    source_end: int = 0
    target_end: int = 0
    may_send: bool = True
    loses: bool = False
    _pending: OffsetSync | None = None
    _delayed: OffsetSync | None = None
    _last_synced: int = -1
    _previous: tuple[int, int] = (-1, -1)

    def step(self, kind: str, number: int) -> None:
        if kind == RECORD:
            for _ in range(number):
                self._copy(self.source_end)
                self.source_end += 1
        elif kind == GAP:
            self.source_end += number
        elif kind == TARGET_ONLY:
            self.target_end += number
        elif kind == PERIODIC:
            self._pending, self._delayed = self._delayed or self._pending, None
            self._fire()
        elif kind == LOST:
            self.loses = True
        elif kind == RESTART:
            self._restart(number)
        else:
            self.may_send = kind == FREE
            self._fire()

    def _copy(self, upstream: int) -> None:
        downstream, self.target_end = self.target_end, self.target_end + 1
        self.copies.setdefault(upstream, []).append(downstream)
        stale = downstream - (self._last_synced + 1) >= OFFSET_LAG_MAX
        jumped = upstream - self._previous[0] != 1 or downstream < self._previous[1]
        if self._last_synced == -1 or stale or jumped:
            self._last_synced, self._delayed = downstream, None
            self._pending = OffsetSync(upstream, downstream)
        else:
            self._delayed = OffsetSync(upstream, downstream)
        self._previous = upstream, downstream
        self._fire()

    def _fire(self) -> None:
        if self._pending is not None and self.may_send:
            if not self.loses:
                self.written.append(self._pending)
            self._pending, self.loses = None, False

    def _restart(self, repeated: int) -> None:
        again = sorted(self.copies)[-repeated:] if repeated else []
        self._pending = self._delayed = None
        self._last_synced, self._previous = -1, (-1, -1)
        self.may_send, self.loses = True, False
        for upstream in again:
            self._copy(upstream)

    def skipped(self, source: int, target: int) -> list[int]:
        """Records that a group at the source offset has not read, and would not read from the target offset on."""
        return [one for one, at in self.copies.items() if one >= source and max(at) < target]

    def repeated(self, source: int, target: int) -> list[int]:
        """Records that it has read, and would read again, but for those that the mirror has repeated."""
        return [one for one, at in self.copies.items() if one < source and min(at) >= target]


def steps(*kinds: str) -> st.SearchStrategy[list[Step]]:
    numbers = {RECORD: 8, GAP: 3, TARGET_ONLY: 2, RESTART: 6}
    one = st.one_of(*(st.tuples(st.just(kind), st.integers(1, numbers.get(kind, 1))) for kind in kinds))
    return st.lists(one, max_size=60)


def mirrored(taken: list[Step]) -> SimulatedMirror:
    mirror = SimulatedMirror()
    for kind, number in taken:
        mirror.step(kind, number)
    return mirror


def require_true(mirror: SimulatedMirror, known: OffsetMap) -> int:
    """Check every source offset; return of how many the image is proven."""
    proven = 0
    for offset in range(mirror.source_end + 2):
        image = known.image(offset)
        if image is None:
            continue
        assert not mirror.skipped(offset, image.offset), (offset, image)
        assert image.offset <= mirror.target_end
        if image.proven:
            proven += 1
            assert not mirror.repeated(offset, image.offset), (offset, image)
        else:
            assert image.anchor.upstream + 1 < offset
            assert image.following is None or offset < image.following.upstream
    return proven


def learnt(mirror: SimulatedMirror, known: OffsetMap | None = None) -> OffsetMap:
    known = OffsetMap() if known is None else known
    add(known, *((one.upstream, one.downstream) for one in mirror.written))
    return known


def add(known: OffsetMap, *pairs: tuple[int, int]) -> None:
    for upstream, downstream in pairs:
        known.add(upstream, downstream)


@cases(100)
@given(steps(RECORD, GAP, PERIODIC, BUSY, FREE, LOST))
def test_with_gaps_of_the_source_alone_every_proven_image_is_exact(taken: list[Step]) -> None:
    mirror = mirrored(taken)
    require_true(mirror, learnt(mirror))


@cases(100)
@given(steps(RECORD, TARGET_ONLY, PERIODIC, BUSY, FREE, LOST))
def test_with_offsets_that_only_the_target_has_every_proven_image_is_exact(taken: list[Step]) -> None:
    mirror = mirrored(taken)
    require_true(mirror, learnt(mirror))


@cases(100)
@given(steps(RECORD, PERIODIC, BUSY, FREE, LOST, RESTART))
def test_a_restarted_mirror_makes_no_image_wrong(taken: list[Step]) -> None:
    mirror = mirrored(taken)
    require_true(mirror, learnt(mirror))


@cases(200)
@given(steps(RECORD, GAP, TARGET_ONLY, PERIODIC, BUSY, FREE, LOST, RESTART))
def test_a_map_that_joins_no_syncs_is_exact_with_everything_at_once(taken: list[Step]) -> None:
    mirror = mirrored(taken)
    require_true(mirror, learnt(mirror, OffsetMap(linear=False)))


@cases(100)
@given(steps(RECORD, GAP, PERIODIC, BUSY, FREE, LOST), st.integers(1, 6))
def test_a_bounded_map_forgets_the_oldest_and_stays_exact(taken: list[Step], stretches: int) -> None:
    mirror = mirrored(taken)
    known = learnt(mirror, OffsetMap(stretches_max=stretches))
    require_true(mirror, known)
    assert len(known) <= stretches
    if mirror.written:
        newest = mirror.written[-1]
        image = known.image(newest.upstream)
        assert image is not None
        assert (image.offset, image.proven) == (newest.downstream, True)


@example([(RECORD, 8), (RECORD, 8)], [3])
@cases(100)
@given(steps(RECORD, GAP, PERIODIC, BUSY, FREE), st.lists(st.integers(0, 30), max_size=5))
def test_syncs_that_compaction_has_removed_are_a_break(taken: list[Step], missing: list[int]) -> None:
    mirror = mirrored([*taken, (TARGET_ONLY, 1), (RECORD, 8)])
    known = OffsetMap()
    for number, one in enumerate(mirror.written):
        if number in missing:
            known.interrupt()
        else:
            known.add(one.upstream, one.downstream)
    require_true(mirror, known)


@cases(100)
@given(steps(RECORD, GAP, PERIODIC, BUSY, FREE, LOST), st.integers(0, 3), st.booleans())
def test_a_packed_map_goes_on_as_the_one_it_was_made_of(taken: list[Step], again: int, interrupted: bool) -> None:
    """The syncs that come next may include some that it knows: what was kept was written before where it ends was."""
    mirror, known = mirrored([*taken, (RECORD, 8)]), OffsetMap()
    half = len(mirror.written) // 2
    add(known, *((one.upstream, one.downstream) for one in mirror.written[:half]))
    if interrupted:
        known.interrupt()
    other = OffsetMap.unpack(known.pack())
    assert other == known
    add(other, *((one.upstream, one.downstream) for one in mirror.written[max(0, half - again) :]))
    require_true(mirror, other)


def test_a_map_that_an_earlier_release_has_packed_is_read() -> None:
    columns = struct.pack("<6q", 0, 30, 18, 30, 0, 40)
    known = OffsetMap.unpack(struct.pack("<BBBI", 1, 1, 0, 7) + zlib.compress(columns))
    assert list(known.stretches()) == [(0, 18, 0), (30, 30, 40)]
    assert known.repeated is None


@pytest.mark.parametrize("data", [b"", b"short", b"\x02" + bytes(6) + b"\x78\x9c\x03\x00\x00\x00\x00\x01"])
def test_bytes_that_are_no_map_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a map of offset syncs must be"):
        OffsetMap.unpack(data)


def test_a_long_even_stretch_is_one_and_proven_between_its_ends() -> None:
    mirror = mirrored([(RECORD, 1000)])
    known = learnt(mirror)
    assert list(known.stretches()) == [(0, mirror.written[-1].upstream, 0)]
    assert len(mirror.written) > 100
    assert require_true(mirror, known) == mirror.written[-1].upstream + 2


def test_a_replaced_sync_leaves_a_stretch_unproven_and_says_between_which_pairs() -> None:
    mirror = mirrored([(RECORD, 4), (BUSY, 1), (RECORD, 4), (GAP, 1), (RECORD, 3), (FREE, 1)])
    assert mirror.written == [OffsetSync(0, 0), OffsetSync(9, 8)]
    image = learnt(mirror).image(5)
    assert image is not None
    assert (image.offset, image.proven) == (1, False)
    assert (image.anchor, image.following) == (OffsetSync(0, 0), OffsetSync(9, 8))


def test_equal_distances_are_no_proof_where_both_sides_have_gaps_and_syncs_are_replaced() -> None:
    """Why a mirror that writes transactions needs `linear=False`: this group would skip the record at 3."""
    taken = [(RECORD, 1), (BUSY, 1), (GAP, 2), (RECORD, 2), (TARGET_ONLY, 2), (RECORD, 4), (PERIODIC, 1), (FREE, 1)]
    mirror = mirrored(taken)
    assert mirror.written == [OffsetSync(0, 0), OffsetSync(8, 8)]
    wrong, right = learnt(mirror).image(4), learnt(mirror, OffsetMap(linear=False)).image(4)
    assert wrong is not None
    assert wrong.proven
    assert mirror.skipped(4, wrong.offset) == [4]
    assert right is not None
    assert not right.proven
    assert not mirror.skipped(4, right.offset)


def test_after_an_uneven_pair_equal_distances_prove_nothing_for_a_while() -> None:
    known = OffsetMap()
    for upstream, downstream in ((0, 0), (10, 12), (20, 22)):
        known.add(upstream, downstream)
    known.repeats_before(13)
    image = known.image(15)
    assert image is not None
    assert not image.proven
    for number in range(3, UNEVEN_SYNCS + 10):
        known.add(10 * number, 10 * number + 2)
    image = known.image(10 * UNEVEN_SYNCS + 55)
    assert image is not None
    assert image.proven


@pytest.mark.parametrize(("downstream", "interrupted"), [(5100, False), (150, True)])
def test_more_offsets_of_the_target_than_a_restart_explains_hold_nothing_back(
    downstream: int, interrupted: bool
) -> None:
    known = OffsetMap()
    add(known, (0, 0), (20, 20))
    if interrupted:
        known.interrupt()
    known.add(100, downstream)
    image = known.image(101)
    assert image is not None
    assert (image.offset, image.proven) == (downstream + 1, True)


CHANGES: dict[str, Callable[[OffsetMap], object]] = {
    "the target's log ends further in front": lambda known: known.add(30, 5),
    "all is cleared": OffsetMap.clear,
    "a failback bounds the log": lambda known: add(known, (-1, -1), (0, 0), (50, 40)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_forgotten(name: str) -> None:
    known = OffsetMap()
    known.add(0, 0)
    known.add(20, 20)
    CHANGES[name](known)
    assert known.image(10) is None


def test_a_target_that_is_thousands_of_records_ahead_is_of_a_topic_that_was_created_again() -> None:
    """The first syncs of its new log may be missing: a mirror that catches up sends few."""
    known = OffsetMap()
    add(known, (0, 0), (100, 100), (5000, 5000))
    assert known.add(5300, 10_400)
    assert known.image(50) is None
    assert known.first == OffsetSync(5300, 10_400)
    transactional = OffsetMap(linear=False)
    add(transactional, (0, 0), (100, 100), (5000, 5000))
    assert not transactional.add(5300, 10_400), "transactions of the mirror take offsets too"
    assert transactional.first == OffsetSync(0, 0)


def test_after_a_failback_the_next_syncs_count_again() -> None:
    known = OffsetMap()
    for upstream, downstream in ((-1, -1), (0, 0), (50, 50), (52, 50), (60, 58)):
        known.add(upstream, downstream)
    images = [known.image(offset) for offset in (51, 55)]
    assert images[0] is None
    assert images[1] is not None
    assert (images[1].offset, images[1].proven) == (53, True)


def test_a_sync_and_its_tombstone_are_decoded_and_noise_is_not() -> None:
    key, value = sync(7, 5)
    assert decode_sync(key, value) == (TopicPartition("items", 0), OffsetSync(7, 5))
    assert decode_sync(key, None) == (TopicPartition("items", 0), None)
    assert decode_sync(b"x", b"y") is None
    assert decode_sync(key, b"short") is None
