"""Ranges that several processes read: the same as one process reads, and nothing is left of them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import psutil
import pytest

from kafka.cluster import Cluster
from kafka.errors import ClusterError
from spark.comparison import reading_processes
from spark.comparison.reading import ReadRange, SessionError, read_ranges
from spark.comparison.reading_processes import FETCHES, Task, read_all
from tests.support.waiting import wait_until

from ...support.undecodable_headers import COUNT

READS = "spark.comparison.reading_processes"


@pytest.fixture(autouse=True)
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little there is to read, two processes do."""
    monkeypatch.setattr(reading_processes, "ALONE_MAX", 0)
    monkeypatch.setattr(reading_processes.os, "sched_getaffinity", lambda _: {0, 1})


@pytest.fixture
def cgroup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A node of 64 CPUs; what is written into the folder limits the pod."""
    monkeypatch.setattr(reading_processes.os, "sched_getaffinity", lambda _: {*range(64)})
    monkeypatch.setattr(reading_processes, "CGROUP", tmp_path)
    (tmp_path / "cpu").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "limits", "number"),
    [
        ({}, {}, 8),
        ({"RT_INVENTORY_SPARK_CORES": "2"}, {}, 2),
        ({"RT_INVENTORY_SPARK_CORES": "16"}, {}, 8),
        ({"RT_INVENTORY_SPARK_CORES": "0"}, {}, 1),
        ({"RT_INVENTORY_SPARK_CORES": "*"}, {"cpu.max": "150000 100000\n"}, 2),
        ({"RT_INVENTORY_SPARK_CORES": "4"}, {"cpu.max": "300000 100000\n"}, 3),
        ({}, {"cpu.max": "50000 100000\n"}, 1),
        ({}, {"cpu.max": "max 100000\n"}, 8),
        ({}, {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({}, {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
    ],
)
def test_a_pod_on_a_large_node_starts_no_more_of_them_than_it_has_cpus(
    cgroup: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, str], limits: dict[str, str], number: int
) -> None:
    started: list[int] = []

    def processes(count: int) -> None:
        started.append(count)
        raise SessionError("enough is known")

    monkeypatch.delenv("RT_INVENTORY_SPARK_CORES", raising=False)
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    for file, text in limits.items():
        (cgroup / file).write_text(text, encoding="ascii")
    monkeypatch.setattr(reading_processes, "_processes", processes)
    monkeypatch.setattr(reading_processes, "read_ranges", lambda *_: {})
    tasks = [Task(cast("Cluster", None), "read_committed", tuple(ReadRange("t", n, 0, 2000) for n in range(120)))] * 2
    if number > 1:
        with pytest.raises(SessionError, match="enough is known"):
            read_all(tasks, lambda *_: None)
    else:
        read_all(tasks, lambda *_: None)
    assert started == ([number] if number > 1 else [])


def test_each_of_them_fetches_little_at_a_time() -> None:
    given: list[dict[str, object]] = []

    class Refusing:
        def consumer(self, isolation: str, config: dict[str, object]) -> None:
            given.append(config)
            raise SessionError(isolation)

    with pytest.raises(SessionError):
        read_ranges(cast("Cluster", Refusing()), "read_committed", ranges("named"), lambda *_: None, FETCHES)
    assert given == [{"enable.partition.eof": True, "queued.max.messages.kbytes": 8192, "fetch.max.bytes": 8388608}]


def ranges(*topics: str) -> tuple[ReadRange, ...]:
    return tuple(ReadRange(topic, 0, 3, COUNT - 2) for topic in topics)


def readers() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if READS in " ".join(one.cmdline())]


def test_they_read_what_one_process_reads(cluster: Cluster) -> None:
    reported: list[tuple[int, int]] = []
    tasks = [
        Task(cluster, "read_committed", ranges("named", "altered")),
        Task(cluster, "read_uncommitted", ranges("named")),
    ]
    found = read_all(tasks, lambda *numbers: reported.append(numbers))
    for task, logs in zip(tasks, found, strict=True):
        wanted = read_ranges(cluster, task.isolation, task.ranges, lambda *_: None)
        assert {tp: log.tolist() for tp, log in logs.items()} == {tp: log.tolist() for tp, log in wanted.items()}
    assert len(found[0]["named", 0]) == COUNT - 5
    assert (sum(ended for ended, _ in reported), sum(read for _, read in reported)) == (3, 3 * (COUNT - 5))
    assert readers() == []


def test_little_is_read_without_them(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_processes, "ALONE_MAX", 2 * COUNT)
    monkeypatch.setattr(reading_processes, "_processes", None)
    (found,) = read_all([Task(cluster, "read_committed", ranges("named"))], lambda *_: None)
    assert len(found["named", 0]) == COUNT - 5


def test_ranges_are_shared_out_by_their_size(cluster: Cluster) -> None:
    sizes = [50, 10, 30, 20, 40]
    task = Task(cluster, "read_committed", tuple(ReadRange("t", n, 0, size) for n, size in enumerate(sizes)))
    parts = task.parted(2)
    assert sorted(part.offsets for part in parts) == [70, 80]
    assert sorted(one.partition for part in parts for one in part.ranges) == [*range(5)]
    assert [part.offsets for part in task.parted(1)] == [150]
    assert len(task.parted(9)) == 5


def test_what_one_of_them_may_not_read_ends_all(cluster: Cluster) -> None:
    wrong = Task(cluster, "no such isolation", ranges("named"))
    with pytest.raises((ClusterError, SessionError), match="process that read records failed"):
        read_all([Task(cluster, "read_committed", ranges("altered")), wrong], lambda *_: None)
    assert readers() == []


@pytest.mark.parametrize("end", [psutil.Process.kill, psutil.Process.terminate])
def test_one_that_is_killed_ends_the_run_with_its_exit_code(
    cluster: Cluster, end: Callable[[psutil.Process], None]
) -> None:
    endless = Task(cluster, "read_committed", (ReadRange("named", 0, 0, 10 * COUNT),))

    def ends_one() -> None:
        wait_until("a process reads", readers, 20)
        end(readers()[0])

    thread = threading.Thread(target=ends_one)
    thread.start()
    with pytest.raises(SessionError, match="a process that read records ended with exit code -"):
        read_all([endless], lambda *_: None)
    thread.join()
    assert readers() == []


def test_nothing_is_left_of_a_run_that_is_killed(broker: str, tmp_path: Path) -> None:
    program = f"""
from kafka.cluster import Cluster
from spark.comparison import reading_processes
from spark.comparison.reading import ReadRange
from contract.verification_request import ClusterConfig
reading_processes.ALONE_MAX = 0
reading_processes.os.sched_getaffinity = lambda _: {{0, 1}}
side = ClusterConfig(role="source", alias="dev", client_config={{"bootstrap.servers": "{broker}"}})
endless = tuple(ReadRange(topic, 0, 0, 10_000) for topic in ("named", "altered"))
reading_processes.read_all([reading_processes.Task(Cluster(side), "read_committed", endless)], lambda *_: None)
"""
    root = Path(__file__).parents[3]
    run = subprocess.Popen([sys.executable, "-c", program], cwd=root, env={**os.environ, "PYTHONPATH": str(root)})

    def reading() -> list[psutil.Process]:
        return [one for one in psutil.Process(run.pid).children() if READS in " ".join(one.cmdline())]

    wait_until("both processes read", lambda: len(reading()) == 2, 20)
    time.sleep(1)  # inside a reading that never ends by itself in this time
    children = reading()
    run.send_signal(signal.SIGKILL)
    run.wait(10)
    gone = "the processes have ended"
    wait_until(gone, lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in children), 10)


def test_a_process_that_reads_loads_nothing_that_is_slow_to_load() -> None:
    program = "import sys; import spark.comparison.reading_processes; print(*sys.modules)"
    root = Path(__file__).parents[3]
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    assert {"pyspark", "pyarrow", "rich", "httpx", "kubernetes"}.isdisjoint(loaded.split())
