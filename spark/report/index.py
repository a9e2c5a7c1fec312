"""The index of runs of a folder of reports: index.json with one entry a run, and index.html, made of it.

index.html shows the mirrors with their trend, and their runs, newest first. Runs that end at the same time lose no
entry. The reports are not owned here: their folders may be replaced or deleted.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from contract.files import NewFile, alone_in, replace_files
from kafka.errors import visible
from spark.report import html
from spark.report.html import templates
from spark.report.summary import findings


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


JSON, PAGE = "index.json", "index.html"
VERSION = 1
FILES_MAX = 5_000  # report.json that are looked for when there is no index
FILE_MIB_MAX = 64
DEPTHS = ("report.json", "*/report.json", "*/*/report.json")


def add(folder: Path, result: Mapping[str, Any], report: Path) -> list[Run]:
    """Add a run to the index of a folder, which is made if it is missing; return its runs, newest first.

    Raises OSError if the folder cannot be written to, holds somebody else's index, or another run does not leave the
    index in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder):
        _require_own(folder)
        runs = merged([run_of(result, _path(report, folder)), *read(folder)])
        document = {"version": VERSION, "runs": [asdict(run) for run in runs]}
        page = as_page(runs, folder)
        files = {folder / JSON: json.dumps(document, indent=1) + "\n", folder / PAGE: page}
        replace_files([NewFile(path=path, parts=[text], mode=None) for path, text in files.items()])
    return runs


def _require_own(folder: Path) -> None:
    """Raise OSError if what would be replaced is not an index of runs: a folder may be a web server's as well."""
    page = folder / PAGE
    found = page if page.exists() else folder / JSON
    own = MARK in page.read_text(encoding="utf-8", errors="replace") if found == page else _is_own(found)
    if not own:
        raise FileExistsError(f"{found} must be an index of runs (got another file). Choose another folder")


def _is_own(file: Path) -> bool:
    """Whether there is no file, one that holds runs, or one that is damaged."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return True
    return isinstance(document, dict) and "runs" in document


def read(folder: Path) -> list[Run]:
    """Return the runs of a folder's index; without one that can be read, those whose reports lie in the folder."""
    try:
        document = json.loads((folder / JSON).read_text(encoding="utf-8"))
        entries = document["runs"]
        if document["version"] != VERSION or not isinstance(entries, list):
            raise ValueError("of another version")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return merged(_scanned(folder))
    runs = []
    for entry in entries[:RUNS_MAX]:
        with suppress(ValueError, TypeError):  # one that somebody has changed takes none of the others with it
            runs.append(parse(entry))
    return merged(runs)


def _scanned(folder: Path) -> list[Run]:
    """The runs whose reports lie in a folder, of the newest files; what is no report, or too large, is left out."""
    found: list[tuple[float, Path]] = []
    for pattern in DEPTHS:
        with suppress(OSError):
            for path in folder.glob(pattern):
                if len(found) >= FILES_MAX:
                    break
                with suppress(OSError):
                    state = path.lstat()
                    if path.is_file() and not path.is_symlink() and state.st_size <= FILE_MIB_MAX << 20:
                        found.append((state.st_mtime, path))
    runs = []
    for _, path in sorted(found, reverse=True)[:RUNS_MAX]:
        with suppress(OSError, ValueError, RecursionError):
            result = json.loads(path.read_text(encoding="utf-8"))
            runs.append(run_of(result, _path(path.with_name("report.html"), folder)))
    return runs


def _path(report: Path, folder: Path) -> str:
    return Path(os.path.relpath(report.resolve(), folder.resolve())).as_posix()


RUNS_MAX = 200
NAMES_MAX, TEXT_MAX = 50, 300
VERDICTS = ("pass", "fail", "unknown", "error", "stopped")


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


MARK = '<meta name="generator" content="rt-inventory verification runs">'  # of a page that may be replaced
STRIP_MAX = 30  # runs of a trend
# A verdict differs by sign and height, not only by colour.
SIGNS = {"pass": ("good", "✓"), "unknown": ("unknown", "?"), "stopped": ("unknown", "?")}
BAD = ("bad", "✕")
HEIGHTS = {"good": 0.4, "unknown": 0.7, "bad": 1.0}
BAR = 6


def as_page(runs: Sequence[Run], folder: Path) -> str:
    """Return the page of a folder's runs, which come newest first; it asks nothing of any other place."""
    mirrors = _mirrors(runs)
    good = sum(mirror["sign"] == "good" for mirror in mirrors)
    worst = next((sign for sign in ("bad", "unknown") if any(one["sign"] == sign for one in mirrors)), "good")
    return (
        templates()
        .get_template("index.html.j2")
        .render(
            runs=[{"run": run, "sign": _sign(run), "link": link} for run, link in _linked(runs, folder)],
            mirrors=mirrors,
            mark=MARK,
            good=good,
            verdict={"good": "pass", "unknown": "unknown", "bad": "fail"}[worst],
            signs={"good": "✓", "unknown": "?", "bad": "✕"},
            plot={"width": html.SPARK_WIDTH, "height": html.SPARK_HEIGHT},
        )
    )


def _sign(run: Run) -> str:
    return SIGNS.get(run.verdict, BAD)[0]


def _linked(runs: Sequence[Run], folder: Path) -> list[tuple[Run, str | None]]:
    """Each run with the link to its report, if that is still there: a later run may have replaced it."""
    seen: set[str] = set()
    found = []
    for run in runs:
        link = None if run.report in seen else _link(folder, run.report)
        seen.add(run.report)
        found.append((run, link))
    return found


def _link(folder: Path, report: str) -> str | None:
    try:
        return quote(report) if (folder / report).is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def _mirrors(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The mirrors by their latest run, those that do not pass first."""
    by_mirror: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        by_mirror.setdefault((run.stack or "", run.mirror), []).append(run)
    rows = [_row(own) for own in by_mirror.values()]
    order = ("bad", "unknown", "good")
    return sorted(rows, key=lambda row: (order.index(row["sign"]), row["latest"].stack or "", row["latest"].mirror))


def _row(own: Sequence[Run]) -> dict[str, Any]:
    recent = list(reversed(own[:STRIP_MAX]))
    return {
        "latest": own[0],
        "sign": _sign(own[0]),
        "number": len(own),
        "strip": [_bar(number, run) for number, run in enumerate(recent)],
        "strip_width": BAR * len(recent),
        "verdicts": ", ".join(run.verdict for run in recent),
        "trends": [
            _trend("records compared", [run.records_compared for run in recent]),
            _trend("against the mirror", [run.against for run in recent if run.records_compared is not None]),
            _trend("lag", [run.lag_records for run in recent]),
            _trend("seconds", [run.seconds for run in recent]),
        ],
    }


def _bar(number: int, run: Run) -> dict[str, Any]:
    sign = _sign(run)
    height = round(html.SPARK_HEIGHT * HEIGHTS[sign], 1)
    return {
        "x": BAR * number,
        "y": round(html.SPARK_HEIGHT - height, 1),
        "height": height,
        "width": BAR - 1,
        "sign": sign,
        "text": f"{run.verdict}, {run.finished_at}",
    }


def _trend(name: str, values: Sequence[float | None]) -> dict[str, Any]:
    """The latest of the values, and their line if there is something to see in it."""
    known = [value for value in values if value is not None]
    latest = values[-1] if values else None
    return {"name": name, "latest": latest, "line": html.sparkline(known), "known": known}
