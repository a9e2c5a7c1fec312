"""Groups that the source does not answer for: what was known of them may be set, and is called unknown."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kafka import group_commits
from kafka.errors import ClusterError, UnansweredError
from ops.follow.source_positions import UNANSWERED_ROUNDS
from tests.support.followed_sides import ITEMS, ORDERS, Followed
from tests.unit.kafka import test_offset_syncs as simulated

PLAIN = group_commits.answers


class Unread:
    """The source, which does not answer for these groups."""

    def __init__(self, followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
        self.errors: dict[str, ClusterError] = {}
        self.connections = 0
        self.listed_only: set[str] | None = None
        self._followed, self._listed = followed, followed.source.group_states
        followed.source.at_connect = self._connect
        monkeypatch.setattr(group_commits, "answers", self._answers)
        monkeypatch.setattr(followed.source, "group_states", self._states)

    def _connect(self) -> None:
        self.connections += 1

    def _states(self, unlisted: dict[str, str], **_: object) -> dict[str, str]:
        listed: dict[str, str] = self._listed()
        if self.listed_only is None:
            return listed
        unlisted[""] = "source: cannot list all consumer groups"
        return {group: state for group, state in listed.items() if group in self.listed_only}

    def _answers(
        self, side: Any, groups: Iterable[str], unread: dict[str, ClusterError] | None, *, stable: bool = True
    ) -> Iterator[Any]:
        refused = self.errors if side is self._followed.source and unread is not None else {}
        for group in set(groups) & refused.keys():
            assert unread is not None
            unread[group] = refused[group]
        yield from PLAIN(side, [group for group in groups if group not in refused], unread, stable=stable)


@pytest.fixture
def unread(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> Unread:
    """A source that answers for all groups so far; two of them are followed."""
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.stands(20, "stock")
    assert followed.round() == {"exact": 2}
    return Unread(followed, monkeypatch)


def test_a_group_that_was_not_read_at_the_source_is_unknown_until_it_is(followed: Followed, unread: Unread) -> None:
    unread.errors[ORDERS] = UnansweredError("source: cannot read the offsets of group orders")
    followed.stands(35)
    found = followed.follower.round()
    assert (found.positions["exact"], found.positions["unknown"], found.groups) == (1, 1, 2)
    assert found.problems == ("source: cannot read the offsets of group orders",)
    assert followed.at() == 30
    del unread.errors[ORDERS]
    assert followed.round() == {"exact": 2}
    assert followed.at() == 35


def test_a_group_that_was_not_listed_is_unknown_until_it_is(followed: Followed, unread: Unread) -> None:
    unread.listed_only = {"stock"}
    assert followed.round() == {"exact": 1, "unknown": 1}
    unread.listed_only = None
    assert followed.round() == {"exact": 2}


def test_what_was_known_of_an_unread_group_is_set_once_the_mirror_has_copied_it(
    followed: Followed, unread: Unread
) -> None:
    followed.ahead(20)
    followed.stands(50)
    assert followed.round() == {"exact": 1, "behind": 1}
    unread.errors[ORDERS] = UnansweredError("source: cannot read the offsets of group orders")
    followed.ahead(0)
    followed.copies((simulated.RECORD, 20))
    assert followed.round() == {"exact": 1, "unknown": 1}
    assert followed.at() == 50


def test_a_source_that_goes_on_not_answering_is_asked_by_a_new_client(followed: Followed, unread: Unread) -> None:
    unread.errors[ORDERS] = UnansweredError("source: cannot read the offsets of group orders")
    for _ in range(2 * UNANSWERED_ROUNDS):
        followed.round()
    assert unread.connections == 1
    followed.round()
    assert unread.connections == 2


def test_a_source_that_answers_for_no_group_makes_the_round_fail(followed: Followed, unread: Unread) -> None:
    for group in (ORDERS, "stock"):
        unread.errors[group] = UnansweredError(f"source: cannot read the offsets of group {group}")
    for _ in range(UNANSWERED_ROUNDS + 1):
        with pytest.raises(UnansweredError, match="cannot read the offsets"):
            followed.round()
    assert unread.connections == 1
    unread.errors.clear()
    assert followed.round() == {"exact": 2}


def test_an_answer_that_refuses_a_group_needs_no_new_client(followed: Followed, unread: Unread) -> None:
    unread.errors[ORDERS] = ClusterError("source: user must have Describe on group orders")
    for _ in range(2 * UNANSWERED_ROUNDS):
        assert followed.round() == {"exact": 1, "unknown": 1}
    assert unread.connections == 0


def test_rounds_without_the_source_try_a_new_client_and_set_what_is_copied(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def refused() -> None:
        tried.append(followed.source.log[ITEMS])
        raise ClusterError("source: cannot be reached")

    def silent(*_: object, **__: object) -> dict[str, str]:
        raise UnansweredError("source: cannot list groups")

    followed.copies((simulated.RECORD, 20))
    followed.ahead(20)
    followed.stands(31)
    followed.round()
    monkeypatch.setattr(followed.source, "group_states", silent)
    followed.source.at_connect = refused
    for _ in range(UNANSWERED_ROUNDS):
        with pytest.raises(UnansweredError, match="cannot list groups"):
            followed.round()
    assert not tried
    followed.ahead(0)
    followed.copies((simulated.RECORD, 20))
    with pytest.raises(ClusterError, match="cannot be reached"):
        followed.round()
    assert (len(tried), followed.at()) == (1, 31)
