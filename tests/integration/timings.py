"""Where the time of the sandbox tests goes: a pytest plugin that measures a run, and the table made of it.

`python -m tests.integration --timings FOLDER` measures all lanes; `python -m tests.integration.timings FOLDER` writes
the table into docs/testing.md. A sampler reads the processes below pytest every two seconds and adds what they used to
the test that runs at that moment.

A moment counts as work if the processes of this pytest use at least `WORKING_CORES`, as the start of a JVM if they do
not and one of their JVMs is younger than `JVM_START_S`, and as waiting in all other cases.
"""

import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

SAMPLE_S = 2.0  # each sample takes 10 ms of a core, in each lane
WORKING_CORES = 0.4
JVM_START_S = 8.0
SLICE_S = 120.0
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = Path(__file__).parent.parent.parent / "docs" / "testing.md"
BEGIN, END = "<!-- timings: begin -->", "<!-- timings: end -->"
SLOWEST = 25
# What a process is, by the first of these that its command line contains.
KINDS = (
    ("kafka.Kafka", "broker"),
    ("ConnectDistributed", "worker"),
    ("org.apache.spark", "Spark"),
    ("java", "other JVM"),
    ("controlplane", "API server"),
    ("sandbox.operator", "operator"),
    ("pulumi", "Pulumi"),
    ("language_host", "Pulumi"),
    ("prometheus", "monitoring"),
    ("alertmanager", "monitoring"),
    ("chrom", "browser"),
    ("-m spark", "verification"),
    ("ops", "ops"),
    ("pytest", "pytest"),
)


@dataclass
class Timing:
    """Seconds of one test, or of a pytest in one slice of time."""

    wall_s: float = 0.0
    working_s: float = 0.0
    jvm_start_s: float = 0.0
    waiting_s: float = 0.0
    fixtures_s: float = 0.0
    jvms: int = 0
    cpu_s: dict[str, float] = field(default_factory=dict)

    def add(self, other: "Timing") -> None:
        """Add another one's figures."""
        for name in ("wall_s", "working_s", "jvm_start_s", "waiting_s", "fixtures_s", "jvms"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, seconds in other.cpu_s.items():
            self.used(kind, seconds)

    def used(self, kind: str, seconds: float) -> None:
        """Add CPU seconds of processes of a kind."""
        self.cpu_s[kind] = self.cpu_s.get(kind, 0.0) + seconds


@dataclass(frozen=True)
class _Process:
    parent: int
    started_at: float
    own_s: float
    children_s: float


class Sampler:
    """Reads the processes below this one until it is stopped, and adds what they use to the current test."""

    def __init__(self) -> None:
        self.tests: dict[str, Timing] = defaultdict(Timing)
        self.slices: list[dict[str, float]] = []
        self.current = "start"
        self._kinds: dict[tuple[int, float], str] = {}
        self._before: dict[tuple[int, float], _Process] = {}
        self._machine = _machine_s()
        self._end = threading.Event()
        self._began = self._last = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start to sample; what was used before belongs to nobody."""
        below = _descendants(_processes(), {(os.getpid(), 0.0)})
        self._before = {(pid, process.started_at): process for pid, process in below.items()}
        self._thread.start()

    def stop(self) -> None:
        """Take the last sample."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        now, machine = time.monotonic(), _machine_s()
        passed, self._last = now - self._last, now
        known = self._before
        # One that outlives its parent still belongs to it.
        below = _descendants(_processes(), {(os.getpid(), 0.0), *known})
        self._before = {(pid, process.started_at): process for pid, process in below.items()}
        timing = Timing(wall_s=passed)
        youngest_s = JVM_START_S
        for key, process in self._before.items():
            kind = self._kinds.setdefault(key, _kind(key[0]))
            former = known.get(key)
            timing.used(kind, process.own_s - (former.own_s if former else 0.0))
            timing.used("ended commands", process.children_s - (former.children_s if former else 0.0))
            if kind in ("broker", "worker", "Spark", "other JVM"):
                timing.jvms += former is None
                youngest_s = min(youngest_s, _age_s(process))
        # What a process used before it ended is in its parent's account as well: it was counted while it ran.
        for key in known.keys() - self._before.keys():
            if known[key].parent in below:
                timing.used("ended commands", -known[key].own_s - known[key].children_s)
        cores = sum(timing.cpu_s.values()) / passed
        setattr(timing, moment_of(cores, youngest_s), passed)
        self.tests[self.current].add(timing)
        number = int((now - self._began) / SLICE_S)
        while len(self.slices) <= number:
            self.slices.append({"wall_s": 0.0, "own_s": 0.0, "machine_s": 0.0})
        for key_, seconds in (
            ("wall_s", passed),
            ("own_s", cores * passed),
            ("machine_s", machine - self._machine),
        ):
            self.slices[number][key_] += seconds
        self._machine = machine


def moment_of(cores: float, youngest_jvm_s: float) -> str:
    """Which seconds of a `Timing` a moment adds to, by the cores in use and the age of the youngest JVM."""
    if cores >= WORKING_CORES:
        return "working_s"
    return "jvm_start_s" if youngest_jvm_s < JVM_START_S else "waiting_s"


class Plugin:
    """Tells the sampler which test runs, and writes what it found."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._sampler = Sampler()

    def pytest_sessionstart(self) -> None:
        """Start to measure."""
        self._sampler.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Everything from here on is this test's."""
        self._sampler.current = item.nodeid
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what its fixtures took."""
        if report.when != "call":
            self._sampler.tests[report.nodeid].fixtures_s += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the file, after the fixtures have ended what they started."""
        self._sampler.stop()
        tests = {name: asdict(timing) for name, timing in self._sampler.tests.items()}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps({"tests": tests, "slices": self._sampler.slices}, indent=1), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that names the file."""
    parser.addoption("--timings", type=Path, help="file for where the time of each test goes")


def pytest_configure(config: pytest.Config) -> None:
    """Measure if a file is named."""
    if file := config.getoption("--timings"):
        config.pluginmanager.register(Plugin(file.absolute()))


def _processes() -> dict[int, _Process]:
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text(errors="replace")
        except OSError:
            continue
        words = text.rpartition(")")[2].split()
        user, system, children_user, children_system = (int(word) / TICKS for word in words[11:15])
        found[int(folder.name)] = _Process(
            int(words[1]), int(words[19]) / TICKS, user + system, children_user + children_system
        )
    return found


def _descendants(processes: dict[int, _Process], roots: set[tuple[int, float]]) -> dict[int, _Process]:
    """The roots (process id and start time, 0 for any) that still run, and everything below them."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, process in processes.items():
        children[process.parent].append(pid)
    todo = [pid for pid, at in roots if pid in processes and at in (0.0, processes[pid].started_at)]
    found: dict[int, _Process] = {}
    while todo:
        pid = todo.pop()
        if pid not in found:
            found[pid] = processes[pid]
            todo.extend(children[pid])
    return found


def _kind(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "other"
    return next((kind for part, kind in KINDS if part in words), "other")


def _age_s(process: _Process) -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) - process.started_at


def _machine_s() -> float:
    """CPU seconds that the whole machine has used."""
    words = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, soft, *_ = (int(word) / TICKS for word in words)
    return user + nice + system + irq + soft


def table(folder: Path) -> str:
    """Markdown tables of one measured run: its lanes, its files, its slowest tests, CPU over time."""
    lanes = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}
    tests = {(lane, name): Timing(**each) for lane, found in lanes.items() for name, each in found["tests"].items()}
    files: dict[tuple[str, str], Timing] = defaultdict(Timing)
    totals: dict[str, Timing] = defaultdict(Timing)
    for (lane, name), timing in tests.items():
        files[lane, Path(name.partition("::")[0]).name].add(timing)
        totals[lane].add(timing)
    head = "| {} | wall s | working s | JVM start s | waiting s | CPU s | JVMs |\n|---|---|---|---|---|---|---|"
    parts = [head.format("lane"), *(_row(lane, timing) for lane, timing in totals.items()), ""]
    kinds = sorted({kind for timing in totals.values() for kind in timing.cpu_s})
    parts += ["| CPU s of | " + " | ".join(totals) + " |", "|---" * (len(totals) + 1) + "|"]
    parts += [
        f"| {kind} | " + " | ".join(f"{each.cpu_s.get(kind, 0):.0f}" for each in totals.values()) + " |"
        for kind in kinds
    ]
    parts += ["", head.format("file")]
    by_wall = sorted(files.items(), key=lambda item: -item[1].wall_s)
    parts += [_row(f"{lane}: {name}", timing) for (lane, name), timing in by_wall]
    parts += ["", head.format("slowest tests")]
    slowest = sorted(tests.items(), key=lambda item: -item[1].wall_s)[:SLOWEST]
    parts += [_row(f"`{Path(name).name}`", timing) for (_, name), timing in slowest]
    parts += ["", "| minutes | cores used by " + " | by ".join(totals) + " | by the machine |"]
    parts += ["|---" * (len(totals) + 2) + "|"]
    longest = max((found["slices"] for found in lanes.values()), key=len)
    for number, whole in enumerate(longest):
        used = [_cores(found["slices"][number : number + 1], "own_s") for found in lanes.values()]
        begins = number * SLICE_S / 60
        parts.append(
            f"| {begins:.0f} to {begins + SLICE_S / 60:.0f} | {' | '.join(used)} | {_cores([whole], 'machine_s')} |"
        )
    return "\n".join(parts)


def _row(name: str, timing: Timing) -> str:
    seconds = (timing.wall_s, timing.working_s, timing.jvm_start_s, timing.waiting_s, sum(timing.cpu_s.values()))
    return f"| {name} | " + " | ".join(f"{each:.0f}" for each in seconds) + f" | {timing.jvms} |"


def _cores(slices: Sequence[dict[str, float]], key: str) -> str:
    return "".join(f"{each[key] / each['wall_s']:.2f}" for each in slices if each["wall_s"])


def main(arguments: Sequence[str]) -> int:
    """Write the table of a measured run into docs/testing.md; return the exit code."""
    if len(arguments) != 1 or not list(Path(arguments[0]).glob("*.json")):
        sys.stderr.write("timings: FOLDER must hold the files of a measured run (got none). Run: make test\n")
        return 2
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table(Path(arguments[0]))}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
