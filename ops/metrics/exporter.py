"""Serves /metrics and takes a snapshot again and again in the background. A scrape never waits for one.

Owns what is served between snapshots: the last one, and of one that failed only that it did. A value that may no longer
be true is not served; the last verification stays, for it has its time.
"""

import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler

from prometheus_client.exposition import choose_encoder

from contract.verification_metrics import JOB as VERIFICATION
from ops.errors import OpsError
from ops.inspection.probes import error_text
from ops.metrics.collector import TIMESTAMP, CollectorProcess, MetricsSnapshot, failed
from ops.metrics.mirror_metrics import Family, merged, registry

COLLECTED_WITHIN_S = 90.0
SCRAPE_S = 10.0
TICK_S = 0.2
Log = Callable[[str], None]


class Exporter:
    """What is served now."""

    def __init__(self, collector: CollectorProcess, log: Log) -> None:
        self._collector, self.log = collector, log
        self._served = MetricsSnapshot(stack=collector.task.stack)
        self._reported: frozenset[str] = frozenset()
        self._ending = threading.Event()

    @property
    def families(self) -> list[Family]:
        """What a scrape gets: nothing before the first snapshot has ended."""
        return self._served.families

    def collect(self) -> None:
        """Take one snapshot and serve its metrics; logs the reason when snapshots begin to fail."""
        try:
            found = self._collector.collect(COLLECTED_WITHIN_S)
        except Exception as error:  # whatever it is: the next snapshot may succeed
            if self._ending.is_set():
                return
            found = failed(self._collector.task.stack, self._collector.task.mirror, error_text(error))
        self._served = with_last_verification(self._served, found)
        problems = frozenset(found.errors.values())
        for problem in sorted(problems - self._reported):
            self.log(f"snapshot failed: {problem}")
        if self._reported and not problems:
            self.log("snapshots succeed again")
        self._reported = problems

    def run(self, every_s: float, stopped: Callable[[], bool]) -> None:
        """Take a snapshot every so many seconds until asked to end."""
        threading.Thread(target=self._repeat, args=(every_s,), daemon=True).start()
        try:
            while not stopped():
                time.sleep(TICK_S)
        finally:
            self._ending.set()
            self._collector.end()

    def _repeat(self, every_s: float) -> None:
        while not self._ending.is_set():
            began = time.monotonic()
            self.collect()
            self._ending.wait(max(0.0, every_s - (time.monotonic() - began)))


def with_last_verification(before: MetricsSnapshot, found: MetricsSnapshot) -> MetricsSnapshot:
    """Return what to serve after a snapshot: of mirrors that it failed for, what stays true of an earlier one."""
    if not found.errors:
        return found
    if not found.mirrors and before.mirrors:
        why = next(iter(found.errors.values()))
        found = failed(found.stack, None, why, before.mirrors)
    lasting = [
        Family(name=one.name, text=one.text, samples=[(labels, value) for labels, value in one.samples
                                                      if labels.get("mirror") in found.errors])
        for one in before.families
        if one.name == TIMESTAMP or one.name.startswith(f"{VERIFICATION}_")
    ]  # fmt: skip
    return replace(found, families=merged([*found.families, *lasting]))


class Server(socketserver.ThreadingTCPServer):
    """A small HTTP server. Unlike the library's own it asks no name service when it starts."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int, exporter: Exporter) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.exporter = exporter
        super().__init__((host, port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log the type of an error; nothing of a client that goes away before its answer."""
        kind = sys.exc_info()[0]
        if kind is not None and not issubclass(kind, OSError):
            self.exporter.log(f"a scrape failed ({kind.__name__})")

    @property
    def url(self) -> str:
        """Address of the metrics."""
        host, port = self.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{shown}:{port}/metrics"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = SCRAPE_S

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND, "Metrics are at /metrics")
            return
        encode, kind = choose_encoder(self.headers.get("Accept") or "")
        body = encode(registry(self.server.exporter.families))
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it overrides
        """Log no scrapes."""


def serve(address: str, every_s: float, collector: CollectorProcess, log: Log, stopped: Callable[[], bool]) -> None:
    """Serve until asked to end; raises OpsError if the address cannot be used."""
    host, port = host_and_port(address)
    exporter = Exporter(collector, log)
    try:
        server = Server(host, port, exporter)
    except OSError as error:
        raise OpsError(
            f"--listen: must be a free address of this machine (got {address}: {error.strerror or error})."
        ) from None
    with server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": TICK_S}, daemon=True).start()
        log(f"serving {server.url}, taking a snapshot every {every_s:g} s until SIGTERM or Ctrl-C")
        try:
            exporter.run(every_s, stopped)
        finally:
            server.shutdown()


def host_and_port(address: str) -> tuple[str, int]:
    """Return both parts of ADDRESS:PORT; raises OpsError."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or int(port) > 65535:
        raise OpsError(f"--listen: must be ADDRESS:PORT, as in 127.0.0.1:9410 (got {address}).")
    return host, int(port)
