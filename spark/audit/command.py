"""Command line of the audit: `python -m spark audit --request REQUEST.json --state DIR --report FILE`."""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from contract.audit import AuditDocument
from contract.documents import load
from contract.fields import RequestError, VerificationError
from kafka.errors import redact, visible
from spark import signals
from spark.audit.audit import Audit, Options, begins_ms, identity
from spark.audit.buckets import FAULTS
from spark.audit.store import AuditStore
from spark.comparison.java_client import require_java
from spark.comparison.spark_session import session
from spark.signals import STOPPED

GOOD, FAULTY, UNUSABLE = 0, 1, 2
_FAULTS = {state.value for state in FAULTS}


def main(arguments: Sequence[str]) -> int:
    """Run an audit; returns 0 no fault and both sides read, 1 a fault, 2 refused or unknown, 130 or 143 stopped."""
    parser = argparse.ArgumentParser(
        prog="python -m spark audit",
        description="Count and digest the records of both sides of a mirror by time, and say what is missing.",
    )
    parser.add_argument("--request", type=Path, required=True, help="JSON file that says what to verify")
    parser.add_argument("--state", type=Path, required=True, metavar="DIR", help="folder of this audit's own state")
    parser.add_argument(
        "--report", type=Path, required=True, metavar="FILE", help="JSON file, written after each round"
    )
    parser.add_argument("--bucket", type=_seconds, default=Options.bucket_s, metavar="S", help="seconds of a bucket")
    parser.add_argument(
        "--within", type=_seconds, default=Options.within_s, metavar="S", help="seconds in which records must arrive"
    )
    parser.add_argument("--every", type=_seconds, default=Options.every_s, metavar="S", help="seconds between rounds")
    duration = parser.add_mutually_exclusive_group()
    duration.add_argument("--once", action="store_true", help="one round; without it, until it is stopped")
    duration.add_argument("--for", dest="seconds", type=_seconds, metavar="S", help="end after so many seconds")
    options = parser.parse_args(arguments)
    secrets: list[str] = []
    try:
        signals.handle(_interrupt)
        request = load(options.request, os.environ)
        secrets = request.secrets
        require_java([request.source, request.target])
        chosen = Options(bucket_s=options.bucket, within_s=options.within, every_s=options.every)
        store = AuditStore(options.state, identity(request, chosen), begins_ms(chosen))
        try:
            ends = 0.0 if options.once else time.monotonic() + options.seconds if options.seconds else None
            document = _run(Audit(request, store, chosen), os.environ, options.report, chosen.every_s, ends, secrets)
        finally:
            store.close()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return STOPPED
    except VerificationError as error:
        sys.stderr.write(f"{visible(redact(str(error), secrets))}\n")
        return UNUSABLE
    return _code(document)


def _run(
    audit: Audit, environment: Mapping[str, str], report: Path, every_s: int, ends: float | None, secrets: Sequence[str]
) -> AuditDocument:
    """Read and write until the time is over: at least once."""
    with session(environment) as spark:
        while True:
            began = time.monotonic()
            audit.round(spark)
            document = audit.document()
            _write(report, redact(document.model_dump_json(indent=2), secrets))
            for problem in document.problems:
                sys.stderr.write(f"{visible(redact(problem, secrets))}\n")
            sys.stderr.write(f"{_said(document)}\n")
            if ends is not None and time.monotonic() >= ends:
                return document
            time.sleep(max(0.0, every_s - (time.monotonic() - began)))


def _write(report: Path, text: str) -> None:
    """Replace the file as a whole, readable by its owner alone."""
    scratch = report.with_name(f".{report.name}.{os.getpid()}")
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        scratch.replace(report)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise RequestError([f"--report: must be a file to write to (got {report}: {error.strerror})"]) from None


def _said(document: AuditDocument) -> str:
    """One line about a round."""
    states: dict[str, int] = {}
    for topic in document.topics:
        for state, number in topic.buckets.items():
            states[state] = states.get(state, 0) + number
    found = ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "none yet"
    return f"buckets: {found}"


def _code(document: AuditDocument) -> int:
    if any(one.state in _FAULTS for one in document.faults):
        return FAULTY
    unread = document.problems or None in document.read_through.values()
    return UNUSABLE if unread or document.faults else GOOD


def _seconds(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= 86_400:
        raise argparse.ArgumentTypeError(f"must be seconds from 1 to 86400 (got {text})")
    return number


def _interrupt(number: int, frame: object) -> None:
    signals.ignore()
    raise KeyboardInterrupt
