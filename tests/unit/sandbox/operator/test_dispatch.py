import threading
import time
from collections.abc import Iterator

import pytest

from sandbox.operator.dispatch import Dispatcher, Key
from sandbox.operator.java_processes import last_error_line

A, B = Key("Kafka", "ns", "a"), Key("Kafka", "ns", "b")


class Work:
    """Records what ran; `block` holds A up, `fail` makes B fail once."""

    def __init__(self) -> None:
        self.done: list[Key] = []
        self.block, self.failures = threading.Event(), 0
        self.active = self.most = 0

    def __call__(self, key: Key) -> float | None:
        self.active += 1
        self.most = max(self.most, self.active)
        if key == A:
            self.block.wait(5)
        self.active -= 1
        if key == B and self.failures:
            self.failures -= 1
            raise RuntimeError("broken")
        self.done.append(key)
        return None


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def dispatcher(work: Work) -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(work, threads=3)
    dispatcher.start()
    yield dispatcher
    work.block.set()
    dispatcher.stop()


def wait_for(work: Work, expected: list[Key]) -> None:
    end = time.monotonic() + 5
    while work.done != expected and time.monotonic() < end:
        time.sleep(0.01)
    assert work.done == expected


def test_a_resource_that_hangs_does_not_hold_up_another(work: Work, dispatcher: Dispatcher) -> None:
    dispatcher.add(A)
    dispatcher.add(B)
    wait_for(work, [B])


def test_a_resource_that_fails_is_tried_again(work: Work, dispatcher: Dispatcher) -> None:
    work.failures = 1
    dispatcher.add(B)
    wait_for(work, [B])


def test_one_resource_is_never_worked_on_twice_at_a_time_and_a_late_event_is_not_lost(
    work: Work, dispatcher: Dispatcher
) -> None:
    dispatcher.add(A)
    time.sleep(0.1)
    dispatcher.add(A)
    dispatcher.add(A)
    work.block.set()
    wait_for(work, [A, A])
    assert work.most == 1


def test_a_resource_that_is_gone_is_forgotten(work: Work, dispatcher: Dispatcher) -> None:
    dispatcher.add(B)
    wait_for(work, [B])
    time.sleep(0.1)
    assert dispatcher.known("Kafka") == []


def test_one_that_is_wanted_sooner_does_not_wait_for_a_later_one(work: Work, dispatcher: Dispatcher) -> None:
    dispatcher.add(A, 60.0)
    time.sleep(0.2)  # a thread waits for A by now, the others for nothing
    for _ in range(3):
        dispatcher.add(B, 0.1)
        time.sleep(0.3)
    wait_for(work, [B] * 3)


def test_the_last_error_of_a_log_is_reported_without_its_time(tmp_path: object) -> None:
    from pathlib import Path

    log = Path(str(tmp_path)) / "log"
    log.write_text("[t] ERROR first (x)\n[t] INFO fine\n[t] ERROR no space left (y)\n\tat z\n", encoding="utf-8")
    assert last_error_line(log) == "ERROR no space left (y)"
