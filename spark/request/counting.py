"""Reads from where a mirror counts: the part of a topic on the target that is older than the mirror is not its work."""

from datetime import datetime

from spark.request.document import shown
from spark.request.model import CountsFrom
from spark.request.values import PARTITION_MAX, is_count

RULE = "a time with its zone, as 2026-01-31T12:00:00Z, or an object of offsets by partition"


def read(value: object, problems: list[str]) -> dict[str, CountsFrom]:
    """Return where the mirror counts from, by topic of the source; adds a problem for each value that is neither."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        problems.append(f"mirror: counts_from must be an object by topic (got {shown(value)})")
        return {}
    found: dict[str, CountsFrom] = {}
    for topic, where in value.items():
        known = _time(where) or _offsets(where)
        if known is None:
            problems.append(f"mirror.counts_from: {topic} must be {RULE} (got {shown(where)})")
        else:
            found[topic] = known
    return found


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _offsets(value: object) -> dict[int, int] | None:
    if not isinstance(value, dict) or not value:
        return None
    found = {}
    for partition, offset in value.items():
        text = str(partition)
        if not text.isdecimal() or len(text) > len(str(PARTITION_MAX)) or int(text) > PARTITION_MAX:
            return None
        if not is_count(offset):
            return None
        found[int(partition)] = int(offset)
    return found
