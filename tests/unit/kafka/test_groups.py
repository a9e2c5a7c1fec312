"""Consumer groups on both sides: what is missing, unknown, active, behind, or lost at the source already."""

import re
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from contract.documents import parse
from contract.verification_request import Mirror, Request
from kafka import checkpoints
from kafka import groups as reading
from kafka.checkpoints import Checkpoint, CheckpointHistory, OffsetTranslation
from kafka.cluster import Cluster, Topic
from kafka.errors import ClusterError
from kafka.group_positions import GroupPosition
from kafka.groups import Groups, LogRange
from kafka.mirror_position import Deadline
from kafka.topic_partition import TopicPartition
from spark.checks.groups import groups_no_loss, groups_synced
from spark.checks.registry import judge, not_judged
from spark.checks.topics import topics_present
from spark.run_context import RunContext

MIRROR = Mirror(name="mm2", source_alias="a", target_alias="b", topics=("items",))
PREFIXED = Mirror(name="mm2", source_alias="a", target_alias="b", topics=(".*",), naming="prefixed")
PLACE = TopicPartition("items", 0)


def position(**changes: Any) -> GroupPosition:
    fields: dict[str, Any] = {"group": "g", "topic": "items", "partition": 0, "committed": 5, "synced": 5}
    return GroupPosition(**(fields | changes))


def both(*positions: GroupPosition, target: tuple[str, ...] = ("g",), **changes: Any) -> Groups:
    states = {one.group: "EMPTY" for one in positions}
    return Groups(
        positions=list(positions),
        source_states=states,
        target_states=dict.fromkeys(target, "EMPTY"),
        logs={PLACE: LogRange(0, 20)},
        **changes,
    )


def test_a_group_that_is_not_on_the_target_is_missing_and_not_synced() -> None:
    check = groups_synced(both(position(synced=None), target=()), MIRROR)
    assert check.ok is False
    assert "not synced: g on items-0" in check.observed
    assert "missing on the target: g" in check.observed
    assert check.evidence[0]["missing_on_target"] is True


def test_a_group_with_members_on_the_target_is_reported_and_fails_nothing() -> None:
    found = both(position(synced=None, active=True))
    found.target_states = {"g": "STABLE"}
    check = groups_synced(found, MIRROR)
    assert check.ok is True
    assert "1 active on target" in check.observed
    assert check.evidence[0]["target_state"] == "STABLE"


def test_what_a_group_has_not_read_at_the_source_is_shown() -> None:
    check = groups_synced(both(position(committed=5)), MIRROR)
    assert check.ok is True
    assert "15 offsets not read at the source" in check.observed
    assert check.evidence[0]["lag"] == 15


def test_a_position_below_the_log_start_has_lost_records_at_the_source_already() -> None:
    found = both(position(committed=5))
    found.logs = {PLACE: LogRange(12, 20)}
    check = groups_synced(found, MIRROR)
    assert "removed at the source before they were read: g on items-0: 7" in check.observed
    assert (check.evidence[0]["lost_at_source"], check.evidence[0]["lag"]) == (7, 8)


def test_what_was_not_seen_is_unknown_beside_what_is_wrong() -> None:
    check = groups_synced(both(position()), MIRROR, "no group payments at the source")
    assert check.ok is None
    assert "no group payments at the source" in check.observed
    assert groups_synced(both(position(synced=None)), MIRROR, "no group payments at the source").ok is False


class Side:
    """One cluster of which only groups and offsets are asked."""

    def __init__(self, states: dict[str, str], offsets: list[dict[str, dict[tuple[str, int], int]]]) -> None:
        self.states = states
        self.offsets = offsets

    def group_states(self, *_: object, **__: object) -> dict[str, str]:
        return self.states

    def group_offsets(
        self, groups: Iterable[str], unread: dict[str, ClusterError] | None = None
    ) -> dict[str, dict[tuple[str, int], int]]:
        now = self.offsets.pop(0) if len(self.offsets) > 1 else self.offsets[0]
        return {group: now.get(group, {}) for group in groups}

    def starts(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(partitions, 0)

    def ends(self, partitions: Iterable[tuple[str, int]], isolation: str) -> dict[tuple[str, int], int]:
        return dict.fromkeys(partitions, 20)


def request(naming: str = "identity", *, sync: bool = True) -> Request:
    side = {"client_config": {"bootstrap.servers": "h:1"}}
    mirror = {"topics": ["items"], "groups": ["g", "payments"], "naming": naming, "sync_group_offsets": sync}
    return parse({"source": side | {"alias": "a"}, "target": side | {"alias": "b"}, "mirror": mirror}, {})


def read(
    monkeypatch: pytest.MonkeyPatch,
    target: Side,
    history: list[Checkpoint],
    naming: str = "identity",
    seconds: float = 0,
    *,
    sync: bool = True,
) -> Groups:
    asked = request(naming, sync=sync)
    topic = asked.mirror.target_topic("items")
    known = CheckpointHistory()
    for one in history:
        known.add(one)
    translation = OffsetTranslation(checkpoints={("g", topic, 0): known})
    monkeypatch.setattr(checkpoints, "read_checkpoints", lambda *_: translation)
    source = Side({"g": "STABLE", "other": "EMPTY"}, [{"g": {PLACE: 8}}])
    arguments: tuple[Any, ...] = (source, target, asked, [PLACE], Deadline(seconds), lambda _: None, {})
    return reading.read(*arguments)


@pytest.mark.parametrize(("naming", "topic"), [("identity", "items"), ("prefixed", "a.items")])
def test_positions_are_read_under_the_names_of_both_sides(
    monkeypatch: pytest.MonkeyPatch, naming: str, topic: str
) -> None:
    found = read(monkeypatch, Side({"g": "EMPTY"}, [{"g": {(topic, 0): 7}}]), [Checkpoint(8, 7)], naming)
    (one,) = found.positions
    assert (one.topic, one.committed, one.synced, one.active, one.unclaimed) == ("items", 8, 7, False, False)
    assert found.row(one, request(naming).mirror)["checkpoint"] == [8, 7]
    assert found.source_states == {"g": "STABLE"}


def test_a_group_that_went_back_at_the_source_skips_what_it_would_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    history = [Checkpoint(15, 15), Checkpoint(8, 8)]
    (one,) = read(monkeypatch, Side({"g": "EMPTY"}, [{"g": {PLACE: 15}}]), history).positions
    assert not one.unclaimed
    assert groups_no_loss([replace(one, skipped=7, judged=True)]).ok is False


def test_a_claim_is_remembered_however_many_checkpoints_follow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    history = [Checkpoint(15, 15), *(Checkpoint(8 + n % 2, 8 + n % 2) for n in range(200))]
    (one,) = read(monkeypatch, Side({"g": "EMPTY"}, [{"g": {PLACE: 15}}]), history).positions
    assert not one.unclaimed
    assert groups_no_loss([replace(one, skipped=7, judged=True)]).ok is False


def test_an_offset_above_the_last_checkpoint_that_nothing_explains_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compaction has removed the checkpoint that set it, or members have read on the target and left."""
    found = read(monkeypatch, Side({"g": "EMPTY"}, [{"g": {PLACE: 15}}]), [Checkpoint(8, 8)])
    (one,) = found.positions
    check = groups_no_loss([replace(one, skipped=7, judged=True), position(group="other", judged=True)])
    assert check.ok is None
    assert "g on items-0: 7 skipped at 15, which no checkpoint states and no member explains" in check.observed
    assert check.evidence[0]["unclaimed"] is True
    assert check.evidence[0]["active_on_target"] is False
    assert "1 ahead of every checkpoint without a member" in groups_synced(found, MIRROR).observed


def test_a_member_on_the_target_explains_an_offset_above_the_last_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = read(monkeypatch, Side({"g": "STABLE"}, [{"g": {PLACE: 15}}]), [Checkpoint(8, 8)]).positions
    assert groups_no_loss([replace(one, skipped=7, judged=True), position(group="other", judged=True)]).ok is True


def test_an_offset_that_nothing_explains_but_skips_nothing_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = read(monkeypatch, Side({"g": "EMPTY"}, [{"g": {PLACE: 9}}]), [Checkpoint(8, 7)]).positions
    assert one.unclaimed
    assert groups_no_loss([replace(one, judged=True)]).ok is True


def test_the_wait_ends_when_the_checkpoint_of_the_first_snapshot_is_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka.mirror_position.INTERVAL_S", 0.01)
    target = Side({"g": "EMPTY"}, [{}, {"g": {PLACE: 3}}, {"g": {PLACE: 7}}])
    began = time.monotonic()
    found = read(monkeypatch, target, [Checkpoint(8, 7)], seconds=20)
    assert time.monotonic() - began < 10
    assert [one.synced for one in found.positions] == [7]
    assert found.due == {("g", "items", 0): 7}


GROUP_CHECKS = {"groups_synced", "groups_no_loss", "groups_reread_bounded"}


def test_a_mirror_that_syncs_no_group_offsets_is_not_waited_for_and_not_judged_by_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = time.monotonic()
    found = read(monkeypatch, Side({}, [{}]), [Checkpoint(8, 7)], seconds=20, sync=False)
    assert time.monotonic() - began < 10
    assert found.due == {}
    context = RunContext(request=request(sync=False), groups=found)
    assert GROUP_CHECKS.isdisjoint(check.name for check in judge(context))
    reasons = {one["name"]: one["reason"] for one in not_judged(context.request.mirror)}
    assert {reasons.get(name) for name in GROUP_CHECKS} == {"the mirror syncs no group offsets (sync.group.offsets)"}


def test_a_mirror_that_syncs_group_offsets_is_judged_by_them() -> None:
    assert {check.name for check in judge(RunContext(request=request()))} > GROUP_CHECKS
    assert GROUP_CHECKS.isdisjoint(one["name"] for one in not_judged(request().mirror))


def test_topics_that_mirror_maker_takes_for_internal_are_not_carried() -> None:
    """ReplicationPolicy.isInternalTopic; what it says of every name is compared in test_internal_names."""
    for name in (".x", "__x", "x.internal", "x-internal"):
        assert not PREFIXED.carries_topic(name)
        assert not MIRROR.carries_topic(name)
    assert PREFIXED.carries_topic("_x")


def test_a_topic_that_came_from_the_target_is_not_carried_back() -> None:
    assert not PREFIXED.carries_topic("b.items")
    assert not PREFIXED.carries_topic("c.b.items")
    assert PREFIXED.carries_topic("c.items")
    assert PREFIXED.carries_topic("b")
    assert MIRROR.is_cycle("b.items") is False  # names say nothing where copies keep theirs


def test_a_topic_that_was_mirrored_back_is_a_loop() -> None:
    assert PREFIXED.is_loop("a.b.items")
    assert not PREFIXED.is_loop("a.items")
    assert not PREFIXED.is_loop("b.items")
    source, target = {"items": Topic("items", {0: 1}, False)}, {"a.items": Topic("a.items", {0: 1}, False)}
    assert topics_present(PREFIXED, source, target).ok is True
    check = topics_present(PREFIXED, source, target, loops=["a.b.items"])
    assert check.ok is False
    assert "loop" in check.observed
    assert "a.b.items" in check.observed


class Source:
    """A cluster that lists some groups, and hides others from its user."""

    unseen_groups = "may not Describe the cluster."

    def __init__(self, listed: Iterable[str], hides: str | None = None) -> None:
        self.listed, self.hides = dict.fromkeys(listed, "EMPTY"), hides
        self.asked: list[str] = []

    def group_states(self, _unlisted: dict[str, str]) -> dict[str, str]:
        return self.listed

    def hidden_groups(self, groups: Iterable[str]) -> set[str]:
        self.asked = sorted(groups)
        return {name for name in self.asked if self.hides is not None and name.startswith(self.hides)}


def absent(source: Source, *patterns: str, **changes: Any) -> tuple[list[str], dict[str, str]]:
    side = {"client_config": {"bootstrap.servers": "x:1", "security.protocol": "PLAINTEXT"}}
    mirror = {"topics": ["items"], "groups": list(patterns), **changes}
    request = parse({"source": side | {"alias": "a"}, "target": side | {"alias": "b"}, "mirror": mirror}, {})
    denied: dict[str, str] = {}
    return reading.absent(cast("Cluster", source), request, denied), denied


@pytest.mark.parametrize(
    ("patterns", "listed", "asked"),
    [
        (("orders",), ["orders"], []),
        (("orders",), [], ["orders"]),
        (("orders.eu",), ["orders.eu"], []),
        ((".*",), ["orders"], ["*"]),
        ((r"orders\..*", "bill-.*"), ["orders.eu"], ["bill-*", "orders.*"]),
        (("orders.*", "bills*", "a-[0-9]+"), ["orders"], ["a-*", "bill*", "orders*"]),
        (("orders|bills", "x-(a|b)"), ["orders"], ["*", "*"]),
    ],
)
def test_a_group_that_nobody_has_shows_whether_all_of_a_pattern_are_listed(
    patterns: tuple[str, ...], listed: list[str], asked: list[str]
) -> None:
    source = Source(listed)
    _, denied = absent(source, *patterns)
    made_up = [re.sub("[0-9a-f]{16}$", "*", name) for name in source.asked]
    assert (sorted(made_up), denied) == (asked, {})


def test_nobody_knows_which_groups_are_absent_where_some_may_be_hidden() -> None:
    found, denied = absent(Source(["orders"], "bill-"), "orders", "bill-.*", "gone")
    assert (found, denied) == ([], {"": "may not Describe the cluster. It may not see those of bill-.*."})
    assert absent(Source(["orders"]), "orders", "bill-.*", "gone") == (["gone"], {})


def test_groups_that_the_mirror_leaves_out_are_not_asked_for() -> None:
    source = Source(["orders"])
    absent(source, "rt-.*", "orders", groups_exclude=["rt-.*"])
    assert source.asked == []
