"""The command `python -m ops metrics`: what `ops status` shows, for Prometheus, once or served for as long as it runs.

What is served takes a snapshot again and again in the background; a scrape never waits for one. Between snapshots it is
the last one, and of one that failed only that it did. A value that may no longer be true is not served; the last
verification stays, for it has its time.
"""

import os
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Annotated, Protocol

import typer
from prometheus_client import generate_latest, push_to_gateway, write_to_textfile
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics import exposition as openmetrics

from contract.fields import url_problem
from contract.verification_metrics import JOB as VERIFICATION
from ops.connection import PROJECT
from ops.console import EXIT_FAILED, EXIT_UNUSABLE, AsJson, Debug, ProjectFolder, Text, guard, log, show, until_stopped
from ops.errors import OpsError
from ops.inspection.probes import error_text
from ops.metrics.collector import TIMESTAMP, CollectorProcess, MetricsSnapshot, Task, as_document, collect, failed
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

    @property
    def is_ready(self) -> bool:
        """Whether the last snapshot has no error."""
        return bool(self._served.families) and not self._served.errors

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


class Exports(Protocol):
    """What a server serves."""

    @property
    def is_ready(self) -> bool:
        """Whether what is served is current, for the probe of a pod."""

    @property
    def families(self) -> list[Family]:
        """What a scrape gets."""

    def log(self, line: str) -> None:
        """Report a scrape that failed."""


class Server(socketserver.ThreadingTCPServer):
    """A small HTTP server. Unlike the library's own it asks no name service when it starts."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int, exporter: Exports) -> None:
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
        if self.path == "/ready":
            ready = self.server.exporter.is_ready
            self.send_response(HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
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
    exporter = Exporter(collector, log)
    with serving(address, exporter) as url:
        log(f"serving {url}, taking a snapshot every {every_s:g} s until SIGTERM or Ctrl-C")
        exporter.run(every_s, stopped)


@contextmanager
def serving(address: str, exporter: Exports) -> Iterator[str]:
    """Serve while the block runs, which gets the URL; raises OpsError if the address cannot be used."""
    host, port = host_and_port(address)
    try:
        server = Server(host, port, exporter)
    except OSError as error:
        raise OpsError(
            f"--listen: must be a free address of this machine (got {address}: {error.strerror or error})."
        ) from None
    with server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": TICK_S}, daemon=True).start()
        try:
            yield server.url
        finally:
            server.shutdown()


def host_and_port(address: str) -> tuple[str, int]:
    """Return both parts of ADDRESS:PORT; raises OpsError."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or int(port) > 65535:
        raise OpsError(f"--listen: must be ADDRESS:PORT, as in 127.0.0.1:9410 (got {address}).")
    return host, int(port)


JOB = "rt_inventory_status"
EVERY_S = 30.0
PUSH_DEADLINE_S = 10.0


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror.")] = "stg",
    mirror: Annotated[
        str | None, typer.Option("--mirror", help="Mirror; without it all mirrors of the stack are inspected.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Replace this file at once, NAME.prom of a textfile collector.")
    ] = None,
    push_gateway: Annotated[
        str | None,
        typer.Option("--push-gateway", metavar="URL", help="Push to this gateway, as the group of --mirror."),
    ] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="ADDRESS:PORT", help="Serve /metrics there until SIGTERM.")
    ] = None,
    every_s: Annotated[
        float, typer.Option("--every", min=1, help="Seconds between the beginnings of two snapshots of --listen.")
    ] = EVERY_S,
    verified: Annotated[
        bool, typer.Option("--verification/--no-verification", help="Report the last verification as well.")
    ] = True,
    as_openmetrics: Annotated[
        bool, typer.Option("--openmetrics", help="OpenMetrics on stdout in place of Prometheus' text format.")
    ] = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Report to Prometheus what [bold]ops status[/bold] shows of a pair of stacks, and how the last verification ended.

    Examples: [bold]python -m ops metrics --stack stg --file /var/lib/node_exporter/stg.prom[/bold] now and then, or
    [bold]python -m ops metrics --stack stg --listen 127.0.0.1:9410[/bold] once.

    Without --file, --push-gateway and --listen the metrics go to stdout. Nothing is changed and no group is joined.
    What is unknown has no series. rt_inventory_status_error reports a snapshot that fails, wherever metrics go.

    Exit 0 if everything was inspected, 1 if something of a mirror could not be, 2 if a snapshot failed or the metrics
    could not be written. Ended by a signal --listen exits with 0.
    """
    with guard(as_json, debug):
        _require_consistent_options(mirror, file, push_gateway, listen, as_json=as_json, as_openmetrics=as_openmetrics)
        if listen is not None:
            task = Task(stack=stack, mirror=mirror, folder=str(folder.resolve()), verified=verified)
            with until_stopped() as stopped:
                serve(listen, every_s, CollectorProcess(task, os.environ), log, stopped)
            return
        found = collect(stack, mirror, os.environ, folder, verified=verified, debug=debug)
        if file is not None:
            _write(file, found)
        if push_gateway is not None:
            _push(push_gateway, found, mirror)
        if as_json:
            show(as_json, as_document(found), lambda: Text())
        elif file is None and push_gateway is None:
            encode = openmetrics.generate_latest if as_openmetrics else generate_latest
            sys.stdout.write(encode(registry(found.families)).decode())
    for line in (*(f"snapshot failed: {why}" for why in dict.fromkeys(found.errors.values())), *found.unknown):
        log(line)
    if found.errors:
        raise typer.Exit(EXIT_UNUSABLE)
    if found.unknown:
        raise typer.Exit(EXIT_FAILED)


def _require_consistent_options(
    mirror: str | None,
    file: Path | None,
    push_gateway: str | None,
    listen: str | None,
    *,
    as_json: bool,
    as_openmetrics: bool,
) -> None:
    """Refuse options that do not go together."""
    ends = {"--file": file is not None, "--push-gateway": push_gateway is not None, "--json": as_json}
    ends["--openmetrics"] = as_openmetrics
    given = [name for name, yes in ends.items() if yes]
    if listen is not None and given:
        raise OpsError(f"metrics: --listen and {given[0]} must not be given together. Each scrape asks for its format.")
    if as_openmetrics and len(given) > 1:
        raise OpsError(f"metrics: --openmetrics and {given[0]} must not be given together. It is for stdout alone.")
    if push_gateway is not None and mirror is None:
        raise OpsError(
            "metrics: --mirror must be given with --push-gateway (got none). A snapshot that fails before it knows the "
            "mirrors would leave their last numbers at the gateway as if they were of now."
        )
    if push_gateway is not None and (problem := url_problem(push_gateway)):
        raise OpsError(f"metrics: --push-gateway {problem}.")


def _write(file: Path, found: MetricsSnapshot) -> None:
    try:
        write_to_textfile(str(file), registry(found.families))
    except OSError as error:
        raise OpsError(f"metrics: --file must be writable (got {file}: {error.strerror}).") from None


def _push(url: str, found: MetricsSnapshot, mirror: str | None) -> None:
    """Replace the group of the mirror, also by a snapshot that failed: no number of an earlier one stays."""
    try:
        key = {"stack": found.stack, "mirror": mirror}
        push_to_gateway(url, JOB, registry(found.families), grouping_key=key, timeout=PUSH_DEADLINE_S)
    except OSError as error:
        raise OpsError(f"metrics: --push-gateway must take the metrics (got {url}: {error}).") from None


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("metrics")(command)
