"""What a stage of the demo shows: its name when it is done, and below it what it found."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from sandbox.demo import StageError, Stages, _step
from sandbox.demo.in_sandbox import SandboxClusters
from sandbox.state import SandboxState
from sandbox.toolchain import Tools


def stages(folder: Path) -> tuple[Stages, io.StringIO]:
    written = io.StringIO()
    return Stages(Console(file=written, width=80), folder), written


def test_what_a_stage_found_stands_below_its_name(tmp_path: Path) -> None:
    demo, written = stages(tmp_path)
    with demo.stage("produce"):
        demo.report("10 acknowledged")
    with demo.stage("verify"):
        demo.report("verdict pass")
    first, found, second, verdict = written.getvalue().splitlines()
    assert first.startswith("done  produce ")
    assert second.startswith("done  verify ")
    assert (found, verdict) == ("      10 acknowledged", "      verdict pass")
    assert set(demo.seconds) == {"produce", "verify"}


def test_a_stage_that_fails_shows_what_it_found_and_is_not_done(tmp_path: Path) -> None:
    demo, written = stages(tmp_path)
    with pytest.raises(StageError):
        fail(demo)
    assert written.getvalue() == "      3 acknowledged\n"
    assert not demo.seconds


def fail(demo: Stages) -> None:
    with demo.stage("produce"):
        demo.report("3 acknowledged")
        demo.run("produce", [sys.executable, "-c", "raise SystemExit(3)"], {}, 60)


def test_what_is_said_between_stages_and_after_one_that_failed_is_shown_at_once(tmp_path: Path) -> None:
    demo, written = stages(tmp_path)
    demo.report("before")
    with demo.stage("produce"):
        pass
    with pytest.raises(StageError):
        fail(demo)
    demo.report("A demo is still there.")
    lines = written.getvalue().splitlines()
    assert (lines[0], lines[2:]) == ("      before", ["      3 acknowledged", "      A demo is still there."])


def test_the_step_of_a_failover_is_read_from_its_log(tmp_path: Path) -> None:
    log = tmp_path / "demo.failover.log"
    assert _step(log) == ""
    log.write_text("[1/6] drain: wait\n[1/6] drain: done in 2 s\n[2/6] prove: verify\nverdict pass\n", "utf-8")
    assert _step(log) == "[2/6] prove"


@pytest.mark.parametrize(("latency", "second"), [(None, []), ("100ms", [("network", "--latency", "100ms")])])
def test_a_distance_is_put_between_the_sites_before_there_are_any(
    state: SandboxState, tools: Tools, monkeypatch: pytest.MonkeyPatch, latency: str | None, second: list[object]
) -> None:
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        SandboxClusters, "_sandbox", lambda _clusters, _stages, _label, *words, timeout_s: commands.append(words)
    )
    demo, written = stages(state.path)
    SandboxClusters(state, tools, latency).begin(demo)
    assert commands == [("up",), *second]
    assert ("100ms between the sites" in written.getvalue()) is (latency is not None)
