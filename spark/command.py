"""Command line of the verification: `python -m spark --request REQUEST.json --report-dir DIR`.

`python -m spark audit` is that of the audit (`audit/command.py`).
"""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from contract.documents import load
from contract.fields import RequestError, VerificationError
from contract.terminal import printable
from kafka.errors import redact, redact_document
from spark import signals
from spark.comparison.java_client import require_java
from spark.job import verify
from spark.progress import Progress
from spark.report import index, publish
from spark.report.publish import refused_document, stopped_document
from spark.run_context import RunContext
from spark.signals import STOPPED
from spark.state.store import open_store

UNUSABLE = 2
AUDIT = "audit"


class DeadlineError(VerificationError):
    """The run did not end in time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns 0 all checks hold, 1 one does not, 2 wrong request or cluster out of reach, 130 stopped."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == [AUDIT]:
            from spark.audit import command as audit  # which a verification does not wait for

            return audit.main(given[1:])
        return _main(given)
    except KeyboardInterrupt:  # in the moment in which an error was about to be reported
        sys.stderr.write("stopped\n")
        return STOPPED


def _main(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="python -m spark", description="Verify a MirrorMaker 2 mirror.")
    parser.add_argument("--request", type=Path, required=True, help="JSON file that says what to verify")
    parser.add_argument(
        "--report-dir", type=Path, required=True, help="folder for report.json, report.html, junit.xml and metrics.prom"
    )
    parser.add_argument("--index", type=Path, metavar="DIR", help="folder whose index.html lists this run with others")
    parser.add_argument("--state", metavar="URI", help="folder or s3://bucket/prefix that remembers verified offsets")
    parser.add_argument("--show-values", action="store_true", help="show what is in the records that samples name")
    publish.add_options(parser)
    options = parser.parse_args(arguments)
    started_at, progress = datetime.now(UTC), Progress()
    context: RunContext | None = None
    wanted = publish.Destinations()
    try:
        signals.handle(_interrupt)
        wanted = publish.destinations(options, os.environ)
        store = open_store(options.state, os.environ) if options.state is not None else None
        request = load(options.request, os.environ)
        require_java([request.source, request.target])
        context = RunContext(request=request)
        progress.hide(_secrets(context, wanted))
        with _deadline(context):
            result = verify(context, os.environ, progress, started_at, store, show_values=options.show_values)
        result = redact_document(result, _secrets(context, wanted))
        _write(options.report_dir, result, options.index)
        signals.ignore()
    except (Exception, KeyboardInterrupt) as error:
        signals.ignore()
        progress.close()
        code, text = _explained(error, context, _secrets(context, wanted))
        result = refused_document(options.request, text, code, started_at)
        if context is not None:
            with suppress(Exception):  # what ended the run may fail here again
                result = stopped_document(context, text, code, started_at, progress.steps)
        result = redact_document(result, _secrets(context, wanted))
        publish.publish(result, options.report_dir / "report.html", wanted)
        return _end(options.report_dir, result, options.index)
    finally:
        progress.close()
    _list(options.report_dir, result, options.index)
    publish.publish(result, options.report_dir / "report.html", wanted)
    _print_verdict(result, options.report_dir)
    return int(result["exit_code"])


def _secrets(context: RunContext | None, wanted: publish.Destinations) -> list[str]:
    return [*(context.request.secrets if context else []), *wanted.secrets]


def _explained(error: BaseException, context: RunContext | None, secrets: Sequence[str]) -> tuple[int, str]:
    """Return the exit code and the message; of an unforeseen error only its type, for its text may hold a secret."""
    stage = context.stage if context else "reading the request"
    if isinstance(error, KeyboardInterrupt):
        return STOPPED, f"stopped while {stage}"
    if isinstance(error, VerificationError):
        return UNUSABLE, str(error)
    if os.environ.get("RT_INVENTORY_DEBUG"):
        sys.stderr.write(redact("".join(traceback.format_exception(error)), secrets))
    return UNUSABLE, (
        f"verification: must not meet an error that it does not foresee (got {type(error).__name__} while {stage}). "
        "Set RT_INVENTORY_DEBUG=1 to see where, and report it."
    )


def _interrupt(number: int, frame: FrameType | None) -> None:
    signals.ignore()  # what is known is written first
    raise KeyboardInterrupt


@contextmanager
def _deadline(context: RunContext) -> Iterator[None]:
    """Raise DeadlineError in the block when the run's deadline passes, whatever it waits for."""
    seconds = context.request.limits.deadline_seconds
    expired: list[DeadlineError] = []

    def expire(number: int, frame: FrameType | None) -> None:
        error = DeadlineError(
            f"verification: must end within {seconds:.0f} s (got no end while {context.stage}). "
            "Look for what is slow there, or raise limits.deadline_seconds."
        )
        expired.append(error)
        raise error

    signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except Exception:
        if expired:  # what was interrupted may have raised an error of its own instead, as py4j does
            raise expired[0] from None
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _write(folder: Path, result: Mapping[str, Any], index_dir: Path | None) -> None:
    try:
        publish.write_report(folder, result, index_dir)
    except OSError as error:
        raise RequestError([f"--report-dir: must be a folder to write to (got {folder}: {error.strerror})"]) from None


def _list(folder: Path, result: Mapping[str, Any], index_dir: Path | None) -> None:
    """Add the run to an index; one that cannot be written is reported, and changes neither verdict nor exit code."""
    if index_dir is None:
        return
    try:
        index.add(index_dir, result, folder / "report.html")
    except Exception as error:
        reason = error if isinstance(error, OSError | ValueError) else type(error).__name__
        sys.stderr.write(f"--index {index_dir}: not written ({reason}). The verdict stays as it is.\n")


def _end(folder: Path, result: Mapping[str, Any], index_dir: Path | None) -> int:
    """Write what is known, print the error as the last line, and return the exit code."""
    try:
        _write(folder, result, index_dir)
    except RequestError as error:
        if str(error) != result["error"]:
            sys.stderr.write(f"{error}\n")
    except Exception as error:
        sys.stderr.write(f"--report-dir: not all of the report was written (got {type(error).__name__}).\n")
    else:
        _list(folder, result, index_dir)
    sys.stderr.write(f"{printable(result['error'])}\n")
    return int(result["exit_code"])


def _print_verdict(result: Mapping[str, Any], folder: Path) -> None:
    for check in result["checks"]:
        if check["ok"] is not True:
            word = "failed" if check["ok"] is False else "unknown"
            line = f"{check['name']} {word}: {check['observed']} (expected {check['expected']})"
            sys.stdout.write(f"{printable(line, lines=False)}\n")
    sys.stdout.write(
        f"verdict {result['verdict']}: {result['records_compared']} records compared in {result['seconds']} s, "
        f"report {folder / 'report.html'}\n"
    )
