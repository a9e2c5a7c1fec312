"""The audit's state: a batch is added once, however often it is repeated, and survives the process."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from kafka.topic_partition import TopicPartition
from spark.audit.buckets import WORD, Place, Sums
from spark.audit.store import AuditStore, AuditStoreError, Unread

PLACE, ITEMS = Place("items", 0, 60_000), TopicPartition("items", 0)
SUMS = Sums(2, WORD - 1, 5, 61_000, 0, 1, 51_000, 5, 7)
LATER = replace(SUMS, start=12, end=20)


def store(folder: Path, identity: str = "mirror mm2", from_ms: int = 60_000) -> AuditStore:
    return AuditStore(folder / "audit", identity, from_ms)


def test_a_batch_that_is_repeated_is_added_once(tmp_path: Path) -> None:
    first = store(tmp_path)
    assert first.add("source", 0, {PLACE: SUMS}, {ITEMS: 7})
    first.close()
    again = store(tmp_path, from_ms=999)
    assert not again.add("source", 0, {PLACE: SUMS}, {ITEMS: 7})
    assert again.add("source", 1, {PLACE: LATER}, {ITEMS: 20})
    assert again.add("target", 0, {PLACE: SUMS}, {ITEMS: 3})
    assert again.from_ms == 60_000, "the audit goes on where it began"
    assert list(again.buckets()) == [(PLACE, Sums(4, WORD - 2, 10, 61_000, 0, 2, 51_000, 5, 20), SUMS)]
    assert (again.positions("source"), again.positions("target")) == ({ITEMS: 20}, {ITEMS: 3})


def test_a_batch_is_added_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    found = store(tmp_path)
    too_large = Sums(2**70, 1, 1)
    with pytest.raises(OverflowError):
        found.add("source", 0, {PLACE: SUMS, Place("items", 1, 0): too_large}, {})
    assert list(found.buckets()) == []
    assert found.add("source", 0, {PLACE: SUMS}, {})


def test_what_was_read_and_what_never_will_be_is_remembered(tmp_path: Path) -> None:
    found = store(tmp_path)
    assert found.read_through("source") is None
    found.note_read("source", 5)
    found.note_read("source", 6)
    found.note_unread([Unread(ITEMS, 4, "deleted")])
    found.close()
    again = store(tmp_path)
    assert (again.read_through("source"), again.read_through("target")) == (6, None)
    assert again.unread() == [Unread(ITEMS, 4, "deleted")]


def test_a_topic_with_another_id_was_created_again(tmp_path: Path) -> None:
    found = store(tmp_path)
    assert found.replaced({"source items": "one", "source other": "two"}) == []
    assert found.replaced({"source items": "one"}) == []
    assert found.replaced({"source items": "three", "source new": "four"}) == ["source items"]
    assert found.replaced({"source items": "three"}) == []


def test_old_buckets_are_forgotten(tmp_path: Path) -> None:
    found = store(tmp_path)
    found.add("source", 0, {PLACE: SUMS, Place("items", 0, 120_000): SUMS}, {})
    found.forget(120_000)
    assert [place.start_ms for place, _, _ in found.buckets()] == [120_000]


def test_the_state_of_another_audit_is_refused(tmp_path: Path) -> None:
    store(tmp_path).close()
    with pytest.raises(AuditStoreError, match=r"which is of mirror mm2, and this one is of mirror other"):
        store(tmp_path, "mirror other")


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file")
    with pytest.raises(AuditStoreError, match=r"--state: must be a folder of an audit to write to \(got .*audit"):
        store(tmp_path)


def test_only_its_owner_reads_the_state(tmp_path: Path) -> None:
    store(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o700
