"""Waiting for a condition: its answer, its progress, and what a failure says."""

import pytest

from tests.support import waiting
from tests.support.waiting import wait_until


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only sleeping moves."""
    now = [0.0]
    monkeypatch.setattr(waiting.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


@pytest.mark.usefixtures("clock")
def test_it_returns_the_first_true_answer() -> None:
    answers = iter([None, [], "here", "later"])
    assert wait_until("an answer", lambda: next(answers)) == "here"


@pytest.mark.usefixtures("clock")
def test_it_fails_after_the_patience_and_says_what_was_waited_for_and_what_was_there() -> None:
    with pytest.raises(AssertionError, match=r"waited 30 s for: a leader\. Broker 1 is down\."):
        wait_until("a leader", lambda: False, 10, every_s=1, otherwise=lambda: "Broker 1 is down.")


@pytest.mark.usefixtures("clock")
def test_it_prints_what_it_waits_for_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError):
        wait_until("a leader", lambda: False, 8, every_s=1)
    assert capsys.readouterr().err.splitlines() == [
        "waiting for: a leader (10 s of 24 s)",
        "waiting for: a leader (20 s of 24 s)",
    ]


def test_a_costly_question_is_asked_less_often(clock: list[float]) -> None:
    asked = []

    def question() -> bool:
        asked.append(clock[0])
        clock[0] += 1.0
        return len(asked) == 3

    wait_until("the third time", question)
    assert asked == [0.0, 3.0, 6.0]
