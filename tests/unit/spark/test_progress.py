"""The progress display, on a real pseudo-terminal and off it."""

import io
import os
import pty
import select
import time

import pytest

from spark.progress import Progress


class Terminal:
    """A pseudo-terminal whose other end shows what was written."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8")

    def shown(self, text: str, within_s: float = 20.0) -> str:
        """Return all that was written until a text came."""
        found, deadline = "", time.monotonic() + within_s
        while text not in found:
            assert time.monotonic() < deadline, found
            if select.select([self._master], [], [], 0.1)[0]:
                found += os.read(self._master, 65536).decode(errors="replace")
        return found


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("CI", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return Terminal()


def test_a_terminal_shows_stage_partitions_rate_and_time_left(terminal: Terminal) -> None:
    progress = Progress(terminal.stream)
    progress("cut: 8 partitions")
    progress.stage("comparing records")
    progress.advance(2, 8, 1000, 4000)
    shown = terminal.shown("left")
    progress.close()
    terminal.stream.flush()
    for part in ("cut: 8 partitions", "comparing records", "2 of 8 partitions", "records/s"):
        assert part in shown


def test_the_live_line_is_gone_at_the_end_and_later_lines_are_plain(terminal: Terminal) -> None:
    progress = Progress(terminal.stream)
    progress.stage("comparing records")
    terminal.shown("comparing records")
    progress.close()
    progress("done with it")
    shown = terminal.shown("done with it")
    assert "\x1b[2K" in shown, "the live line is erased"
    assert "comparing" not in shown.rsplit("\x1b[2K", 1)[1]


def test_off_a_terminal_there_are_plain_lines_and_nothing_live() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress("one")
    progress("one")
    progress.stage("comparing records")
    progress.advance(1, 2, 10, 20)
    progress("two")
    progress.close()
    lines = stream.getvalue().splitlines()
    assert [line.split("] ")[1] for line in lines] == ["one", "two"]
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "records", "left"), [(10, 2000, "10 s"), (10, 100_000, "16 min 30 s"), (100, 100_000, "2 h 45 min")]
)
def test_the_time_left_follows_from_the_rate_so_far(
    monkeypatch: pytest.MonkeyPatch, seconds: int, records: int, left: str
) -> None:
    progress = Progress(io.StringIO())
    began = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: began)  # a busy machine may wait between two lines of this test
    progress.stage("comparing records")
    progress.advance(1, 2, 1000, records)
    line = progress.line(began + seconds)
    assert f"{1000 // seconds:,} records/s" in line
    assert line.endswith(f"{left} left")


def test_nothing_is_divided_by_zero_before_the_first_record() -> None:
    progress = Progress(io.StringIO())
    assert "starting" in progress.line(time.monotonic())
    progress.advance(0, 0, 0, 0)
    assert "left" not in progress.line(time.monotonic())


def test_telling_how_far_it_is_costs_next_to_nothing(terminal: Terminal) -> None:
    progress = Progress(terminal.stream)
    began = time.process_time()
    for number in range(10_000):
        progress.advance(1, 2, number, 10_000)
    assert time.process_time() - began < 0.5
    progress.close()


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (120, "[ 100.0 s] comparing records | 12 of 36 partitions | 10,000 records/s | 1 min 40 s left"),
        (80, "[ 100.0 s] comparing records | 12 of 36 partitions | 1 min 40 s left"),
        (60, "[ 100.0 s] comparing records | 1 min 40 s left"),
        (36, "[ 100.0 s] compar… | 1 min 40 s left"),
    ],
)
def test_a_narrow_terminal_shows_the_time_left_before_anything_else(width: int, shown: str) -> None:
    progress = Progress(io.StringIO())
    progress.stage("comparing records")
    progress.started = progress._began = 0.0
    progress.advance(12, 36, 1_000_000, 2_000_000)
    line = progress.line(100.0, width)
    assert (line, len(line) <= width) == (shown, True)
