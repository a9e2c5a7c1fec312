"""The map of offset syncs while a restarted mirror copies records a second time: until when the first copies count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.checkpoints import OffsetSync
from kafka.offset_syncs import OffsetMap
from tests.support.generated_cases import cases
from tests.unit.kafka.test_offset_syncs import (
    GAP,
    PERIODIC,
    RECORD,
    RESTART,
    Step,
    add,
    learnt,
    mirrored,
    require_true,
    steps,
)


def test_what_was_proven_in_front_of_a_restart_stays() -> None:
    mirror = mirrored([(RECORD, 20), (RESTART, 6), (RECORD, 20)])
    known = learnt(mirror)
    require_true(mirror, known)
    known.repeats_before(20)
    require_true(mirror, known)
    images = {offset: known.image(offset) for offset in (7, 14, 15)}
    assert {offset: one and (one.offset, one.proven) for offset, one in images.items()} == {
        7: (7, True),
        14: (20, True),
        15: (21, True),
    }


@cases(200)
@given(steps(RECORD, GAP, PERIODIC, RESTART), st.integers(1, 30), st.integers(1, 30))
def test_nothing_is_skipped_if_the_source_ends_while_a_mirror_repeats_records(
    taken: list[Step], repeated: int, copied: int
) -> None:
    mirror = mirrored([(RECORD, 8), *taken])
    again = sorted(mirror.copies)[-repeated:]
    mirror.step(RESTART, 0)
    for upstream in again[:copied]:
        mirror._copy(upstream)
    require_true(mirror, learnt(mirror))


def test_first_copies_count_until_all_records_of_a_restart_are_repeated() -> None:
    known, images = OffsetMap(), []
    add(known, (0, 0), (20, 20))
    for upstream, downstream in ((10, 23), (16, 29), (22, 35)):
        known.add(upstream, downstream)
        known.repeats_before(23)
        image = OffsetMap.unpack(known.pack()).image(15)
        assert image == known.image(15)
        images.append(None if image is None else (image.offset, image.proven))
    assert images == [(15, True), (15, True), (24, False)]


@pytest.mark.parametrize(("first", "later"), [((15, 39), (38, 52)), ((40, 43), (42, 44))])
def test_syncs_alone_do_not_say_how_far_first_copies_reach_in_a_log_with_gaps(
    first: tuple[int, int], later: tuple[int, int]
) -> None:
    """From 20 to 58 every other offset of the source is a record, and has its first copy at 19 to 38."""
    known = OffsetMap()
    add(known, (0, 0), (18, 18), first, later)
    image = known.image(55)
    assert image is not None
    assert (image.offset, image.proven) == (19, False)
    assert not known.repeats_before(59)
    ends = [(56, later[1] + (56 - later[0]) // 2), (58, later[1] + (58 - later[0]) // 2)]
    add(known, ends[0])
    assert known.repeated == (OffsetSync(*ends[0]), 58)
    add(known, ends[1])
    assert known.repeated is None


def test_a_mirror_that_restarts_once_more_ends_both_repetitions_with_the_last_copies() -> None:
    known = OffsetMap()
    add(known, (0, 0), (20, 20), (10, 23))
    known.repeats_before(23)
    add(known, (16, 29), (12, 32))
    assert known.is_unbounded, "the source may hold more by now"
    known.repeats_before(25)
    assert known.repeated == (OffsetSync(12, 32), 24)
    add(known, (22, 42))
    assert known.repeated == (OffsetSync(22, 42), 24)
    add(known, (24, 44))
    images = [known.image(offset) for offset in (10, 12, 24)]
    assert [one and one.offset for one in images] == [23, 32, 44]
    assert known.repeated is None


def test_a_map_that_is_packed_while_first_copies_count_lets_them_count_further() -> None:
    known = OffsetMap()
    add(known, (0, 0), (18, 18), (15, 40))
    for source_end in (40, 45):
        other = OffsetMap.unpack(known.pack())
        assert other == known
        assert other.is_unbounded == known.is_unbounded
        add(other, (21, 46))
        image = other.image(37)
        assert image is not None
        assert (image.offset, image.proven) == (19, False)
        known.repeats_before(source_end)
        add(known, (13, 50))  # it restarts once more
