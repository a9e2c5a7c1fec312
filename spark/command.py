"""Command line of the verification: `python -m spark --request REQUEST.json --report-dir DIR`."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from spark.errors import RequestError, VerificationError
from spark.job import verify
from spark.progress import Progress
from spark.records.sources import java_properties
from spark.report import write
from spark.request.model import Request
from spark.request.reader import load
from spark.state.store import open_store

STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns 0 all checks hold, 1 one does not, 2 wrong request or cluster out of reach."""
    parser = argparse.ArgumentParser(prog="python -m spark", description="Verify a MirrorMaker 2 mirror.")
    parser.add_argument("--request", type=Path, required=True, help="JSON file that says what to verify")
    parser.add_argument("--report-dir", type=Path, required=True, help="folder for report.json, .html and junit.xml")
    parser.add_argument("--state", metavar="URI", help="folder or s3://bucket/prefix that remembers verified offsets")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    progress = Progress()
    try:
        store = open_store(options.state, os.environ) if options.state is not None else None
        request = load(options.request, os.environ)
        java_properties(request.source)
        java_properties(request.target)
        result = verify(request, os.environ, progress, store)
        _write(options.report_dir, result, request)
    except VerificationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("stopped before the end, no report written\n")
        return STOPPED
    _tell(result, options.report_dir)
    return int(result["exit_code"])


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _write(folder: Path, result: dict[str, Any], request: Request) -> None:
    try:
        write.write(folder, result, request.secrets)
    except OSError as error:
        raise RequestError([f"--report-dir: must be a folder to write to (got {folder}: {error.strerror})"]) from None


def _tell(result: Mapping[str, Any], folder: Path) -> None:
    for check in result["checks"]:
        if check["ok"] is not True:
            word = "failed" if check["ok"] is False else "unknown"
            sys.stdout.write(f"{check['name']} {word}: {check['observed']} (expected {check['expected']})\n")
    sys.stdout.write(
        f"verdict {result['verdict']}: {result['records_compared']} records compared in {result['seconds']} s, "
        f"report {folder / 'report.html'}\n"
    )
