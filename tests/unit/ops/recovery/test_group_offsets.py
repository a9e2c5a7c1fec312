"""Setting a group's offsets: only while it is inactive, only what differs, and read back."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka.in_flight import IN_FLIGHT
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import group_offsets
from ops.recovery.followed_mark import FOLLOWED
from tests.support.recovery_pair import Admin, Side

ITEMS, STORE = TopicPartition("items", 0), TopicPartition("store.inventory", 1)


@pytest.fixture
def cluster() -> Any:
    return Side("es-tgt", {ITEMS: 10, STORE: 5}, {"orders": {ITEMS: 3, STORE: 4}})


def test_only_offsets_that_differ_are_set(cluster: Any) -> None:
    list(group_offsets.commit_each(cluster, [("orders", {ITEMS: 7, STORE: 4})]))
    assert cluster.admin.changes == [("orders", *ITEMS, 7)]
    list(group_offsets.commit_each(cluster, [("orders", {ITEMS: 7, STORE: 4})]))
    assert len(cluster.admin.changes) == 1


def test_of_what_is_set_only_what_goes_back_is_reported(cluster: Any) -> None:
    """Offsets that go forward, that are right already, or that the group does not have yet, are not."""
    cluster.held["orders"] = {ITEMS: 9, STORE: 4}
    wanted, moved = {ITEMS: 7, STORE: 5, TopicPartition("items", 1): 0}, list[Any]()
    for _ in range(2):
        list(group_offsets.commit_each(cluster, [("orders", wanted)], set_back=lambda *of: moved.append(of)))
    assert moved == [("orders", {ITEMS: 9}, {ITEMS: 7})]


def test_of_many_partitions_in_which_a_group_is_set_back_some_are_named() -> None:
    said = list[str]()
    before = {TopicPartition("items", number): 9 for number in range(7)}
    group_offsets.report_set_back(said.append, "orders", before, dict.fromkeys(before, 4))
    assert len(said) == group_offsets.PLACES_NAMED + 1
    assert said[-1] == "  group orders: set back in 2 more partitions"


def test_a_group_that_does_not_exist_yet_is_made_by_its_offsets(cluster: Any) -> None:
    list(group_offsets.commit_each(cluster, [("new", {ITEMS: 0})]))
    assert cluster.held["new"] == {ITEMS: 0}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (KafkaError.NON_EMPTY_GROUP, "It has members: stop that application there"),
        (KafkaError.UNKNOWN_MEMBER_ID, "It has members: stop that application there"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "Give user es-tgt-user Read on the group and on the topic."),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, "Run the command again: it sets what is not set yet."),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, "Run the command again: it sets what is not set yet."),
    ],
)
def test_a_refusal_is_reported_with_its_remedy(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, code: int, message: str
) -> None:
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr(group_offsets, "time", clock)
    cluster.admin.refused = KafkaError(code)
    with pytest.raises(OpsError, match="cluster es-tgt: offsets of group orders must be set") as caught:
        list(group_offsets.commit_each(cluster, [("orders", {ITEMS: 7})]))
    assert message in str(caught.value)
    assert (now[0] >= 20) == (code == KafkaError.COORDINATOR_LOAD_IN_PROGRESS), "only that one is waited for"


@pytest.mark.parametrize("of_partition", [False, True])
def test_a_group_whose_coordinator_still_loads_is_set_then(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, of_partition: bool
) -> None:
    moves, asked = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS), list[float]()
    monkeypatch.setattr(group_offsets, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=asked.append))
    plain = cluster.admin.alter_consumer_group_offsets

    def alter(request: Any, **options: Any) -> dict[str, Any]:
        if len(asked) == 2:
            return dict(plain(request, **options))
        part = SimpleNamespace(topic="items", partition=0, error=moves)
        if of_partition:
            return {"orders": cluster.admin._answer(SimpleNamespace(topic_partitions=[part]))}
        future: Future[Any] = Future()
        future.set_exception(KafkaException(moves))
        return {"orders": future}

    monkeypatch.setattr(cluster.admin, "alter_consumer_group_offsets", alter)
    assert list(group_offsets.commit_each(cluster, [("orders", {ITEMS: 7})]))
    assert (cluster.held["orders"][ITEMS], len(asked)) == (7, 2)


def test_a_refusal_of_one_partition_is_reported_with_its_name(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    part = SimpleNamespace(topic="items", partition=0, error=error)
    answer = cluster.admin._answer(SimpleNamespace(topic_partitions=[part]))
    monkeypatch.setattr(cluster.admin, "alter_consumer_group_offsets", lambda *_, **__: {"orders": answer})
    with pytest.raises(OpsError, match=r"offsets of group orders on items-0 must be set .* Give user es-tgt-user"):
        list(group_offsets.commit_each(cluster, [("orders", {ITEMS: 7})]))


def test_an_offset_that_somebody_else_commits_over_is_reported(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cluster.admin, "alter_consumer_group_offsets", lambda asked, **_: {"orders": cluster.admin._answer(asked[0])}
    )
    with pytest.raises(OpsError, match=r"group orders must stand at 7 on items-0 after it was set \(got 3\)"):
        list(group_offsets.commit_each(cluster, [("orders", {ITEMS: 7})]))


def test_groups_with_members_are_refused_by_name(cluster: Any) -> None:
    group_offsets.require_inactive(cluster, {"orders": {}, "not there": {}})
    cluster.states |= {"orders": "STABLE", "b": "PREPARING_REBALANCING", "foreign": "STABLE", "c": "DEAD"}
    assert group_offsets.members(cluster, dict.fromkeys(("orders", "b", "c"))) == ["b", "orders"]
    with pytest.raises(OpsError, match=r"groups must be inactive .* \(got members in b, orders\)"):
        group_offsets.require_inactive(cluster, dict.fromkeys(("orders", "b", "c")))


def test_members_whose_session_ends_are_waited_for(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [0.0], list[str]()

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] >= 12:
            cluster.states["orders"] = "EMPTY"

    monkeypatch.setattr(group_offsets, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    cluster.states["orders"] = "STABLE"
    group_offsets.wait_until_inactive(cluster, {"orders": {}}, said.append)
    assert (now, said) == ([12], ["  waiting until es-tgt has no members of orders, for 50 s at most"])


def test_members_that_stay_are_refused_after_the_longest_session(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr(group_offsets, "time", clock)
    cluster.states["orders"] = "STABLE"
    with pytest.raises(OpsError, match=r"groups must be inactive .* \(got members in orders\)"):
        group_offsets.wait_until_inactive(cluster, {"orders": {}}, lambda _: None)
    assert 60 <= now[0] <= 62


@pytest.mark.parametrize("at", [7, 8])
def test_a_group_that_stands_where_it_was_set_or_further_is_well(cluster: Any, at: int) -> None:
    cluster.held["orders"][ITEMS] = at
    group_offsets.require_reached(cluster, [("orders", {ITEMS: 7})])


@pytest.mark.parametrize(("held", "got"), [({ITEMS: 6}, "6"), ({}, "nothing")])
def test_a_group_that_was_reset_is_reported(cluster: Any, held: dict[tuple[str, int], int], got: str) -> None:
    cluster.held["orders"] = held
    with pytest.raises(OpsError, match=rf"group orders must stand at 7 or further on items-0 \(got {got}\)"):
        group_offsets.require_reached(cluster, [("orders", {ITEMS: 7})])


class SlowAdmin:
    """Sets offsets when the answer is waited for. It notes how many requests are in flight, and refuses some groups."""

    def __init__(self, side: Side, refused: str = "") -> None:
        self.side = side
        self.refused = refused
        self.sent: list[str] = []
        self.in_flight = self.most = 0

    def alter_consumer_group_offsets(self, asked: Any, request_timeout: float) -> dict[str, Any]:
        (one,) = asked
        self.sent.append(one.group_id)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        return {one.group_id: SimpleNamespace(result=lambda: self._set(one))}

    def list_consumer_group_offsets(self, asked: Any, **options: Any) -> dict[str, Any]:
        return Admin(self.side).list_consumer_group_offsets(asked, **options)

    def _set(self, one: Any) -> Any:
        self.in_flight -= 1
        if one.group_id == self.refused:
            raise KafkaException(KafkaError(KafkaError.NON_EMPTY_GROUP))
        places = {TopicPartition(part.topic, part.partition): part.offset for part in one.topic_partitions}
        self.side.held.setdefault(one.group_id, {}).update(places)
        return SimpleNamespace(topic_partitions=[SimpleNamespace(error=None)])


def many(number: int) -> list[tuple[str, dict[TopicPartition, int]]]:
    return [(f"g{at:04}", {ITEMS: at}) for at in range(1, number + 1)]


def test_many_groups_are_set_several_at_a_time_and_read_part_by_part(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.admin = SlowAdmin(cluster)
    plain, most = cluster.group_offsets, list[int]()

    def read(groups: Any, unread: Any = None) -> Any:
        found = plain(groups, unread)
        most.append(len(found))
        return found

    monkeypatch.setattr(cluster, "group_offsets", read)
    permitted: list[int] = []
    done = group_offsets.commit_each(cluster, many(1000), lambda: permitted.append(1))
    assert list(done) == many(1000)
    assert {group: dict(at) for group, at in cluster.held.items() if group != "orders"} == dict(many(1000))
    assert cluster.admin.most == IN_FLIGHT
    assert max(most) == group_offsets.GROUPS_AT_ONCE, "no more than these are in memory"
    assert len(permitted) == 1000, "each change has its own permission"
    assert list(group_offsets.commit_each(cluster, many(1000))) == many(1000)
    assert len(cluster.admin.sent) == 1000, "what is right is not set again"


def test_after_a_refusal_nothing_more_is_sent_and_what_was_sent_is_waited_for(cluster: Any) -> None:
    cluster.admin = SlowAdmin(cluster, refused="g0003")
    with pytest.raises(OpsError, match=r"offsets of group g0003 must be set .* It has members"):
        list(group_offsets.commit_each(cluster, many(150)))
    assert cluster.admin.in_flight == 0
    assert len(cluster.admin.sent) == IN_FLIGHT + 2
    assert set(cluster.admin.sent) - {"g0003"} == set(cluster.held) - {"orders"}


def test_without_permission_nothing_more_is_sent_and_what_was_sent_is_waited_for(cluster: Any) -> None:
    cluster.admin = SlowAdmin(cluster)
    left = iter(range(5))

    def lost() -> None:
        if next(left, None) is None:
            raise OpsError("no longer")

    with pytest.raises(OpsError, match="no longer"):
        list(group_offsets.commit_each(cluster, many(150), lost))
    assert (len(cluster.admin.sent), cluster.admin.in_flight) == (5, 0)
    assert len(cluster.held) == 5 + 1


def test_of_many_groups_with_members_the_first_are_named(cluster: Any) -> None:
    groups = {group: "" for group, _ in many(1000)}
    cluster.states |= dict.fromkeys(groups, "STABLE")
    with pytest.raises(OpsError, match=r"got members in g0001, .* and 992 more\)"):
        group_offsets.require_inactive(cluster, groups)


@pytest.mark.parametrize(
    ("before", "metadata", "kept"),
    [(5, "time-4711", "time-4711"), (9, "time-4711", ""), (5, FOLLOWED, ""), (5, "", "")],
    ids=["forward", "back", "followed", "none"],
)
def test_what_an_application_commits_with_its_offset_stays_where_it_is_still_true(
    cluster: Any, before: int, metadata: str, kept: str
) -> None:
    cluster.held["orders"] = {ITEMS: before}
    cluster.metadata["orders", ITEMS] = metadata
    assert dict(group_offsets.commit_each(cluster, [("orders", {ITEMS: 7})])) == {"orders": {ITEMS: 7}}
    assert (cluster.held["orders"][ITEMS], cluster.metadata["orders", ITEMS]) == (7, kept)
