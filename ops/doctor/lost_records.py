"""Known issues by which records never reach the target, or stay there alone, although no connector fails."""

from collections.abc import Iterator

from kafka.retention import UntilDeletion, worst
from ops.doctor.known_issues import Finding, finding
from ops.doctor.observations import Observations
from settings.text import format_count, format_duration


def lost_records(seen: Observations) -> Iterator[Finding]:
    """Return what was lost between the source and the mirror, and what is about to be, a topic each."""
    yield from _retention(seen)


def _retention(seen: Observations) -> Iterator[Finding]:
    by_topic: dict[str, list[UntilDeletion]] = {}
    for one in seen.until_deletion:
        by_topic.setdefault(one.topic, []).append(one)
    for topic, ones in sorted(by_topic.items()):
        where = f"topic {topic} of the source"
        facts = {"topic": topic, "servers": seen.source.servers, "source_stack": seen.source_stack}
        first = worst([one for one in ones if one.overtakes])
        if first is not None and first.seconds is not None:
            yield finding("retention-overtakes-mirror", where, _time_left(first), **facts)
        if deleted := {one.partition: one.deleted for one in ones if one.deleted}:
            offsets = ", ".join(f"{count} of partition {number}" for number, count in sorted(deleted.items()))
            what = f"offsets after the mirror's position were deleted before it has passed them: {offsets}"
            yield finding("retention-overtook-mirror", where, what, **facts)


def _time_left(one: UntilDeletion) -> str:
    waited = "" if one.waited_s is None else f", which has waited {format_duration(one.waited_s)},"
    size = "" if one.left_bytes is None else f" or {one.left_bytes:,} bytes"
    speed = (
        "copies nothing of them"
        if one.catch_up_s is None
        else f"needs {format_duration(one.catch_up_s)} at its present speed"
    )
    return (
        f"{format_count(one.records, 'record')} of partition {one.partition} are not copied; the first{waited} may be "
        f"deleted in {format_duration(one.seconds or 0)}{size}, and the mirror {speed}"
    )
