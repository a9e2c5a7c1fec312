"""Tables for people: where groups stand, what was translated, what would be set."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ops.offsets.setting import Plan
from ops.offsets.standing import Standing
from ops.offsets.translation import Translated
from ops.size_clients import count


def standings(mirror: str, rows: Sequence[Standing], *, exact: bool) -> RenderableType:
    """Return a line per group and partition. Without the records what is read again is about right, by offsets."""
    title = f"mirror {mirror}: {count(len(rows), 'position')} of {count(len({one.group for one in rows}), 'group')}"
    table = Table(title=escape(title), title_justify="left")
    for column in ("group", "topic"):
        table.add_column(column, overflow="fold")
    table.add_column("partition", justify="right")
    for column in ("source", "lag", "target", "lag", *(["exact"] if exact else [])):
        table.add_column(column, justify="right")
    table.add_column("read again" if exact else "about read again", justify="right")
    if exact:
        table.add_column("skipped", justify="right")
    table.add_column("members")
    for one in rows:
        numbers = [one.source, one.source_lag, one.target, one.target_lag, *([one.exact] if exact else []), one.again]
        numbers += [one.skipped] if exact else []
        names = escape(one.group), escape(one.target_topic), str(one.partition)
        table.add_row(*names, *map(_known, numbers), _states(one))
    hint = "" if exact else "How many exactly, and from which offset nothing is read again: --exact."
    return Group(table, hint) if hint else table


def translations(side: str, rows: Sequence[Translated]) -> RenderableType:
    """Return a line per position, with why one has no counterpart."""
    there = "target" if side == "source" else "source"
    table = Table(title=f"from the {side} to the {there}", title_justify="left")
    grouped = any(one.entry.group is not None for one in rows)
    for column in (*(["group"] if grouped else []), f"topic on the {side}", f"topic on the {there}"):
        table.add_column(column, overflow="fold")
    for column in ("partition", side, there):
        table.add_column(column, justify="right")
    table.add_column("to know", overflow="fold")
    for one in rows:
        said = one.problem or (f"{one.removed} in front are deleted" if one.removed else "")
        names = [escape(one.entry.group or "")] if grouped else []
        names += [escape(one.entry.topic), escape(one.topic)]
        table.add_row(*names, str(one.entry.partition), str(one.entry.offset), _known(one.exact), escape(said))
    return table


def plan(wanted: Plan) -> RenderableType:
    """Return what would be set, what is left as it is, and what to think of."""
    table = Table(title=f"offsets on the {wanted.side}, cluster {escape(wanted.cluster)}", title_justify="left")
    for column in ("group", "topic"):
        table.add_column(column, overflow="fold")
    for column in ("partition", "now", "to be set"):
        table.add_column(column, justify="right")
    for one in wanted.changes:
        shown = "stands there" if one.done else str(one.wanted)
        table.add_row(escape(one.group), escape(one.topic), str(one.partition), _known(one.now), shown)
    left = [f"[yellow]left as it is:[/yellow] {escape(line)}" for line in wanted.left]
    return Group(table, *left, *(f"[yellow]note:[/yellow] {escape(line)}" for line in wanted.notes))


def _known(number: int | None) -> str:
    return "-" if number is None else str(number)


def _states(one: Standing) -> str:
    states = {"source": one.source_state, "target": one.target_state}
    return ", ".join(f"{side} {(state or 'none').lower()}" for side, state in states.items())
