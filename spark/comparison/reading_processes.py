"""Reads ranges in several processes, where there is enough to read that they start sooner than one would have read.

Owns the processes, which get what to read by their standard input and end with it, whatever becomes of their parent.
Each of them is `python -m spark.comparison.reading_processes PID`, so this module imports nothing that is slow to load.
"""

import gc
import heapq
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, cast

from contract.fields import VerificationError
from kafka.cluster import Cluster
from kafka.topic_partition import TopicPartition
from spark.comparison.reading import Log, ReadRange, SessionError, read_ranges

ALONE_MAX = 300_000  # offsets that one process has read by the time others have started
TASKS = 4  # for each process, so that all end at about the same time
PROCESSES_MAX = 8  # each holds some 50 MiB and what it has fetched; more of them wait for the brokers
CORES = "RT_INVENTORY_SPARK_CORES"
CGROUP = Path("/sys/fs/cgroup")  # a container's own; a machine's has no quota
ENDS_WITHIN_S = 5
ROOT = Path(__file__).resolve().parents[2]
Logs = dict[TopicPartition, Log]
Advance = Callable[[int, int], None]


@dataclass(frozen=True)
class Task:
    """Ranges of one side, of which no two are of the same partition."""

    cluster: Cluster
    isolation: str
    ranges: tuple[ReadRange, ...]

    @property
    def offsets(self) -> int:
        """How many offsets the ranges have."""
        return sum(one.end - one.start for one in self.ranges)

    def parted(self, number: int) -> list["Task"]:
        """Return up to so many tasks of about the same size that read the same together."""
        heap: list[tuple[int, int, list[ReadRange]]] = [
            (0, at, []) for at in range(max(1, min(number, len(self.ranges))))
        ]
        for one in sorted(self.ranges, key=lambda part: part.start - part.end):
            held, at, ranges = heapq.heappop(heap)
            ranges.append(one)
            heapq.heappush(heap, (held + one.end - one.start, at, ranges))
        return [Task(self.cluster, self.isolation, tuple(ranges)) for _, _, ranges in heap if ranges]


def read_all(tasks: Sequence[Task], advance: Advance) -> list[Logs]:
    """Return the records of each task; raises what `read_ranges` raises. `advance` gets partitions and records."""
    cores = cores_to_use(os.environ)
    total = sum(task.offsets for task in tasks)
    if total <= ALONE_MAX or cores == 1:
        return [read_ranges(task.cluster, task.isolation, task.ranges, advance) for task in tasks]
    parts = [
        (at, part) for at, task in enumerate(tasks) for part in task.parted(-(-task.offsets * cores * TASKS // total))
    ]
    found: list[Logs] = [{} for _ in tasks]
    with _processes(min(cores, len(parts))) as readers:
        free: SimpleQueue[_Reader] = SimpleQueue()
        for reader in readers:
            free.put(reader)

        def read(part: Task) -> Logs:
            reader = free.get()
            try:
                return reader.read(part)
            finally:
                free.put(reader)

        with ThreadPoolExecutor(len(readers)) as pool:
            waiting = {pool.submit(read, part): at for at, part in sorted(parts, key=lambda one: -one[1].offsets)}
            try:
                for done in as_completed(waiting):
                    logs = done.result()
                    found[waiting[done]] |= logs
                    advance(len(logs), sum(map(len, logs.values())))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for reader in readers:
                    reader.kill()  # which ends the waiting of its thread
                raise
    return found


def cores_to_use(environment: Mapping[str, str]) -> int:
    """Return how many processes read side by side: one for each core, up to PROCESSES_MAX.

    In a pod the CPUs of its node are not its own: the CPU limit counts, and RT_INVENTORY_SPARK_CORES if it is a number.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = environment.get(CORES, "")
    limits = [cores, PROCESSES_MAX, *([int(asked)] if asked.isdecimal() else [])]
    if (quota := _cpu_quota(CGROUP)) is not None:
        limits.append(math.ceil(quota))
    return max(1, min(limits))


def _cpu_quota(cgroup: Path) -> float | None:
    """Return how many CPUs a container may use at once, by cgroup version 2 or 1; None without a limit."""
    try:
        quota, period = (cgroup / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:
            files = (cgroup / "cpu" / f"cpu.cfs_{name}_us" for name in ("quota", "period"))
            quota, period = (file.read_text(encoding="ascii").strip() for file in files)
        except (OSError, ValueError):
            return None
    # No limit is "max" in version 2, -1 in version 1.
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


class _Reader:
    """One process, which reads what its standard input asks for."""

    def __init__(self) -> None:
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "spark.comparison.reading_processes", str(os.getpid())],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._tasks, self._answers = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)

    def read(self, task: Task) -> Logs:
        """Return the records of a task; raises what `read_ranges` raises there, SessionError if the process ends."""
        try:
            pickle.dump((task.cluster.side, task.isolation, task.ranges), self._tasks)
            self._tasks.flush()
            answer = pickle.load(self._answers)  # noqa: S301 - written by our own process
        except (OSError, EOFError, pickle.UnpicklingError):
            code = self._process.wait()
            message = (
                f"a process that read records ended with exit code {code}. Check the free memory or lower {CORES}."
            )
            raise SessionError(message) from None
        if isinstance(answer, BaseException):
            raise answer
        logs: Logs = answer
        return logs

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def end(self) -> None:
        """End the process and give its pipes back."""
        self.kill()
        self._process.communicate(timeout=ENDS_WITHIN_S)


@contextmanager
def _processes(number: int) -> Iterator[list[_Reader]]:
    readers: list[_Reader] = []
    try:
        readers += (_Reader() for _ in range(number))
        yield readers
    finally:
        for reader in readers:
            reader.end()


CHECK_S = 1.0
# Many processes fetch at once: as much as keeps one of them busy, in place of 64 MiB.
FETCHES = {"queued.max.messages.kbytes": 8192, "fetch.max.bytes": 8 * 1024 * 1024}


def main() -> int:
    """Answer each task on standard input, a pickled side, isolation and ranges; the answer is logs or an error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks for records ends this process
    threading.Thread(target=_follow, args=(int(sys.argv[1]),), daemon=True).start()
    gc.disable()  # messages are in no cycles: to look for some among them is a tenth of the work
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nobody's words may stand between the answers
    while True:
        try:
            side, isolation, ranges = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our own process
        except EOFError:
            return 0
        answer: object
        try:
            answer = read_ranges(Cluster(side), isolation, ranges, lambda *_: None, FETCHES)
        except VerificationError as error:
            answer = error
        except Exception as error:
            answer = SessionError(f"a process that read records failed ({type(error).__name__})")
        pickle.dump(answer, answers, protocol=5)
        answers.flush()


def _follow(parent: int) -> None:
    """End this process, in the middle of a task too, soon after its parent was killed; it may be gone already."""
    while os.getppid() == parent:
        time.sleep(CHECK_S)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
