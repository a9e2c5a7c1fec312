"""What a state is: its document and its checksum, anchors that thin out, and runs at once that agree."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.state import ANCHORS_MAX, DENSE, Anchor, DamagedStateError, Entry, State, decode, encode, merge, thin

from ...support.verification_states import IDENTITY, entry, state

steps = st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 5000)), min_size=1, max_size=120)


def rising(taken: list[tuple[int, int]]) -> list[Anchor]:
    found, source, target = [], 0, 0
    for one, two in taken:
        source, target = source + one, target + two
        found.append((source, target))
    return found


def greatest(anchors: tuple[Anchor, ...] | list[Anchor], offset: int) -> int:
    return max((source for source, _ in anchors if source <= offset), default=-1)


@given(steps, st.integers(1, 40))
def test_thinning_again_and_again_keeps_few_anchors_and_one_near_each_position(
    taken: list[tuple[int, int]], at_once: int
) -> None:
    every = rising(taken)
    kept: tuple[Anchor, ...] = ()
    for first in range(0, len(every), at_once):
        kept = thin([*kept, *every[first : first + at_once]])
        assert len(kept) <= ANCHORS_MAX
    newest = every[-1][0]
    assert set(kept) <= set(every)
    assert kept[-DENSE:] == tuple(every[-DENSE:])
    for source, _ in every:
        distance = newest - source
        assert greatest(kept, source) >= greatest(every, newest - 8 * max(distance, 16))


def test_a_long_log_is_remembered_by_few_anchors() -> None:
    assert len(thin((n * 1000, n * 1000) for n in range(100_000))) <= ANCHORS_MAX
    assert thin([]) == ()


@given(st.lists(st.tuples(st.sampled_from(["items", "orders"]), st.integers(0, 9), steps), max_size=6))
def test_a_state_is_read_as_it_was_written(parts: list[tuple[str, int, list[tuple[int, int]]]]) -> None:
    written = state(*(entry(topic, number, thin(rising(taken))) for topic, number, taken in parts))
    assert decode(encode(written)) == written


@given(st.data())
def test_a_document_with_any_byte_changed_or_any_end_missing_is_damaged(data: st.DataObject) -> None:
    text = encode(state(entry(), entry("orders", 3)))
    at = data.draw(st.integers(0, len(text) - 2))
    cut, odd = text[:at], text[:at] + bytes([text[at] ^ data.draw(st.integers(1, 255))]) + text[at + 1 :]
    for damaged in (cut, odd):
        try:
            found = decode(damaged)
        except DamagedStateError:
            continue
        assert found == decode(text)  # such as an escape written in capitals


def changed(**more: Any) -> bytes:
    return json.dumps({**json.loads(encode(state(entry()))), **more}).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"\xff\xfe", "it is no JSON document"),
        (b"[" * 100_000, "it is no JSON document"),
        (b"[]", "it is no state of a verification"),
        (b"{}", "it is no state of a verification"),
        (changed(version=1), "its version is 1, this job knows 2"),
        (changed(version=3), "its version is 3, this job knows 2"),
        (changed(partitions=[]), "its checksum does not fit its content"),
        (changed(checksum=None), "its checksum does not fit its content"),
    ],
)
def test_a_damaged_state_is_reported_by_what_is_wrong_with_it(data: bytes, why: str) -> None:
    with pytest.raises(DamagedStateError, match=why):
        decode(data)


@pytest.mark.parametrize(
    "odd",
    [
        replace(entry(), anchors=()),
        replace(entry(), anchors=((5, 5), (5, 6))),
        replace(entry(), anchors=((5, 5), (6, 4))),
        replace(entry(), anchors=((-1, 5),)),
        replace(entry(), anchors=((1.5, 5),)),
        replace(entry(), source_tail=((True, "a"),)),
        replace(entry(), target_topic_id=None),
    ],
)
def test_a_document_of_another_form_is_damaged_even_with_its_checksum(odd: Entry) -> None:
    with pytest.raises(DamagedStateError, match="another form"):
        decode(encode(state(odd)))


def test_an_identity_reports_what_differs() -> None:
    other = replace(IDENTITY, naming="prefixed", isolation="read_uncommitted")
    said = other.differs(IDENTITY)
    assert said == "naming prefixed instead of identity, isolation read_uncommitted instead of read_committed"
    assert not IDENTITY.differs(IDENTITY)


Writer = Callable[[State], State]
offsets = st.dictionaries(st.integers(0, 4), st.integers(1, 100), max_size=5)


def entries(verified: dict[int, int]) -> dict[tuple[str, int], Entry]:
    return {("items", number): entry("items", number, [(at, at)]) for number, at in verified.items()}


@given(offsets, st.lists(st.dictionaries(st.integers(0, 4), st.integers(0, 50), max_size=5), min_size=1, max_size=5))
def test_runs_that_loaded_the_same_state_never_put_back_each_others_offsets(
    start: dict[int, int], runs: list[dict[int, int]]
) -> None:
    loaded = stored = entries(start)
    best = dict(start)
    for run in runs:
        mine = {**start, **{number: start.get(number, 1) + more for number, more in run.items()}}
        stored = merge(stored, loaded, entries(mine))
        best = {number: max(best.get(number, 0), mine.get(number, 0)) for number in {*best, *mine}}
    assert {tp[1]: one.verified for tp, one in stored.items()} == best


def test_a_lower_offset_counts_where_the_entry_it_was_made_from_is_still_there() -> None:
    loaded, mine = entries({0: 100}), entries({0: 40})
    assert merge(loaded, loaded, mine) == mine
    assert merge(entries({0: 150}), loaded, mine) == entries({0: 150})


def test_an_entry_of_a_topic_made_again_counts_though_its_offset_is_lower() -> None:
    loaded, stored = entries({0: 100}), entries({0: 150})
    mine = {("items", 0): replace(entry(anchors=[(40, 40)]), source_topic_id="s2")}
    assert merge(stored, loaded, mine) == mine


def test_an_entry_that_is_gone_stays_gone_unless_another_run_has_moved_it_on() -> None:
    loaded = entries({0: 100, 1: 100})
    assert merge(loaded, loaded, entries({1: 100})) == entries({1: 100})
    assert merge(entries({0: 120, 1: 100}), loaded, entries({1: 100})) == entries({0: 120, 1: 100})
