"""The sandbox's tests run as two halves: each file in one of them, and however the run ends, both end in order."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sandbox.__main__ import HERE, halves

ROOT = HERE.parent.parent
TEST = """
import time
from pathlib import Path
import pytest

HERE = Path(__file__)

@pytest.fixture(scope="session")
def box():
    HERE.with_suffix(".up").touch()
    yield
    time.sleep(0.5)
    HERE.with_suffix(".down").touch()

@pytest.mark.sandbox
def test_it(box):
    time.sleep({seconds})
    assert {holds}
"""


def test_every_file_is_in_one_half() -> None:
    with_the_pair, others = halves()
    assert sorted([*with_the_pair, *others]) == sorted(HERE.glob("test_*.py"))
    assert not set(with_the_pair) & set(others)


def test_only_one_half_brings_the_pair_up() -> None:
    with_the_pair, others = ({file.name for file in half} for half in halves())
    assert {"test_stack.py", "test_gate.py", "test_verification_state.py", "test_destroy.py"} <= with_the_pair
    assert {"test_examples.py", "test_plane.py", "test_tenancy.py", "test_demo.py", "test_slack.py"} <= others


def started(folder: Path, *tests: str) -> "subprocess.Popen[str]":
    """The runner with halves made up for this test, a file each."""
    files = [folder / f"test_{number}.py" for number in range(len(tests))]
    for file, text in zip(files, tests, strict=True):
        file.write_text(text, encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; from tests.sandbox import __main__ as runner\n"
        "runner.halves = lambda: [[Path(file)] for file in sys.argv[1:]]\n"
        "sys.exit(runner.main(['-p', 'no:cacheprovider']))"
    )
    return subprocess.Popen([sys.executable, "-c", code, *map(str, files)], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_run_fails_if_one_half_does_and_shows_both(tmp_path: Path) -> None:
    run = started(tmp_path, TEST.format(seconds=0, holds=False), TEST.format(seconds=0, holds=True))
    shown = run.communicate(timeout=60)[0]
    assert run.returncode == 1, shown
    assert (shown.count("1 passed"), shown.count("1 failed")) == (1, 1)


def test_a_half_that_was_killed_fails_the_run(tmp_path: Path) -> None:
    killed = "__import__('os').kill(__import__('os').getpid(), 9)"
    run = started(tmp_path, TEST.format(seconds=0, holds=killed), TEST.format(seconds=0, holds=True))
    run.communicate(timeout=60)
    assert run.returncode not in (0, None)


def test_a_half_of_which_no_test_is_chosen_is_no_failure(tmp_path: Path) -> None:
    run = started(tmp_path, TEST.format(seconds=0, holds=True), "")
    shown = run.communicate(timeout=60)[0]
    assert run.returncode == 0, shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_stops_what_both_halves_started(tmp_path: Path, number: signal.Signals) -> None:
    run = started(tmp_path, *[TEST.format(seconds=60, holds=True)] * 2)
    end = time.monotonic() + 30
    while len(list(tmp_path.glob("*.up"))) < 2:
        assert time.monotonic() < end, "the halves did not start"
        time.sleep(0.1)
    run.send_signal(number)
    time.sleep(0.3)
    run.send_signal(number)  # impatience changes nothing
    shown = run.communicate(timeout=30)[0]
    assert run.returncode == 2, shown
    assert len(list(tmp_path.glob("*.down"))) == 2
