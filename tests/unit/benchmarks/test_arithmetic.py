"""The arithmetic of the benchmarks and the shape of their committed results; nothing is measured here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import mirror_throughput
from benchmarks.clusters import BenchmarkError
from benchmarks.mirror_throughput import Sample, baseline, consumed, produced, speed
from benchmarks.preview_large_stack import Verdict, large_stack, verdict
from ops.sizing.clients import MEASURED, read_throughput
from sandbox.state import PROJECT
from settings import parse


def test_the_time_before_the_first_records_arrive_does_not_count() -> None:
    samples = [Sample(0, 0, 0), Sample(60, 200, 5.0), Sample(62, 600, 5.4), Sample(64, 1000, 5.8)]
    found = speed(samples, 1000)
    assert found.records_per_second == pytest.approx(200)
    assert found.cpu_seconds_per_100k == pytest.approx(100)


def test_waiting_after_the_last_record_does_not_count() -> None:
    samples = [Sample(0, 200, 0), Sample(2, 1000, 1.0), Sample(50, 1000, 2.0)]
    assert speed(samples, 1000).records_per_second == pytest.approx(400)


def test_a_mirror_that_copied_everything_in_one_step_was_not_measured() -> None:
    with pytest.raises(BenchmarkError, match="more than one step"):
        speed([Sample(0, 0, 0), Sample(1, 1000, 1)], 1000)


def test_the_baseline_is_slower_than_its_slower_half() -> None:
    assert baseline(100, 50) == pytest.approx(100 / 3)


def test_the_last_line_of_the_producer_tool_counts() -> None:
    output = "500 records sent, 100.5 records/sec (0.1 MB/sec)\n1000 records sent, 88.25 records/sec (0.1 MB/sec)\n"
    assert produced(output) == 88.25


def test_the_consumer_tool_is_read_by_the_name_of_its_column() -> None:
    output = "start.time, nMsg.sec, fetch.nMsg.sec\n2026-11-21 10:00:00:000, 12.0, 34.5\n"
    assert consumed(output) == 34.5


@pytest.mark.parametrize("read", [produced, consumed])
def test_a_tool_that_printed_no_rate_is_an_error(read: object) -> None:
    assert callable(read)
    with pytest.raises(BenchmarkError, match="must print"):
        read("nothing\n")


def test_the_committed_throughput_holds_every_size_and_can_be_read() -> None:
    document = json.loads(MEASURED.read_text(encoding="utf-8"))
    wanted = {(size, tasks) for size in mirror_throughput.RECORDS for tasks in mirror_throughput.TASKS}
    assert {(row["recordBytes"], row["tasks"]) for row in document["mirror"]} == wanted
    assert [point.record_bytes for point in read_throughput(MEASURED).points] == sorted(mirror_throughput.RECORDS)


def test_the_benchmark_stops_and_removes_its_processes_when_the_start_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = []
    monkeypatch.setattr("benchmarks.clusters.Clusters.start", lambda _: (_ for _ in ()).throw(BenchmarkError("no")))
    monkeypatch.setattr("benchmarks.clusters.Processes.stop_all", lambda *_: stopped.append(True))
    with pytest.raises(BenchmarkError, match="no"), mirror_throughput.running(None):  # type: ignore[arg-type] # no tool is used
        pass
    assert stopped == [True]


def test_a_benchmark_that_gets_sigterm_cleans_up_first(tmp_path: Path) -> None:
    program = (
        "import os, signal, pathlib; from benchmarks import tables; tables.clean_up_on_sigterm()\n"
        "try: os.kill(os.getpid(), signal.SIGTERM)\n"
        f"finally: pathlib.Path({str(tmp_path / 'cleaned')!r}).touch()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, timeout=60, check=False)
    assert done.returncode == 143
    assert (tmp_path / "cleaned").exists()


def test_the_large_stack_is_a_good_one_of_200_topics_and_50_users() -> None:
    stack = parse(large_stack())
    assert (len(stack.topics), len(stack.users), len(stack.mirrors)) == (200, 50, 0)


def test_a_preview_may_take_twice_the_time_of_the_empty_one_and_five_seconds_at_most() -> None:
    found = verdict([2.0, 9.0, 1.0], [8.9, 9.0, 30.0], [12.0, 11.0, 30.0])
    assert found == Verdict(2.0, 9.0, 12.0)
    assert (found.allowed_s, found.passed) == (9.0, True)
    assert not verdict([2.0], [9.1], [9.1]).passed


def test_the_policy_pack_may_add_three_seconds_to_a_preview() -> None:
    assert verdict([2.0], [7.0], [10.0]).passed
    assert not verdict([2.0], [7.0], [10.1]).passed
