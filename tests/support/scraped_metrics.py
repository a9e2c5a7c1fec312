"""A Prometheus that scrapes every metric of the catalogue with made-up values, some of them NaN."""

import itertools
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import yaml

from monitoring.alerts import rendering
from monitoring.metrics.catalog import Kind, Metric, Part, of_part
from sandbox.processes import HOST, free_ports
from tests.support.http_client import HTTP
from tests.support.waiting import wait_until

CHOSEN = {
    "stack": "stg",
    "mirror": "mm2",
    "cluster": "rt-inventory-stg",
    "namespace": "rt-inventory-stg",
    "topic": "items",
    "group": "readers",
}
SCRAPED_EVERY_S, READY_WITHIN_S, STOPPED_WITHIN_S = 1, 30, 15
_CONNECTOR = "es-src->es-tgt.MirrorSourceConnector"
_LABELS: Mapping[str, Sequence[str]] = {
    **{name: (value,) for name, value in CHOSEN.items()},
    "partition": ("0", "1"),
    "source": ("es-src",),
    "target": ("es-tgt",),
    "connector": (_CONNECTOR,),
    "task": ("0",),
    "client_id": (f"es-src->es-tgt|{_CONNECTOR}-0|replication-consumer",),
    "status": ("running",),
    "state": ("running", "paused"),
    "side": ("source", "target"),
    "window": ("1h", "5m", "6h", "30m"),
    "quantile": ("0.99",),
    "verdict": ("fail", "pass"),
    "check": ("records_complete", "lag"),
    "certificate": ("source broker 0",),
    "name": ("mm2",),
    "reason": ("none",),
    "resource_namespace": (CHOSEN["namespace"],),
    "type": ("cluster-ca",),
    "area": ("heap",),
    "gc": ("G1",),
}
_KINDS = {Part.OPERATOR: ("KafkaMirrorMaker2",), Part.VERIFICATION: ("lost",)}
_OF_MIRROR = {"stack": CHOSEN["stack"], "mirror": CHOSEN["mirror"]}
_POD = {"stack": CHOSEN["stack"], "namespace": CHOSEN["namespace"], "pod": "pod-0"}
_TARGETS: Mapping[Part, tuple[str, Mapping[str, str]]] = {
    Part.WORKER: ("kafka-mirror-maker-2", {**_POD, "mirror": CHOSEN["mirror"]}),
    Part.BROKER: ("kafka", {**_POD, "cluster": CHOSEN["cluster"]}),
    Part.OPERATOR: ("strimzi-cluster-operator", {"stack": CHOSEN["stack"]}),
    Part.VERIFICATION: ("rt-inventory-verification", _OF_MIRROR),
    Part.AUDIT: ("rt-inventory-audit", _OF_MIRROR),
    Part.OPS: ("rt-inventory-ops", _OF_MIRROR),
}


def exposed(part: Part, now: float) -> str:
    """What a target of a part shows; counts grow by ten a second."""
    found = [*of_part(part)]
    if part is Part.WORKER:
        found += [metric for metric in of_part(Part.BROKER) if metric.origin.startswith("the Java process")]
    return "".join(line for metric in found for line in _lines(metric, now))


def _lines(metric: Metric, now: float) -> Iterator[str]:
    values = {name: _LABELS[name] for name in metric.labels if name != "kind"}
    if "kind" in metric.labels:
        values["kind"] = _KINDS[metric.part]
    for number, chosen in enumerate(itertools.product(*values.values())):
        labels = dict(zip(values, chosen, strict=True))
        yield _line(metric.name, labels, _value(metric, labels, number, now))
        if metric.part is Part.BROKER and metric.kind is Kind.COUNTER and "topic" in labels:
            yield _line(metric.name, {**labels, "topic": ""}, 10 * now)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    return f"{name}{{{','.join(f'{key}={chr(34)}{text}{chr(34)}' for key, text in labels.items())}}} {value}\n"


def _value(metric: Metric, labels: Mapping[str, str], number: int, now: float) -> float:
    """The first series of a metric holds, an extreme of the second partition is of nothing."""
    if labels.get("partition") == "1" and metric.name.endswith(("_avg", "_max", "_min")):
        return float("nan")
    if metric.kind is Kind.COUNTER or "counter" in metric.help:
        return 10 * now
    if "timestamp" in metric.name:
        return (now - 60) * (1000 if metric.unit == "ms" else 1)
    return float(number == 0)


@contextmanager
def prometheus(program: Path, folder: Path) -> Iterator[str]:
    """Address of a Prometheus with the plain rules that has scraped everything twice; it ends with the block."""
    server = ThreadingHTTPServer((HOST, 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (port,) = free_ports(1)
    address = f"http://{HOST}:{port}"
    config = folder / "prometheus.yaml"
    config.write_text(yaml.safe_dump(_config(server.server_port)), encoding="utf-8")
    command = [str(program), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "prometheus.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [*command, f"--web.listen-address={HOST}:{port}"], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            wait_until("every target is scraped", lambda: _is_scraped(process, address), READY_WITHIN_S)
            yield address
        finally:
            process.terminate()
            try:
                process.wait(STOPPED_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOPPED_WITHIN_S)
            server.shutdown()
            server.server_close()


def ask(address: str, promql: str, at_s: float | None = None) -> list[Any]:
    """The series that an expression has now or at a time; fails with what Prometheus says if it cannot be computed."""
    data = {"query": promql} if at_s is None else {"query": promql, "time": f"{at_s}"}
    answer = HTTP.post(f"{address}/api/v1/query", data=data, timeout=30).json()
    assert answer["status"] == "success", f"{promql}: {answer.get('error')}"
    found: list[Any] = answer["data"]["result"]
    return found


def _is_scraped(process: "subprocess.Popen[bytes]", address: str) -> bool:
    assert process.poll() is None, "Prometheus ended: see prometheus.log"
    try:
        return len(ask(address, "count_over_time(up[1m]) > 3")) == len(_TARGETS)
    except (httpx.HTTPError, ValueError):  # until it is ready it answers with a text
        return False


def _config(port: int) -> dict[str, Any]:
    jobs = [
        {
            "job_name": job,
            "metrics_path": f"/{part.value}",
            "static_configs": [{"targets": [f"{HOST}:{port}"], "labels": dict(labels)}],
        }
        for part, (job, labels) in _TARGETS.items()
    ]
    every = f"{SCRAPED_EVERY_S}s"
    times = {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every}
    return {"global": times, "rule_files": [str(rendering.PATH)], "scrape_configs": jobs}


class _Handler(BaseHTTPRequestHandler):
    """A path for each part."""

    def do_GET(self) -> None:
        text = exposed(Part(self.path.strip("/")), time.time()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """A scrape is no news."""
