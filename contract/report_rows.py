"""The rows of a verification's report, of which there may be a million: one for each position of a consumer group.

They are made when they are read, written a line each, and read by column: as a dictionary such a row takes more than a
kilobyte. Does not own what rows contain.
"""

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, overload

Row = Mapping[str, Any]
_BEGIN, _END, _ROW = '  "{key}": [\n', "  ]", '    {"'
_ROWS_AT_ONCE = 1000
_NULL = -(2**63)


class LazyRows(Sequence[Row]):
    """Rows made of `items` by `row`, each time anew; what is done to all of them by `mapped` is done to each then."""

    def __init__(self, items: Sequence[Any], row: Callable[[Any], Row]) -> None:
        self._items = items
        self._row = row

    def mapped(self, change: Callable[[Row], Row]) -> "LazyRows":
        """Return the rows with a change that is made to each when it is read.

        The change of a value depends on nothing but the value and its key, so that it may be made to part of a row.
        """
        row = self._row
        return LazyRows(self._items, lambda item: change(row(item)))

    def columns(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some keys of each row."""
        return _columns(self, names)

    def json_lines(self) -> Iterator[str]:
        """Yield each row as JSON text without line ends."""
        return map(json.dumps, self)

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


def columns(rows: Sequence[Row], *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield the values of some keys of each row: without the rows, where they are made when they are read."""
    return rows.columns(*names) if isinstance(rows, LazyRows) else _columns(rows, names)


def _columns(rows: Iterable[Row], names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    if len(names) == 1:
        return ((row[names[0]],) for row in rows)
    return map(itemgetter(*names), rows)


class RowTable(LazyRows):
    """Rows kept by column: 8 bytes for a number or null, and a pointer for anything else, equal texts once."""

    def __init__(self, *names: str) -> None:
        """Make a table of rows with these keys."""
        self.names = names
        self._columns: dict[str, array[int] | list[Any]] = {name: array("q") for name in names}
        self._texts: dict[str, str] = {}
        super().__init__(range(0), self._at)

    def extend(self, rows: Sequence[Row]) -> None:
        """Append rows; other keys than those of the table are left out. Raises KeyError for a row that lacks one."""
        texts = self._texts
        for name, held in self._columns.items():
            values = [row[name] for row in rows]
            if isinstance(held, array):
                try:
                    held.extend([_NULL if one is None else _number(one) for one in values])
                    continue
                except (TypeError, OverflowError):
                    del held[len(self) :]
                    held = self._columns[name] = _values(held)
            held += [texts.setdefault(one, one) if isinstance(one, str) else one for one in values]
        self._items = range(len(self) + len(rows))

    def columns(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some keys of each row."""
        for start in range(0, len(self), _ROWS_AT_ONCE):
            parts = (self._columns[name][start : start + _ROWS_AT_ONCE] for name in names)
            yield from zip(*map(_values, parts), strict=True)

    def _at(self, at: int) -> Row:
        return {name: _values(held[at : at + 1])[0] for name, held in self._columns.items()}


class KeyedRows(Mapping[tuple[Any, ...], Row]):
    """Rows by the values of some of their keys."""

    def __init__(self, rows: Sequence[Row], *names: str) -> None:
        self._rows = rows
        self._places = {key: at for at, key in enumerate(columns(rows, *names))}

    def __getitem__(self, key: tuple[Any, ...]) -> Row:
        return self._rows[self._places[key]]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _number(value: object) -> int:
    if type(value) is not int or value == _NULL:
        raise TypeError
    return value


def _values(held: "array[int] | list[Any]") -> list[Any]:
    return [None if one == _NULL else one for one in held] if isinstance(held, array) else held


def read_report(path: Path, key: str, *names: str) -> dict[str, Any]:
    """Return the JSON object of a report file with the rows under `key` as a table of the keys in `names`.

    Without names the rows are left out. Rows that do not stand in a line each, or lack one of the keys, are returned
    as they are in the file.
    Raises OSError if the file cannot be read, and ValueError if it does not hold a JSON object.
    """
    table = RowTable(*names)
    with path.open(encoding="utf-8") as file:
        around: list[str] = []
        try:
            for line in file:
                around.append(line)
                if line == _BEGIN.format(key=key):
                    around.append(_take_rows(file, table))
        except (KeyError, _OtherLayoutError):
            around, table = [path.read_text(encoding="utf-8")], RowTable()
    report = json.loads("".join(around))
    if not isinstance(report, dict):
        raise ValueError(f"must hold a JSON object (got {type(report).__name__})")
    return report | {key: table} if len(table) else report


class _OtherLayoutError(Exception):
    """Rows do not stand in a line each."""


def _take_rows(lines: Iterable[str], table: RowTable) -> str:
    """Add rows to a table as long as lines hold them; return the line that ends them."""
    waiting: list[str] = []
    for line in lines:
        text = line.rstrip("\n,")
        if text == _END:
            _add(table, waiting)
            return line
        if not (text.startswith(_ROW) and text.endswith("}")):
            break
        waiting.append(text)
        if len(waiting) == _ROWS_AT_ONCE:
            _add(table, waiting)
            waiting.clear()
    raise _OtherLayoutError


def _add(table: RowTable, lines: Sequence[str]) -> None:
    if not table.names:
        return
    try:
        table.extend(json.loads(f"[{','.join(lines)}]"))
    except ValueError:
        raise _OtherLayoutError from None
