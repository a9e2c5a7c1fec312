"""What the benchmark of the audit makes of its samples."""

import pytest

from benchmarks.audit import flat, parts


def test_memory_is_given_by_twelfths_of_the_run() -> None:
    assert parts(list(range(24))) == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]  # of two samples, rounded to even
    assert parts([7]) == [7] * 12


@pytest.mark.parametrize(
    ("second_half", "expected"),
    [
        ([800, 900, 950, 1000, 1050, 1099], True),
        ([800, 900, 950, 1000, 1050, 1101], False),
        ([300, 400, 1000, 900, 900, 900], True),
    ],
)
def test_memory_is_flat_if_each_process_holds_what_it_held_when_it_was_warm(
    second_half: list[int], *, expected: bool
) -> None:
    steady = [1000] * 6
    assert flat(steady + second_half) is expected
    assert flat(second_half + steady) is expected
