"""Probes run at the same time, and one that fails or hangs takes nothing from the others."""

import threading
import time

import pytest

from ops.errors import OpsError
from ops.inspection.probes import run_probes

SECRET = "very-secret-4711"


def test_a_probe_that_hangs_or_fails_takes_nothing_from_the_others() -> None:
    def fails() -> None:
        raise OpsError("no such thing")

    answers = run_probes({"good": lambda: 1, "late": lambda: time.sleep(5), "bad": fails}, 0.3)
    assert answers.found == {"good": 1}
    assert answers.problems == {"late": "no answer within 0 s", "bad": "no such thing"}


def test_a_probe_with_more_to_read_is_waited_for_longer_than_the_others() -> None:
    def many() -> int:
        time.sleep(0.6)
        return 7

    answers = run_probes({"many": many, "late": lambda: time.sleep(5)}, 0.2, longer={"many": 5.0, "other": 9.0})
    assert (answers.found, answers.problems) == ({"many": 7}, {"late": "no answer within 0 s"})


def test_an_unforeseen_error_of_a_probe_is_reported_by_its_type_and_raised_with_debug() -> None:
    def breaks() -> None:
        raise ZeroDivisionError(SECRET)

    answers = run_probes({"good": lambda: 1, "broken": breaks}, 5)
    assert answers.found == {"good": 1}
    assert answers.problems == {"broken": "unforeseen ZeroDivisionError (--debug shows where)"}
    with pytest.raises(ZeroDivisionError):
        run_probes({"broken": breaks}, 5, debug=True)


def test_no_more_probes_run_at_the_same_time_than_asked_for() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def probe() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1

    answers = run_probes({str(number): probe for number in range(5)}, 5, at_once=2)
    assert (len(answers.found), answers.problems, most) == (5, {}, 2)


def test_a_probe_that_gets_no_turn_within_the_time_never_runs() -> None:
    ran: list[str] = []
    answers = run_probes({"slow": lambda: time.sleep(0.4), "late": lambda: ran.append("late")}, 0.2, at_once=1)
    time.sleep(0.4)
    assert (set(answers.problems), ran) == ({"slow", "late"}, [])


def test_results_are_in_the_order_of_the_probes_whichever_ends_first() -> None:
    def fail(after_s: float) -> None:
        time.sleep(after_s)
        raise OpsError("no such thing")

    answers = run_probes(
        {"slow": lambda: time.sleep(0.2), "fast": lambda: None, "slow bad": lambda: fail(0.2), "bad": lambda: fail(0)},
        5,
    )
    assert (list(answers.found), list(answers.problems)) == (["slow", "fast"], ["slow bad", "bad"])
