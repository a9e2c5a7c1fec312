"""What the benchmark of the verification makes of its measurements."""

from benchmarks.verification import Run, _ratio, _ratios


def run(seconds: float, peak_mib: int = 1000) -> Run:
    return Run(seconds=seconds + 5, session_s=5, records=1, peak_mib=peak_mib)


def test_a_session_start_is_no_part_of_the_ratios() -> None:
    runs = {"small": run(2), "large": run(20, 1200), "kib": run(3)}
    found = _ratios(runs, {"large": 20, "kib": 2}, 15, run(0.5))
    assert [row["value"] for row in found] == [1.5, 1.0, 5.0, 10.0, 0.02, 1.2, 5]
    assert all(row["holds"] for row in found)


def test_few_new_records_may_cost_as_much_as_the_session_start_that_they_do_without() -> None:
    runs = {"small": run(2), "large": run(20, 1200), "kib": run(3)}
    few = Run(seconds=6, session_s=0, records=1, peak_mib=300)
    row = _ratios(runs, {"large": 20, "kib": 2}, 15, few)[4]
    assert (row["name"], row["value"]) == ("d: 1 % new data less a session start, of the full run", 0.04)


def test_a_ratio_that_misses_its_bound_says_so() -> None:
    assert _ratio("a", 1.51, 1.5)["holds"] is False
    assert _ratio("b", 4.9, 5, least=True)["holds"] is False
