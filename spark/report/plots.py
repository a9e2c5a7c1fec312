"""Geometry of the report's plots, in the units of their view box."""

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 400, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 14, 34
SPARK_WIDTH, SPARK_HEIGHT = 120, 24
BINS = 24
TICKS = 4
POINTS_MIN = 3  # of a line, RECORDS_MIN of a histogram: fewer are said in words
RECORDS_MIN = 10
STEP_MIN_S = 1.0


def lag(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the line of records behind over seconds; None when it has few points or they are all alike."""
    points = (found or {}).get("series") or []
    seconds, records = [point[0] for point in points], [point[1] for point in points]
    if len(points) < POINTS_MIN or min(records) == max(records):
        return None
    first, last = min(seconds), max(seconds)
    top = _round_up(max(records))
    line = [(_x(s - first, last - first), _y(r, top)) for s, r in zip(seconds, records, strict=True)]
    return {
        "line": " ".join(f"{x},{y}" for x, y in line),
        "area": " ".join(f"{x},{y}" for x, y in [(line[0][0], _y(0, top)), *line, (line[-1][0], _y(0, top))]),
        "y_ticks": [{"y": _y(top * n / TICKS, top), "text": short(top * n / TICKS)} for n in range(TICKS + 1)],
        "x_ticks": [
            {"x": _x(n, TICKS), "text": f"{short(first + (last - first) * n / TICKS)} s"} for n in range(TICKS + 1)
        ],
        "text": f"{records[0]} records behind at {first:.0f} s, at most {max(records)}, {records[-1]} at {last:.0f} s",
    }


def latency(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the histogram of the stamped records' latencies, or None of few and when all are alike."""
    values: Sequence[float] = (found or {}).get("latencies_ms") or []
    if not found or len(values) < RECORDS_MIN or min(values) == max(values):
        return None
    top_ms = _round_up(max(values))
    counts = [0] * BINS
    for value in values:
        counts[min(BINS - 1, int(value / top_ms * BINS))] += 1
    tallest = _round_up(max(counts))
    width = (WIDTH - LEFT - RIGHT) / BINS
    marks = [(name, found.get(f"{name}_ms")) for name in ("p50", "p95", "p99")]
    return {
        "bars": [
            {
                "x": _x(n, BINS),
                "y": _y(count, tallest),
                "w": round(width - 1, 1),
                "h": round(_y(0, 1) - _y(count, tallest), 1),
            }
            for n, count in enumerate(counts)
            if count
        ],
        "marks": [
            {
                "name": name,
                "x": _x(min(value, top_ms), top_ms),
                "y": TOP + 10 + 13 * row,
                "text": f"{name} {value:.0f} ms",
            }
            | {"left": value > top_ms / 2}
            for row, (name, value) in enumerate(marks)
            if value is not None
        ],
        "y_ticks": [
            {"y": _y(tallest * n / TICKS, tallest), "text": short(tallest * n / TICKS)} for n in range(TICKS + 1)
        ],
        "x_ticks": [{"x": _x(n, TICKS), "text": f"{short(top_ms * n / TICKS)} ms"} for n in range(TICKS + 1)],
        "text": ", ".join(f"{name} {value:.0f} ms" for name, value in marks if value is not None),
    }


def bars(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps with the share in percent that each has of the longest; None where no step took long."""
    longest = max((step["seconds"] for step in steps), default=0)
    drawn = longest >= STEP_MIN_S and len({step["seconds"] for step in steps}) > 1
    return [dict(step) | {"percent": round(100 * step["seconds"] / longest, 2) if drawn else None} for step in steps]


def sparkline(values: Sequence[float]) -> str | None:
    """Return the points of a small line from 0 to the greatest value; None of few values or of equal ones."""
    if len(values) < POINTS_MIN or min(values) == max(values):
        return None
    top, step = max(values), SPARK_WIDTH / (len(values) - 1)
    return " ".join(f"{step * n:.1f},{SPARK_HEIGHT * (1 - value / top):.1f}" for n, value in enumerate(values))


def short(number: float) -> str:
    """Return a number in at most four or five characters: 950, 1.5k, 12k, 3.2M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{sign}"
    return f"{number:.3g}"


def _round_up(number: float) -> float:
    """Return the next of 4, 8, 20, 40, 80, 200 and so on: a scale of which a quarter is a round number."""
    scale = 4.0
    while True:
        for factor in (1, 2, 5):
            if number <= scale * factor:
                return scale * factor
        scale *= 10


def _x(value: float, top: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * (value / top if top else 0), 1)


def _y(value: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top, 1)
