"""What a run reads of both sides while both logs grow."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from spark.clusters.cluster import Cluster, Partition, Topic
from spark.clusters.pair import extents
from spark.clusters.waiting import CutState
from spark.request.model import CountsFrom, Request

PLACE = ("items", 0)


class Growing:
    """A log to which ten records are written before each answer, and a mirror that has copied all of them."""

    written = 100

    def __init__(self, open_from: int | None = None) -> None:
        self.open_from = open_from

    def ends(self, places: Iterable[Partition], isolation: str) -> dict[Partition, int]:
        Growing.written += 10
        stable = isolation == "read_committed" and self.open_from is not None
        return dict.fromkeys(places, cast("int", self.open_from) if stable else Growing.written)

    def starts(self, places: Iterable[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(places, 0)


class _Asked:
    """The little of a request that counts here."""

    class limits:  # noqa: N801 - a field of the request
        isolation = "read_committed"

    class mirror:  # noqa: N801 - a field of the request
        counts_from: Mapping[str, CountsFrom] = {}

        @staticmethod
        def target_topic(name: str) -> str:
            return name


def extent(open_from: int | None) -> Any:
    topics = {"items": Topic("items", {0: 1}, compacted=False)}
    source, target = cast("Cluster", Growing(open_from)), cast("Cluster", Growing())
    request = cast("Request", _Asked)
    (found,) = extents(request, source, target, topics, topics, {PLACE: 0}, CutState({PLACE: 90}))
    return found


def test_what_the_target_holds_was_at_the_source_when_its_end_was_read() -> None:
    for open_from in (None, 95):
        found = extent(open_from)
        assert found.target_end <= found.source_last


def test_only_an_open_transaction_leaves_something_pending() -> None:
    found = extent(None)
    assert found.source_end == found.source_last
    found = extent(95)
    assert (found.source_end, found.source_last) == (95, found.pending_end)
