"""Rows of a report of which there may be a million: written one by one, and read without a dictionary for each.

A row of a group's position takes more than a kilobyte as a dictionary. Does not own what rows say.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

Row = Mapping[str, Any]


class LazyRows(Sequence[Row]):
    """Rows made of `items` by `row`, each time anew; what is done to all of them by `mapped` is done to each then."""

    def __init__(self, items: Sequence[Any], row: Callable[[Any], Row]) -> None:
        self._items = items
        self._row = row

    def mapped(self, change: Callable[[Row], Row]) -> "LazyRows":
        """Return the rows with a change that is made to each when it is read."""
        row = self._row
        return LazyRows(self._items, lambda item: change(row(item)))

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Row]:
        return map(self._row, self._items)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> "LazyRows": ...

    def __getitem__(self, index: int | slice) -> "Row | LazyRows":
        if isinstance(index, slice):
            return LazyRows(self._items[index], self._row)
        return self._row(self._items[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list


class CompactRow(Row):
    """A row that shares its keys with all others of the same keys."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: tuple[Any, ...]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return self._values[self._places[key]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class RowReader:
    """Makes compact rows of the objects of a JSON text (`object_hook`) that have all of these keys."""

    def __init__(self, *keys: str) -> None:
        self._keys = frozenset(keys)
        self._places: dict[tuple[str, ...], dict[str, int]] = {}
        self._texts: dict[str, str] = {}

    def __call__(self, found: dict[str, Any]) -> Row:
        """Return the object as it is, or as a compact row; texts that many rows have are in memory once."""
        if not found.keys() >= self._keys:
            return found
        names = tuple(found)
        places = self._places.setdefault(names, {name: at for at, name in enumerate(names)})
        texts = self._texts
        values = (texts.setdefault(one, one) if isinstance(one, str) else one for one in found.values())
        return CompactRow(places, tuple(values))
