"""Runs the tests of the sandbox as two halves at the same time: `python -m tests.sandbox [options of pytest]`.

Each half is a pytest of its own with a sandbox of its own, so that one waits while the other works. All that use the
pair of stacks are one half: only one sandbox brings it up. Whatever ends the run early, both stop their sandboxes.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
WITH_THE_PAIR = (
    "test_adoption.py",
    "test_dedicated_mirror.py",
    "test_destroy.py",
    "test_failover.py",
    "test_gate.py",
    "test_ops.py",
    "test_policy_pack.py",
    "test_readme.py",
    "test_secrets.py",
    "test_spark_submit.py",
    "test_stack.py",
    "test_verification.py",
    "test_verification_clean.py",
    "test_verification_groups.py",
    "test_verification_matrix.py",
    "test_verification_metadata.py",
    "test_verification_state.py",
)
NOTHING_CHOSEN = 5  # pytest's exit code


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
        for run in runs:
            run.wait()
    except KeyboardInterrupt:
        _interrupt(runs)
    for reader in readers:
        reader.join()
    codes = {run.returncode for run in runs}
    # A choice of tests may leave one half without any.
    return max(codes - {NOTHING_CHOSEN}, default=NOTHING_CHOSEN)


def halves() -> tuple[list[Path], list[Path]]:
    """The test files of either half, all of this folder in one of them."""
    files = sorted(HERE.glob("test_*.py"))
    return (
        [file for file in files if file.name in WITH_THE_PAIR],
        [file for file in files if file.name not in WITH_THE_PAIR],
    )


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
        run.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
