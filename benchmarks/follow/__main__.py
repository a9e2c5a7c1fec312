"""What groups that `ops follow` follows read again when the source is killed, by seeds, beside MirrorMaker's offsets.

Run: `python -m benchmarks.follow --seeds 20`. Two brokers, a mirror and a follower; each seed chooses rates, partitions
and moments, and ends with SIGKILL for the source while groups are 7, 1,000 and 100,000 records behind. Truth is what
the groups had read then, and a plain reading of the target. Bound: nothing is skipped, and no group reads more again
than it has read in the last second. `--only CASE --first SEED --seeds 1` repeats a seed. It leaves nothing but the
results file, which keeps what other seeds have shown with the same interval.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
from confluent_kafka import KafkaException

from benchmarks import tables
from benchmarks.clusters import BenchmarkError, running
from benchmarks.follow import judging
from benchmarks.follow.judging import Row
from benchmarks.follow.mirror import WORKER_SETTINGS
from benchmarks.follow.seeds import CASES, Site
from kafka.errors import ClusterError
from ops.follow.command import INTERVAL_S
from sandbox.operator.java_processes import kafka_version
from sandbox.processes import ProcessError
from sandbox.toolchain import ToolchainError, locate

RESULT = tables.RESULTS / "follow.json"
SEEDS, MINUTES = 20, 42.0
FAILURES = (BenchmarkError, ClusterError, KafkaException, ProcessError, httpx.HTTPError)
MANY_GROUPS = "many groups"
LINE = (
    "  {topic} {group}: {readAgain} of {lastSecond}, skipped {skipped}, since round {sinceRound} ({roundAgeS} s, "
    "one takes {roundS} s, {roundsNotExact} of the last ones not exact), MirrorMaker {mirrorMakerReadAgain}: {word}"
)


def measure(
    given: argparse.Namespace, rows: list[Row], costs: list[Row], not_made: list[Row], keep: Callable[[], None]
) -> None:
    """Add the rows of each seed and keep them; the error of one that could not be made leaves the others valid."""
    until = time.monotonic() + given.minutes * 60
    with running(locate(), WORKER_SETTINGS) as clusters:
        site = Site.on(clusters, given.interval)
        if given.only in (None, MANY_GROUPS):
            costs += site.many_groups()
            for row in costs:
                tables.log(f"{MANY_GROUPS}: {row}")
        for number in range(given.first, given.first + given.seeds):
            for case in [case for case in CASES if given.only in (None, case)]:
                began = time.monotonic()
                if began > until:
                    return
                try:
                    found = site.seed(case, number)
                except FAILURES as error:
                    tables.log(f"error: {case}, seed {number}: {error}")
                    not_made.append({"case": case, "seed": number, "error": str(error)})
                    keep()
                    continue
                rows += found
                keep()
                tables.log(f"{case}, seed {number}: {time.monotonic() - began:.0f} s")
                for row in found:
                    tables.log(LINE.format(**row, word="holds" if row["holds"] else "DOES NOT HOLD"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its result; return the exit code (0 all bounds hold, 1 one does not, 2 not made)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.follow", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds of each case (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: %(default)s)")
    parser.add_argument("--only", choices=[*CASES, MANY_GROUPS], help="one case (default: all)")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="after which no seed begins any more (default: %(default)s)"
    )
    parser.add_argument("--interval", type=float, default=INTERVAL_S, help="of the follower, s (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULT, help="file of the result (default: %(default)s)")
    given = parser.parse_args(arguments)
    tables.clean_up_on_sigterm()
    began, described = time.monotonic(), tables.describe()
    rows, costs, not_made, stopped = list[Row](), list[Row](), list[Row](), None

    known = json.loads(given.output.read_text(encoding="utf-8")) if given.output.exists() else {}
    if known.get("intervalSeconds") != given.interval:
        known = {}

    def keep() -> None:
        made = {(row["case"], row["seed"]) for row in [*rows, *not_made]}
        others = {
            name: [row for row in known.get(name, []) if (row["case"], row["seed"]) not in made]
            for name in ("rows", "notMade")
        }
        tables.keep(
            given.output,
            {
                "benchmark": "follow",
                "date": tables.today(),
                "machine": described,
                "versions": {"kafka": kafka_version(tools.kafka_libs), "python": sys.version.split()[0]},
                "intervalSeconds": given.interval,
                "summary": judging.summary([*others["rows"], *rows]),
                "costs": costs or known.get("costs", []),
                "rows": [*others["rows"], *rows],
                "notMade": [*others["notMade"], *not_made],
                "stoppedBy": stopped,
                "seconds": round(time.monotonic() - began),
            },
        )

    try:
        tools = locate()
        measure(given, rows, costs, not_made, keep)
    except (ToolchainError, *FAILURES) as error:
        tables.log(f"error: {error}")
        if not rows and not costs:
            return 2
        stopped = str(error)
    except (SystemExit, KeyboardInterrupt):  # what was measured until a signal counts
        if not rows:
            raise
        stopped = "a signal"
    keep()
    broken = sorted({(row["case"], row["seed"]) for row in rows if not row["holds"]})
    for case, seed in broken:
        tables.log(
            f"does not hold: seed {seed}. Replay: python -m benchmarks.follow --only '{case}' --first {seed} --seeds 1"
        )
    tables.log(f"{len(rows) - sum(not row['holds'] for row in rows)} of {len(rows)} hold; written: {given.output}")
    return 1 if broken else 2 if stopped or not_made else 0


if __name__ == "__main__":
    sys.exit(main())
