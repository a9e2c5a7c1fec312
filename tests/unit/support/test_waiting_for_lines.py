"""Waiting for a line of a process: it ends at the line, at the end of the process, or at the deadline."""

import subprocess
import sys

import pytest

from ...support import waiting


def started(program: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, text=True)


def test_it_ends_at_the_line_and_leaves_the_rest() -> None:
    with started("print('one'); print('two of them'); print('three')") as process:
        waiting.wait_for_line(process, "two")
        assert process.stdout is not None
        assert process.stdout.read() == "three\n"


def test_a_process_that_ends_without_the_line_is_reported_with_what_it_printed() -> None:
    with started("print('one')") as process, pytest.raises(AssertionError, match="a line with 'two': one"):
        waiting.wait_for_line(process, "two")


def test_a_process_that_prints_nothing_is_killed_at_the_deadline() -> None:
    with started("import time; time.sleep(600)") as process:
        with pytest.raises(AssertionError, match="waited 1 s for a line with 'two'"):
            waiting.wait_for_line(process, "two", 1 / waiting.PATIENCE)
        assert process.wait(10) != 0


def test_all_lines_of_one_that_ends_in_time_are_there() -> None:
    with started("print('one'); print('two')") as process:
        assert list(waiting.lines(process, process.stdout, "its end")) == ["one\n", "two\n"]


def test_one_that_does_not_end_is_killed_at_the_deadline_and_reported_with_what_it_wrote() -> None:
    with started("print('one'); import time; time.sleep(600)") as process:
        with pytest.raises(AssertionError, match="waited 1 s for its end: one"):
            list(waiting.lines(process, process.stdout, "its end", 1 / waiting.PATIENCE))
        assert process.wait(10) != 0
