"""What a mirror had copied and not committed is found by content, and only that."""

import tracemalloc
from collections.abc import Generator, Iterable, Sequence
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME
from confluent_kafka import TopicPartition as ClientTopicPartition
from hypothesis import example, given
from hypothesis import strategies as st

from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import mirror_offsets
from ops.recovery.mirror_offsets import last_common_offset, last_copied_offsets
from tests.support.recovery_pair import Clock

ITEMS = TopicPartition("items", 0)
WORDS = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=12)


def plainly(ahead: list[bytes], tail: list[bytes]) -> int:
    """The longest prefix of one that ends the other, tried one by one."""
    return max(
        length for length in range(min(len(ahead), len(tail)) + 1) if ahead[:length] == tail[len(tail) - length :]
    )


def numbered(words: Iterable[bytes], first: int) -> mirror_offsets.Read:
    """A log with these records, whose offsets begin at `first`."""

    def read(start: int) -> Generator[tuple[int, int]]:
        yield from ((offset, crc32(word)) for offset, word in enumerate(words, first) if offset >= start)

    return read


def overlap(ahead: list[bytes], tail: list[bytes], window: int | None = None) -> int:
    """How many of the first of one log are the last of the other, by the last common offset."""
    last = last_common_offset(numbered(ahead, 100), 100, numbered(tail, 7), 7, window)
    return 0 if last is None else last - 99


@given(WORDS, WORDS, st.none() | st.integers(1, 5))
@example([b"a"] * 8, [b"b", *[b"a"] * 6], 2)
@example([b"a", b"b", b"a", b"b", b"c"], [b"a", b"b", b"a", b"b", b"a", b"b", b"c"], 2)
def test_it_is_the_longest_run_that_begins_one_and_ends_the_other_also_where_it_is_longer_than_fits_into_memory(
    ahead: list[bytes], tail: list[bytes], window: int | None
) -> None:
    assert overlap(ahead, tail, window) == plainly(ahead, tail)


def committed_overlap(source: str, committed: int, tail: str) -> int:
    """How many records of a source were copied beyond so many that the mirror had committed."""
    ahead = numbered([word.encode() for word in source], 0)
    last = last_common_offset(ahead, committed, numbered([word.encode() for word in tail], 7), 7)
    return 0 if last is None else last + 1 - committed


@pytest.mark.parametrize(
    ("source", "committed", "tail", "copied"),
    [
        ("xaab", 2, "xa", 0),
        ("xaab", 2, "xaa", 1),
        ("xaaab", 2, "xaa", 1),
        ("xababc", 3, "xaba", 1),
        ("xababc", 3, "xabab", 2),
        ("aaaa", 2, "aaa", 1),
        ("xabcd", 2, "xabcbc", 2),
    ],
    ids=[
        "an equal one was committed",
        "both were copied",
        "one of two equal ones",
        "one of a pair that repeats",
        "a pair that repeats",
        "nothing but equal ones",
        "copied once more after a restart",
    ],
)
def test_of_equal_records_the_ones_in_front_decide_which_was_the_last(
    source: str, committed: int, tail: str, copied: int
) -> None:
    assert committed_overlap(source, committed, tail) == copied


@given(WORDS, st.integers(0, 12), st.integers(0, 12))
def test_a_log_that_was_copied_from_its_start_is_known_to_the_record(
    source: list[bytes], committed: int, copied: int
) -> None:
    committed, copied = min(committed, len(source)), min(max(committed, copied), len(source))
    ahead, tail = numbered(source, 0), numbered(source[:copied], 0)
    last = last_common_offset(ahead, committed, tail, 0)
    assert (committed if last is None else last + 1) == copied


def test_where_more_records_are_equal_than_are_compared_none_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_offsets, "CONTEXT", 3)
    assert committed_overlap("a" * 20, 10, "a" * 14) == 0
    assert committed_overlap("a" * 10 + "bcd" + "a" * 7, 13, "a" * 10 + "bcd" + "aa") == 2


def test_records_copied_twice_already_count_once() -> None:
    assert overlap([b"1", b"2", b"3"], [b"0", b"1", b"2", b"1", b"2"]) == 2


def test_nothing_in_common_is_nothing() -> None:
    assert overlap([b"1"], [b"2"]) == 0
    assert overlap([], [b"2"]) == 0
    assert overlap([b"1"], []) == 0


def distinct(number: int, first: int) -> mirror_offsets.Read:
    """A log of records that are made while they are read."""

    def read(start: int) -> Generator[tuple[int, int]]:
        yield from ((at, 2**63 + (at - first) * 1_000_003) for at in range(max(start, first), first + number))

    return read


@pytest.mark.parametrize(("window", "bytes_max"), [(None, 50_000 * 24 + 50_000), (1000, 100_000)])
def test_a_record_takes_few_bytes_and_no_more_records_than_the_window_take_any(
    window: int | None, bytes_max: int
) -> None:
    ahead, tail = distinct(50_000, 5_000_000_000), distinct(50_000, 3_000_000_000)
    tracemalloc.start()
    try:
        assert last_common_offset(ahead, 5_000_000_000, tail, 3_000_000_000, window) == 5_000_049_999
        assert tracemalloc.get_traced_memory()[1] < bytes_max
    finally:
        tracemalloc.stop()


class Message:
    """One record as a consumer gives it; its time was set by who wrote it, or by the broker."""

    def __init__(self, offset: int, word: str, stamp: int = 1, kind: int = TIMESTAMP_CREATE_TIME) -> None:
        self._offset, self._word, self._time = offset, word, (kind, stamp)

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self._offset

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return self._word.encode()

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return self._time


class Log:
    """A cluster with one partition, read by one consumer. `stuck`: it gives nothing."""

    def __init__(self, messages: Sequence[Message], stuck: bool = False) -> None:
        self.side = SimpleNamespace(role="source", alias="es-src")
        self.messages, self.stuck = messages, stuck
        self.at, self.asked, self.closed = 0, list[tuple[str, int]](), 0

    def consumer(self, isolation: str) -> "Log":
        self.isolation = isolation
        return self

    def assign(self, parts: list[ClientTopicPartition]) -> None:
        self.at = parts[0].offset
        self.asked.append((parts[0].topic, self.at))

    def consume(self, number: int, timeout: float) -> list[Message]:
        found = [] if self.stuck else [one for one in self.messages if one.offset() >= self.at][:3]
        self.at = found[-1].offset() + 1 if found else self.at
        return found

    def position(self, _: list[ClientTopicPartition]) -> list[Any]:
        return [SimpleNamespace(offset=self.at)]

    def close(self) -> None:
        self.closed += 1


def log(words: str, first: int = 0, **changed: Any) -> Any:
    return Log([Message(first + number, word, **changed) for number, word in enumerate(words)])


def found(source: Any, target: Any, committed: dict[Any, int], end: int, boundary: int) -> dict[Any, int]:
    return last_copied_offsets(source, target, committed, {ITEMS: end}, {ITEMS: boundary})


def test_what_lies_at_the_end_of_the_target_was_copied_although_it_was_not_committed() -> None:
    source, target = log("abcdefgh"), log("xxabcde")
    assert found(source, target, {ITEMS: 2}, 8, 7) == {ITEMS: 4}
    assert (source.asked, target.asked) == ([("items", 0)], [("items", 0)]), "with what is in front of both"
    assert (source.isolation, target.isolation, source.closed, target.closed) == (*["read_committed"] * 2, 1, 1)


def test_what_applications_have_written_to_the_target_since_is_no_copy() -> None:
    assert found(log("abcd"), log("abcd"), {ITEMS: 1}, 4, 2) == {}
    assert found(log("abcd"), log("abcd"), {ITEMS: 1}, 4, 3) == {ITEMS: 2}


def test_offsets_without_records_do_not_shift_what_was_copied() -> None:
    source: Any = Log([Message(3, "d"), Message(5, "e"), Message(9, "f"), Message(10, "g")])
    assert found(source, log("cde"), {ITEMS: 2}, 11, 3) == {ITEMS: 5}


@pytest.mark.parametrize(("kind", "result"), [(TIMESTAMP_CREATE_TIME, {}), (TIMESTAMP_LOG_APPEND_TIME, {ITEMS: 0})])
def test_the_same_words_at_another_time_are_another_record_unless_the_broker_sets_the_time(
    kind: int, result: dict[Any, int]
) -> None:
    assert found(log("a", stamp=1, kind=kind), log("a", stamp=2, kind=kind), {}, 1, 1) == result


@pytest.mark.parametrize(("end", "boundary"), [(3, 9), (8, 0)], ids=["all committed", "nothing on the target"])
def test_where_nothing_can_have_been_copied_nothing_is_read(end: int, boundary: int) -> None:
    source, target = log("abcdefgh"), log("abcdefgh")
    assert found(source, target, {ITEMS: 2}, end, boundary) == {}
    assert source.asked + target.asked == []


def test_a_partition_that_cannot_be_read_is_reported_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_offsets, "SILENT_S", 0.05)
    source = log("abcd")
    source.stuck = True
    with pytest.raises(
        OpsError, match=r"source es-src: items-0 must be readable from 0 to 4 \(got 0 records, then none"
    ):
        found(source, log("ab"), {ITEMS: 0}, 4, 2)
    assert source.closed == 1


def test_a_partition_that_is_read_slowly_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, target = Clock(), log("abcdefghijkl")
    monkeypatch.setattr(mirror_offsets, "time", clock)
    consume = target.consume

    def slowly(number: int, timeout: float) -> Any:
        clock.sleep(mirror_offsets.SILENT_S * 0.9)
        return consume(number, timeout)

    target.consume = slowly
    assert found(log("abcdefghijkl"), target, {}, 12, 12) == {ITEMS: 11}
    assert clock.now > 1000 + 3 * mirror_offsets.SILENT_S
