"""How long until the source's retention deletes the first record of a partition that a mirror has not copied.

Kafka deletes whole segments, the oldest first (org.apache.kafka.storage.internals.log.UnifiedLog, deleteOldSegments):
by time once the newest record of a segment is older than `retention.ms`, by size once what follows the segment has
`retention.bytes`. The active segment is no exception: it is rolled first. No record of a segment is newer than its
newest, and no less follows a record than follows its segment. So neither bound is later than the deletion, whatever
`segment.ms` and `segment.bytes` are: they only put it off, as `log.retention.check.interval.ms` does. A topic that is
compacted only loses nothing by retention. How soon a size is reached is a forecast: by the write rate now, or since the
first record, whichever is higher, for many sources are written in batches.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka.lag import age_s

MARGIN = 2
"""Retention overtakes the mirror if less time is left than this many times what the mirror needs to catch up."""
STANDING_S = 86_400.0
"""A mirror that copies nothing may need any time: then this is too little, or less than the record has waited."""
SPREAD_S = 60.0
"""What was written in a shorter time than this may be one batch, and is no rate."""
COPIED_WITHIN_S = 300.0
"""A mirror that has not copied a record for so long and copies nothing now does not work, whatever Connect reports."""
UNREAD = "the first record that is not copied could not be read in time"


@dataclass(frozen=True, kw_only=True)
class RetentionLimits:
    """What retention leaves of a partition: records of the last `ms` and the last `size` bytes; None: no such limit."""

    ms: int | None
    size: int | None


def limits_of(config: Mapping[str, str | None]) -> RetentionLimits | None:
    """Return the limits by a topic's effective configuration; None if retention deletes nothing of it."""
    if "delete" not in (config.get("cleanup.policy") or ""):
        return None
    found = RetentionLimits(ms=_limit(config, "retention.ms"), size=_limit(config, "retention.bytes"))
    return None if found == RetentionLimits(ms=None, size=None) else found


def _limit(config: Mapping[str, str | None], name: str) -> int | None:
    value = int(config.get(name) or -1)
    return None if value < 0 else value


@dataclass(frozen=True, kw_only=True)
class NotCopied:
    """What a mirror has not copied of a partition: its first record and what follows. What is None is unknown.

    `deleted` are the offsets that the log has lost between the mirror's position and its start. `first_ms` is the
    timestamp of the first record, `record_bytes` the size of a record there, rather too large than too small.
    `written_per_s` and `copied_per_s` are records. `held` if an open transaction holds all of it back.
    """

    topic: str
    partition: int
    records: int
    deleted: int = 0
    first_ms: int | None = None
    record_bytes: int | None = None
    written_per_s: float | None = None
    copied_per_s: float | None = None
    held: bool = False


@dataclass(frozen=True, kw_only=True)
class UntilDeletion:
    """How long the first record that is not copied is safe from retention: `seconds` at least, and `left_bytes`.

    Where everything is copied it is what a record has that is written now. `seconds` is None if no limit is known to be
    reached, `left_bytes` without a limit of size; `unknown` is the reason why retention may come sooner than they say.
    `waited_s` is the age of that record, None if that is not known; `catch_up_s` how long the mirror needs for
    `records` as fast as it copies now, None while it copies nothing of the partition. `held` if an open transaction
    holds all of it back.
    """

    topic: str
    partition: int
    records: int
    deleted: int
    seconds: float | None
    left_bytes: int | None
    waited_s: float | None
    catch_up_s: float | None
    unknown: str | None = None
    held: bool = False

    @property
    def margin_s(self) -> float | None:
        """Seconds that are left beyond what the mirror needs; None if nobody knows how many are left."""
        if self.seconds is None:
            return None
        if self.catch_up_s is not None:
            return self.seconds - MARGIN * self.catch_up_s
        return self.seconds - min(STANDING_S, self.waited_s if self.waited_s is not None else STANDING_S)

    @property
    def overtakes(self) -> bool:
        """Whether retention deletes records, or is about to, before they are copied."""
        return self.records > 0 and self.margin_s is not None and self.margin_s < 0


def until_deletion(left: NotCopied, limits: RetentionLimits, now_ms: float) -> UntilDeletion:
    """Return how long what is not copied of a partition is safe; `now_ms` is the time in milliseconds since 1970."""
    reasons: list[str] = []
    waited_s = None if left.first_ms is None else age_s(left.first_ms, now_ms)
    bounds = _by_time(left, limits, now_ms, reasons), _by_size(left, limits, waited_s, reasons)
    seconds = [one for one in bounds if one is not None]
    return UntilDeletion(
        topic=left.topic,
        partition=left.partition,
        records=left.records,
        deleted=left.deleted,
        seconds=round(min(seconds), 1) if seconds else None,
        left_bytes=_left_bytes(left, limits),
        waited_s=waited_s if left.records else 0.0,
        catch_up_s=left.records / left.copied_per_s if left.copied_per_s else None if left.records else 0.0,
        unknown="; ".join(dict.fromkeys(reasons)) or None,
        held=left.held,
    )


def _by_time(left: NotCopied, limits: RetentionLimits, now_ms: float, reasons: list[str]) -> float | None:
    if limits.ms is None:
        return None
    if not left.records:
        return limits.ms / 1000
    if left.first_ms is None:
        reasons.append(UNREAD)
        return None
    return max(0.0, left.first_ms + limits.ms - now_ms) / 1000


def _left_bytes(left: NotCopied, limits: RetentionLimits) -> int | None:
    if limits.size is None or (left.records and left.record_bytes is None):
        return None
    return max(0, limits.size - left.records * (left.record_bytes or 0))


def _by_size(left: NotCopied, limits: RetentionLimits, waited_s: float | None, reasons: list[str]) -> float | None:
    size = _left_bytes(left, limits)
    if limits.size is None or not left.records:
        return None
    if size is None:
        reasons.append(UNREAD)
        return None
    if size == 0:
        return 0.0
    if left.written_per_s is None:
        reasons.append("how fast the source is written could not be measured")
        return None
    written = max(left.written_per_s, 0.0 if waited_s is None else left.records / max(waited_s, SPREAD_S))
    return size / (written * (left.record_bytes or 1)) if written else None


def deleted_offsets(position: int | None, log_start: int) -> int:
    """Return how many offsets after the mirror's position the log has lost; 0 where that is one: a marker has one too.

    A transaction ends with a marker, which no mirror copies: its offset stays behind the position for good.
    """
    lost = 0 if position is None else log_start - (position + 1)
    return lost if lost > 1 else 0


def not_copied(found: Iterable[UntilDeletion]) -> list[UntilDeletion]:
    """Return the partitions that wait for a mirror which copies nothing, the one that has waited longest first.

    A mirror commits its position a minute after it has copied a record, so that a partition counts once its first
    record has waited much longer; and none does while the mirror copies any.
    """
    behind = [one for one in found if one.records and not one.held]
    if any(one.catch_up_s is not None for one in behind):
        return []
    waiting = [one for one in behind if one.waited_s is not None and one.waited_s >= COPIED_WITHIN_S]
    return sorted(waiting, key=lambda one: (-(one.waited_s or 0.0), one.topic, one.partition))


def worst(found: Iterable[UntilDeletion]) -> UntilDeletion | None:
    """Return the partition in which the least is left beyond what the mirror needs; None if nothing is known of any."""
    known = [one for one in found if one.margin_s is not None]
    return min(known, key=lambda one: (one.margin_s, one.topic, one.partition), default=None)
