"""How long what is not copied is safe from retention: by time, by size, and what is not known stays unknown."""

from dataclasses import replace

import pytest

from kafka.retention import (
    STANDING_S,
    UNREAD,
    NotCopied,
    RetentionLimits,
    UntilDeletion,
    deleted_offsets,
    limits_of,
    until_deletion,
    worst,
)

NOW_MS = 1_000_000_000
HOUR = RetentionLimits(ms=3_600_000, size=None)
LEFT = NotCopied(
    topic="items",
    partition=0,
    records=100,
    first_ms=NOW_MS - 600_000,
    record_bytes=1000,
    written_per_s=10.0,
    copied_per_s=50.0,
)


def spared(limits: RetentionLimits = HOUR, **changed: object) -> UntilDeletion:
    return until_deletion(replace(LEFT, **changed), limits, NOW_MS)  # type: ignore[arg-type]  # fields of it


@pytest.mark.parametrize(
    ("config", "limits"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}, (604_800_000, None)),
        ({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "1000"}, (None, 1000)),
        ({"cleanup.policy": "compact,delete", "retention.ms": "7", "retention.bytes": "8"}, (7, 8)),
        ({"cleanup.policy": "delete", "retention.ms": "0", "retention.bytes": "-1"}, (0, None)),
        ({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}, None),
        ({"cleanup.policy": "compact", "retention.ms": "604800000", "retention.bytes": "-1"}, None),
        ({}, None),
    ],
)
def test_the_limits_are_those_of_the_clean_up_policy(
    config: dict[str, str | None], limits: tuple[int | None, int | None] | None
) -> None:
    found = limits_of(config)
    assert (None if found is None else (found.ms, found.size)) == limits


def test_by_time_the_first_record_is_safe_for_what_is_left_of_its_retention() -> None:
    one = spared()
    assert (one.seconds, one.left_bytes, one.waited_s, one.catch_up_s, one.unknown) == (3000, None, 600, 2, None)
    assert (one.margin_s, one.overtakes) == (2996, False)


def test_by_size_it_is_safe_until_so_much_is_written() -> None:
    one = spared(RetentionLimits(ms=None, size=150_000))
    assert (one.seconds, one.left_bytes) == (5, 50_000)  # 10 records a second of 1,000 bytes
    assert spared(RetentionLimits(ms=3_600_000, size=150_000)).seconds == 5, "the nearer limit counts"
    assert spared(RetentionLimits(ms=None, size=99_000)).seconds == 0


def test_a_source_that_is_written_in_batches_is_not_safe_between_them() -> None:
    one = spared(RetentionLimits(ms=None, size=150_000), written_per_s=0.0)  # nothing while it was looked at
    assert (one.seconds, one.left_bytes) == (300, 50_000)  # 100 records of 1,000 bytes in 600 seconds
    assert one.overtakes is False
    batch = spared(RetentionLimits(ms=None, size=150_000), first_ms=NOW_MS - 1000)
    assert batch.seconds == 5, "one batch is no rate"


def test_a_source_of_which_no_rate_is_known_reaches_no_size() -> None:
    one = spared(RetentionLimits(ms=None, size=150_000), written_per_s=0.0, first_ms=None)
    assert (one.seconds, one.left_bytes, one.margin_s, one.overtakes, one.unknown) == (None, 50_000, None, False, None)


def test_what_is_older_than_its_retention_may_be_deleted_at_any_time() -> None:
    assert spared(first_ms=NOW_MS - 4_000_000).seconds == 0


def test_where_all_is_copied_it_is_what_a_record_has_that_is_written_now() -> None:
    one = spared(RetentionLimits(ms=3_600_000, size=7), records=0, first_ms=None, copied_per_s=None)
    assert (one.seconds, one.left_bytes, one.waited_s, one.catch_up_s) == (3600, 7, 0, 0)
    assert (one.overtakes, one.unknown) == (False, None)


@pytest.mark.parametrize(
    ("copied_per_s", "waited_s", "overtakes"),
    [(0.1, 1400, False), (0.09, 1400, True), (None, 1700, False), (None, 1900, True), (0.0, 1900, True)],
)
def test_retention_overtakes_a_mirror_that_needs_too_long(
    copied_per_s: float | None, waited_s: int, overtakes: bool
) -> None:
    one = spared(copied_per_s=copied_per_s, first_ms=NOW_MS - waited_s * 1000)
    assert one.overtakes is overtakes


def test_a_mirror_that_stands_is_warned_of_a_day_before_however_long_retention_is() -> None:
    month = RetentionLimits(ms=30 * 86_400_000, size=None)
    left_s = int(STANDING_S)
    assert spared(month, copied_per_s=None, first_ms=NOW_MS - (30 * 86_400 - left_s - 60) * 1000).overtakes is False
    assert spared(month, copied_per_s=None, first_ms=NOW_MS - (30 * 86_400 - left_s + 60) * 1000).overtakes is True


def test_what_is_not_known_makes_nothing_safe() -> None:
    assert (spared(first_ms=None).seconds, spared(first_ms=None).unknown) == (None, UNREAD)
    both = RetentionLimits(ms=3_600_000, size=150_000)
    assert (spared(both, record_bytes=None).seconds, spared(both, record_bytes=None).unknown) == (3000, UNREAD)
    slow = spared(both, written_per_s=None)
    assert (slow.seconds, slow.left_bytes, slow.unknown) == (
        3000,
        50_000,
        "how fast the source is written could not be measured",
    )
    assert spared(RetentionLimits(ms=None, size=99_000), written_per_s=None).seconds == 0, "nothing is left already"


@pytest.mark.parametrize(
    ("position", "log_start", "deleted"), [(None, 70, 0), (99, 0, 0), (99, 100, 0), (99, 101, 0), (99, 140, 40)]
)
def test_offsets_between_the_position_and_the_log_start_are_lost_but_for_one_marker(
    position: int | None, log_start: int, deleted: int
) -> None:
    assert deleted_offsets(position, log_start) == deleted


def test_the_worst_partition_is_the_one_with_the_least_time_beyond_what_the_mirror_needs() -> None:
    fast, slow = spared(copied_per_s=1000.0, first_ms=NOW_MS - 3_500_000), spared(copied_per_s=0.1)
    unread = spared(first_ms=None)
    assert worst([fast, unread, slow]) == fast
    assert worst([replace(fast, seconds=2500.0), slow]) == slow
    assert worst([unread]) is None


@pytest.mark.parametrize("ahead_ms", [3_600_000, 31_536_000_000])
def test_of_a_record_whose_clock_is_ahead_nobody_knows_how_long_it_has_waited(ahead_ms: int) -> None:
    """The brokers' retention goes by its timestamp all the same."""
    one = spared(first_ms=NOW_MS + ahead_ms, copied_per_s=None)
    assert (one.waited_s, one.seconds) == (None, (ahead_ms + 3_600_000) / 1000)
    assert one.overtakes == (ahead_ms + 3_600_000 < STANDING_S * 1000)
    assert spared(first_ms=NOW_MS + 30_000).waited_s == 0.0
