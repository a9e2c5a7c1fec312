"""Tables for people: where groups stand, what was translated, what would be set."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape

from ops.console import AdaptiveTable, Column
from ops.offsets.current_offsets import CurrentOffset
from ops.offsets.offset_plan import Plan
from ops.offsets.translation import Translated
from settings.text import format_count


def current_offsets_table(mirror: str, rows: Sequence[CurrentOffset], *, exact: bool) -> RenderableType:
    """Return a line per group and partition. Without the records what is read again is about right, by offsets."""
    groups = format_count(len({one.group for one in rows}), "group")
    title = f"mirror {mirror}: {format_count(len(rows), 'position')} of {groups}"
    numbers_of = ["source", "source lag", "target", "target lag", *(["exact"] if exact else [])]
    numbers_of += ["read again", "skipped"] if exact else ["about read again"]
    table = AdaptiveTable(
        title,
        (
            Column("group", name=True),
            Column("topic", name=True),
            Column("partition", name=True, number=True),
            *(Column(name, number=True) for name in numbers_of),
            Column("members"),
        ),
    )
    for one in rows:
        numbers = [one.source, one.source_lag, one.target, one.target_lag, *([one.exact] if exact else []), one.again]
        numbers += [one.skipped] if exact else []
        names = one.group, one.target_topic, str(one.partition)
        table.add_row(*names, *map(_known, numbers), _states(one))
    hint = "" if exact else "How many exactly, and from which offset nothing is read again: --exact."
    return Group(table, hint) if hint else table


def translations(side: str, rows: Sequence[Translated]) -> RenderableType:
    """Return a line per position, with why one has no counterpart."""
    there = "target" if side == "source" else "source"
    grouped = any(one.entry.group is not None for one in rows)
    names_of = [*(["group"] if grouped else []), f"topic on the {side}", f"topic on the {there}"]
    table = AdaptiveTable(
        f"from the {side} to the {there}",
        (
            *(Column(name, name=True) for name in names_of),
            Column("partition", name=True, number=True),
            *(Column(name, number=True) for name in (side, there)),
            Column("to know"),
        ),
    )
    for one in rows:
        said = one.problem or (f"{one.removed} in front are deleted" if one.removed else "")
        names = [one.entry.group or ""] if grouped else []
        names += [one.entry.topic, one.topic]
        table.add_row(*names, str(one.entry.partition), str(one.entry.offset), _known(one.exact), said)
    return table


def plan(wanted: Plan) -> RenderableType:
    """Return what would be set, what is left as it is, and what to think of."""
    names = Column("group", name=True), Column("topic", name=True), Column("partition", name=True, number=True)
    table = AdaptiveTable(
        f"offsets on the {wanted.side}, cluster {wanted.cluster}",
        (*names, Column("now", number=True), Column("to be set", number=True)),
    )
    for one in wanted.changes:
        shown = "stands there" if one.done else str(one.wanted)
        table.add_row(one.group, one.topic, str(one.partition), _known(one.now), shown)
    left = [f"[yellow]left as it is:[/yellow] {escape(line)}" for line in wanted.left]
    return Group(table, *left, *(f"[yellow]note:[/yellow] {escape(line)}" for line in wanted.notes))


def _known(number: int | None) -> str:
    return "-" if number is None else str(number)


def _states(one: CurrentOffset) -> str:
    states = {"source": one.source_state, "target": one.target_state}
    return ", ".join(f"{side} {(state or 'none').lower()}" for side, state in states.items())
