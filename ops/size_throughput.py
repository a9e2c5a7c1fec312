"""The measured speed and CPU of one mirror task, read from the benchmark's result, for any record size.

Owns reading the file and the line between measured sizes. Does not own measuring: see `benchmarks/`.
"""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.errors import OpsError

MEASURED = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "mirror_throughput.json"
_MEASURE = "Run `python -m benchmarks.mirror_throughput`."


@dataclass(frozen=True)
class Point:
    """One measurement with one task: seconds and CPU seconds a record."""

    record_bytes: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Throughput:
    """Measurements by record size, at least one, and the words that say where they come from."""

    points: tuple[Point, ...]
    origin: str

    def records_per_second(self, record_bytes: float) -> float:
        """Return what one task copies with nothing but its CPU in its way."""
        return 1 / self._between(record_bytes, lambda point: point.seconds)

    def cpu_seconds(self, record_bytes: float) -> float:
        """Return CPU seconds a record."""
        return self._between(record_bytes, lambda point: point.cpu_seconds)

    def _between(self, record_bytes: float, value: Callable[[Point], float]) -> float:
        """Straight line between the sizes around it. Below the smallest a record costs the same as the smallest; above
        the largest every byte costs what it costs in the largest.
        """
        first, last = self.points[0], self.points[-1]
        if record_bytes <= first.record_bytes:
            return value(first)
        if record_bytes >= last.record_bytes:
            return value(last) * record_bytes / last.record_bytes
        pairs = itertools.pairwise(self.points)
        low, high = next(pair for pair in pairs if pair[1].record_bytes >= record_bytes)
        share = (record_bytes - low.record_bytes) / (high.record_bytes - low.record_bytes)
        return value(low) + share * (value(high) - value(low))


NOTHING = Throughput((), "nothing measured")


def read_throughput(path: Path) -> Throughput:
    """Return the measurements of a results file; raises OpsError that says what is wrong with it."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OpsError(f"throughput {path}: must be readable ({error.strerror}). {_MEASURE}") from None
    except ValueError:
        raise OpsError(f"throughput {path}: must be JSON. {_MEASURE}") from None
    try:
        points = _points(document["mirror"])
        machine = document["machine"]
        origin = (
            f"{path.name} of {document['date']}: Kafka {document['versions']['kafka']}, {machine['processor']}, "
            f"{machine['cores']} cores shared with both brokers, load {machine['loadAverage'][0]} before"
        )
    except (KeyError, TypeError, IndexError, ValueError, ZeroDivisionError) as error:
        raise OpsError(f"throughput {path}: must be a result of the benchmark ({error!r}). {_MEASURE}") from None
    if not points:
        raise OpsError(f"throughput {path}: mirror must hold a row with 1 task (got none). {_MEASURE}")
    return Throughput(points, origin)


def _points(rows: Sequence[dict[str, Any]]) -> tuple[Point, ...]:
    found = [
        Point(int(row["recordBytes"]), 1 / row["recordsPerSecond"], row["cpuSecondsPer100kRecords"] / 100_000)
        for row in rows
        if row["tasks"] == 1
    ]
    return tuple(sorted(found, key=lambda point: point.record_bytes))
