"""Positions of consumer groups, kept by column: there may be a million, and an object each takes five times as much."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import overload

from kafka.topic_partition import TopicPartition

NONE = -1
"""In place of an offset that is None: offsets are never below 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupPosition:
    """The offsets of one group in one partition: each is that of the next record to read.

    `lowest` to `highest` are the target offsets that skip nothing and repeat only doubled records; `lowest` is the
    exact one. They are None while nothing of the partition lies on the target. `back` is the exact one at the source
    for a consumer that has read on the target up to `synced`; None if it is unknown. `active`: the group has
    members on the target. `unclaimed`: no checkpoint that is left has an offset as high as the synced one.
    """

    group: str
    topic: str
    partition: int
    committed: int
    synced: int | None
    lowest: int | None = None
    highest: int | None = None
    back: int | None = None
    unread: int = 0
    skipped: int = 0
    repeated: int = 0
    active: bool = False
    unclaimed: bool = False
    judged: bool = False


FIELDS = tuple(one.name for one in fields(GroupPosition))
OFFSETS = ("synced", "lowest", "highest", "back")
"""Columns in which `NONE` stands for None."""
NUMBERS = ("committed", *OFFSETS, "unread", "skipped", "repeated")
FLAGS = ("active", "unclaimed", "judged")
_DEFAULTS = {"lowest": NONE, "highest": NONE, "back": NONE, "unread": 0, "skipped": 0, "repeated": 0, "judged": 0}
"""The columns that judging fills."""


class GroupPositions(Sequence[GroupPosition]):
    """Positions by column: an object is made of one when somebody asks for it.

    `group_numbers` and `partition_numbers` are places in `groups` and `partitions`, which hold each name once.
    `numbers` has an array of 64 bits for each of NUMBERS, `flags` one of bytes for each of FLAGS.
    """

    def __init__(self) -> None:
        self.groups: list[str] = []
        self.partitions: list[TopicPartition] = []
        self.group_numbers = array("i")
        self.partition_numbers = array("i")
        self.numbers = {name: array("q") for name in NUMBERS}
        self.flags = {name: array("b") for name in FLAGS}
        self._group_of: dict[str, int] = {}
        self._partition_of: dict[TopicPartition, int] = {}

    @classmethod
    def of(cls, positions: Iterable[GroupPosition]) -> "GroupPositions":
        """Return positions by column: those that are so already as they are."""
        if isinstance(positions, cls):
            return positions
        made = cls()
        for one in positions:
            made.append(one)
        return made

    def append(self, one: GroupPosition) -> None:
        """Add a position."""
        self._add(one.group, [TopicPartition(one.topic, one.partition)])
        for name, held in self.numbers.items():
            value = getattr(one, name)
            held.append(NONE if value is None else value)
        for name, flags in self.flags.items():
            flags.append(getattr(one, name))

    def add_group(
        self,
        group: str,
        partitions: Sequence[TopicPartition],
        committed: Sequence[int],
        synced: Sequence[int],
        unclaimed: Sequence[bool],
        *,
        active: bool,
    ) -> None:
        """Add what is known of a group before its positions are judged; `synced` has NONE where there is no offset."""
        self._add(group, partitions)
        known = {"committed": committed, "synced": synced, "unclaimed": unclaimed}
        for name, held in (*self.numbers.items(), *self.flags.items()):
            if name in known:
                held.extend(known[name])
            else:
                value = active if name == "active" else _DEFAULTS[name]
                held.extend(array(held.typecode, [value]) * len(partitions))

    def with_these(self, others: Iterable[GroupPosition]) -> "GroupPositions":
        """Return a copy with more positions behind these."""
        copy = self.chosen(range(len(self)))
        for one in others:
            copy.append(one)
        return copy

    def chosen(self, places: Sequence[int]) -> "GroupPositions":
        """Return a copy of the positions at these places, in their order."""
        copy = GroupPositions()
        copy.groups, copy.partitions = list(self.groups), list(self.partitions)
        copy._group_of, copy._partition_of = dict(self._group_of), dict(self._partition_of)
        copy.group_numbers = _chosen(self.group_numbers, places)
        copy.partition_numbers = _chosen(self.partition_numbers, places)
        copy.numbers = {name: _chosen(held, places) for name, held in self.numbers.items()}
        copy.flags = {name: _chosen(held, places) for name, held in self.flags.items()}
        return copy

    def parted(self, is_apart: Callable[[str], bool]) -> tuple["GroupPositions", "GroupPositions"]:
        """Return the positions of all groups but some, and those of the others."""
        apart = {number for number, name in enumerate(self.groups) if is_apart(name)}
        if not apart:
            return self, GroupPositions()
        places = array("i"), array("i")
        for at, number in enumerate(self.group_numbers):
            places[number in apart].append(at)
        return self.chosen(places[False]), self.chosen(places[True])

    def replace(self, at: int, one: GroupPosition) -> None:
        """Put what is judged of a position in its place."""
        for name in _DEFAULTS:
            value = getattr(one, name)
            (self.flags if name in FLAGS else self.numbers)[name][at] = NONE if value is None else value

    def forget_judgement(self) -> None:
        """Put the positions back as they were before they were judged."""
        for name, value in _DEFAULTS.items():
            held = self.flags[name] if name in FLAGS else self.numbers[name]
            held[:] = array(held.typecode, [value]) * len(held)

    def judge_again(self, places: Sequence[int], judged: "GroupPositions") -> None:
        """Take over what is judged of the positions at these places."""
        for name in _DEFAULTS:
            mine, theirs = ((one.flags if name in FLAGS else one.numbers)[name] for one in (self, judged))
            for at, value in zip(places, theirs, strict=True):
                mine[at] = value

    @property
    def group_names(self) -> set[str]:
        """Groups that have a position."""
        return {self.groups[number] for number in set(self.group_numbers)}

    @property
    def topic_partitions(self) -> set[TopicPartition]:
        """Partitions in which a group has a position."""
        return {self.partitions[number] for number in set(self.partition_numbers)}

    def named(self, at: int) -> tuple[str, TopicPartition]:
        """Return group and partition of a position."""
        return self.groups[self.group_numbers[at]], self.partitions[self.partition_numbers[at]]

    def __len__(self) -> int:
        return len(self.group_numbers)

    def __iter__(self) -> Iterator[GroupPosition]:
        return map(self.__getitem__, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> GroupPosition: ...

    @overload
    def __getitem__(self, index: slice) -> list[GroupPosition]: ...

    def __getitem__(self, index: int | slice) -> "GroupPosition | list[GroupPosition]":
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        group, (topic, partition) = self.named(index)
        numbers = {name: held[index] for name, held in self.numbers.items()}
        offsets = {name: None if numbers[name] == NONE else numbers[name] for name in OFFSETS}
        return GroupPosition(
            group=group,
            topic=topic,
            partition=partition,
            committed=numbers["committed"],
            **offsets,
            unread=numbers["unread"],
            skipped=numbers["skipped"],
            repeated=numbers["repeated"],
            active=bool(self.flags["active"][index]),
            unclaimed=bool(self.flags["unclaimed"][index]),
            judged=bool(self.flags["judged"][index]),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def _add(self, group: str, partitions: Sequence[TopicPartition]) -> None:
        number = self._group_of.setdefault(group, len(self.groups))
        if number == len(self.groups):
            self.groups.append(group)
        self.group_numbers.extend(array("i", [number]) * len(partitions))
        for tp in partitions:
            number = self._partition_of.setdefault(tp, len(self.partitions))
            if number == len(self.partitions):
                self.partitions.append(tp)
            self.partition_numbers.append(number)


def _chosen(held: "array[int]", places: Sequence[int]) -> "array[int]":
    if isinstance(places, range) and places.step == 1:
        return held[places.start : places.stop]
    return array(held.typecode, [held[at] for at in places])
