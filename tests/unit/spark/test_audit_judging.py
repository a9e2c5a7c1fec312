"""A round judges what may have another verdict now, and finds the same as one that judges everything."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from contract.verification_request import ClusterConfig, Limits, Mirror, Request
from kafka.topic_partition import TopicPartition
from spark.audit.audit import Audit, Options
from spark.audit.buckets import Place, State, Sums
from spark.audit.store import AuditStore, Unread

MINUTE_MS = 60_000
ITEMS, OTHER = TopicPartition("items", 0), TopicPartition("other", 0)


class CountingStore(AuditStore):
    """A store that counts how many buckets it was asked for."""

    asked = 0

    def some_buckets(self, places: Iterable[Place]) -> Iterator[tuple[Place, Sums, Sums]]:
        for found in super().some_buckets(places):
            self.asked += 1
            yield found


def request() -> Request:
    sides = {side: ClusterConfig(role=side, alias=f"es-{side}", client_config={}) for side in ("source", "target")}
    mirror = Mirror(name="mm2", source_alias="es-src", target_alias="es-tgt", topics=(".*",))
    return Request(**sides, mirror=mirror, limits=Limits())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CountingStore]:
    made = CountingStore(tmp_path, "mirror mm2", 0)
    yield made
    made.close()


def written(store: AuditStore, side: str, batch: int, minutes: Iterable[int], topic: str = "items") -> None:
    """Add a record to buckets of these minutes, read a second after their end."""
    sums = {
        Place(topic, 0, minute * MINUTE_MS): Sums(1, 7, 7, (minute + 1) * MINUTE_MS + 1000, 0, 0, minute * MINUTE_MS)
        for minute in minutes
    }
    store.add("source" if side == "source" else "target", batch, sums, {})


def read(store: AuditStore, minute: int) -> None:
    store.note_read("source", minute * MINUTE_MS)
    store.note_read("target", minute * MINUTE_MS)


def states(audit: Audit) -> list[State]:
    audit._judge()
    found = [one.verdict.state for one in sorted(audit.judged(), key=lambda one: one.place)]
    everything = Audit(request(), audit._store, Options())
    assert sorted(map(repr, everything.judged())) == sorted(map(repr, audit.judged()))
    return found


def test_what_is_closed_is_not_asked_for_again(store: CountingStore) -> None:
    written(store, "source", 0, range(1000))
    written(store, "target", 0, range(999))
    read(store, 1000)
    audit = Audit(request(), store, Options())
    assert states(audit) == [*[State.COMPLETE] * 999, State.OPEN]
    assert store.asked == 0
    read(store, 1003)
    assert states(audit) == [*[State.COMPLETE] * 999, State.MISSING]
    assert store.asked == 1
    states(audit)
    assert store.asked == 1


def test_what_is_added_changes_a_closed_bucket(store: CountingStore) -> None:
    written(store, "source", 0, range(3))
    written(store, "target", 0, range(2))
    read(store, 10)
    audit = Audit(request(), store, Options())
    assert states(audit) == [State.COMPLETE, State.COMPLETE, State.MISSING]
    written(store, "target", 1, [0, 2])
    audit._judge()
    assert [one.verdict.state for one in sorted(audit.judged(), key=lambda one: one.place)] == [
        State.EXTRA,
        State.COMPLETE,
        State.COMPLETE,
    ]
    assert store.asked == 2


def test_what_may_never_be_read_makes_the_buckets_of_its_partition_unknown(store: CountingStore) -> None:
    written(store, "source", 0, range(3))
    written(store, "source", 1, range(3), "other")
    read(store, 10)
    audit = Audit(request(), store, Options())
    assert states(audit) == [State.MISSING] * 6
    store.note_unread([Unread(ITEMS, 2 * MINUTE_MS - 1, "deleted")])
    assert states(audit) == [State.UNKNOWN, State.UNKNOWN, *[State.MISSING] * 4]
    assert store.asked == 3
    store.note_unread([Unread(ITEMS, 5 * MINUTE_MS, "deleted")])
    assert states(audit) == [*[State.UNKNOWN] * 3, *[State.MISSING] * 3]
    assert store.unread() == [Unread(ITEMS, 5 * MINUTE_MS, "deleted")]
    store.note_unread([Unread(OTHER, 5 * MINUTE_MS, "deleted")])
    assert states(audit) == [State.UNKNOWN] * 6


def test_old_buckets_are_forgotten_in_both_places(store: CountingStore) -> None:
    written(store, "source", 0, range(3))
    read(store, 10)
    audit = Audit(request(), store, Options())
    states(audit)
    audit._forget(2 * MINUTE_MS)
    assert states(audit) == [State.MISSING]
