"""A proxy in front of the sandbox's API server, that knows the journal: it holds or refuses a request of a command.

A command that uses its kubeconfig can be killed at an exact moment, in front of a change or right behind it, and its
API server can go away and come back as one that no longer accepts it. All else is passed on as it is.
"""

import base64
import http.client
import json
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

READ_ONLY = {"GET", "HEAD", "OPTIONS"}
_JOURNAL = "journal.json"
_DROPPED = {"connection", "host", "transfer-encoding", "keep-alive"}
_CALL_S, _CHUNK = 600, 65536


@dataclass
class Call:
    """One request. `step` is the journal's when it came, `status` that of the answer, None while there is none."""

    method: str
    path: str
    agent: str
    body: bytes = field(repr=False)
    step: str | None
    status: int | None = None
    query: str = ""

    @property
    def changes(self) -> bool:
        """Whether it asks for a change."""
        return self.method not in READ_ONLY and "dryRun=" not in self.query

    @property
    def is_pulumis(self) -> bool:
        """Whether Pulumi's provider has sent it."""
        return "pulumi" in self.agent.lower()

    @cached_property
    def journal(self) -> dict[str, Any] | None:
        """The journal that it writes, if it does."""
        if not self.changes or "/configmaps" not in self.path or _JOURNAL.encode() not in self.body:
            return None
        found: dict[str, Any] = json.loads(json.loads(self.body)["data"][_JOURNAL])
        return found


Match = Callable[[Call], bool]


@dataclass
class Trap:
    """Holds the first request that matches: not passed on, or if `passed` is set passed on and not answered."""

    match: Match
    passed: bool
    caught: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)
    dropped: bool = False


@dataclass
class Outage:
    """From the first request that matches on nothing is answered for `away_s` seconds, and everything by 401 then."""

    match: Match
    away_s: float
    since: float | None = None
    unanswered: int = 0
    refused: int = 0


@dataclass
class Overload:
    """The first requests that match are refused by these states, one after the other, as a busy API server does."""

    match: Match
    left: list[int]


_REASONS = {401: "Unauthorized", 429: "TooManyRequests", 503: "ServiceUnavailable"}


class ApiServerProxy:
    """The proxy. `kubeconfig` is for commands, `calls` are the requests that came."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text("utf-8"))
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        address = urlsplit(cluster.pop("server"))
        self._address = str(address.hostname), int(address.port or 443)
        self._tls = _tls(cluster.pop("certificate-authority-data"), user)
        self.calls: list[Call] = []
        self.step: str | None = None
        self._trap: Trap | None = None
        self._outage: Outage | None = None
        self._overload: Overload | None = None
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()
        cluster["server"] = f"http://127.0.0.1:{self._server.server_port}"
        self.kubeconfig = folder / "proxied.kubeconfig"
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(content), "utf-8")

    def forget(self) -> None:
        """Begin anew, for the next command."""
        self.calls, self.step, self._outage, self._overload = [], None, None, None

    @contextmanager
    def trap(self, match: Match, *, passed: bool = False) -> Iterator[Trap]:
        """Hold the first request that matches; at the end of the block it is dropped."""
        trap = self._trap = Trap(match, passed)
        try:
            yield trap
        finally:
            self._trap, trap.dropped = None, not trap.opened.is_set()
            trap.opened.set()

    def outage(self, match: Match, away_s: float) -> Outage:
        """Let the API server be away from the first request that matches on, and refuse everything afterwards."""
        self._outage = Outage(match, away_s)
        return self._outage

    def overload(self, match: Match, *statuses: int) -> Overload:
        """Refuse the first requests that match by these states."""
        self._overload = Overload(match, list(statuses))
        return self._overload

    def close(self) -> None:
        """Stop; nobody uses it any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection to the API server, as the admin."""
        return http.client.HTTPSConnection(*self._address, context=self._tls, timeout=_CALL_S)

    def trapped(self, call: Call) -> Trap | None:
        """Return the trap that a request is caught in, if there is one."""
        trap = self._trap
        if trap is None or trap.caught.is_set() or not trap.match(call):
            return None
        return trap

    def away(self, call: Call) -> str:
        """Return `away` or `refuses` if there is an outage for a request, else an empty text."""
        outage = self._outage
        if outage is None or (outage.since is None and not outage.match(call)):
            return ""
        outage.since = outage.since or time.monotonic()
        if time.monotonic() - outage.since < outage.away_s:
            outage.unanswered += 1
            return "away"
        outage.refused += 1
        return "refuses"

    def busy(self, call: Call) -> int | None:
        """Return the status by which a request is refused because of an overload, if there is one."""
        with self._lock:
            overload = self._overload
            return overload.left.pop(0) if overload is not None and overload.left and overload.match(call) else None


class _Handler(BaseHTTPRequestHandler):
    """One connection of a command."""

    protocol_version = "HTTP/1.1"
    proxy: ApiServerProxy

    def log_message(self, *_: Any) -> None:
        """Nothing: a test has its own words."""

    def _pass_on(self) -> None:
        proxy, body = self.proxy, self.rfile.read(int(self.headers.get("Content-Length") or 0))
        agent = self.headers.get("User-Agent") or ""
        path, _, query = self.path.partition("?")
        call = Call(self.command, path, agent, body, proxy.step, query=query)
        proxy.calls.append(call)
        if (answer := proxy.away(call)) == "away":
            self._hang_up()
            return
        if answer:
            self._refuse(http.client.UNAUTHORIZED)
            return
        if (busy := proxy.busy(call)) is not None:
            call.status = busy
            self._refuse(busy)
            return
        trap = proxy.trapped(call)
        if trap is not None and not trap.passed and not self._held(trap):
            return
        upstream = proxy.connect()
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _DROPPED}
            upstream.request(self.command, self.path, body or None, headers)
            found = upstream.getresponse()
            call.status = found.status
            if call.journal is not None and found.status < http.client.MULTIPLE_CHOICES:
                proxy.step = call.journal.get("at") or proxy.step
            if trap is not None and trap.passed and not self._held(trap):
                return
            with suppress(OSError):  # the command is gone
                self._answer(found)
        finally:
            upstream.close()

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815

    def _held(self, trap: Trap) -> bool:
        """Hold it; return whether it goes on."""
        trap.caught.set()
        trap.opened.wait()
        if trap.dropped:
            self._hang_up()
        return not trap.dropped

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _refuse(self, code: int) -> None:
        reason = _REASONS[code]
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
        content = json.dumps({**status, "message": reason}).encode()
        with suppress(OSError):
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            if code != http.client.UNAUTHORIZED:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def _answer(self, found: http.client.HTTPResponse) -> None:
        self.send_response_only(found.status)  # the server and the date are the API server's own
        for name, value in found.getheaders():
            if name.lower() not in _DROPPED:
                self.send_header(name, value)
        chunked = found.getheader("Content-Length") is None and self.command != "HEAD"
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while part := found.read1(_CHUNK):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            self.wfile.flush()
        if chunked:
            self.wfile.write(b"0\r\n\r\n")


def _tls(authority: str, user: dict[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    with tempfile.TemporaryDirectory(prefix="rt-inventory-proxy-") as folder:
        for name in ("certificate", "key"):
            file = Path(folder) / name
            file.touch(mode=0o600)
            file.write_bytes(base64.b64decode(user[f"client-{name}-data"]))
        context.load_cert_chain(Path(folder) / "certificate", Path(folder) / "key")
    return context
