"""No port is given out twice: not by one process, and not by two that choose at the same time."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sandbox import processes
from sandbox.state import PROJECT

COUNT = 250
CHOOSES = f"""
import json, sys
from sandbox import processes
print(json.dumps([processes.free_port() for _ in range({COUNT})]), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def others() -> Iterator[list[list[int]]]:
    """What two other processes, which go on running, have chosen."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CHOOSES], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    try:
        yield [json.loads(each.stdout.readline()) for each in started if each.stdout]
    finally:
        for each in started:
            each.communicate(timeout=30)


def test_a_port_is_given_to_nobody_else(others: list[list[int]]) -> None:
    own = [processes.free_port() for _ in range(COUNT)]
    every = [*own, *others[0], *others[1]]
    assert len(every) == len(set(every)) == 3 * COUNT
    assert all(processes.FIRST_PORT < port <= processes.LAST_PORT for port in every)


def test_a_port_that_is_spoken_for_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_left", [processes.FIRST_PORT + 2, processes.FIRST_PORT + 1])
    monkeypatch.setattr(processes, "_given", set())
    monkeypatch.setattr(processes, "is_free_port", lambda port: True)
    processes.reserve_ports([processes.FIRST_PORT + 1])
    assert processes.free_port() == processes.FIRST_PORT + 2


def test_a_port_that_somebody_listens_on_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_left", [processes.FIRST_PORT + 2, processes.FIRST_PORT + 1])
    monkeypatch.setattr(processes, "_given", set())
    monkeypatch.setattr(processes, "is_free_port", lambda port: port != processes.FIRST_PORT + 1)
    assert processes.free_port() == processes.FIRST_PORT + 2


def test_without_a_free_block_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_left", [])
    monkeypatch.setattr(processes, "LAST_PORT", processes.FIRST_PORT)
    with pytest.raises(OSError, match="no block of 100 ports between"):
        processes.free_port()
