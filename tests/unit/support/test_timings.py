"""Where the time of a run goes: what the sampler sees of its processes, and the tables made of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration import timings
from tests.integration.timings import Sampler, main, moment_of, table
from tests.support.waiting import wait_until

BUSY = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"


def test_the_cpu_time_of_a_process_below_this_one_belongs_to_the_test() -> None:
    sampler = Sampler()
    sampler.current = "busy"
    sampler.start()
    subprocess.run([sys.executable, "-c", BUSY], check=True, timeout=120)
    sampler.current = "waits"
    wait_until("a sample of a second", lambda: sampler.tests["waits"].wall_s > 1, every_s=0.5)
    sampler.stop()
    busy, waits = sampler.tests["busy"], sampler.tests["waits"]
    # A sample that began with the process may end after it.
    assert 0.4 < sum(busy.cpu_s.values()) + sum(waits.cpu_s.values()) < 8
    assert busy.wall_s == pytest.approx(busy.working_s + busy.waiting_s + busy.jvm_start_s)


@pytest.mark.parametrize(
    ("cores", "youngest_jvm_s", "moment"),
    [(0.4, 1.0, "working_s"), (0.39, 7.9, "jvm_start_s"), (0.39, 8.0, "waiting_s"), (1.5, 600.0, "working_s")],
)
def test_a_moment_is_work_or_the_start_of_a_jvm_or_waiting(cores: float, youngest_jvm_s: float, moment: str) -> None:
    assert moment_of(cores, youngest_jvm_s) == moment


def measured(folder: Path) -> Path:
    """Two lanes, one with two tests."""
    timing = {"wall_s": 60, "working_s": 20, "jvm_start_s": 10, "waiting_s": 30, "fixtures_s": 5, "jvms": 2}
    slices = [{"wall_s": 120, "own_s": 60, "machine_s": 180}]
    for lane, tests in {"pair": ["a.py::one", "a.py::two"], "pool": ["b.py::three"]}.items():
        found = {name: {**timing, "cpu_s": {"broker": 12, "Pulumi": 3}} for name in tests}
        (folder / f"{lane}.json").write_text(json.dumps({"tests": found, "slices": slices}), encoding="utf-8")
    return folder


def test_the_tables_add_up_lanes_files_and_kinds_of_processes(tmp_path: Path) -> None:
    lines = table(measured(tmp_path)).splitlines()
    assert "| pair | 120 | 40 | 20 | 60 | 30 | 4 |" in lines
    assert "| broker | 24 | 12 |" in lines
    assert "| pool: b.py | 60 | 20 | 10 | 30 | 15 | 2 |" in lines
    assert "| `a.py::one` | 60 | 20 | 10 | 30 | 15 | 2 |" in lines
    assert "| 0 to 2 | 0.50 | 0.50 | 1.50 |" in lines


def test_the_command_replaces_the_tables_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "testing.md"
    page.write_text(f"before\n{timings.BEGIN}\nold\n{timings.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(timings, "PAGE", page)
    (tmp_path / "run").mkdir()
    assert main([str(measured(tmp_path / "run"))]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{timings.BEGIN}\n")
    assert text.endswith(f"\n{timings.END}\nafter\n")
    assert "old" not in text


def test_a_folder_without_measurements_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "must hold the files of a measured run" in capsys.readouterr().err
