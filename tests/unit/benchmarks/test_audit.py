"""What the benchmark of the audit makes of its samples."""

import pytest

from benchmarks.audit import flat, parts


def test_memory_is_given_by_twelfths_of_the_run() -> None:
    assert parts(list(range(24))) == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]  # of two samples, rounded to even
    assert parts([7]) == [7] * 12


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([80, 90, 100, 100, 105, 109], True),
        ([80, 90, 100, 100, 105, 111], False),
        ([30, 40, 100, 90, 90, 90], True),
    ],
)
def test_memory_is_flat_if_no_heap_holds_more_than_when_it_was_warm(other: list[float], *, expected: bool) -> None:
    steady = [100.0] * 6
    assert flat([*steady, *other]) is expected
    assert flat([*other, *steady]) is expected
