"""What arrives in steps, and how fast: samples of a count that may stand for many seconds between two steps.

Over a long line with a small TCP window one answer to a fetch takes longer than a whole measurement of a fast line.
So a count is watched for some times its longest pause, and its rate is the slope of a straight line through all
samples: a step more or less at either end hardly moves it.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from benchmarks.clusters import BenchmarkError
from benchmarks.mirror_throughput import Sample

SETTLE_S, WATCHED_S, PAUSES = 2.0, 8.0, 5
BEGINS_WITHIN_S, ENDS_WITHIN_S = 90.0, 240.0
_POLL_S = 0.1

Read = Callable[[], tuple[int, float]]
"""Returns records that have arrived, and CPU seconds used until then."""


def settled(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the samples from 2 s after the first record on: the first ones wait for connections to speed up."""
    first = next((sample for sample in samples if sample.records), None)
    return [] if first is None else [sample for sample in samples if sample.at_s >= first.at_s + SETTLE_S]


def longest_pause(samples: Sequence[Sample]) -> float:
    """Return the seconds of the longest time without a record, that at the end included."""
    grown = [later.at_s for earlier, later in pairwise(samples) if later.records > earlier.records]
    moments = [samples[0].at_s, *grown, samples[-1].at_s]
    return max(later - earlier for earlier, later in pairwise(moments))


def is_long_enough(samples: Sequence[Sample]) -> bool:
    """Whether settled samples last 8 s, and five times their longest pause."""
    if len(samples) < 2:
        return False
    lasted = samples[-1].at_s - samples[0].at_s
    return lasted >= max(WATCHED_S, PAUSES * longest_pause(samples))


def rate(samples: Sequence[Sample]) -> float:
    """Return records a second of settled samples; raises BenchmarkError if no record arrived between them."""
    if len(samples) < 2 or samples[-1].records <= samples[0].records:
        raise BenchmarkError("records must arrive while they are counted (got none). Take more records.")
    origin = samples[0].at_s
    line = statistics.linear_regression(
        [sample.at_s - origin for sample in samples], [sample.records for sample in samples]
    )
    return line.slope


def watched(what: str, read: Read, most: int) -> Sequence[Sample]:
    """Return the settled samples of a count until they are long enough, or all records have arrived.

    Raises BenchmarkError if none arrives within 90 s, or the count stands so long that 240 s do not show its rate.
    """
    began, samples = time.monotonic(), list[Sample]()
    while True:
        samples.append(Sample(time.monotonic(), *read()))
        found, lasted = settled(samples), samples[-1].at_s - began
        if samples[-1].records >= most or is_long_enough(found):
            return found
        if not samples[-1].records and lasted > BEGINS_WITHIN_S:
            raise BenchmarkError(f"{what}: records must arrive within {BEGINS_WITHIN_S:.0f} s (got none).")
        if lasted > ENDS_WITHIN_S:
            raise BenchmarkError(
                f"{what}: must show its rate within {ENDS_WITHIN_S:.0f} s (got {samples[-1].records} records, and up "
                f"to {longest_pause(samples):.0f} s without one)."
            )
        time.sleep(_POLL_S)
