"""The sandbox's tests run in lanes: each file in one or in the pool, and however the run ends, all end in order."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.__main__ import END_OF_THE_PAIR, HERE, LONGEST, stages
from tests.integration.pool import EVERYWHERE
from tests.support.waiting import wait_until

ROOT = HERE.parent.parent
TEST = """
import time
from pathlib import Path
import pytest

HERE = Path(__file__)

@pytest.fixture(scope="session")
def box():
    yield
    time.sleep({stops_s})
    HERE.with_suffix(".down").touch()

@pytest.mark.sandbox
def test_it(box):
    HERE.with_suffix(".up").touch()  # not in the fixture: an interrupt before its yield would leave nothing to end
    with HERE.with_suffix(".runs").open("a") as runs:
        runs.write("once\\n")
    time.sleep({seconds})
    assert {holds}
"""


def test_every_file_is_run_and_in_the_two_lanes_of_the_pair_by_either() -> None:
    own, rest = stages()
    assert sorted({*(file for files in own.values() for file in files), *rest}) == sorted(HERE.rglob("test_*.py"))
    with_the_pair, bench = set(own["pair"]), set(own["bench"])
    assert {file.name for file in with_the_pair - bench} == {END_OF_THE_PAIR}
    assert not (with_the_pair | bench | set(own["lines"])) & set(rest)
    assert not (with_the_pair | bench) & set(own["lines"])
    assert set(EVERYWHERE) <= {file.name for file in with_the_pair & bench}


def test_no_two_files_have_the_same_name_by_which_lanes_claim_them() -> None:
    names = [file.name for file in HERE.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_tests_that_share_a_fixture_are_one_lane() -> None:
    own, rest = stages()
    names = {lane: {file.name for file in files} for lane, files in own.items()}
    assert {"test_stack.py", "test_gate.py", "test_destroy.py", "test_secrets.py"} <= names["pair"]
    assert {"test_verification_state.py", "test_verification_matrix.py"} <= names["bench"] - names["pair"]
    assert {"test_tenancy.py", "test_scaling.py"} <= names["lines"]
    assert {"test_control_plane.py", "test_slack.py"} <= {file.name for file in rest}


def test_the_longest_files_for_any_sandbox_come_first() -> None:
    _, rest = stages()
    assert [file.name for file in rest[: len(LONGEST)]] == list(LONGEST)


def started(*stages_of_lanes: list[list[str]]) -> "subprocess.Popen[str]":
    """The runner with lanes that are made up for this test: a list of stages each, which are options and files."""
    code = (
        "import json, sys; from tests.integration.__main__ import Lane, run, signal\n"
        "[signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)]\n"
        "sys.exit(run([Lane(stages) for stages in json.loads(sys.argv[1])]))"
    )
    words = [[["-p", "no:cacheprovider", *stage] for stage in lane] for lane in stages_of_lanes]
    return subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(words)],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # made-up tests need none, and start sooner
        stdout=subprocess.PIPE,
        text=True,
    )


def made_up(folder: Path, name: str, *, seconds: float = 0, holds: object = True, stops_s: float = 0.5) -> str:
    """A test file with one test, whose fixture takes `stops_s` to stop."""
    file = folder / f"test_{name}.py"
    file.write_text(TEST.format(seconds=seconds, holds=holds, stops_s=stops_s), encoding="utf-8")
    return str(file)


def test_a_run_fails_if_one_lane_does_whose_next_stage_and_the_other_lanes_go_on(tmp_path: Path) -> None:
    fails, goes_on, other = (made_up(tmp_path, name, holds=name != "a") for name in "abc")
    run = started([[fails], [goes_on]], [[other]])
    shown = run.communicate(timeout=180)[0]
    assert run.returncode == 1, shown
    assert shown.count("1 failed") == 1
    assert shown.count("1 passed") == 2
    assert [Path(file).with_suffix(".runs").read_text() for file in (fails, goes_on, other)] == ["once\n"] * 3


def test_the_pool_is_run_once_by_whoever_is_free_and_what_is_for_every_lane_by_each(tmp_path: Path) -> None:
    files = [made_up(tmp_path, name, seconds=0.3) for name in "abcd"]
    everywhere = made_up(tmp_path, EVERYWHERE[0].removeprefix("test_").removesuffix(".py"))
    pool, nothing = tmp_path / "pool", tmp_path / "test_nothing.py"
    pool.mkdir()
    nothing.touch()
    stage = [f"--pool={pool}", everywhere, *files]
    run = started([stage, [str(nothing)]], [stage])
    shown = run.communicate(timeout=180)[0]
    assert run.returncode == 0, f"a stage of which no test is chosen is no failure\n{shown}"
    assert "no tests ran" in shown
    assert [Path(file).with_suffix(".runs").read_text() for file in files] == ["once\n"] * 4
    assert Path(everywhere).with_suffix(".runs").read_text() == "once\nonce\n"
    assert sorted(file.name for file in pool.iterdir()) == sorted(Path(file).name for file in files)


def test_a_failure_in_the_pool_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    run = started([[f"--pool={tmp_path / 'pool'}", made_up(tmp_path, "a", holds=False), made_up(tmp_path, "b")]])
    shown = run.communicate(timeout=180)[0]
    assert run.returncode == 1, shown
    assert "1 failed, 1 passed" in shown


def test_a_lane_that_was_killed_fails_the_run(tmp_path: Path) -> None:
    killed = "__import__('os').kill(__import__('os').getpid(), 9)"
    run = started([[made_up(tmp_path, "a", holds=killed)]], [[made_up(tmp_path, "b")]])
    run.communicate(timeout=180)
    assert run.returncode not in (0, None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_stops_what_all_lanes_started_and_begins_no_further_stage(
    tmp_path: Path, number: signal.Signals
) -> None:
    # The first lane stops last: it is the one whose end the runner waits for when the signal comes.
    run = started(
        [[made_up(tmp_path, "a", seconds=60, stops_s=2.5)], [made_up(tmp_path, "c")]],
        [[made_up(tmp_path, "b", seconds=60)]],
    )
    wait_until("both lanes have started", lambda: len(list(tmp_path.glob("*.up"))) == 2)
    run.send_signal(number)
    time.sleep(0.3)
    run.send_signal(number)  # impatience changes nothing
    shown = run.communicate(timeout=180)[0]
    assert run.returncode == 2, shown
    assert sorted(file.stem for file in tmp_path.glob("*.down")) == ["test_a", "test_b"], shown
    assert not (tmp_path / "test_c.up").exists()
