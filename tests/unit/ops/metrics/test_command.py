"""The command: where metrics go, what is said of what fails, and exit codes."""

import json
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ops import cli
from ops.metrics import command
from ops.metrics.collector import MetricsSnapshot, failed

from ....support.open_metrics import families_of
from .test_exporter import good

HEALTHY = good("mm2")
BROKEN = failed("stg", None, "stack stg: must exist in the backend")
BLIND = MetricsSnapshot(
    stack="stg", families=HEALTHY.families, mirrors=("mm2",), unknown=("mirror mm2: lag is unknown: no Read",)
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command with a snapshot that brings something made up."""

    def start(found: MetricsSnapshot, *arguments: str) -> Result:
        monkeypatch.setattr(command, "collect", lambda *_, **__: found)
        return CliRunner().invoke(cli.app, ["metrics", *arguments])

    return start


def test_metrics_go_to_stdout_as_text_or_as_open_metrics(run: Any) -> None:
    result = run(HEALTHY)
    assert result.exit_code == 0
    assert 'rt_inventory_mirror_up{mirror="mm2",stack="stg"} 1.0\n' in result.stdout
    result = run(HEALTHY, "--openmetrics")
    assert "rt_inventory_mirror_up" in {family.name for family in families_of(result.stdout)}


def test_the_document_has_names_helps_and_values(run: Any) -> None:
    found = json.loads(run(HEALTHY, "--json").stdout)
    assert (found["stack"], found["mirrors"], found["errors"]) == ("stg", ["mm2"], {})
    reported = {one["name"]: one for one in found["metrics"]}
    assert reported["rt_inventory_mirror_up"] == {
        "name": "rt_inventory_mirror_up",
        "help": "Up.",
        "samples": [{"labels": {"stack": "stg", "mirror": "mm2"}, "value": 1.0}],
    }


def test_what_could_not_be_learned_is_said_and_exit_1(run: Any) -> None:
    result = run(BLIND)
    assert result.exit_code == 1
    assert result.stderr == "mirror mm2: lag is unknown: no Read\n"
    assert "rt_inventory_mirror_up" in result.stdout


def test_a_snapshot_that_failed_is_a_metric_one_message_and_exit_2(run: Any) -> None:
    result = run(BROKEN)
    assert result.exit_code == 2
    assert result.stderr == "snapshot failed: stack stg: must exist in the backend\n"
    assert 'rt_inventory_status_error{mirror="",stack="stg"} 1.0\n' in result.stdout
    assert json.loads(run(BROKEN, "--json").stdout)["errors"] == {"": "stack stg: must exist in the backend"}


def test_a_file_is_replaced_whole_also_by_a_failure(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "stg.prom"
    file.write_text("old", "utf-8")
    held = file.open(encoding="utf-8")
    assert run(HEALTHY, "--file", str(file)).stdout == ""
    assert held.read() == "old", "who reads meanwhile sees the old file to its end"
    held.close()
    assert "rt_inventory_mirror_up" in file.read_text("utf-8")
    assert stat.S_IMODE(file.stat().st_mode) & 0o044, "the collector is another user"
    assert run(BROKEN, "--file", str(file)).exit_code == 2
    assert "rt_inventory_mirror_up" not in file.read_text("utf-8"), "what may no longer be true goes"
    assert "rt_inventory_status_error" in file.read_text("utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["stg.prom"]


def test_a_file_that_cannot_be_written_is_reported(run: Any, tmp_path: Path) -> None:
    result = run(HEALTHY, "--file", str(tmp_path / "nowhere" / "stg.prom"))
    assert result.exit_code == 2
    assert "metrics: --file must be writable" in result.stderr


class Gateway(ThreadingHTTPServer):
    """Keeps what is pushed to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Keeper)
        self.got: list[tuple[str, str, str]] = []


class Keeper(BaseHTTPRequestHandler):
    server: Gateway

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.got.append((self.command, self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it overrides
        """Say nothing."""


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with Gateway() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def test_a_mirror_is_a_group_of_the_gateway(run: Any, gateway: Gateway) -> None:
    url = f"http://127.0.0.1:{gateway.server_address[1]}"
    assert run(good("mm2"), "--mirror", "mm2", "--push-gateway", url).exit_code == 0
    ((method, path, body),) = gateway.got
    assert (method, path) == ("PUT", "/metrics/job/rt_inventory_status/mirror/mm2/stack/stg")
    assert 'rt_inventory_mirror_up{mirror="mm2",stack="stg"} 1.0' in body


def test_a_snapshot_that_failed_takes_the_place_of_earlier_numbers(run: Any, gateway: Gateway) -> None:
    url = f"http://127.0.0.1:{gateway.server_address[1]}"
    assert run(BROKEN, "--mirror", "mm2", "--push-gateway", url).exit_code == 2
    ((method, path, body),) = gateway.got
    assert (method, path) == ("PUT", "/metrics/job/rt_inventory_status/mirror/mm2/stack/stg")
    assert "rt_inventory_status_error" in body
    assert "rt_inventory_mirror_up" not in body


def test_a_gateway_that_does_not_answer_is_reported(run: Any) -> None:
    result = run(HEALTHY, "--mirror", "mm2", "--push-gateway", "http://127.0.0.1:1")
    assert result.exit_code == 2
    assert "metrics: --push-gateway must take the metrics (got http://127.0.0.1:1" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--listen", "127.0.0.1:0", "--json"], "--listen and --json must not be given together"),
        (["--listen", "127.0.0.1:0", "--file", "x.prom"], "--listen and --file must not be given together"),
        (["--openmetrics", "--file", "x.prom"], "--openmetrics and --file must not be given together"),
        (["--push-gateway", "http://gateway"], "--mirror must be given with --push-gateway (got none)"),
        (["--mirror", "mm2", "--push-gateway", "https://user:s3cret@gateway"], "--push-gateway must"),
        (["--listen", "nowhere"], "--listen: must be ADDRESS:PORT"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_2(run: Any, arguments: list[str], message: str) -> None:
    result = run(HEALTHY, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "s3cret" not in result.stderr
