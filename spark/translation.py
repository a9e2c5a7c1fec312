"""Positions that the request asks to translate: judged like those of groups, and told apart from them.

Owns what can be translated and what is told of it. Does not own how, see records/positions.py.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from spark.records.extents import Extent
from spark.records.group_position import GroupPosition
from spark.request.model import AskedPosition, Request

_MARKS = {"source": "\1", "target": "\2"}  # begin no group's name
_NOWHERE = "partition must be one that the source has"
_NOTHING = "nothing of the partition corresponds on both sides"
_UNCLEAR = "the topic is compacted, or its copy holds records twice or that are not the source's: it cannot be told"


def positions(request: Request, extents: Iterable[Extent]) -> list[GroupPosition]:
    """Return what is asked for as positions to judge: those that lie within their log."""
    there = {one.place: one for one in extents}
    asked = [one for one in request.mirror.positions if _problem(one, there.get((one.topic, one.partition))) is None]
    found = {(_name(one), one.topic, one.partition): _judgeable(one, there[one.topic, one.partition]) for one in asked}
    return list(found.values())


def parted(
    request: Request, extents: Iterable[Extent], judged: Iterable[GroupPosition]
) -> tuple[list[GroupPosition], list[dict[str, Any]]]:
    """Return the positions that were not asked for, and a row of the report for each that was, in the request's order.

    `exact` is the offset on the other side that skips nothing and repeats nothing; where it is None `problem` says why.
    """
    there = {one.place: one for one in extents}
    marks = tuple(_MARKS.values())
    others: list[GroupPosition] = []
    known: dict[tuple[str, str, int], GroupPosition] = {}
    for one in judged:
        if one.group.startswith(marks):
            known[one.group, one.topic, one.partition] = one
        else:
            others.append(one)
    rows = [
        _row(request, one, there.get((one.topic, one.partition)), known.get((_name(one), one.topic, one.partition)))
        for one in request.mirror.positions
    ]
    return others, rows


def _row(request: Request, asked: AskedPosition, extent: Extent | None, found: GroupPosition | None) -> dict[str, Any]:
    problem, exact = _problem(asked, extent), None
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
        "removed": 0 if extent is None else max(0, _bounds(asked, extent)[0] - asked.offset),
        "problem": problem,
    }


def _name(asked: AskedPosition) -> str:
    return f"{_MARKS[asked.side]}{asked.offset}"


def _judgeable(asked: AskedPosition, extent: Extent) -> GroupPosition:
    at_source = asked.side == "source"
    return GroupPosition(
        group=_name(asked),
        topic=asked.topic,
        partition=asked.partition,
        committed=asked.offset if at_source else extent.source_start,
        synced=None if at_source else asked.offset,
    )


def _problem(asked: AskedPosition, extent: Extent | None) -> str | None:
    if extent is None:
        return _NOWHERE
    _, end = _bounds(asked, extent)
    return f"offset must be at most the log's end (got {asked.offset}, end {end})" if asked.offset > end else None


def _bounds(asked: AskedPosition, extent: Extent) -> Sequence[int]:
    """Start and end of the log in which a position lies."""
    if asked.side == "source":
        return extent.source_start, extent.source_last
    return extent.target_start, extent.target_end
