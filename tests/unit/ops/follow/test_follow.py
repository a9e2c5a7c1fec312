"""Groups that are followed on a simulated mirror: what is set, what is left to others, and what is called exact."""

from array import array
from typing import Any

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from kafka.checkpoints import Checkpoint, CheckpointHistory, OffsetSync
from kafka.errors import ClusterError
from ops.follow import follower
from ops.follow.record_proof import RECORDS_MAX, ComparedRecords, Proof, Records
from ops.recovery.followed_mark import FOLLOWED
from tests.support.followed_sides import ITEMS, ORDERS, Followed
from tests.support.generated_cases import cases
from tests.unit.kafka import test_offset_syncs as simulated
from tests.unit.kafka.test_offset_syncs import Step


def test_a_group_is_kept_at_its_image_and_marked(followed: Followed) -> None:
    followed.copies((simulated.GAP, 3), (simulated.RECORD, 40))
    for offset in (10, 11, 33):
        followed.stands(offset)
        assert followed.round() == {"exact": 1}
        assert followed.at() == offset - 3
        assert followed.target.metadata[ORDERS, ITEMS] == f"{FOLLOWED} {offset}"
    changes = len(followed.target.admin.changes)
    followed.round()
    assert len(followed.target.admin.changes) == changes, "what is right is not set again"


def test_behind_the_newest_sync_the_records_decide(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 20), (simulated.BUSY, 1), (simulated.RECORD, 8), (simulated.GAP, 2))
    followed.copies((simulated.RECORD, 8))
    newest = followed.mirror.written[-1].upstream
    assert newest < 20
    followed.stands(34)
    assert followed.round() == {"exact": 1}
    assert followed.at() == 32


def test_a_group_ahead_of_the_mirror_goes_on_behind_all_that_is_copied(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 23))
    followed.ahead(40)
    followed.stands(50)
    assert followed.round() == {"behind": 1}
    assert followed.at() == 23


def test_metadata_of_the_group_itself_is_kept(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(10, metadata="AgAAAZ")
    followed.round()
    assert followed.target.metadata[ORDERS, ITEMS] == "AgAAAZ"
    followed.follower = followed.started()
    followed.stands(20, metadata="AgAAAZ")
    assert followed.round() == {"exact": 1}
    assert followed.at() == 20


def test_a_group_with_members_is_left_alone(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.on_target(5, state="STABLE")
    assert followed.round() == {"active": 1}
    assert followed.at() == 5


@pytest.mark.parametrize("at", [5, 38])
def test_what_somebody_else_has_set_is_left_alone_until_the_group_is_there(followed: Followed, at: int) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.on_target(at)
    assert followed.round() == {"foreign": 1}
    assert followed.at() == at
    followed.stands(at)
    assert followed.round() == {"exact": 1}
    followed.stands(39)
    assert followed.round() == {"exact": 1}
    assert followed.at() == 39


@pytest.mark.parametrize(("at", "state", "then"), [(5, "exact", 30), (35, "foreign", 35)])
def test_mirror_makers_own_position_is_moved_forward_only(followed: Followed, at: int, state: str, then: int) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.on_target(at)
    history = followed.claimed[ORDERS, *ITEMS] = CheckpointHistory()
    history.add(Checkpoint(at, at))
    assert followed.round() == {state: 1}
    assert followed.at() == then


def test_a_group_that_goes_back_at_the_source_is_followed_back(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    for offset in (30, 10):
        followed.stands(offset)
        followed.round()
        assert followed.at() == offset


def test_after_a_restart_of_the_follower_its_own_positions_are_known_by_their_mark(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.round()
    followed.follower = followed.started()
    followed.stands(20)
    assert followed.round() == {"exact": 1}
    assert followed.at() == 20


def test_in_front_of_all_syncs_the_records_decide_from_the_first_one_back(followed: Followed) -> None:
    followed.copies((simulated.BUSY, 1), (simulated.GAP, 3), (simulated.RECORD, 40), (simulated.FREE, 1))
    followed.copies((simulated.RECORD, 5))
    assert followed.mirror.written[0].upstream == 39
    for offset in (4, 10, 38):
        followed.stands(offset)
        assert followed.round() == {"exact": 1}
        assert followed.at() == offset - 3


def test_a_position_in_front_of_all_that_is_copied_is_left_and_unknown(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.missing = set(range(len(followed.mirror.written) - 1))
    for upstream in range(12):
        followed.mirror.copies[upstream] = []  # as of a mirror that began at the end of the log
    followed.stands(10)
    for _ in range(3):
        assert followed.round() == {"unknown": 1}
        assert followed.at() is None
    monkeypatch.setattr(followed.records, "_read", None)
    assert followed.round() == {"unknown": 1}, "the same records are not read again"


@pytest.mark.parametrize(
    ("within_s", "rounds"), [(0.0, [{"exact": 1, "unknown": 1}, {"exact": 2}]), (60.0, [{"exact": 2}])]
)
def test_farther_in_front_of_all_syncs_than_is_read_at_once_the_records_decide_as_the_time_allows(
    followed: Followed, monkeypatch: pytest.MonkeyPatch, within_s: float, rounds: list[dict[str, int]]
) -> None:
    monkeypatch.setattr(follower, "COMPARED_WITHIN_S", within_s)
    followed.copies((simulated.BUSY, 1), (simulated.GAP, 7), (simulated.RECORD, RECORDS_MAX + 100), (simulated.FREE, 1))
    followed.stands(20)
    followed.stands(RECORDS_MAX, "nearer")
    assert [followed.round() for _ in rounds] == rounds
    assert (followed.at(), followed.at("nearer")) == (13, RECORDS_MAX - 7)


def test_what_retention_has_left_on_the_target_alone_is_not_skipped(followed: Followed) -> None:
    followed.copies((simulated.BUSY, 1), (simulated.RECORD, 40), (simulated.FREE, 1))
    followed.records.removed = range(20)
    followed.stands(10)
    assert followed.round() == {"unknown": 1}
    followed.stands(20)
    assert followed.round() == {"exact": 1}
    assert followed.at() == 20


def test_nothing_is_set_behind_the_log_end(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    monkeypatch.setattr(followed.target, "ends", lambda places, _: dict.fromkeys(places, 20))
    assert followed.round() == {"unproven": 1}
    assert followed.at() is None


@pytest.mark.parametrize("side", ["source", "target"])
def test_what_was_known_of_a_topic_that_is_created_again_is_forgotten(followed: Followed, side: str) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.round()
    followed.ids[side] = "2"
    followed.stands(31)
    assert followed.round() == {"unknown": 1}
    assert followed.at() == 30


def test_without_the_source_what_is_copied_since_is_still_taken_in(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.copies((simulated.RECORD, 20))
    followed.ahead(40)
    followed.stands(31)
    assert followed.round() == {"behind": 1}
    assert followed.at() == 20
    followed.copies((simulated.RECORD, 21))

    def gone(*_: object, **__: object) -> dict[str, str]:
        raise ClusterError("source: is gone")

    monkeypatch.setattr(followed.source, "group_states", gone)
    with pytest.raises(ClusterError, match="is gone"):
        followed.round()
    assert followed.at() == 31


def test_a_group_that_a_broker_does_not_list_now_is_known_further(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.round()

    def none(unlisted: dict[str, str], **_: object) -> dict[str, str]:
        unlisted[""] = "source: cannot list all consumer groups"
        return {}

    monkeypatch.setattr(followed.source, "group_states", none)
    found = followed.follower.round()
    assert (found.groups, found.problems) == (1, ("source: cannot list all consumer groups",))
    monkeypatch.setattr(followed.source, "group_states", lambda *_, **__: {})
    assert followed.round() == {"exact": 1}, "its coordinator has its offsets"
    del followed.source.held[ORDERS]
    assert followed.follower.round().groups == 0


def test_a_refused_group_is_reported_and_the_others_are_set(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.target.admin.refused = KafkaError(KafkaError.NON_EMPTY_GROUP)
    followed.source.log[ITEMS], followed.target.log[ITEMS] = 40, 40
    found = followed.follower.round()
    assert (found.positions["refused"], found.set_offsets) == (1, 0)
    assert found.problems[0].startswith("group orders: ")
    followed.target.admin.refused = None
    assert followed.round() == {"exact": 1}


@cases(150)
@given(
    simulated.steps(
        simulated.RECORD, simulated.GAP, simulated.PERIODIC, simulated.BUSY, simulated.FREE, simulated.RESTART
    ),
    st.lists(st.integers(0, 120), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_whatever_the_mirror_does_nothing_is_skipped_and_exact_is_exact(
    steps: list[Step], offsets: list[int], started_again: int
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        followed = Followed(monkeypatch)
        part = max(1, len(steps) // len(offsets))
        for number, offset in enumerate(offsets):
            followed.copies(*steps[number * part : (number + 1) * part])
            offset = min(offset, followed.mirror.source_end)
            followed.stands(offset)
            if number == started_again:
                followed.follower = followed.started()
            states, at = followed.round(), followed.at()
            if at is not None:
                assert not followed.mirror.skipped(offset, at), (offset, at)
                assert at <= followed.mirror.target_end
            if states == {"exact": 1}:
                assert at is not None
                assert not followed.mirror.repeated(offset, at), (offset, at)


def records(offsets: list[int], digests: list[int], *, complete: bool = True) -> Records:
    return Records(array("q", offsets), array("Q", digests), complete)


@pytest.mark.parametrize(
    ("source", "target", "offset", "bounded", "proof"),
    [
        (([5, 6, 8], [1, 1, 2]), ([3, 4, 6], [1, 1, 2]), 8, False, Proof(5, exact=True)),
        (([5, 6, 8], [1, 1, 2]), ([3, 4], [1, 1]), 9, False, Proof(5, exact=False, replicated=True)),
        (([5, 8, 9], [1, 3, 4]), ([3, 4, 5, 6], [1, 2, 3, 4]), 9, True, Proof(6, exact=True)),  # compacted since
        (([5, 8, 9], [1, 3, 4]), ([3, 4, 5, 6], [1, 2, 3, 4]), 9, False, Proof(4, exact=False)),
        (([5, 8, 9, 10], [1, 3, 3, 4]), ([3, 5, 6, 7], [1, 3, 7, 4]), 10, True, Proof(7, exact=True)),
        (([5, 8, 9, 10], [1, 3, 3, 4]), ([3, 4, 6, 7], [1, 3, 7, 4]), 9, True, Proof(5, exact=True)),
        (([5, 7, 9, 10], [1, 3, 3, 4]), ([3, 4, 6, 7], [1, 2, 7, 4]), 9, True, Proof(4, exact=False)),  # which of both?
        (([5, 8, 9], [1, 3, 4]), ([7, 8, 9], [1, 3, 4]), 8, True, Proof(8, exact=True)),  # the target has deleted it
        (([8, 9], [3, 4]), ([7, 8, 9], [1, 3, 4]), 8, True, Proof(8, exact=True)),
        (([8, 9], [3, 4]), ([7, 8, 9], [1, 2, 4]), 8, True, None),
        (([6, 8], [1, 2]), ([3, 4], [1, 2]), 8, False, None),  # the source has deleted the first record
        (([5, 8], [1, 2]), ([4, 6], [1, 2]), 8, False, None),
        (([5, 8], [1, 2]), ([3, 4], [9, 2]), 8, False, None),
    ],
)
def test_what_the_records_between_two_pairs_prove(
    source: Any, target: Any, offset: int, bounded: bool, proof: Proof | None
) -> None:
    following = OffsetSync(source[0][-1], target[0][-1]) if bounded else None
    compared = ComparedRecords(OffsetSync(5, 3), records(*source), records(*target), following)
    assert compared.position(offset) == proof


def test_what_was_not_read_to_its_end_proves_no_more_than_was_read() -> None:
    read = records([5, 6], [1, 2], complete=False)
    compared = ComparedRecords(OffsetSync(5, 3), read, records([3, 4], [1, 2], complete=False))
    assert compared.position(6) == Proof(4, exact=True)
    assert compared.position(20) == Proof(5, exact=False)
    assert compared.last_pair() == OffsetSync(6, 4)
