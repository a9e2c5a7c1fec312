"""Offsets as options and files state them: of a consumer group, or of an application without one.

Owns reading them from options and files, and writing files. Does not own which are right.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from contract.files import replace_text
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError

_COLUMNS = ("topic", "partition", "offset")
SIDES = ("source", "target")
OffsetsByGroup = dict[str, dict[TopicPartition, int]]
"""Offsets to set, by group and by topic and partition."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The offset of the next record to read; `group` is None for an application that keeps its own offsets."""

    topic: str
    partition: int
    offset: int
    group: str | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, kw_only=True)
class EntryFile:
    """The entries of a file. `side` is the cluster that its offsets are of; None is what the file does not name."""

    entries: list[Entry]
    side: str | None = None
    stack: str | None = None
    mirror: str | None = None


def of_options(topics: Sequence[str], partitions: Sequence[int], offsets: Sequence[int]) -> list[Entry]:
    """Return the positions that the options give in the same order; a single topic counts for all of them."""
    if len(topics) == 1:
        topics = list(topics) * len(offsets)
    if not (topics and len(topics) == len(partitions) == len(offsets)):
        raise OpsError(
            "options: --topic, --partition and --offset must be given together, as often as each other, or --topic "
            f"once (got {len(topics)}, {len(partitions)} and {len(offsets)})."
        )
    return [
        Entry(topic=topic, partition=partition, offset=offset)
        for topic, partition, offset in zip(topics, partitions, offsets, strict=True)
    ]


def read(file: Path) -> EntryFile:
    """Return the entries of a file: JSON, or lines of [group,]topic,partition,offset.

    Raises OpsError with all problems.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OpsError(f"file {file}: must be readable text (got {error}).") from None
    problems: list[str] = []
    facts, rows = _of_json(file, text) if text.lstrip().startswith(("{", "[")) else ({}, _of_csv(text))
    entries = [_entry(where, row, problems) for where, row in rows]
    side, names = facts.get("side"), {key: facts.get(key) for key in ("stack", "mirror")}
    if side not in (None, *SIDES):
        problems.append(f"side must be source or target (got {side!r})")
    wrong = {key: name for key, name in names.items() if name is not None and not _text(name)}
    problems += [f"{key} must be a name, or be left out (got {name!r})" for key, name in wrong.items()]
    if not rows:
        problems.append("must hold a position (got none)")
    if problems:
        raise OpsError("\n".join(f"file {file}: {problem}." for problem in problems))
    return EntryFile(entries=[entry for entry in entries if entry is not None], side=side, **names)


def write(file: Path, side: str, entries: Sequence[Entry], facts: Mapping[str, Any]) -> None:
    """Write positions: CSV for a name that ends in .csv, as kafka-consumer-groups.sh reads it, else JSON.

    Args:
        file: path to write.
        side: `source` or `target`, which the offsets are of; in JSON only.
        entries: the positions.
        facts: further keys of the JSON document, such as stack and mirror.

    Raises:
        OpsError: the file cannot be written.
    """
    if file.suffix.lower() == ".csv":
        text = as_csv(entries)
    else:
        positions = [{key: value for key, value in asdict(one).items() if value is not None} for one in entries]
        text = json.dumps({**facts, "side": side, "positions": positions}, indent=2) + "\n"
    try:
        replace_text(file, text)
    except OSError as error:
        raise OpsError(f"file {file}: must be writable (got {error.strerror}).") from None


def as_csv(entries: Sequence[Entry]) -> str:
    """Return lines of topic,partition,offset, with the group in front if they are of several groups.

    `kafka-consumer-groups.sh --reset-offsets --from-file` wants the first with one --group, the second with several.
    """
    several = len({one.group for one in entries}) > 1
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    for one in entries:
        lines.writerow([*([one.group] if several else []), one.topic, one.partition, one.offset])
    return text.getvalue()


def by_group(entries: Iterable[Entry], groups: Sequence[str]) -> OffsetsByGroup:
    """Return the offsets to set by group.

    Args:
        entries: positions; one without a group is for each of `groups`.
        groups: which groups of the entries count; none for all of them.

    Raises:
        OpsError: with every problem: no group, two offsets for one partition, a group without a position.
    """
    found: OffsetsByGroup = {}
    problems: list[str] = []
    for entry in entries:
        if entry.group is None and not groups:
            problems.append(f"{_named(entry)}: group must be given. Add --group.")
        named = groups if entry.group is None else [entry.group] if entry.group in (groups or [entry.group]) else []
        for group in named:
            held = found.setdefault(group, {})
            if held.setdefault(entry.topic_partition, entry.offset) != entry.offset:
                problems.append(
                    f"{_named(replace(entry, group=group))}: must be named once "
                    f"(got {held[entry.topic_partition]} too)."
                )
    missing = [group for group in groups if group not in found]
    problems += [f"group {group}: must have a position in what is given (got none)." for group in missing]
    if problems:
        raise OpsError("\n".join(dict.fromkeys(problems)))
    return found


def _named(entry: Entry) -> str:
    owner = f"group {entry.group} on " if entry.group is not None else ""
    return f"{owner}{entry.topic}-{entry.partition} at {entry.offset}"


def _of_csv(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for number, cells in enumerate(csv.reader(io.StringIO(text)), 1):
        if not cells or (number == 1 and tuple(cell.strip().lower() for cell in cells[-3:]) == _COLUMNS):
            continue
        row: dict[str, Any] = dict(zip(("group", *_COLUMNS) if len(cells) == 4 else _COLUMNS, cells, strict=False))
        found.append((f"line {number}", {"cells": cells} if len(cells) not in (3, 4) else row))
    return found


def _of_json(file: Path, text: str) -> tuple[Mapping[str, Any], list[tuple[str, Any]]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise OpsError(f"file {file}: must hold JSON or lines of topic,partition,offset ({error}).") from None
    rows = document.get("positions") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise OpsError(f"file {file}: positions must be a list (got {type(rows).__name__}).")
    facts = document if isinstance(document, dict) else {}
    return facts, [(f"positions[{number}]", row) for number, row in enumerate(rows)]


def _entry(where: str, row: Any, problems: list[str]) -> Entry | None:
    known = isinstance(row, Mapping) and set(_COLUMNS) <= set(row) <= {"group", *_COLUMNS}
    numbers = [_number(row[key]) for key in ("partition", "offset")] if known else []
    topic, group = (row["topic"], row.get("group")) if known else (None, None)
    if not known or None in numbers or not _text(topic) or not (group is None or _text(group)):
        problems.append(
            f"{where} must be a group or none, a topic, a partition from 0 and an offset from 0 (got {_shown(row)})"
        )
        return None
    partition, offset = (number for number in numbers if number is not None)
    return Entry(topic=str(topic).strip(), partition=partition, offset=offset, group=group)


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _shown(row: Any) -> str:
    return json.dumps(row.get("cells", row) if isinstance(row, Mapping) else row)[:200]


def format_offset(offset: int | None) -> str:
    """Return an offset as a cell of a table shows it, a dash for None."""
    return "-" if offset is None else str(offset)
