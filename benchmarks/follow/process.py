"""The follower in a process of its own, as `ops follow` runs it, without a stack: prints a line of JSON for each round.

Run by the benchmark: `python -m benchmarks.follow.process OUTPUTS INTERVAL`.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.follow.mirror import context
from ops.console import until_stopped
from ops.follow.command import FollowMetrics, followed, repeat


def peak_mib() -> int:
    """The most memory that this program has held."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024)


def reporting(metrics: FollowMetrics, stopped: Callable[[], bool]) -> Callable[[], bool]:
    """Return `stopped`, which is called between rounds, such that it reports the last round once."""
    reported = None

    def ask() -> bool:
        nonlocal reported
        if metrics.last is not None and metrics.last is not reported:
            reported = metrics.last
            row = {
                "began": metrics.ended - (metrics.seconds or 0.0),
                "ended": metrics.ended,
                "positions": dict(reported.positions),
                "groups": reported.groups,
                "problems": list(reported.problems),
                "cpu_s": time.process_time(),
                "peak_mib": peak_mib(),
            }
            sys.stdout.write(f"{json.dumps(row)}\n")
            sys.stdout.flush()
        return stopped()

    return ask


def main() -> int:
    """Follow until SIGTERM; return the exit code."""
    known = context(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    metrics = FollowMetrics(known)
    with until_stopped() as stopped, followed(known) as follower:
        repeat(follower, metrics, float(sys.argv[2]), reporting(metrics, stopped))
    return 0


if __name__ == "__main__":
    sys.exit(main())
