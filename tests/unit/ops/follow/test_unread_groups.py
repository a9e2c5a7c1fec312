"""Groups that the source does not answer for: what was known of them may be set, and is called unknown."""

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafka import group_commits
from kafka.errors import ClusterError, DeniedError, UnansweredError
from kafka.topic_partition import TopicPartition
from ops.follow import client_renewal
from ops.follow.client_renewal import RENEWED_AFTER_S
from ops.follow.position import Position
from ops.follow.source_positions import LEADERS_EVERY
from tests.support.followed_sides import ORDERS, Followed
from tests.unit.kafka import test_offset_syncs as simulated

PLAIN = group_commits.answers


class Unread:
    """The source, which does not answer for these groups."""

    def __init__(self, followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
        self.errors: dict[str, ClusterError] = {}
        self.connections = 0
        self.refused: ClusterError | None = None
        self.listed_only: set[str] | None = None
        self._followed, self._listed = followed, followed.source.group_states
        followed.source.at_connect = self._connect
        monkeypatch.setattr(group_commits, "answers", self._answers)
        monkeypatch.setattr(followed.source, "group_states", self._states)

    def _connect(self) -> None:
        self.connections += 1
        if self.refused is not None:
            raise self.refused

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


def test_that_some_groups_cannot_be_listed_is_a_problem_of_the_first_round_until_it_is_over(followed: Followed) -> None:
    """Of a group that was never read nothing else is known."""
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.lost = "source: __consumer_offsets-1 has no leader"
    followed.round()
    problems = [followed.follower.round().problems for _ in range(LEADERS_EVERY - 1)]
    assert problems == [(followed.lost,)] * (LEADERS_EVERY - 1)
    assert followed.asked_for_leaders == 1
    followed.lost = ""
    assert followed.follower.round().problems == ()
    assert followed.asked_for_leaders == 2


def test_what_has_no_leader_is_not_asked_while_a_broker_does_not_answer(followed: Followed, unread: Unread) -> None:
    before, unread.listed_only = followed.asked_for_leaders, {"stock"}
    for _ in range(2 * LEADERS_EVERY):
        assert followed.follower.round().problems == ("source: cannot list all consumer groups",)
    unread.listed_only, followed.lost = None, "source: __consumer_offsets-1 has no leader"
    assert followed.follower.round().problems == (followed.lost,)
    assert followed.asked_for_leaders == before + 1


@pytest.mark.usefixtures("unread")
def test_a_group_that_has_no_offsets_is_a_group_while_it_is_listed(followed: Followed) -> None:
    followed.source.held["new"], followed.source.states["new"] = {}, "EMPTY"
    for _ in range(2):
        assert followed.follower.round().groups == 3
    del followed.source.states["new"]
    assert followed.follower.round().groups == 2


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


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round after one that failed begins with a new client."""
    monkeypatch.setattr(client_renewal, "RENEWED_AFTER_S", 0)


def test_a_source_that_goes_on_not_answering_is_asked_by_a_new_client(
    followed: Followed, unread: Unread, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(client_renewal, "time", SimpleNamespace(monotonic=lambda: now[0]))
    unread.errors[ORDERS] = UnansweredError("source: cannot read the offsets of group orders")
    connections = []
    for _ in range(7):
        followed.round()
        connections.append(unread.connections)
        now[0] += RENEWED_AFTER_S / 2
    assert connections == [0, 0, 1, 1, 2, 2, 3]
    unread.errors.clear()
    followed.round()
    for _ in range(4):
        now[0] += RENEWED_AFTER_S
        followed.round()
    assert unread.connections == 3, "it answers again"


@pytest.mark.usefixtures("at_once")
def test_a_new_client_that_is_not_admitted_is_reported_and_the_earlier_one_goes_on(
    followed: Followed, unread: Unread
) -> None:
    unread.errors[ORDERS] = ClusterError("source: is not the coordinator of group orders")
    followed.round()
    unread.refused = ClusterError("source: cannot be reached within 5 s")
    found = followed.follower.round()
    assert (found.positions["exact"], found.positions["unknown"]) == (1, 1)
    assert found.problems == (str(unread.refused), str(unread.errors[ORDERS]))


@pytest.mark.usefixtures("at_once")
def test_a_target_that_goes_on_not_answering_is_asked_by_a_new_client(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[str] = []
    followed.target.at_connect = lambda: connections.append("target")
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)

    def gone(*_: object, **__: object) -> dict[str, str]:
        raise UnansweredError("target: cannot list groups")

    with monkeypatch.context() as patched:
        patched.setattr(followed.target, "group_states", gone)
        for _ in range(2):
            with pytest.raises(UnansweredError):
                followed.round()
    assert connections == ["target"]
    assert followed.round() == {"exact": 1}
    followed.round()
    assert connections == ["target", "target"], "the round after the last failure, and none since"


def test_no_position_of_a_group_that_the_target_does_not_answer_for_is_exact(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two has moved since both were set."""
    other = TopicPartition("items", 1)
    followed.copies((simulated.RECORD, 40))
    followed.stands(30)
    followed.round()
    positions = followed.follower._positions.by_group[ORDERS]
    positions[other] = Position(7, "", state="exact", wanted=7, set_to=7)
    followed.source.held[ORDERS][other] = 7
    followed.source.metadata[ORDERS, other] = ""
    followed.stands(35)

    def silent(_: object, groups: Iterable[str], errors: dict[str, ClusterError]) -> dict[str, Any]:
        errors |= {group: UnansweredError("target: cannot read its offsets") for group in groups}
        return {}

    monkeypatch.setattr(group_commits, "read", silent)
    assert followed.round() == {"refused": 2}


@pytest.mark.usefixtures("at_once")
def test_a_source_that_answers_for_no_group_makes_the_round_fail(followed: Followed, unread: Unread) -> None:
    for group in (ORDERS, "stock"):
        unread.errors[group] = UnansweredError(f"source: cannot read the offsets of group {group}")
    for _ in range(2):
        with pytest.raises(UnansweredError, match="cannot read the offsets"):
            followed.round()
    assert unread.connections == 1
    unread.errors.clear()
    assert followed.round() == {"exact": 2}


@pytest.mark.usefixtures("at_once")
def test_a_missing_right_is_an_answer(followed: Followed, unread: Unread) -> None:
    unread.errors[ORDERS] = DeniedError("source: user must have Describe on group orders")
    for _ in range(3):
        assert followed.round() == {"exact": 1, "unknown": 1}
    assert unread.connections == 0


def test_an_unread_position_of_a_topic_that_was_created_again_is_dropped(followed: Followed, unread: Unread) -> None:
    unread.errors[ORDERS] = UnansweredError("source: cannot read the offsets of group orders")
    followed.round()
    followed.ids["source"] = "2"
    followed.round()
    assert followed.follower._positions.by_group[ORDERS] == {}
    assert followed.follower._positions.by_group["stock"] != {}


@pytest.mark.usefixtures("at_once")
def test_rounds_without_the_source_try_a_new_client_and_set_what_is_copied(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def refused() -> None:
        tried.append("source")
        raise ClusterError("source: cannot be reached")

    def silent(*_: object, **__: object) -> dict[str, str]:
        raise UnansweredError("source: cannot list groups")

    followed.copies((simulated.RECORD, 20))
    followed.ahead(20)
    followed.stands(31)
    followed.round()
    monkeypatch.setattr(followed.source, "group_states", silent)
    followed.source.at_connect = refused
    with pytest.raises(UnansweredError, match="cannot list groups"):
        followed.round()
    assert not tried
    followed.ahead(0)
    followed.copies((simulated.RECORD, 20))
    with pytest.raises(UnansweredError, match="cannot list groups"):
        followed.round()
    assert (tried, followed.at()) == (["source"], 31)
