"""What the benchmark of the verification makes of its measurements."""

import pytest

from benchmarks.verification import LARGE, SIZES, Cost, Run, _costs, _median, _ratio, _ratios, _topic, cost


def run(seconds: float, peak_mib: int = 1000) -> Run:
    return Run(seconds=seconds, session_s=5, records=1, peak_mib=peak_mib)


def test_seconds_are_parted_into_what_every_run_pays_and_what_records_cost() -> None:
    found = cost({1: 9.0, 3: 11.0, 10: 18.0})
    assert (found.fixed_s, found.per_million_s) == (pytest.approx(8.0), pytest.approx(1.0))
    noisy = cost({1: 9.5, 3: 10.5, 10: 18.0})
    assert (noisy.fixed_s, noisy.per_million_s) == (pytest.approx(8.1045, abs=1e-4), pytest.approx(0.9776, abs=1e-4))


def test_each_size_is_fitted_over_its_own_runs() -> None:
    runs = {_topic(size, millions): run(4 + 2 * millions) for size, every in SIZES.items() for millions in every}
    tool = {topic: one.seconds / 2 for topic, one in runs.items()}
    ours, theirs = _costs(1024, runs, tool)
    assert (ours, theirs) == (Cost(pytest.approx(4), pytest.approx(2)), Cost(pytest.approx(2), pytest.approx(1)))


def test_both_parts_are_judged_beside_the_tools() -> None:
    runs = {_topic(100, 1): run(30), _topic(100, LARGE): run(20, 1200)}
    without_spark = {(100, 1): run(9), (1024, 1): run(3)}
    costs = {100: (Cost(10, 1.3), Cost(3, 1.0)), 1024: (Cost(10, 5), Cost(3, 4))}
    found = _ratios(runs, costs, 15, without_spark, run(6))
    assert [row["value"] for row in found] == [7, 1.3, 1.25, 9, 5, 0.05, 1.2]
    assert all(row["holds"] for row in found)


def test_one_slow_run_does_not_move_a_point_of_the_line() -> None:
    assert _median([run(12), run(40), run(13)]) == run(13)


def test_a_ratio_that_misses_its_bound_says_so() -> None:
    assert _ratio("a", 1.51, 1.5)["holds"] is False
    assert _ratio("b", 4.9, 5, least=True)["holds"] is False
