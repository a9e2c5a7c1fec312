"""Problems of a status about records: what is not copied, what retention deletes, and what groups would skip."""

from kafka.retention import not_copied, worst
from ops.inspection.snapshot import MirrorSnapshot
from settings.text import format_count, format_duration

SKIPPING_NAMED = 3


def record_problems(seen: MirrorSnapshot) -> list[str]:
    """Return the problems in words; an empty list where there is none."""
    return [*_copies_nothing(seen), *_overtaken(seen), *_skipping(seen)]


def _copies_nothing(seen: MirrorSnapshot) -> list[str]:
    """Return the problem of a mirror that copies nothing although nothing else says why."""
    waiting = not_copied(seen.until_deletion or ())
    if not waiting or seen.pair.state != "running" or seen.faults:
        return []
    where = f"{waiting[0].topic}-{waiting[0].partition}"
    return [
        f"the mirror copies nothing: {format_count(sum(one.records for one in waiting), 'record')} wait, the first of "
        f"{where} for {format_duration(waiting[0].waited_s or 0.0)}. `python -m ops doctor --stack {seen.pair.stack}` "
        "has the remedy"
    ]


def _overtaken(seen: MirrorSnapshot) -> list[str]:
    """Return the problem of retention that deletes records before they are copied, or is about to."""
    found = [one for one in seen.until_deletion or () if one.overtakes]
    first = worst(found)
    if first is None or first.seconds is None:
        return []
    more = f" and {format_count(len(found) - 1, 'more partition')}" if len(found) > 1 else ""
    return [
        f"retention overtakes the mirror in {first.topic}-{first.partition}{more}: the first of "
        f"{format_count(first.records, 'record')} not mirrored may be deleted in {format_duration(first.seconds)}. "
        f"`python -m ops doctor --stack {seen.pair.stack}` has the remedy"
    ]


def _skipping(seen: MirrorSnapshot) -> list[str]:
    """Return the problem of groups that would skip records if they went on at the target now; none once they do."""
    skipped = {one.group: one.skipped for one in seen.groups or () if one.skipped}
    if not skipped or seen.pair.active == "target":
        return []
    most = sorted(skipped, key=lambda group: (-skipped[group], group))[:SKIPPING_NAMED]
    named = ", ".join(f"{group} {skipped[group]:,}" for group in most)
    more = f" and {len(skipped) - len(most)} more" if len(skipped) > len(most) else ""
    groups = "1 group" if len(skipped) == 1 else f"{len(skipped)} groups"
    return [
        f"{groups} would skip about {sum(skipped.values()):,} records after a failover ({named}{more}). Count them: "
        f"`python -m ops verify --stack {seen.pair.stack}`; `failover --exact` skips none"
    ]
