"""Known issues by which records never reach the target, or stay there alone, although no connector fails."""

from collections.abc import Iterator

from kafka.retention import UntilDeletion, worst
from ops.doctor.known_issues import Finding, finding
from ops.doctor.observations import Observations, ReplacedLog
from settings.text import format_count, format_duration

NAMED_MAX = 10
"""Partitions of a topic that are named; the others are counted."""


def lost_records(seen: Observations) -> Iterator[Finding]:
    """Return what was lost between the source and the mirror, and what is about to be, a topic each."""
    yield from _retention(seen)
    yield from _replaced_logs(seen)
    yield from _large_records(seen)
    for topic, remote in sorted(seen.orphans.items()):
        what = f"the mirror has copied {topic}, which the source has no more"
        yield finding(
            "orphan-remote-topic", f"topic {remote} of the target", what, topic=remote, servers=seen.target.servers
        )


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
            named = sorted(deleted.items())[:NAMED_MAX]
            offsets = ", ".join(f"{count} of partition {number}" for number, count in named)
            if rest := len(deleted) - len(named):
                left = sum(deleted.values()) - sum(count for _, count in named)
                offsets += f" and {left:,} of {format_count(rest, 'more partition')}"
            what = (
                f"offsets after the mirror's position were deleted before it has passed them: {offsets}. They were "
                "records, unless transactions have ended or were aborted there: no broker tells any more"
            )
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


def _replaced_logs(seen: Observations) -> Iterator[Finding]:
    by_topic: dict[tuple[str, bool], list[ReplacedLog]] = {}
    for one in seen.replaced_logs:
        by_topic.setdefault((one.topic, one.is_new), []).append(one)
    for (topic, is_new), ones in by_topic.items():
        trouble = "source-topic-recreated" if is_new else "source-log-truncated"
        for one in ones[:NAMED_MAX]:
            yield finding(trouble, _log(one), _replaced(one), topic=topic, stack=seen.stack)
        if rest := ones[NAMED_MAX:]:
            where = f"topic {topic} of the source, {format_count(len(rest), 'more partition')}"
            yield finding(trouble, where, "the same as of those that are named", topic=topic, stack=seen.stack)


def _log(one: ReplacedLog) -> str:
    return f"topic {one.topic} of the source" + ("" if one.partition is None else f", partition {one.partition}")


def _replaced(one: ReplacedLog) -> str:
    if one.known_id is not None:
        return f"its id was {one.known_id} at the verification of {one.known_at}, and is {one.topic_id} now"
    begun = "has begun anew and ends" if one.is_new else "ends"
    return f"the mirror has copied up to offset {one.position}, and the log {begun} at {one.log_end}"


def _large_records(seen: Observations) -> Iterator[Finding]:
    mirror = seen.mirror
    for one in seen.large_records:
        limits = {
            f"max.message.bytes of {one.remote_topic} is": one.topic_limit,
            "max.request.size of the mirror's producer is": one.request_limit,
        }
        small = [f"{name} {limit}" for name, limit in limits.items() if limit is not None and limit < one.size]
        what = (
            f"a record of partition {one.partition} that is not copied takes about {one.size} bytes, and "
            f"{' and '.join(small)}"
        )
        facts = {
            "topic": one.remote_topic,
            "size": one.size,
            "connect": mirror.connect_url,
            "connector": mirror.source_connector.replace(">", "%3E"),
        }
        yield finding("record-too-large", f"topic {one.topic} of the source", what, **facts)
