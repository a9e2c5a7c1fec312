"""Groups that are followed while something else goes wrong: brokers, logs and positions that change in between."""

import threading
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka import group_commits
from kafka.checkpoints import Checkpoint, CheckpointHistory, OffsetSync
from kafka.errors import ClusterError
from kafka.offset_syncs import UNSYNCED_MAX
from ops.follow import follower
from ops.follow.follower import LOOKED_AGAIN_EVERY
from ops.follow.kept_maps import KeptMaps
from tests.support.followed_sides import ITEMS, ORDERS, SYNCS, Followed, KeptTopic
from tests.support.generated_cases import cases
from tests.support.recovery_pair import known
from tests.unit.kafka import test_offset_syncs as simulated


def test_what_somebody_else_has_set_is_left_alone_while_its_broker_does_not_list_the_group(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.on_target(38)
    del followed.target.states[ORDERS]
    assert followed.round() == {"foreign": 1}
    assert followed.at() == 38


def test_a_group_whose_offsets_on_the_target_cannot_be_read_is_not_called_exact(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)

    def unreadable(_: object, groups: Iterable[str], unread: dict[str, ClusterError]) -> dict[str, Any]:
        unread |= {group: ClusterError("target: not now") for group in groups}
        return {}

    with monkeypatch.context() as patched:
        patched.setattr(group_commits, "read", unreadable)
        assert followed.round() == {"refused": 1}
        assert followed.at() is None
    assert followed.round() == {"exact": 1}


@pytest.mark.parametrize(("at", "claimed", "state", "then"), [(20, True, "exact", 30), (10, False, "foreign", 10)])
def test_a_group_that_is_moved_on_the_target_after_it_was_set_is_noticed(
    followed: Followed, at: int, claimed: bool, state: str, then: int
) -> None:
    """MirrorMaker sets what it has read long before: it does not see what was set meanwhile."""
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    assert followed.round() == {"exact": 1}
    followed.on_target(at)
    if claimed:
        followed.claimed.setdefault((ORDERS, *ITEMS), CheckpointHistory()).add(Checkpoint(30, at))
    for _ in range(LOOKED_AGAIN_EVERY):
        states = followed.round()
    assert (states, followed.at()) == ({state: 1}, then)


def test_partitions_that_cannot_be_read_keep_no_other_group_from_being_followed(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.copies((simulated.RECORD, 20), (simulated.BUSY, 1), (simulated.RECORD, 8))
    followed.stands(10)
    followed.stands(25, group="ahead")

    def without_leader(*_: object) -> None:
        raise ClusterError("source: items-0 has no leader")

    monkeypatch.setattr(followed.source, "ends", without_leader)
    with pytest.raises(ClusterError, match="has no leader"):
        followed.round()
    assert followed.at() == 10


def test_a_group_that_rests_is_set_back_with_a_target_log_that_has_lost_its_end(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(40)
    followed.round()
    assert followed.at() == 40
    followed.mirror.target_end = 30
    followed.copies((simulated.RECORD, 20))
    assert followed.round() == {"exact": 1}
    assert followed.at() == 30


@pytest.mark.parametrize("restarted", [False, True])
def test_equal_distances_of_a_mirror_with_transactions_prove_nothing(followed: Followed, restarted: bool) -> None:
    topic: Any = KeptTopic(followed.target)
    pair = known(SYNCS, exactlyOnce=True)
    followed.follower = followed.started(KeptMaps(topic, pair.request.mirror, print))
    followed.follower.pair = pair
    followed.copies((simulated.RECORD, 1), (simulated.BUSY, 1))
    if restarted:
        followed.round()
        followed.follower.close()
        followed.follower = followed.started(KeptMaps(topic, pair.request.mirror, print))
        followed.follower.pair = pair
    followed.copies((simulated.GAP, 2), (simulated.RECORD, 2), (simulated.TARGET_ONLY, 2), (simulated.RECORD, 4))
    followed.copies((simulated.PERIODIC, 1), (simulated.FREE, 1))
    assert followed.mirror.written == [OffsetSync(0, 0), OffsetSync(8, 8)]
    followed.stands(4)
    assert followed.round() == {"exact": 1}
    assert not followed.mirror.skipped(4, followed.at() or 0)


def test_both_sides_are_read_at_the_same_time(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    both, read = threading.Barrier(2, timeout=5), followed.records._read

    def wait_for_the_other(side: Any, wanted: Any) -> Any:
        both.wait()
        return read(side, wanted)

    monkeypatch.setattr(followed.records, "_read", wait_for_the_other)
    followed.copies((simulated.RECORD, 20), (simulated.BUSY, 1), (simulated.RECORD, 8))
    followed.stands(25)
    assert followed.round() == {"exact": 1}
    assert followed.at() == 25


def test_groups_at_several_unproven_places_of_a_partition_are_exact_after_one_round(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 20))
    for _ in range(3):
        followed.copies((simulated.BUSY, 1), (simulated.RECORD, 8), (simulated.GAP, 2), (simulated.RECORD, 8))
        followed.copies((simulated.FREE, 1), (simulated.RECORD, 8))
    places = {"one": 24, "other": 50, "third": 76}
    for group, offset in places.items():
        followed.stands(offset, group)
    assert followed.round() == {"exact": 3}
    for group, offset in places.items():
        assert not followed.mirror.skipped(offset, followed.at(group) or 0)


def restart_with_a_late_sync(followed: Followed, first: int, unsynced: int) -> None:
    """Let the mirror repeat the records from an offset on and copy some more before its first offset sync is sent."""
    again = sorted(one for one in followed.mirror.copies if one >= first)
    followed.copies((simulated.RESTART, 0), (simulated.BUSY, 1))
    for upstream in again:
        followed.mirror._copy(upstream)
    followed.copies((simulated.RECORD, unsynced), (simulated.FREE, 1))


def test_second_copies_count_once_the_mirror_has_passed_where_the_source_ended_when_it_began(
    followed: Followed,
) -> None:
    """The first sync of a burst comes late, so that the syncs alone say that 18 more records may be there twice."""
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.round()
    restart_with_a_late_sync(followed, 20, 5)
    followed.stands(43)
    assert not followed.mirror.skipped(43, followed.at() or 0)
    followed.round()
    followed.copies((simulated.RECORD, 6))
    assert followed.round() == {"exact": 1}
    assert followed.at() == followed.mirror.copies[43][-1]


@pytest.mark.parametrize(("first", "late", "copied", "offset"), [(15, False, 14, 55), (32, True, 6, 57)])
def test_second_copies_of_a_log_with_gaps_do_not_count_before_all_of_them_are_there(
    followed: Followed, first: int, late: bool, copied: int, offset: int
) -> None:
    """A marker follows each record, so that there are fewer first copies than offsets of the source they reach over."""
    followed.copies((simulated.RECORD, 19), (simulated.BUSY, 1), *[(simulated.GAP, 1), (simulated.RECORD, 1)] * 20)
    followed.stands(offset)
    assert followed.mirror.written[-1] == OffsetSync(18, 18)
    assert followed.round() == {"exact": 1}
    again = sorted(one for one in followed.mirror.copies if one >= first)
    followed.copies((simulated.RESTART, 0))
    for number, upstream in enumerate(again):
        if late and number < copied:
            followed.mirror.may_send = number == copied - 1
        followed.mirror._copy(upstream)
        states, at = followed.round(), followed.at() or 0
        assert not followed.mirror.skipped(offset, at), (upstream, at)
    assert states == {"exact": 1}
    assert at == followed.mirror.copies[offset + 1][-1]


@pytest.mark.parametrize("compacted", [False, True])
def test_in_front_of_the_first_sync_of_a_restarted_mirror_records_are_compared_from_there_back(
    followed: Followed, compacted: bool
) -> None:
    """Compaction removes first copies, so that the last pair of before the restart is not on the target any more."""
    followed.copies((simulated.RECORD, 40))
    restart_with_a_late_sync(followed, 20, UNSYNCED_MAX)
    followed.copies((simulated.RECORD, 6))
    followed.records.compacted = compacted
    for offset in (200, 500):
        followed.stands(offset)
        assert followed.round() == {"exact": 1}
        assert followed.at() == followed.mirror.copies[offset][-1]


def test_a_group_that_rests_goes_on_at_the_second_copies_once_all_are_there(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    for offset, group in ((30, ORDERS), (36, "rests")):
        followed.stands(offset, group)
    assert followed.round() == {"exact": 2}
    followed.copies((simulated.RESTART, 0))
    for upstream in range(32, 36):
        followed.mirror._copy(upstream)
    followed.round()
    assert followed.at("rests") == 36
    for upstream in range(36, 40):
        followed.mirror._copy(upstream)
    assert followed.round() == {"exact": 2}
    assert followed.at("rests") == followed.mirror.copies[36][-1]
    assert followed.at() == 30, "it was not repeated"


@pytest.mark.parametrize("dies", ["before its groups are read", "before its topics are", "before its records are"])
def test_a_source_that_dies_in_a_round_keeps_nothing_from_being_set_that_the_mirror_has_copied(
    followed: Followed, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    followed.copies((simulated.RECORD, 20))
    followed.ahead(20)
    followed.stands(40)
    assert followed.round() == {"behind": 1}
    followed.ahead(0)
    followed.copies((simulated.RECORD, 20))

    def no_answer(*_: object, **__: object) -> None:
        raise ClusterError("source: no answer")

    ids = follower.topic_ids

    def ids_of(side: Any, names: Iterable[str]) -> Any:
        return no_answer() if side is followed.source else ids(side, names)

    if dies == "before its groups are read":
        monkeypatch.setattr(followed.source, "group_states", no_answer)
    elif dies == "before its topics are":
        monkeypatch.setattr(follower, "topic_ids", ids_of)
    else:
        monkeypatch.setattr(followed.source, "ends", no_answer)
    for _ in range(2):
        with pytest.raises(ClusterError, match="no answer"):
            followed.round()
        assert followed.at() == (followed.mirror.written[-1].upstream + 1)


def test_a_group_that_rests_in_front_of_a_late_sync_goes_on_at_the_second_copy(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    for offset, group in ((10, ORDERS), (30, "rests")):
        followed.stands(offset, group)
    followed.round()
    assert followed.at("rests") == 30
    restart_with_a_late_sync(followed, 20, 5)
    assert followed.round() == {"exact": 2}
    assert (followed.at(), followed.at("rests")) == (10, followed.mirror.copies[30][-1])


def test_second_copies_count_once_all_of_them_are_seen(followed: Followed) -> None:
    """No later sync says so: little is written, and the next one comes with the next hundred records or the flush."""
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.round()
    restart_with_a_late_sync(followed, 20, 5)
    followed.copies((simulated.RECORD, 3))
    followed.ahead(2)
    followed.stands(44)
    followed.round()
    assert not followed.mirror.skipped(44, followed.at() or 0)
    written = len(followed.mirror.written)
    followed.ahead(0)
    followed.copies((simulated.RECORD, 2))
    assert len(followed.mirror.written) == written
    assert followed.round() == {"exact": 1}
    assert followed.at() == followed.mirror.copies[44][-1]


@example(21, 0, 0, [18], False)
@cases(150)
@given(
    st.integers(0, 25), st.integers(0, 30), st.integers(0, 40), st.lists(st.integers(10, 70), min_size=1), st.booleans()
)
def test_nothing_is_skipped_at_any_moment_of_a_restart(
    repeated: int, written: int, late: int, offsets: list[int], compacted: bool
) -> None:
    """Some records are copied twice, then those that were written meanwhile; the first sync comes late."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        followed = Followed(monkeypatch)
        followed.copies((simulated.RECORD, 40))
        followed.stands(10)
        followed.round()
        again = sorted(followed.mirror.copies)[40 - repeated :]
        followed.ahead(written)
        followed.copies((simulated.RESTART, 0), (simulated.BUSY, 1))
        standing = 10
        for number in range(repeated + written):
            if number == late:
                followed.copies((simulated.FREE, 1))
            if number < repeated:
                followed.mirror._copy(again[number])
            else:
                followed.copies((simulated.RECORD, 1))
                followed.ahead(repeated + written - number - 1)
            followed.records.compacted = compacted
            standing = min(max(standing, offsets[number % len(offsets)]), 40 + written)
            followed.stands(standing)
            states, at = followed.round(), followed.at() or 0
            assert not followed.mirror.skipped(standing, at), (standing, at)
            assert states != {"exact": 1} or not followed.mirror.repeated(standing, at), (standing, at)
