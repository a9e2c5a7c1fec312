"""The rows of groups in a report: read by column and written as text, for there may be a million positions.

Owns what a row contains where there are many: the same keys and values as `Groups.row`.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from contract.report_rows import LazyRows, Row
from contract.verification_request import Mirror
from kafka.group_positions import FLAGS, NONE, NUMBERS, OFFSETS
from kafka.groups import Groups

KEYS = (
    *("group", "topic", "partition", "committed", "synced", "lowest", "highest", "back", "unread", "skipped"),
    *("repeated", "active", "unclaimed", "judged", "source_state", "target_state", "missing_on_target"),
    *("active_on_target", "lag", "lost_at_source", "checkpoint"),
)
_AT_ONCE = 5000
"""Rows of which the values are in memory at the same time."""
_OF_GROUPS = ("group", "source_state", "target_state")
Texts = dict[str, list[Any]]
"""The texts of all groups by key, and the names of topics by partition: `mapped` changes them and nothing else."""


class GroupRows(LazyRows):
    """The rows of all positions of `groups`, in their order."""

    def __init__(self, groups: Groups, mirror: Mirror, texts: Texts | None = None) -> None:
        self._groups, self._mirror = groups, mirror
        self._positions = positions = groups.by_column
        self._texts = texts or {
            "group": list(positions.groups),
            "source_state": [groups.source_states.get(name) for name in positions.groups],
            "target_state": [groups.target_states.get(name) for name in positions.groups],
            "topic": [tp.topic for tp in positions.partitions],
        }
        self._remote = [(mirror.target_topic(tp.topic), tp.partition) for tp in positions.partitions]
        self._missing = [name not in groups.target_states for name in positions.groups]
        self._logs = [groups.logs.get(tp) for tp in positions.partitions]
        super().__init__(range(len(positions)), self._row_at)

    def mapped(self, change: Callable[[Row], Row]) -> "GroupRows":
        """Return the rows with a change of texts, which is made once for each group and each topic."""
        by_group = zip(*(self._texts[key] for key in _OF_GROUPS), strict=True)
        changed = [change(dict(zip(_OF_GROUPS, values, strict=True))) for values in by_group]
        texts = {key: [row[key] for row in changed] for key in _OF_GROUPS}
        texts["topic"] = [change({"topic": name})["topic"] for name in self._texts["topic"]]
        return GroupRows(self._groups, self._mirror, texts)

    def columns(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some keys of each row."""
        for places in self._parts():
            yield from zip(*(self._values(name, places) for name in names), strict=True)

    def json_lines(self) -> Iterator[str]:
        """Yield each row as JSON text, as `json.dumps` writes it."""
        pattern = "{" + ", ".join(f"{json.dumps(key)}: %s" for key in KEYS) + "}"
        written: dict[str | None, str] = {}

        def text(value: str | None) -> str:
            if value not in written:
                written[value] = json.dumps(value)
            return written[value]

        for places in self._parts():
            values = {key: self._values(key, places) for key in KEYS}
            for key in (*_OF_GROUPS, "topic"):
                values[key] = list(map(text, values[key]))
            for key in (*OFFSETS, "lag"):
                values[key] = ["null" if value is None else value for value in values[key]]
            for key in (*FLAGS, "missing_on_target", "active_on_target"):
                values[key] = ["true" if value else "false" for value in values[key]]
            values["checkpoint"] = ["null" if value is None else str(value) for value in values["checkpoint"]]
            yield from map(pattern.__mod__, zip(*values.values(), strict=True))

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> LazyRows: ...

    def __getitem__(self, index: int | slice) -> Row | LazyRows:
        return LazyRows(self._items, self._row_at)[index]

    def _row_at(self, at: int) -> Row:
        return {key: self._values(key, range(at, at + 1))[0] for key in KEYS}

    def _parts(self) -> Iterator[range]:
        return (range(low, min(low + _AT_ONCE, len(self))) for low in range(0, len(self), _AT_ONCE))

    def _values(self, key: str, places: range) -> Sequence[Any]:
        """The values of a key in the rows of these places."""
        positions, part = self._positions, slice(places.start, places.stop)
        if key in OFFSETS:
            return [None if value == NONE else value for value in positions.numbers[key][part]]
        if key in NUMBERS:
            return positions.numbers[key][part]
        if key in FLAGS or key == "active_on_target":
            return [bool(value) for value in positions.flags[key.removesuffix("_on_target")][part]]
        if key in _OF_GROUPS:
            texts = self._texts[key]
            return [texts[number] for number in positions.group_numbers[part]]
        if key == "topic":
            texts = self._texts[key]
            return [texts[number] for number in positions.partition_numbers[part]]
        if key == "partition":
            return [positions.partitions[number].partition for number in positions.partition_numbers[part]]
        if key == "missing_on_target":
            return [self._missing[number] for number in positions.group_numbers[part]]
        if key == "checkpoint":
            return self._checkpoints(part)
        return self._of_logs(key, part)

    def _checkpoints(self, part: slice) -> list[list[int] | None]:
        """Source and target offset of MirrorMaker's last checkpoint of each position."""
        positions, histories = self._positions, self._groups.translation.checkpoints
        pairs = zip(positions.group_numbers[part], positions.partition_numbers[part], strict=True)
        found = (histories.get((positions.groups[group], *self._remote[partition])) for group, partition in pairs)
        return [None if history is None else history.last_offsets for history in found]

    def _of_logs(self, key: str, part: slice) -> list[int | None]:
        """How far each position is from the end of its log at the source, or in front of its start."""
        positions = self._positions
        logs = (self._logs[number] for number in positions.partition_numbers[part])
        pairs = zip(logs, positions.numbers["committed"][part], strict=True)
        if key == "lag":
            return [None if log is None else max(0, log.end - max(at, log.start)) for log, at in pairs]
        return [0 if log is None else max(0, log.start - at) for log, at in pairs]
