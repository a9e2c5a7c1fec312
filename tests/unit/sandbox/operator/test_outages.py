"""The operator while its API server is away: it tries again until it is back, and ends itself if it is refused."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest
from kopf._cogs.clients import api

from sandbox.operator.__main__ import ENDS_WITHIN_S, kopf_settings
from sandbox.state import PROJECT
from tests.support.waiting import wait_until

TRIES = 200
WATCHED = ("kafkas", "kafkatopics", "kafkausers")
OPERATOR = """
import sys, kopf
from sandbox.operator.__main__ import kopf_settings
registry = kopf.OperatorRegistry()
async def seen(**_): pass
for plural in sys.argv[2:]:
    kopf.on.event("kafka.strimzi.io", "v1", plural, registry=registry)(seen)
kopf.on.login(registry=registry)(lambda **_: kopf.ConnectionInfo(server=sys.argv[1]))
kopf.run(registry=registry, settings=kopf_settings(), clusterwide=True, standalone=True)
"""


@dataclass
class Session:
    """Answers a request as often as it must be tried."""

    failures: Iterator[Exception | int]
    closed: bool = False

    async def request(self, **_: Any) -> Any:
        failure = next(self.failures, 200)
        if isinstance(failure, Exception):
            raise failure
        answer = Mock(status=failure, headers={})
        error = aiohttp.ClientResponseError(Mock(), (), status=failure)
        answer.raise_for_status = Mock(side_effect=error if failure >= 400 else None)

        async def body() -> dict[str, Any]:
            return {"kind": "Status", "code": failure}

        answer.json, answer.text = body, body
        return answer


@pytest.mark.parametrize("failure", [aiohttp.ClientConnectionError("refused"), TimeoutError(), 403, 429, 500, 503])
def test_a_request_is_tried_until_the_api_server_is_back(
    failure: Exception | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for _ in range(2):  # each request begins with the short pauses
        context = Mock(session=Session(repeat(failure, TRIES)), server="https://away")
        request = api.request(
            "get", "/watch", settings=kopf_settings(), context=context, logger=logging.getLogger("silent")
        )
        assert asyncio.run(request).status == 200
        assert len(waited) == TRIES
        assert (waited[0], max(waited)) == (0.2, 2.0)
        waited.clear()


def resources(*plurals: str) -> dict[str, Any]:
    verbs = ["get", "list", "watch", "patch"]
    return {
        "resources": [
            {"name": name, "kind": name, "singularName": "", "namespaced": True, "verbs": verbs} for name in plurals
        ]
    }


@dataclass
class ApiServer:
    """As much of an API server as kopf asks for; `refusing` answers watches, of topics in a way that kopf gives up."""

    watched: set[str] = field(default_factory=set)
    refusing: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def answer(self, path: str, query: str) -> tuple[int, Any]:
        kind = path.rpartition("/")[2]
        if self.refusing.is_set():
            return (404 if kind == "kafkatopics" else 503), {"kind": "Status", "message": "not now"}
        version = {"groupVersion": "kafka.strimzi.io/v1", "version": "v1"}
        answers = {
            "/api": {"versions": ["v1"]},
            "/apis": {"groups": [{"name": "kafka.strimzi.io", "versions": [version], "preferredVersion": version}]},
            "/api/v1": resources("namespaces"),
            "/apis/kafka.strimzi.io/v1": resources(*WATCHED),
        }
        if "watch=true" in query:
            self.watched.add(kind)
            self.refusing.wait(60)
        return 200, answers.get(path, {"metadata": {"resourceVersion": "1"}, "items": []})


@pytest.fixture
def server() -> Iterator[ApiServer]:
    made = ApiServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            status, content = made.answer(path, query)
            body = b"" if "watch=true" in query and status == 200 else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it so
            """Nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{http.server_port}"
    yield made
    made.refusing.set()
    http.shutdown()
    http.server_close()


def test_an_operator_whose_watch_is_refused_ends_and_does_not_hang(server: ApiServer) -> None:
    """kopf stops by itself then, and would wait for ten minutes for watches that go on."""
    command = [sys.executable, "-c", OPERATOR, server.url, *WATCHED]
    operator = subprocess.Popen(command, cwd=PROJECT, stderr=subprocess.PIPE, text=True)
    try:
        wait_until("every kind is watched", lambda: server.watched >= set(WATCHED), deadline_s=20)
        server.refusing.set()
        began = time.monotonic()
        _, log = operator.communicate(timeout=90)
        assert "Multidimensional multitasker has failed" in log
        assert time.monotonic() - began < 60, "the machine may be busy"
        assert ENDS_WITHIN_S <= 10
    finally:
        operator.kill()
        operator.wait()
