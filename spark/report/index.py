"""The index of runs of a folder of reports: index.json, one entry a run, and index.html, made of it.

Owns the files, and that runs which end at the same time lose no entry. Does not own the reports: their folders may be
replaced or deleted.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spark.report.index_page import MARK, as_page
from spark.report.runs import RUNS_MAX, Run, merged, parse, run_of

JSON, PAGE = "index.json", "index.html"
VERSION = 1
FILES_MAX = 5_000  # report.json that are looked for when there is no index
FILE_MIB_MAX = 64
DEPTHS = ("report.json", "*/report.json", "*/*/report.json")
LOCK_S, LOOK_S = 10.0, 0.05


def add(folder: Path, result: Mapping[str, Any], report: Path) -> list[Run]:
    """Add a run to the index of a folder, which is made if it is missing; return its runs, newest first.

    Raises OSError if the folder cannot be written to, holds somebody else's index, or another run does not leave the
    index in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _alone_in(folder):
        _require_own(folder)
        runs = merged([run_of(result, _path(report, folder)), *read(folder)])
        document = {"version": VERSION, "runs": [asdict(run) for run in runs]}
        page = as_page(runs, folder)
        _replace(folder / JSON, json.dumps(document, indent=1) + "\n")
        _replace(folder / PAGE, page)
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


def _replace(path: Path, text: str) -> None:
    """Put a file in the place of another at once; who reads it finds the one or the other, whole."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder's index; raises OSError if another does not leave it within LOCK_S."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        end = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise OSError(f"another run writes it for {LOCK_S:.0f} s") from None
            time.sleep(LOOK_S)
        yield
    finally:
        os.close(descriptor)
