"""An API server that holds one KafkaMirrorMaker2 and ConfigMaps, with an operator that may do what it is asked for."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
OPERATION = "strimzi.io/connector-offsets"
DOMAINS = {"kafka.strimzi.io": "strimzi.io", "eventstreams.ibm.com": "eventstreams.ibm.com"}


@dataclass
class ApiServer:
    """What it holds, and every operation that the operator was asked for. `operator` acts after each change."""

    resource: Object
    operator: Callable[["ApiServer"], None] = lambda _: None
    config_maps: dict[str, Object] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    domain: str = "strimzi.io"
    headers: dict[str, str] = field(default_factory=dict)
    """Of every answer."""
    clock_ahead_s: float = 0.0
    """By how much its clock is ahead of this machine's."""
    query: str = ""
    """Of the request that is answered."""

    @property
    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = self.resource["metadata"]["annotations"]
        return found

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if "/kafkamirrormaker2s/" in path:
            self.domain = DOMAINS[path.removeprefix("/apis/").partition("/")[0]]
            if method == "PATCH":
                _merge(self.resource, body)
                if operation := self.annotations.get(f"{self.domain}/connector-offsets"):
                    self.asked.append(operation)
                self.operator(self)
            return 200, self.resource
        name = path.rsplit("/", 1)[-1]
        if method == "POST":
            name = body["metadata"]["name"]
            if name in self.config_maps:
                return 409, {}
            self.config_maps[name] = body
        elif name not in self.config_maps:
            return 404, {}
        elif method == "PATCH":
            _merge(self.config_maps[name], body)
        return 200, self.config_maps[name]


def _merge(into: Object, patch: Object) -> None:
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


@contextmanager
def serving(server: ApiServer, folder: Path) -> Iterator[dict[str, str]]:
    """Serve it; yields the environment that leads there."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            path, _, server.query = self.path.partition("?")
            code, found = server.answer(self.command, path, body)
            content = json.dumps(found).encode()
            self.send_response(code)
            for name, value in server.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string((timestamp or time.time()) + server.clock_ahead_s)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815  # names that http.server calls

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{http.server_port}"}}],
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
                "users": [{"name": "me", "user": {}}],
            }
        ),
        encoding="utf-8",
    )
    try:
        yield {"KUBECONFIG": str(kubeconfig)}
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)
