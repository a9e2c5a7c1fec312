"""What an index remembers of a run of the verification, and how such entries are made, checked and put in order."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from spark.report.findings import findings
from spark.visible import visible

RUNS_MAX = 200
NAMES_MAX, TEXT_MAX = 50, 300
VERDICTS = ("pass", "fail", "unknown", "error", "stopped")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One verification. Of one that could not judge, numbers are None.

    `source` and `target` are clusters, or aliases where the request does not name clusters. `counted` are records or
    positions that count against the mirror, by kind; `report` is the path of report.html from the index's folder.
    """

    verdict: str
    mirror: str
    stack: str | None = None
    source: str
    target: str
    started_at: str
    finished_at: str
    seconds: float
    records_compared: int | None = None
    lag_records: int | None = None
    counted: Mapping[str, int]
    failed: tuple[str, ...] = ()
    report: str

    @property
    def against(self) -> int:
        """How many records or positions count against the mirror."""
        return sum(self.counted.values())


def run_of(result: Mapping[str, Any], report: str) -> Run:
    """Return the entry of a run whose report.json holds `result`; raises ValueError if it is no report."""
    try:
        checks = result["checks"]
        judged = bool(checks)
        counted: dict[str, int] = {}
        for one in findings(result):
            if one["fails"]:
                counted[one["kind"]] = counted.get(one["kind"], 0) + one["count"]
        document = {
            "verdict": result["verdict"],
            "mirror": result["mirror"],
            "stack": result.get("stack"),
            **{side: result[side].get("cluster") or result[side]["alias"] for side in ("source", "target")},
            **{key: result[key] for key in ("started_at", "finished_at", "seconds")},
            "records_compared": result.get("records_compared") if judged else None,
            "lag_records": ((result.get("lag") or {}).get("at_end") or {}).get("records"),
            "counted": counted,
            "failed": [check["name"] for check in checks if check["ok"] is False],
            "report": report,
        }
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"no report of a run ({type(error).__name__})") from None
    return parse(document)


def parse(document: object) -> Run:
    """Return the run of an entry of index.json; raises ValueError if it is none."""
    if not isinstance(document, dict):
        raise ValueError("no object")
    known = {field.name for field in fields(Run)}
    found: dict[str, Any] = {key: document.get(key) for key in known}
    texts = ("mirror", "source", "target", "started_at", "finished_at", "report")
    counted, failed, stack = found["counted"], found["failed"], found["stack"]
    whole = [found[key] for key in ("records_compared", "lag_records") if found[key] is not None]
    holds = (
        found["verdict"] in VERDICTS
        and all(isinstance(found[key], str) for key in texts)
        and (stack is None or isinstance(stack, str))
        and isinstance(counted, dict)
        and isinstance(failed, list)
        and all(isinstance(name, str) for name in [*counted, *failed])
        and all(_is_count(one) for one in [*whole, *counted.values()])
        and _is_seconds(found["seconds"])
    )
    if not holds:
        raise ValueError("not the values of a run")
    for key in ("started_at", "finished_at"):
        if datetime.fromisoformat(found[key]).tzinfo is None:
            raise ValueError(f"{key} without a time zone")
    short = {key: visible(found[key], lines=False)[:TEXT_MAX] for key in texts if key != "report"}
    names = tuple(visible(name, lines=False)[:TEXT_MAX] for name in failed[:NAMES_MAX])
    kinds = {visible(kind, lines=False)[:TEXT_MAX]: number for kind, number in list(counted.items())[:NAMES_MAX]}
    label = None if stack is None else visible(stack, lines=False)[:TEXT_MAX]
    return Run(**{**found, **short, "failed": names, "counted": kinds, "stack": label})


def merged(runs: Sequence[Run]) -> list[Run]:
    """Return the runs newest first, each once, and no more than RUNS_MAX."""
    once = {(run.report, run.started_at): run for run in reversed(runs)}
    ordered = sorted(once.values(), key=lambda run: datetime.fromisoformat(run.finished_at), reverse=True)
    return ordered[:RUNS_MAX]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_seconds(value: object) -> bool:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and math.isfinite(float(str(value))) and float(str(value)) >= 0
