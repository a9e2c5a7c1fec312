"""MirrorMaker's offset translation: decoded as Kafka writes them, judged against the records."""

import struct
import tracemalloc
from array import array
from collections.abc import Mapping
from typing import Any

import pytest

from contract.verification_request import InternalTopic, Mirror, OffsetSyncs
from kafka import checkpoints
from kafka.checkpoints import Checkpoint, CheckpointHistory, OffsetSync, OffsetSyncHistory, OffsetTranslation
from kafka.group_positions import GroupPosition, GroupPositions
from kafka.groups import Groups
from kafka.topic_partition import TopicPartition
from spark.checks.checkpoints import checkpoints_consistent
from spark.checks.registry import NOTHING, Check

MIRROR = Mirror(name="mm2", source_alias="a", target_alias="b", topics=("items",))
PLACE = TopicPartition("items", 0)
KEY = ("g", "items", 0)
CUT = {PLACE: 100}


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def checkpoint(upstream: int, downstream: int, metadata: str = "") -> tuple[bytes, bytes]:
    key = text("g") + text("items") + struct.pack(">i", 0)
    return key, struct.pack(">hqq", 0, upstream, downstream) + text(metadata)


def sync(upstream: int, downstream: int) -> tuple[bytes, bytes]:
    return text("items") + struct.pack(">i", 0), struct.pack(">qq", upstream, downstream)


def claimed(*rows: Checkpoint) -> CheckpointHistory:
    found = CheckpointHistory()
    for one in rows:
        found.add(one)
    return found


def test_checkpoints_are_decoded_in_their_order_and_noise_is_left_out() -> None:
    found = checkpoints.checkpoints([checkpoint(10, 9), (b"x", b"y"), checkpoint(20, 19, "mark")])
    assert found == {KEY: claimed(Checkpoint(10, 9), Checkpoint(20, 19))}


def test_a_checkpoint_knows_when_it_was_written() -> None:
    reported = checkpoints.checkpoints([(*checkpoint(10, 9), 1_790_000_000_000), checkpoint(20, 19)])[KEY].newest
    assert [one.written_ms for one in reported] == [1_790_000_000_000, None]


def test_a_million_checkpoints_take_a_few_hundred_bytes_each() -> None:
    """Of each group and partition the topic holds one at least: what they take is all that a command must hold."""
    keys = [(f"group-{number % 100}", number // 100) for number in range(20_000)]
    records = [
        (text(group) + text("items") + struct.pack(">i", number), struct.pack(">hqq", 0, 70_000, 60_000) + text(""), 1)
        for group, number in keys
    ]
    tracemalloc.start()
    try:
        found = checkpoints.checkpoints(records)
        each = tracemalloc.get_traced_memory()[0] / len(found)
    finally:
        tracemalloc.stop()
    assert len(found) == len(keys)
    assert each < 500


def test_only_the_newest_checkpoints_of_a_key_are_held() -> None:
    found = claimed(*(Checkpoint(number, number, number) for number in range(70)))
    assert [one.upstream for one in found.newest] == list(range(20, 70))
    assert found.last == Checkpoint(69, 69)
    assert (found.proves(20, 20), found.proves(19, 0), found.proves(69, 70)) == (True, False, False)
    assert (CheckpointHistory().last, CheckpointHistory().newest) == (None, [])


def test_the_highest_claim_is_kept_when_the_checkpoint_itself_is_not() -> None:
    found = checkpoints.checkpoints([checkpoint(90, 80), *(checkpoint(n, n) for n in range(60))])[KEY]
    assert found.highest == 80
    assert Checkpoint(90, 80) not in found.newest


def test_a_tombstone_forgets_checkpoints_and_syncs() -> None:
    assert checkpoints.checkpoints([checkpoint(10, 9), (checkpoint(0, 0)[0], None)]) == {}
    assert checkpoints.syncs([sync(1, 1), (sync(0, 0)[0], None)]) == {}


def history(*pairs: tuple[int, int]) -> OffsetSyncHistory:
    return checkpoints.syncs([sync(*pair) for pair in pairs]).get(PLACE, OffsetSyncHistory())


def test_syncs_that_grow_agree_with_each_other() -> None:
    found = history((0, 0), (10, 12), (10, 12), (20, 22))
    assert (len(found.newest), found.contradictions) == (4, [])


def test_a_sync_that_goes_back_on_the_target_alone_contradicts_the_one_before() -> None:
    assert history((0, 0), (10, 50), (20, 22)).contradictions == [(OffsetSync(10, 50), OffsetSync(20, 22))]


def test_what_came_before_a_rewind_of_the_source_is_forgotten() -> None:
    found = history((0, 0), (10, 50), (20, 22), (0, 23), (10, 33))
    assert found.contradictions == []
    assert list(found.newest) == [OffsetSync(0, 23), OffsetSync(10, 33)]


def groups(claim: Checkpoint | None = None, syncs: OffsetSyncHistory | None = None, **changes: Any) -> Groups:
    fields: dict[str, Any] = {"group": "g", "topic": "items", "partition": 0, "committed": 40, "synced": 38}
    due = changes.pop("due", {})
    problems = changes.pop("problems", ())
    held = {KEY: claimed(claim)} if claim else {}
    translation = OffsetTranslation(checkpoints=held, syncs={PLACE: syncs} if syncs else None, problems=problems)
    return Groups(positions=[GroupPosition(**(fields | changes))], translation=translation, due=due)


def judged(found: Groups, truth: Mapping[tuple[str, int, int], tuple[int | None, int | None]]) -> Check:
    return checkpoints_consistent(found, MIRROR, CUT, truth)


def test_only_what_was_compared_is_asked_for() -> None:
    found = OffsetTranslation(
        checkpoints={KEY: claimed(Checkpoint(40, 38), Checkpoint(101, 99)), ("x", "items", 0): claimed()},
        syncs={PLACE: history(*((n, n) for n in (10, 20, 30, 40, 99, 100, 120))), ("other", 0): history((1, 1))},
    )
    asked = checkpoints.offsets_to_verify(found, [(KEY, PLACE), (("x", "items", 0), PLACE)], CUT)
    assert asked == {PLACE: array("q", [30, 40, 99])}


def test_checkpoints_are_judged_however_many_there_are() -> None:
    far = 20_000
    fields: dict[str, Any] = {"topic": "items", "partition": 0}
    positions = [GroupPosition(group=f"g{at}", committed=at, synced=at, **fields) for at in range(far + 1)]
    held = {(f"g{at}", "items", 0): claimed(Checkpoint(at, at + (at == far))) for at in range(far + 1)}
    found = Groups(positions=GroupPositions.of(positions), translation=OffsetTranslation(checkpoints=held))
    asked = checkpoints.offsets_to_verify(found.translation, found.keys(MIRROR), {PLACE: far})
    truth = {(*tp, offset): (offset, offset) for tp, offsets in asked.items() for offset in offsets}
    check = checkpoints_consistent(found, MIRROR, {PLACE: far}, truth)
    assert check.ok is False
    assert f"of group g{far} ({far} to {far + 1}, highest {far})" in check.observed


@pytest.mark.parametrize(("downstream", "ok"), [(30, True), (40, True), (42, True), (43, False)])
def test_a_checkpoint_past_the_true_image_skips_records(downstream: int, ok: bool) -> None:
    check = judged(groups(Checkpoint(40, downstream)), {("items", 0, 40): (40, 42)})
    assert check.ok is ok
    if not ok:
        assert "checkpoint skips records: items-0 of group g (40 to 43, highest 42)" in check.observed


@pytest.mark.parametrize(("downstream", "ok"), [(19, True), (20, True), (21, False)])
def test_a_sync_past_its_record_is_false(downstream: int, ok: bool) -> None:
    truth = {("items", 0, 40): (40, 40), ("items", 0, 20): (20, 20)}
    check = judged(groups(Checkpoint(40, 38), history((20, downstream))), truth)
    assert check.ok is ok
    assert ok or "offset sync points past its record: items-0 (20 to 21, highest 20)" in check.observed


def test_syncs_that_contradict_each_other_fail_without_any_record() -> None:
    check = judged(groups(Checkpoint(40, 38), history((10, 50), (20, 22))), {})
    assert check.ok is False
    assert "offset sync goes back: items-0 (20 to 22, before [10, 50])" in check.observed


@pytest.mark.parametrize(("synced", "ok"), [(38, True), (50, True), (37, False)])
def test_a_checkpoint_must_have_been_synced(synced: int, ok: bool) -> None:
    found = groups(Checkpoint(40, 38), synced=synced, due={KEY: 38})
    assert judged(found, {("items", 0, 40): (40, 40)}).ok is ok


def test_a_group_that_is_active_on_the_target_is_not_synced() -> None:
    found = groups(Checkpoint(40, 38), synced=5, active=True, due={KEY: 38})
    assert judged(found, {("items", 0, 40): (40, 40)}).ok is True


def test_claims_that_could_not_be_judged_are_unknown() -> None:
    for found in (Groups(), groups(), groups(Checkpoint(40, 38))):
        check = judged(found, {})
        assert (check.ok, check.observed) == (None, NOTHING)


def test_a_topic_that_cannot_be_read_is_unknown_unless_something_else_is_wrong() -> None:
    truth = {("items", 0, 40): (40, 40)}
    assert judged(groups(Checkpoint(40, 38), problems=("no READ",)), truth).observed == "no READ"
    assert judged(groups(Checkpoint(40, 38), problems=("no READ",)), truth).ok is None
    assert judged(groups(Checkpoint(40, 41), problems=("no READ",)), truth).ok is False


def test_a_mirror_that_keeps_no_checkpoints_claims_nothing() -> None:
    fields: dict[str, Any] = {"name": "mm2", "source_alias": "a", "target_alias": "b", "topics": ("items",)}
    fields["offset_syncs_topic"] = OffsetSyncs(name="syncs", location="target")
    kept = tuple(InternalTopic(name=name, required=False) for name in ("a.checkpoints.internal", "syncs"))
    clusters: tuple[Any, Any] = (None, None)
    mirror = Mirror(**fields, internal_topics=kept)
    found = checkpoints.with_syncs(checkpoints.read_checkpoints(clusters[1], mirror), *clusters, mirror)
    assert found == OffsetTranslation()
    assert Mirror(**fields).keeps("syncs")
