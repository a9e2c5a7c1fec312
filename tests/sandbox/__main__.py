"""Runs the tests of the sandbox as two halves at the same time: `python -m tests.sandbox [options of pytest]`.

Each half is a pytest of its own with a sandbox of its own, so that one waits while the other works. All that use the
pair of stacks are one half: only one sandbox brings it up. Whatever ends the run early, both stop their sandboxes.
"""

import ast
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
OF_THE_PAIR = {"pair", "bench"}  # fixtures of conftest: the stacks, and what lies on their clusters
NOTHING_CHOSEN = 5  # pytest's exit code
WITHIN_S, STOPPED_WITHIN_S = 85 * 60.0, 180.0


def main(options: Sequence[str]) -> int:
    """Run both halves and show what they say, line by line; return the worse of their exit codes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    runs: list[subprocess.Popen[str]] = []
    readers = []
    try:
        for half in halves():
            runs.append(_started(half, options))
            readers.append(threading.Thread(target=_show, args=(runs[-1],)))
            readers[-1].start()
        end = time.monotonic() + WITHIN_S
        for run in runs:
            run.wait(max(0.0, end - time.monotonic()))
    except KeyboardInterrupt:
        _interrupt(runs)
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"tests.sandbox: both halves must end within {WITHIN_S / 60:.0f} min; they are stopped.\n")
        _interrupt(runs)
    for reader in readers:
        reader.join()
    codes = {abs(run.returncode) for run in runs}  # of one that a signal ended it is negative
    # A choice of tests may leave one half without any.
    return max(codes - {NOTHING_CHOSEN}, default=NOTHING_CHOSEN)


def halves() -> tuple[list[Path], list[Path]]:
    """The test files that use the pair of stacks, and all others of this folder."""
    files = sorted(HERE.glob("test_*.py"))
    with_the_pair = [file for file in files if _uses_the_pair(file)]
    return with_the_pair, [file for file in files if file not in with_the_pair]


def _uses_the_pair(file: Path) -> bool:
    functions = [each for each in ast.parse(file.read_text("utf-8")).body if isinstance(each, ast.FunctionDef)]
    return any(argument.arg in OF_THE_PAIR for each in functions for argument in each.args.args)


def _started(files: Sequence[Path], options: Sequence[str]) -> "subprocess.Popen[str]":
    """A pytest in a session of its own: Ctrl-C reaches it once, from here, and does not stop its stopping."""
    command = [sys.executable, "-m", "pytest", "--no-header", "-m", "sandbox", *options, *map(str, files)]
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


def _show(run: "subprocess.Popen[str]") -> None:
    for line in run.stdout or ():
        sys.stdout.write(line)
        sys.stdout.flush()


def _interrupt(runs: Sequence["subprocess.Popen[str]"]) -> None:
    """Let the runs stop their sandboxes, for which another interrupt gives them no less time."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for run in runs:
        run.send_signal(signal.SIGINT)
    for run in runs:
        try:
            run.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            run.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
