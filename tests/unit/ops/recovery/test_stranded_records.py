"""What the side that is given up has got since it was drained: nothing that the mirror has copied there counts."""

from typing import Any

import pytest

from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import mirror_offsets, stranded_records
from ops.recovery.stranded_records import found_or_unknown, named, not_from
from tests.support.recovery_pair import Side, known

ITEMS, STORE = TopicPartition("items", 0), TopicPartition("store.inventory", 1)


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The active side and the one that is given up, by letters as records; offset 5 is where both were at rest."""
    logs = {"es-src": b"abcdeFG", "es-tgt": b"abcdeFxGy"}

    def read(side: Any, tp: TopicPartition, end: int, start: int) -> list[tuple[int, int]]:
        return [(offset, logs[side.side.alias][offset]) for offset in range(start, end)]

    monkeypatch.setattr(mirror_offsets, "read_records", read)
    return Side("es-src", {ITEMS: 7, STORE: 5}), Side("es-tgt", {ITEMS: 9, STORE: 5})


def count(sides: tuple[Any, Any]) -> dict[TopicPartition, int]:
    active, given_up = sides
    at_rest = {ITEMS: 5, STORE: 5}
    return not_from(active, at_rest, given_up, at_rest, known().request)


def test_what_the_mirror_has_copied_is_not_stranded(sides: tuple[Any, Any]) -> None:
    assert count(sides) == {ITEMS: 2}
    sides[1].log[ITEMS] = 6
    assert count(sides) == {}


def test_where_the_active_side_has_not_grown_all_that_was_added_is_stranded(sides: tuple[Any, Any]) -> None:
    sides[1].log[STORE] = 1_000_005
    assert count(sides) == {ITEMS: 2, STORE: 1_000_000}


def test_records_of_open_transactions_are_not_read(sides: tuple[Any, Any]) -> None:
    sides[1].open[ITEMS] = 1
    assert count(sides) == {ITEMS: 1}


@pytest.mark.parametrize(
    ("log", "begin", "message"),
    [
        (3_000_000, 0, "items-0 has grown by more than 2000000 offsets"),
        (9, 6, r"must still hold offset 5 \(begins at 6\)"),
    ],
    ids=["too much to compare", "deleted meanwhile"],
)
def test_what_cannot_be_compared_is_unknown(sides: tuple[Any, Any], log: int, begin: int, message: str) -> None:
    sides[1].log[ITEMS], sides[1].begin[ITEMS] = log, begin
    with pytest.raises(OpsError, match=message) as caught:
        count(sides)
    found = found_or_unknown(sides[1], lambda: count(sides))
    assert (found["stranded"], found["why"]) == (None, str(caught.value))


def test_a_side_that_does_not_answer_is_unknown(sides: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(within_s: float) -> None:
        raise ClusterError(f"nobody answers within {within_s:.0f} s")

    monkeypatch.setattr(sides[1], "connect", refuse)
    found = found_or_unknown(sides[1], lambda: count(sides))
    assert found == {"stranded": None, "why": f"nobody answers within {stranded_records.ANSWERS_WITHIN_S:.0f} s"}


def test_what_was_found_is_named_by_partition(sides: tuple[Any, Any]) -> None:
    found = found_or_unknown(sides[1], lambda: count(sides))
    assert (found, named(found["stranded"])) == ({"stranded": {"items-0": 2}}, "items-0: 2 offsets")
