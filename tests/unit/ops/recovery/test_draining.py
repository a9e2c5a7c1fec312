"""Waiting until nothing is written and everything is copied: what ends it well, and the message at the deadline."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka import lag, mirror_position
from kafka.errors import ClusterError, DeniedError, RefusedError
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import draining
from ops.recovery.draining import format_places, read_places
from tests.support.recovery_pair import Clock, Side, known

REQUEST = known().request
WITHIN_S = 60.0
ITEMS, STORE = TopicPartition("items", 0), TopicPartition("store.inventory", 1)


class Reader:
    """Positions of the mirror; None: they cannot be read."""

    def __init__(self, at: dict[TopicPartition, int]) -> None:
        self.at: dict[TopicPartition, int] | None = at
        self.closed = 0

    def read(self) -> dict[TopicPartition, int]:
        if self.at is None:
            raise ClusterError("target es-tgt: topic mm2-offsets could not be read")
        return dict(self.at)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(draining, "time", found)
    return found


@pytest.fixture
def source() -> Any:
    return Side("es-src", {ITEMS: 10, STORE: 5, ("other", 0): 3})


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """The mirror has copied everything; a first record that is not copied is of an unknown age."""
    found = Reader({ITEMS: 9, STORE: 4})
    monkeypatch.setattr(mirror_position, "open_reader", lambda *_: (found, ""))
    monkeypatch.setattr(lag, "first_records", lambda *_: {})
    yield found
    assert found.closed <= 1


def drain(source: Any, within_s: float = WITHIN_S, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    target: Any = Side("es-tgt", {})
    return draining.drain(source, target, REQUEST, within_s, say)


def writes(clock: Clock, source: Any, reader: Reader | None, until: float) -> None:
    """Let a record be written at each snapshot until a moment, which the mirror copies at once."""

    def act() -> None:
        if clock.now < until:
            source.log[ITEMS] += 1
        if reader is not None and reader.at is not None:
            reader.at[ITEMS] = source.log[ITEMS] - 1

    source.at = act


def test_a_side_at_rest_that_is_copied_is_drained_after_the_quiet_time(
    clock: Clock, source: Any, reader: Reader
) -> None:
    began = clock.now
    found = drain(source)
    assert found == {"ends": {"items-0": 10, "store.inventory-1": 5}, "records": 15}
    assert draining.QUIET_S <= clock.now - began <= draining.QUIET_S + 2 * draining.EVERY_S
    assert reader.closed == 1


def test_the_quiet_time_begins_when_the_last_record_was_written(clock: Clock, source: Any, reader: Reader) -> None:
    began, said = clock.now, list[str]()
    writes(clock, source, reader, began + 20)
    found = drain(source, say=said.append)
    assert found["ends"]["items-0"] == source.log[ITEMS]
    assert clock.now - began >= 19 + draining.QUIET_S
    assert any("nothing written for 0 s" in line for line in said)


def test_producers_that_do_not_stop_are_reported_by_the_partitions_that_grow(
    clock: Clock, source: Any, reader: Reader
) -> None:
    writes(clock, source, reader, clock.now + 2 * WITHIN_S)
    with pytest.raises(OpsError) as caught:
        drain(source)
    assert str(caught.value) == (
        "cluster es-src: applications must stop writing (still written within 60 s: items-0). Stop the producers and "
        "run the command again; who is active has not changed."
    )
    assert reader.closed == 1


def test_a_partition_that_is_made_while_one_waits_is_waited_for_too(clock: Clock, source: Any, reader: Reader) -> None:
    began, new = clock.now, ("items", 1)

    def act() -> None:
        if clock.now >= began + 3:
            source.log[new] = 4
        if clock.now >= began + 20 and reader.at is not None:
            reader.at[new] = 3

    source.at = act
    found = drain(source)
    assert found["ends"] == {"items-0": 10, "items-1": 4, "store.inventory-1": 5}
    assert clock.now - began >= 20


def test_an_empty_partition_that_is_made_begins_the_quiet_time_anew(clock: Clock, source: Any, reader: Reader) -> None:
    began = clock.now

    def act() -> None:
        if clock.now >= began + 4:
            source.log["items", 1] = 0

    source.at = act
    assert drain(source)["ends"]["items-1"] == 0
    assert clock.now - began >= 4 + draining.QUIET_S


def test_a_transaction_that_is_open_is_waited_for(clock: Clock, source: Any, reader: Reader) -> None:
    began, source.open[STORE] = clock.now, 2

    def act() -> None:
        if clock.now >= began + 20:
            source.open.clear()

    source.at = act
    assert drain(source)["ends"]["store.inventory-1"] == 5
    assert clock.now - began >= 20


def test_a_transaction_that_stays_open_is_reported_with_the_tool_that_aborts_it(
    clock: Clock, source: Any, reader: Reader
) -> None:
    source.open = {STORE: 2}
    reader.at = {ITEMS: 9, STORE: 2}  # of committed records everything is copied
    with pytest.raises(OpsError) as caught:
        drain(source)
    assert str(caught.value) == (
        "cluster es-src: no transaction may be open (still open after 60 s: store.inventory-1). Stop the producers, or "
        "abort it (kafka-transactions.sh abort), and run the command again; who is active has not changed."
    )
    assert reader.closed == 1


def test_what_was_added_since_is_reported_by_partition(source: Any) -> None:
    ends = {ITEMS: 10, STORE: 5}
    assert draining.grown_since(source, REQUEST, ends) == {}
    source.log[ITEMS] += 2
    source.log |= {("items", 1): 3, ("items", 2): 0, ("other", 0): 9}
    assert draining.grown_since(source, REQUEST, ends) == {ITEMS: 2, ("items", 1): 3}


def test_what_an_open_transaction_has_written_since_was_added_too(source: Any) -> None:
    source.log[ITEMS] += 2
    source.open[ITEMS] = 2
    assert draining.grown_since(source, REQUEST, {ITEMS: 10, STORE: 5}) == {ITEMS: 2}


def test_of_many_partitions_the_first_few_are_named() -> None:
    assert (
        draining.named({TopicPartition("items", number) for number in range(9)})
        == "items-0, items-1, items-2, items-3, items-4"
    )


def test_a_mirror_that_does_not_copy_the_rest_is_reported_by_how_far_it_is_behind(
    clock: Clock, source: Any, reader: Reader
) -> None:
    reader.at = {ITEMS: 6, STORE: 4}
    with pytest.raises(OpsError) as caught:
        drain(source)
    assert str(caught.value) == (
        "mirror mm2: must copy everything within 60 s (still behind: items-0 by 3). See `python -m ops doctor`; "
        "who is active has not changed."
    )


def test_a_partition_that_was_never_copied_is_behind_by_all_it_holds(clock: Clock, source: Any, reader: Reader) -> None:
    reader.at = {STORE: 4}
    source.begin[ITEMS] = 4
    with pytest.raises(OpsError, match=r"still behind: items-0 by"):
        drain(source)


def test_positions_that_cannot_be_read_are_reported(clock: Clock, source: Any, reader: Reader) -> None:
    reader.at = None
    with pytest.raises(OpsError) as caught:
        drain(source)
    assert str(caught.value) == (
        "mirror mm2: its position must be readable (got none within 60 s: target es-tgt: topic mm2-offsets could not "
        "be read). See `python -m ops status`; who is active has not changed."
    )


def test_a_position_that_was_read_before_the_last_record_does_not_count(
    clock: Clock, source: Any, reader: Reader
) -> None:
    measurements = iter(range(99))

    def act() -> None:
        if next(measurements) == 4:  # the second one of the wait itself, after its good measurement
            source.log[ITEMS] += 1
            reader.at = None

    source.at = act
    with pytest.raises(OpsError, match="its position must be readable"):
        drain(source, 20.0)


def test_a_mirror_that_has_no_position_is_refused_at_once(
    clock: Clock, source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_position, "open_reader", lambda *_: (None, "No topic tells it."))
    with pytest.raises(OpsError, match=r"mirror mm2: its position must be known to drain it. No topic tells it."):
        drain(source)
    target: Any = Side("es-tgt", {})
    with pytest.raises(OpsError, match="its position must be known to follow it"):
        draining.catch_up(source, target, REQUEST, WITHIN_S, lambda _: None)


def test_catching_up_ends_when_what_was_there_is_copied_although_more_is_written(
    clock: Clock, source: Any, reader: Reader
) -> None:
    reader.at = {ITEMS: 5, STORE: 4}

    def act() -> None:
        source.log[ITEMS] += 1
        assert reader.at is not None
        reader.at[ITEMS] += 1

    source.at = act
    target: Any = Side("es-tgt", {})
    draining.catch_up(source, target, REQUEST, WITHIN_S, lambda _: None)
    assert reader.at[ITEMS] < source.log[ITEMS] - 1
    assert reader.closed == 1


def test_catching_up_has_a_deadline(clock: Clock, source: Any, reader: Reader) -> None:
    reader.at, said = {ITEMS: 6, STORE: 4}, list[str]()
    target: Any = Side("es-tgt", {})
    with pytest.raises(OpsError, match="items-0 by 3"):
        draining.catch_up(source, target, REQUEST, WITHIN_S, said.append)
    assert said[0] == "  3 records to copy"


SILENT = ClusterError("source es-src: cannot list topics: Local: Timed out. Check that the brokers are up.")
CUT = {"a line that is cut before it connects": True, "a line that is cut then": False}


def is_silent(
    clock: Clock, source: Any, until: float, then: Callable[[], None] = lambda: None, *, at_once: bool = False
) -> None:
    """Let a cluster give no answer until a moment, and something happen at it before the first one after.

    With `at_once` it takes no connection either.
    """
    pending = [then]

    def act() -> None:
        if clock.now < until:
            raise SILENT
        if pending:
            pending.pop()()

    source.at = act
    if at_once:
        source.at_connect = act


@pytest.mark.parametrize("at_once", CUT.values(), ids=CUT.keys())
def test_a_line_that_is_cut_while_a_side_is_drained_is_waited_for_and_named(
    clock: Clock, source: Any, reader: Reader, at_once: bool
) -> None:
    began, said = clock.now, list[str]()
    is_silent(clock, source, began + 30, at_once=at_once)
    assert drain(source, say=said.append)["records"] == 15
    assert clock.now - began >= 30 + draining.QUIET_S, "what was written while nobody answered is not known"
    assert said[0] == f"  waiting for an answer: {SILENT}"
    assert len([line for line in said if "waiting for an answer" in line]) == 30 / draining.LOG_EVERY_S


def test_a_side_that_answers_just_before_the_deadline_is_not_taken_for_one_that_is_written_to(
    clock: Clock, source: Any, reader: Reader
) -> None:
    is_silent(clock, source, clock.now + WITHIN_S - 2)
    assert drain(source)["records"] == 15


def test_what_was_written_behind_a_cut_line_is_seen_and_copied_before_the_side_is_drained(
    clock: Clock, source: Any, reader: Reader
) -> None:
    def write() -> None:
        source.log[ITEMS] += 3

    is_silent(clock, source, clock.now + 30, write)
    with pytest.raises(OpsError, match="still behind: items-0 by 3"):
        drain(source)


@pytest.mark.parametrize("at_once", CUT.values(), ids=CUT.keys())
def test_a_line_that_stays_cut_ends_the_drain_at_its_deadline(
    clock: Clock, source: Any, reader: Reader, at_once: bool
) -> None:
    began = clock.now
    is_silent(clock, source, began + 10 * WITHIN_S, at_once=at_once)
    with pytest.raises(OpsError) as caught:
        drain(source)
    assert str(caught.value) == (
        f"{SILENT} It must answer within 60 s. Run the command again once it does; who is active has not changed."
    )
    assert clock.now - began <= WITHIN_S + 2 * draining.EVERY_S
    assert reader.closed == (not at_once)


@pytest.mark.parametrize("waits", ["drain", "catch_up"])
@pytest.mark.parametrize(
    ("refused", "when"),
    [
        (DeniedError("source es-src: user u may not Describe topic items."), "at"),
        (RefusedError("source es-src: authentication failed."), "at_connect"),
    ],
    ids=["a right that is missing", "a password that is wrong"],
)
def test_a_refusal_ends_a_wait_at_once(
    clock: Clock, source: Any, reader: Reader, waits: str, refused: ClusterError, when: str
) -> None:
    began = clock.now

    def act() -> None:
        raise refused

    setattr(source, when, act)
    with pytest.raises(type(refused), match=str(refused)):
        {"drain": drain, "catch_up": catch_up}[waits](source)
    assert clock.now == began


def catch_up(source: Any, say: Callable[[str], None] = lambda _: None) -> None:
    target: Any = Side("es-tgt", {})
    draining.catch_up(source, target, REQUEST, WITHIN_S, say)


@pytest.mark.parametrize("at_once", CUT.values(), ids=CUT.keys())
def test_catching_up_waits_for_a_line_that_is_cut(clock: Clock, source: Any, reader: Reader, at_once: bool) -> None:
    began, said = clock.now, list[str]()
    is_silent(clock, source, began + 30, at_once=at_once)
    catch_up(source, said.append)
    assert clock.now - began >= 30
    assert said[0] == f"  waiting for an answer: {SILENT}"


def test_catching_up_names_the_line_that_is_cut_after_it_has_begun(clock: Clock, source: Any, reader: Reader) -> None:
    reader.at, began, said = {ITEMS: 6, STORE: 4}, clock.now, list[str]()

    def act() -> None:
        if clock.now > began:
            raise SILENT

    source.at = act
    with pytest.raises(OpsError) as caught:
        catch_up(source, said.append)
    assert str(caught.value) == (
        f"mirror mm2: its position must be readable (got none within 60 s: {str(SILENT).rstrip('.')}). "
        "See `python -m ops status`; who is active has not changed."
    )
    assert said[0] == "  3 records to copy"
    assert said[-1] == f"  the mirror's position cannot be read ({str(SILENT).rstrip('.')})"


def test_places_come_back_from_a_journal_as_they_went_in() -> None:
    partitions = {("items", 0): 7, ("items-eu-1", 12): 0, ("a-", 3): 4, ("-", 0): 1}
    reported = format_places(partitions)
    assert reported["items-eu-1-12"] == 0
    assert read_places(reported) == partitions
    assert read_places({}) == {}
