"""Which offsets are the exact ones for a group: those that the records give for its positions on the other side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.offsets.entries import Wanted
from ops.offsets.standing import committed
from ops.offsets.translation import Say, translate
from ops.recovery import group_offsets
from ops.recovery.pair import Pair
from spark.clusters.cluster import Cluster


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Offsets to set, positions that have none with the reason, and what to think of."""

    wanted: Wanted
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Origin:
    """The connected side whose positions are translated."""

    cluster: Cluster
    side: str


def exact_offsets(
    pair: Pair,
    origin: Origin,
    groups: Sequence[str],
    report_dir: Path,
    environment: Mapping[str, str],
    say: Say,
) -> Choice:
    """Return where these groups go on, on the other side of the origin, without reading a record twice or never.

    Partitions that hold no record at the origin are left out. Raises OpsError for a group without a position there.
    """
    entries = committed(pair, origin.cluster, origin.side, groups, held_only=True)
    active = group_offsets.members(origin.cluster, dict.fromkeys(groups))
    outcome = translate(pair, origin.side, entries, report_dir, environment, say)
    wanted: Wanted = {group: {} for group in groups}
    left, notes = [], [*outcome.faults]
    for row in outcome.rows:
        entry = row.entry
        name = f"group {entry.group} on {entry.topic}-{entry.partition}"
        if row.exact is None:
            left.append(f"{name} at {entry.offset}: {row.problem}")
            continue
        wanted[str(entry.group)][row.topic, entry.partition] = row.exact
        if row.removed:
            notes.append(f"{name}: {row.removed} offsets in front of it are deleted on the {origin.side}")
    if active:
        notes.append(
            f"{', '.join(active)} have members on the {origin.side}: what they read from now on is read again. "
            "Stop them first"
        )
    return Choice(wanted=wanted, left=tuple(left), notes=tuple(notes))
