"""Groups that somebody sets back at the source: where a follower had set them on the target they would skip records."""

import pytest

from ops.recovery.followed_mark import FOLLOWED, is_marked, mark, marked_upstream
from tests.support.followed_sides import ITEMS, ORDERS, Followed
from tests.unit.kafka import test_offset_syncs as simulated


@pytest.fixture
def followed(followed: Followed) -> Followed:
    """A group that is exact at 38; where one at 10 goes on is not known."""
    followed.copies((simulated.RECORD, 40))
    followed.missing = set(range(len(followed.mirror.written) - 1))
    for upstream in range(12):
        followed.mirror.copies[upstream] = []  # as of a mirror that began at the end of the log
    followed.target.begin[ITEMS] = 12
    followed.stands(38)
    assert followed.round() == {"exact": 1}
    assert followed.at() == 38
    return followed


@pytest.mark.parametrize("metadata", ["", "time-4711"])
def test_one_that_is_set_back_to_where_nothing_is_proven_begins_with_the_targets_log(
    followed: Followed, metadata: str
) -> None:
    followed.stands(38, metadata=metadata)
    followed.round()
    followed.stands(10, metadata=metadata)
    assert followed.round() == {"unknown": 1}
    assert followed.at() == 12
    changes = len(followed.target.admin.changes)
    assert followed.round() == {"unknown": 1}
    assert len(followed.target.admin.changes) == changes
    followed.stands(30, metadata=metadata)
    assert followed.round() == {"exact": 1}
    assert followed.at() == 30


@pytest.mark.parametrize("begins", ["the follower", "the group"])
@pytest.mark.parametrize(("offset", "state", "at"), [(10, "unknown", 12), (30, "exact", 30), (38, "exact", 38)])
def test_one_that_is_set_back_unseen_is_known_by_the_mark(
    followed: Followed, begins: str, offset: int, state: str, at: int
) -> None:
    if begins == "the follower":
        followed.follower = followed.started()
    else:
        del followed.source.held[ORDERS]
        followed.round()
    followed.stands(offset)
    assert followed.round() == {state: 1}
    assert followed.at() == at


@pytest.mark.parametrize(
    ("metadata", "is_kept"),
    [(mark(52), False), (mark(50), True), (mark(49), True), (FOLLOWED, True)],
    ids=["gone back", "the same", "gone on", "an earlier release"],
)
def test_an_offset_that_a_follower_has_set_is_kept_only_if_it_was_for_no_later_position(
    followed: Followed, metadata: str, is_kept: bool
) -> None:
    """The source has lost the records in front of both, so that they show nothing."""
    followed.missing = set()
    followed.copies((simulated.BUSY, 1), (simulated.RECORD, 20))
    followed.records.removed = range(20, 60)
    newest = followed.mirror.written[-1].upstream
    followed.follower = followed.started()
    followed.on_target(52, metadata=metadata)
    followed.stands(50)
    assert followed.round() == {"unproven": 1}
    assert followed.at() == (52 if is_kept else newest + 1)


def test_one_of_an_earlier_release_is_left_where_it_is_while_nothing_is_known(followed: Followed) -> None:
    followed.on_target(38, metadata=FOLLOWED)
    followed.follower = followed.started()
    followed.stands(10)
    assert followed.round() == {"unknown": 1}
    assert followed.at() == 38


def test_what_somebody_else_has_set_is_left_alone_while_nothing_is_known(followed: Followed) -> None:
    followed.on_target(20)
    followed.stands(10)
    assert followed.round() == {"unknown": 1}
    assert followed.at() == 20


def test_in_a_topic_that_was_created_again_no_group_has_gone_back(followed: Followed) -> None:
    followed.ids["source"] = "2"
    followed.stands(3)
    assert followed.round() == {"unknown": 1}
    assert followed.at() == 38


@pytest.mark.parametrize("text", ["", "time-4711", f"{FOLLOWED}er 5", f"{FOLLOWED} x", f"{FOLLOWED} -5"])
def test_what_is_no_mark(text: str) -> None:
    assert not is_marked(text)


def test_a_mark_says_for_which_position_it_was_set() -> None:
    assert marked_upstream(mark(4711)) == 4711
    assert is_marked(FOLLOWED)
    assert marked_upstream(FOLLOWED) is None
