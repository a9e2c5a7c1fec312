"""No port is given out twice: not by one process, and not by two that choose at the same time."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sandbox import ports
from sandbox.state import PROJECT

COUNT = 250
CHOOSES = f"""
import json, sys
from sandbox import ports
print(json.dumps([ports.free_port() for _ in range({COUNT})]), flush=True)
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
    own = [ports.free_port() for _ in range(COUNT)]
    every = [*own, *others[0], *others[1]]
    assert len(every) == len(set(every)) == 3 * COUNT
    assert all(ports.FIRST < port <= ports.LAST for port in every)


def test_a_port_that_is_spoken_for_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_left", [ports.FIRST + 2, ports.FIRST + 1])
    monkeypatch.setattr(ports, "_given", set())
    monkeypatch.setattr(ports, "is_free", lambda port: True)
    ports.reserve([ports.FIRST + 1])
    assert ports.free_port() == ports.FIRST + 2


def test_a_port_that_somebody_listens_on_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_left", [ports.FIRST + 2, ports.FIRST + 1])
    monkeypatch.setattr(ports, "_given", set())
    monkeypatch.setattr(ports, "is_free", lambda port: port != ports.FIRST + 1)
    assert ports.free_port() == ports.FIRST + 2


def test_without_a_free_block_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_left", [])
    monkeypatch.setattr(ports, "LAST", ports.FIRST)
    with pytest.raises(OSError, match="no block of 100 ports between"):
        ports.free_port()
