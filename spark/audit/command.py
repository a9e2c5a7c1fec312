"""Command line of the audit: `python -m spark audit --request REQUEST.json --state DIR --report FILE`."""

import argparse
import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from contract.audit import AuditDocument
from contract.audit_metrics import families
from contract.documents import load
from contract.fields import RequestError, VerificationError
from contract.files import NewFile, replace_files
from contract.terminal import printable
from kafka.errors import redact
from spark import signals
from spark.audit.audit import Audit, Options, begins_ms, identity
from spark.audit.buckets import FAULTS
from spark.audit.page import as_html
from spark.audit.store import AuditStore
from spark.comparison.java_client import require_java
from spark.comparison.spark_session import session
from spark.signals import STOPPED

GOOD, FAULTY, UNUSABLE = 0, 1, 2
_FAULTS = {state.value for state in FAULTS}
_M_ARENA_MAX, _ARENAS = -8, 2  # of glibc's mallopt


def main(arguments: Sequence[str]) -> int:
    """Run an audit; returns 0 no fault and both sides read, 1 a fault, 2 refused or unknown, 130 stopped."""
    parser = argparse.ArgumentParser(
        prog="python -m spark audit",
        description="Count and digest the records of both sides of a mirror by time, and say what is missing.",
    )
    parser.add_argument("--request", type=Path, required=True, help="JSON file that says what to verify")
    parser.add_argument("--state", type=Path, required=True, metavar="DIR", help="folder of this audit's own state")
    text = "NAME.json, written after each round, and its page NAME.html"
    parser.add_argument("--report", type=_report, required=True, metavar="FILE", help=text)
    parser.add_argument(
        "--metrics", type=_address, metavar="HOST:PORT", help="address at which Prometheus finds the metrics"
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
    limit_arenas()
    try:
        signals.handle(_interrupt)
        request = load(options.request, os.environ)
        secrets = request.secrets
        require_java([request.source, request.target])
        chosen = Options(bucket_s=options.bucket, within_s=options.within, every_s=options.every)
        store = AuditStore(options.state, identity(request, chosen), begins_ms(chosen))
        try:
            ends = 0.0 if options.once else time.monotonic() + options.seconds if options.seconds else None
            with _served(options.metrics) as publish:
                written = _Written(options.report, secrets, publish)
                document = _run(Audit(request, store, chosen), os.environ, written, chosen.every_s, ends)
        finally:
            store.close()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return STOPPED
    except VerificationError as error:
        sys.stderr.write(f"{printable(redact(str(error), secrets))}\n")
        return UNUSABLE
    return _code(document)


def limit_arenas() -> None:
    """Let all threads share two arenas of malloc, where the C library has them.

    Kafka's client has threads, which a consumer starts for the records of a bucket and ends again. By glibc's default
    each gets an arena of its own, and what is free in one is kept for it.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


@dataclass(frozen=True)
class _Written:
    """Where what is known goes after each round."""

    report: Path
    secrets: Sequence[str] = field(repr=False)
    publish: Callable[[AuditDocument], None]

    def __call__(self, document: AuditDocument) -> None:
        _write(self.report, redact(document.model_dump_json(indent=2), self.secrets))
        _write(self.report.with_suffix(".html"), redact(as_html(document), self.secrets))
        self.publish(document)
        for problem in document.problems:
            sys.stderr.write(f"{printable(redact(problem, self.secrets))}\n")
        sys.stderr.write(f"{_said(document)}\n")


def _run(
    audit: Audit, environment: Mapping[str, str], written: _Written, every_s: int, ends: float | None
) -> AuditDocument:
    """Read and write until the time is over: at least once."""
    with session(environment, endless=True) as spark:
        while True:
            began = time.monotonic()
            audit.round(spark)
            document = audit.document()
            written(document)
            if ends is not None and time.monotonic() >= ends:
                return document
            time.sleep(max(0.0, every_s - (time.monotonic() - began)))


class _Collector(Collector):
    """The metrics of the newest document; none before the first."""

    def __init__(self) -> None:
        self.document: AuditDocument | None = None

    def collect(self) -> Iterable[Metric]:
        return families(self.document) if self.document is not None else ()


@contextmanager
def _served(address: tuple[str, int] | None) -> Iterator[Callable[[AuditDocument], None]]:
    """Serve the metrics of the documents that are given to what this yields."""
    collector = _Collector()

    def publish(document: AuditDocument) -> None:
        collector.document = document

    if address is None:
        yield publish
        return
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    host, port = address
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise RequestError([f"--metrics: must be a free address (got {host}:{port}: {error.strerror})"]) from None
    try:
        yield publish
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _write(report: Path, text: str) -> None:
    """Replace the file as a whole, readable by its owner alone."""
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        replace_files([NewFile(path=report, parts=[text])])
    except OSError as error:
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


def _report(text: str) -> Path:
    if not text.endswith(".json"):
        raise argparse.ArgumentTypeError(f"must end with .json (got {text})")
    return Path(text)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 65_536):
        raise argparse.ArgumentTypeError(f"must be HOST:PORT (got {text})")
    return host.strip("[]"), int(port)


def _seconds(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= 86_400:
        raise argparse.ArgumentTypeError(f"must be seconds from 1 to 86400 (got {text})")
    return number


def _interrupt(number: int, frame: object) -> None:
    signals.ignore()
    raise KeyboardInterrupt
