"""A made-up issuer of identity tokens: what GitHub offers to a job, on a local port."""

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BEARER = "bearer-of-the-job"


def jwt(payload: Mapping[str, Any]) -> str:
    """A token with this payload; nobody checks its signature here."""
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, dict(payload), {}))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


@dataclass
class Issuer:
    """Where it listens, the token that it hands out, and for which audiences it was asked."""

    url: str
    token: str
    audiences: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What GitHub puts into the environment of a job with the permission `id-token: write`."""
        return {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}/token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": BEARER,
        }


@contextmanager
def issuer(token: str) -> Iterator[Issuer]:
    """Serve the token to whoever shows the job's bearer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            known = self.headers["Authorization"] == f"Bearer {BEARER}" and query["api-version"] == ["2.0"]
            made.audiences += query.get("audience", [])
            body = json.dumps({"value": made.token} if known else {}).encode()
            self.send_response(200 if known else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Issuer(f"http://127.0.0.1:{server.server_port}", token)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join(10)
