"""Runs the tests of the sandbox in lanes at the same time: `python -m tests.integration [options of pytest]`.

A lane runs pytest first on the files that share what takes long to bring up, then on what is left for any sandbox:
whichever lane is free takes the next file. Two lanes have a pair of stacks, and share the files that need one. Each
pytest has a sandbox of its own, so that one works while another waits. Whatever ends the run early, all stop theirs.
"""

import argparse
import ast
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
# Fixtures of conftest, in the order in which they decide to which files one belongs: topics on both clusters of the
# pair, the pair itself, the example with several mirrors.
SHARED = ("bench", "pair", "lines")
# Ends the pair: the last of the one lane that has it.
END_OF_THE_PAIR = "test_destroy.py"
# Files of the pool that take longest: they come first, so that no lane is left with one at the end.
LONGEST = (
    "test_nemesis.py",
    "test_killed.py",
    "test_stories.py",
    "test_demo.py",
    "test_fence.py",
    "test_topic_failover.py",
    "test_monitored_pair.py",
    "test_way_back.py",
    "test_examples.py",
    "test_two_clusters.py",
)
PLUGINS = ("-p", "tests.integration.timings", "-p", "tests.integration.pool")
NOTHING_CHOSEN = 5  # pytest's exit code
# All lanes must end within so many seconds: with a sample of the cases, and with all of them.
WITHIN_S, NIGHTLY_WITHIN_S, STOPPED_WITHIN_S = 80 * 60.0, 150 * 60.0, 180.0
INTERRUPTED = 2  # pytest's exit code


@dataclass
class Lane:
    """The stages of one lane, each the options and files of one pytest, run one after the other."""

    stages: Sequence[Sequence[str | Path]]
    codes: list[int] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when nothing of it runs. To be waited for: a `Thread.join` that is interrupted takes its thread for ended."""
    _run: "subprocess.Popen[str] | None" = None
    _interrupted: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Run the stages to their ends and print their output line by line."""
        try:
            for stage in self.stages:
                with self._lock:
                    if self._interrupted:
                        return
                    run = self._run = _started(stage)
                for line in run.stdout or ():
                    sys.stdout.write(line)
                    sys.stdout.flush()
                self.codes.append(abs(run.wait()))  # negative if a signal ended it
        finally:
            self.ended.set()

    def interrupt(self) -> None:
        """Start no further stage, and let the present one stop its sandbox."""
        with self._lock:
            self._interrupted = True
            if self._run is not None:
                self._run.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End the present stage at once."""
        with self._lock:
            if self._run is not None:
                self._run.kill()


def main(arguments: Sequence[str]) -> int:
    """Run all lanes; return the worst exit code of pytest."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="python -m tests.integration", description="Run the tests of the sandbox.")
    parser.add_argument("--timings", type=Path, help="folder for where the time goes, see tests/integration/timings.py")
    own, options = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory(prefix="rt-inventory-pool-") as pool:
        within_s = NIGHTLY_WITHIN_S if "--nightly" in options else WITHIN_S
        return run(lanes(Path(pool), options, own.timings), within_s)


def run(every: Sequence[Lane], within_s: float = WITHIN_S) -> int:
    """Run lanes side by side; return the worst exit code of pytest."""
    threads = [threading.Thread(target=lane.run) for lane in every]
    interrupted = False
    try:
        for thread in threads:
            thread.start()
        end = time.monotonic() + within_s
        interrupted = not all(lane.ended.wait(max(0.0, end - time.monotonic())) for lane in every)
        if interrupted:
            sys.stderr.write(f"tests.integration: all lanes must end within {within_s / 60:.0f} min; they stop.\n")
    except KeyboardInterrupt:
        interrupted = True
    if interrupted:
        _stop(every, threads)
    codes = {code for lane in every for code in lane.codes} | ({INTERRUPTED} if interrupted else set())
    # A choice of tests may leave a stage without any.
    return max(codes - {NOTHING_CHOSEN}, default=NOTHING_CHOSEN)


def lanes(pool: Path, options: Sequence[str] = (), timings: Path | None = None) -> list[Lane]:
    """The lanes of a run. `pool` is an empty folder for the lanes' locks, `timings` one for the measurements."""
    own, rest = stages()
    every = []
    for name, files in own.items():
        both = {name: files, f"{name}-rest": rest}
        measured = {stage: [f"--timings={timings.absolute() / stage}.json"] if timings else [] for stage in both}
        every.append(Lane([[f"--pool={pool}", *measured[stage], *options, *both[stage]] for stage in both]))
    return every


def stages() -> tuple[dict[str, list[Path]], list[Path]]:
    """The files of each lane's first stage, and those of all second ones. A file of several is run by one lane."""
    files = sorted(HERE.rglob("test_*.py"))
    by_fixture: dict[str | None, list[Path]] = {name: [] for name in (*SHARED, None)}
    for file in files:
        fixtures = _fixtures(file)
        by_fixture[next((name for name in SHARED if name in fixtures), None)].append(file)
    pair = by_fixture["pair"]
    own = {
        "pair": pair,
        "bench": [*by_fixture["bench"], *(file for file in pair if file.name != END_OF_THE_PAIR)],
        "lines": by_fixture["lines"],
    }
    rest = by_fixture[None]
    return own, sorted(rest, key=lambda file: LONGEST.index(file.name) if file.name in LONGEST else len(LONGEST))


def _fixtures(file: Path) -> set[str]:
    functions = [each for each in ast.parse(file.read_text("utf-8")).body if isinstance(each, ast.FunctionDef)]
    return {argument.arg for each in functions for argument in each.args.args}


def _started(words: Sequence[str | Path]) -> "subprocess.Popen[str]":
    """A pytest in a session of its own: Ctrl-C reaches it once, from here, and does not stop its stopping."""
    command = [sys.executable, "-m", "pytest", "--no-header", *PLUGINS, "-m", "sandbox", *map(str, words)]
    return subprocess.Popen(
        command,
        cwd=HERE.parent.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _stop(every: Sequence[Lane], threads: Sequence[threading.Thread]) -> None:
    """Let the lanes stop their sandboxes, for which another interrupt gives them no less time."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for lane in every:
        lane.interrupt()
    end = time.monotonic() + STOPPED_WITHIN_S
    for lane, thread in zip(every, threads, strict=True):
        if thread.ident is None:  # it was not started yet
            continue
        if not lane.ended.wait(max(0.0, end - time.monotonic())):
            lane.kill()
            lane.ended.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
