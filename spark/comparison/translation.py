"""Exact offset translation by the records: of groups' positions, and of those that the request asks for.

Owns what can be translated, how, and what is reported of it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from contract.verification_request import Request, RequestedPosition
from kafka.group_positions import GroupPosition, GroupPositions
from kafka.topic_partition import TopicPartition
from spark.comparison.offset_ranges import OffsetRange

_MARKS = {"source": "\1", "target": "\2"}  # begin no group's name
_NOWHERE = "partition must be one that the source has"
_NOTHING = "nothing of the partition corresponds on both sides"
_UNCLEAR = "it cannot be decided: the topic is compacted, or its remote topic has duplicate or foreign records"


def positions(request: Request, offset_ranges: Iterable[OffsetRange]) -> list[GroupPosition]:
    """Return what is asked for as positions to judge: those that lie within their log."""
    there = {one.topic_partition: one for one in offset_ranges}
    asked = [
        one
        for one in request.mirror.positions
        if _problem(one, there.get(TopicPartition(one.topic, one.partition))) is None
    ]
    found = {
        (_name(one), one.topic, one.partition): _judgeable(one, there[TopicPartition(one.topic, one.partition)])
        for one in asked
    }
    return list(found.values())


def parted(
    request: Request, offset_ranges: Iterable[OffsetRange], judged: Sequence[GroupPosition]
) -> tuple[GroupPositions, list[dict[str, Any]]]:
    """Return the positions that were not asked for, and a row of the report for each that was, in the request's order.

    `exact` is the offset on the other side that skips nothing and repeats nothing; where it is None `problem` says why.
    """
    there = {one.topic_partition: one for one in offset_ranges}
    marks = tuple(_MARKS.values())
    others, asked = GroupPositions.of(judged).parted(lambda group: group.startswith(marks))
    known = {(one.group, one.topic, one.partition): one for one in asked}
    rows = [
        _row(
            request,
            one,
            there.get(TopicPartition(one.topic, one.partition)),
            known.get((_name(one), one.topic, one.partition)),
        )
        for one in request.mirror.positions
    ]
    return others, rows


def _row(
    request: Request, asked: RequestedPosition, offset_range: OffsetRange | None, found: GroupPosition | None
) -> dict[str, Any]:
    problem, exact = _problem(asked, offset_range), None
    if problem is None and found is not None and found.judged:
        exact = found.lowest if asked.side == "source" else found.back
        if exact is None:
            problem = _NOTHING if found.lowest is None else _UNCLEAR
    elif problem is None:
        problem = _NOTHING
    return {
        "side": asked.side,
        "topic": asked.topic,
        "target_topic": request.mirror.target_topic(asked.topic),
        "partition": asked.partition,
        "offset": asked.offset,
        "exact": exact,
        "removed": 0 if offset_range is None else max(0, _bounds(asked, offset_range)[0] - asked.offset),
        "problem": problem,
    }


def _name(asked: RequestedPosition) -> str:
    return f"{_MARKS[asked.side]}{asked.offset}"


def _judgeable(asked: RequestedPosition, offset_range: OffsetRange) -> GroupPosition:
    at_source = asked.side == "source"
    return GroupPosition(
        group=_name(asked),
        topic=asked.topic,
        partition=asked.partition,
        committed=asked.offset if at_source else offset_range.source_start,
        synced=None if at_source else asked.offset,
    )


def _problem(asked: RequestedPosition, offset_range: OffsetRange | None) -> str | None:
    if offset_range is None:
        return _NOWHERE
    _, end = _bounds(asked, offset_range)
    return f"offset must be at most the log's end (got {asked.offset}, end {end})" if asked.offset > end else None


def _bounds(asked: RequestedPosition, offset_range: OffsetRange) -> Sequence[int]:
    """Start and end of the log in which a position lies."""
    if asked.side == "source":
        return offset_range.source_start, offset_range.source_last
    return offset_range.target_start, offset_range.target_end
