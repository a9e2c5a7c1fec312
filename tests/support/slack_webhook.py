"""A stand-in for Slack's incoming webhook, and an Alertmanager that sends to it."""

import contextlib
import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import yaml

from monitoring.alert_routes import TEMPLATES
from sandbox.processes import HOST, free_ports
from sandbox.toolchain import Tools
from tests.support.http_client import HTTP
from tests.support.waiting import wait_until

START_S, TOLD_S, STOP_S = 30.0, 20.0, 10.0
Message = dict[str, Any]


@dataclass
class Slack:
    """What was posted to the webhook, in order."""

    url: str
    messages: list[Message] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def reported(self, when: Callable[[Message], bool]) -> Message:
        """Wait for a message and return it."""

        def found() -> Message | None:
            return next((one for one in self.messages if when(one)), None)

        message: Message = wait_until("a message", found, TOLD_S, every_s=0.1, otherwise=lambda: str(self.messages))
        return message


@dataclass(frozen=True)
class Alertmanager:
    """One that runs, with its command-line tool."""

    url: str
    amtool: Path

    def alert(self, labels: Mapping[str, str], annotations: Mapping[str, str], *, ended: bool = False) -> None:
        """Tell it of an alert as Prometheus does."""
        now = datetime.now(UTC)
        end = now - timedelta(seconds=1) if ended else now + timedelta(minutes=10)
        alert = {
            "labels": dict(labels),
            "annotations": dict(annotations),
            "startsAt": (now - timedelta(minutes=5)).isoformat(),
            "endsAt": end.isoformat(),
        }
        HTTP.post(f"{self.url}/api/v2/alerts", json=[alert], timeout=5).raise_for_status()

    def suppressed(self) -> set[str]:
        """Names of alerts that are inhibited."""
        found = HTTP.get(f"{self.url}/api/v2/alerts", timeout=5).raise_for_status().json()
        return {one["labels"]["alertname"] for one in found if one["status"]["state"] == "suppressed"}


@contextlib.contextmanager
def slack() -> Iterator[Slack]:
    """A webhook on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.paths.append(self.path)
            heard.messages.append(json.loads(body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    heard = Slack(url=f"http://{HOST}:{server.server_address[1]}/services/T0/B0/made-up")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join(STOP_S)


def hasty(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration that waits for nothing, and otherwise does the same."""

    def without_waiting(route: Mapping[str, Any]) -> dict[str, Any]:
        inner = [without_waiting(one) for one in route.get("routes", ())]
        return {**route, "group_wait": "0s", "group_interval": "1s", **({"routes": inner} if inner else {})}

    return {**config, "route": without_waiting(config["route"])}


@contextlib.contextmanager
def alertmanager(tools: Tools, folder: Path, config: Mapping[str, Any]) -> Iterator[Alertmanager]:
    """An Alertmanager with this configuration in this folder, where the templates are too."""
    for template in TEMPLATES:
        (folder / template.name).write_text(template.read_text("utf-8"), "utf-8")
    path = folder / "alertmanager.yml"
    path.write_text(yaml.safe_dump(dict(config)), "utf-8")
    address = f"{HOST}:{free_ports(1)[0]}"
    arguments = {
        "config.file": path,
        "storage.path": folder / "data",
        "web.listen-address": address,
        "web.external-url": "http://alertmanager.test",
        "cluster.listen-address": "",
    }
    command = [str(tools.alertmanager), *(f"--{name}={value}" for name, value in arguments.items())]
    log = folder / "alertmanager.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        url = f"http://{address}"
        wait_until(
            "Alertmanager is ready",
            lambda: _is_ready(url),
            START_S,
            every_s=0.1,
            otherwise=lambda: log.read_text("utf-8", "replace")[-2000:],
        )
        yield Alertmanager(url=url, amtool=tools.amtool)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_S)


def _is_ready(url: str) -> bool:
    try:
        return HTTP.get(f"{url}/-/ready", timeout=2).is_success
    except httpx.HTTPError:
        return False
