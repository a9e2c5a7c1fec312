"""What a mirror had copied and not committed is found by content, and only that."""

from hypothesis import given
from hypothesis import strategies as st

from ops.recovery.copied import overlap

WORDS = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=12)


def plainly(ahead: list[bytes], tail: list[bytes]) -> int:
    """The longest prefix of one that ends the other, tried one by one."""
    return max(
        length for length in range(min(len(ahead), len(tail)) + 1) if ahead[:length] == tail[len(tail) - length :]
    )


@given(WORDS, WORDS)
def test_it_is_the_longest_run_that_begins_one_and_ends_the_other(ahead: list[bytes], tail: list[bytes]) -> None:
    assert overlap(ahead, tail) == plainly(ahead, tail)


def test_records_copied_twice_already_count_once() -> None:
    assert overlap([b"1", b"2", b"3"], [b"0", b"1", b"2", b"1", b"2"]) == 2


def test_nothing_in_common_is_nothing() -> None:
    assert overlap([b"1"], [b"2"]) == 0
    assert overlap([], [b"2"]) == 0
    assert overlap([b"1"], []) == 0
