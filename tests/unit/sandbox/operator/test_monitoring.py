"""When Prometheus and Alertmanager are started, and when they are asked to read their files again."""

import json
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from sandbox.monitoring import CONFIGURED_BY, MonitoringFiles
from sandbox.operator.java_processes import ProcessSupervisor
from sandbox.operator.kubernetes_api import Kubernetes, Object, Resource
from sandbox.operator.monitoring import Monitoring, Programs
from sandbox.state import read_json, write_json
from tests.unit.sandbox.operator.test_workers import Supervised

PROMTOOL = """#!/bin/sh
for file; do :; done
echo "$2" >> {seen}; if grep -q nonsense "$file"; then echo parse error >&2; exit 1; fi
"""


class Objects:
    """Objects by kind."""

    def __init__(self) -> None:
        self.by_kind: dict[str, list[Object]] = {}

    def objects(self, resource: Resource) -> list[Object]:
        return self.by_kind.get(resource.kind, [])

    def rule(self, name: str, expression: str) -> None:
        metadata = {"namespace": "ns", "name": name}
        groups = [{"name": "g", "rules": [{"alert": "A", "expr": expression}]}]
        self.by_kind.setdefault("PrometheusRule", []).append({"metadata": metadata, "spec": {"groups": groups}})

    def pod_monitor(self, name: str, action: str) -> None:
        endpoint = {"port": "tcp-prometheus", "relabelings": [{"action": action}]}
        spec = {"selector": {}, "podMetricsEndpoints": [endpoint]}
        self.by_kind.setdefault("PodMonitor", []).append({"metadata": {"namespace": "ns", "name": name}, "spec": spec})


class Bench:
    """The loop over made-up servers; `reloads` are the addresses that were asked to read again."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.objects, self.processes = folder, Objects(), Supervised()
        self.files = MonitoringFiles(folder / "monitoring")
        self.reloads: list[str] = []
        self.answer = 200
        promtool = folder / "promtool"
        promtool.write_text(PROMTOOL.format(seen=folder / "seen"), encoding="utf-8")
        promtool.chmod(0o755)
        self.programs = Programs(Path("/p/prometheus"), promtool, Path("/p/alertmanager"), folder / "amtool")
        monkeypatch.setattr(httpx, "post", self._post)
        self.monitoring = self.fresh()

    def fresh(self) -> Monitoring:
        return Monitoring(
            kubernetes=cast(Kubernetes, self.objects),
            supervisor=ProcessSupervisor(self.processes),
            programs=self.programs,
            files=self.files,
            clusters=self.folder / "clusters",
            mirrors=self.folder / "mirrors",
            logs=self.folder / "logs",
            own_port=9,
        )

    def _post(self, url: str, **_: Any) -> httpx.Response:
        name = {address: name for name, address in read_json(self.files.addresses).items()}
        self.reloads.append(name.get(url.split("/")[2], url))
        return httpx.Response(self.answer, text="no")

    def ask(self, alertmanager_config: Path | None = None) -> None:
        write_json(self.files.request, {CONFIGURED_BY: str(alertmanager_config) if alertmanager_config else None})

    def passes(self, count: int = 1) -> list[str]:
        """What was started, stopped and asked to read again during these passes."""
        self.processes.said.clear()
        self.reloads.clear()
        for _ in range(count):
            self.monitoring.run_once()
        return [*self.processes.said, *(f"reload {name}" for name in self.reloads)]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


STARTS = ["start prometheus", "start alertmanager"]


def settled(bench: Bench) -> Bench:
    bench.ask()
    assert bench.passes() == STARTS
    bench.passes(2)
    return bench


def test_nothing_happens_while_nobody_asks(bench: Bench) -> None:
    assert bench.passes(2) == []
    assert not bench.files.folder.exists()


def test_what_is_asked_for_is_started_once_on_the_loopback_and_its_addresses_are_reported(bench: Bench) -> None:
    settled(bench)
    assert bench.passes(2) == []
    addresses = read_json(bench.files.addresses)
    for name in ("prometheus", "alertmanager"):
        assert addresses[name].startswith("127.0.0.1:")
        assert f"--web.listen-address={addresses[name]}" in bench.processes.commands[name]
    assert "--cluster.listen-address=" in bench.processes.commands["alertmanager"]


def test_a_dead_server_is_started_again_at_its_address_by_a_new_operator_too(bench: Bench) -> None:
    before = read_json(settled(bench).files.addresses)
    bench.monitoring = bench.fresh()
    bench.processes.running.discard("prometheus")
    assert bench.passes()[:1] == ["start prometheus"]
    assert read_json(bench.files.addresses) == before


def test_both_end_when_nobody_asks_any_more_and_may_be_asked_for_again(bench: Bench) -> None:
    settled(bench).files.request.unlink()
    assert bench.passes(2) == ["stop prometheus", "stop alertmanager"]
    assert not bench.files.addresses.exists()
    bench.ask()
    assert bench.passes() == STARTS


def test_what_a_failed_pass_started_ends_too(bench: Bench) -> None:
    settled(bench).files.request.unlink()
    bench.files.addresses.unlink()
    bench.processes.stop("alertmanager", 0)
    assert bench.passes(2) == ["stop prometheus"]


def test_new_rules_are_read_and_removed_ones_forgotten(bench: Bench) -> None:
    settled(bench).objects.rule("mine", "up == 0")
    assert bench.passes(2) == ["reload prometheus"]
    (file,) = bench.files.from_objects.iterdir()
    assert json.loads(file.read_text(encoding="utf-8"))["groups"][0]["rules"] == [{"alert": "A", "expr": "up == 0"}]
    bench.objects.by_kind.clear()
    assert bench.passes(2) == ["reload prometheus"]
    assert not list(bench.files.from_objects.iterdir())


def test_a_rule_that_prometheus_would_refuse_is_left_out_and_named_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    settled(bench).objects.rule("good", "up == 0")
    bench.objects.rule("wrong", "nonsense(")
    bench.passes(3)
    assert [file.name for file in bench.files.from_objects.iterdir()] == ["ns.good.json"]
    assert [record.getMessage() for record in caplog.records if "left out" in record.getMessage()] == [
        "PrometheusRule ns/wrong: left out, because promtool refuses it: parse error"
    ]


def test_a_pod_monitor_that_prometheus_would_refuse_stops_no_other_and_is_named_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    settled(bench).objects.pod_monitor("good", "keep")
    bench.objects.pod_monitor("wrong", "nonsense")
    assert bench.passes(3) == ["reload prometheus"]
    scraped = json.loads(bench.files.prometheus.read_text(encoding="utf-8"))["scrape_configs"]
    assert [entry["job_name"] for entry in scraped] == ["targets", "podMonitor/ns/good/0"]
    assert [record.getMessage() for record in caplog.records if "left out" in record.getMessage()] == [
        "PodMonitor ns/wrong: left out, because promtool refuses it: parse error"
    ]
    assert (bench.folder / "seen").read_text(encoding="utf-8").split() == ["config"] * 2


def test_a_configuration_that_is_refused_is_not_asked_for_again_until_it_changes(bench: Bench) -> None:
    settled(bench).answer = 500
    bench.objects.rule("mine", "up == 0")
    assert bench.passes(3) == ["reload prometheus"]
    bench.objects.rule("other", "up == 0")
    bench.answer = 200
    assert bench.passes(3) == ["reload prometheus"]


def test_a_file_of_alertmanagers_that_changes_is_read_again_and_another_one_restarts_it(
    bench: Bench, tmp_path: Path
) -> None:
    settled(bench)
    write_json(bench.files.alertmanager, {"route": {"receiver": "other"}})
    assert bench.passes(2) == ["reload alertmanager"]
    own = tmp_path / "own.yml"
    own.write_text("route: {}", encoding="utf-8")
    bench.ask(own)
    assert bench.passes() == ["stop alertmanager", "start alertmanager"]
    assert f"--config.file={own}" in bench.processes.commands["alertmanager"]
    assert read_json(bench.files.addresses)[CONFIGURED_BY] == str(own)
    bench.passes(2)
    (tmp_path / "texts.tmpl").write_text("x", encoding="utf-8")
    assert bench.passes(2) == ["reload alertmanager"]


def test_rules_and_targets_that_people_add_are_read(bench: Bench) -> None:
    settled(bench)
    (bench.files.rules / "own.yaml").write_text("groups: []\n", encoding="utf-8")
    assert bench.passes(2) == ["reload prometheus"]
    config = json.loads(bench.files.prometheus.read_text(encoding="utf-8"))
    assert str(bench.files.targets / "*.json") in str(config["scrape_configs"][0])
    assert config["rule_files"][0] == str(bench.files.rules / "*.y*ml")


def test_all_that_exports_is_written_as_pods(bench: Bench) -> None:
    bench.objects.by_kind["KafkaMirrorMaker2"] = [{"metadata": {"namespace": "ns", "name": "mm2"}}]
    write_json(bench.folder / "mirrors" / "ns" / "mm2" / "layout.json", {"metrics_ports": {"0": 1}, "exporting": 1})
    settled(bench)
    pods = json.loads(bench.files.pods.read_text(encoding="utf-8"))
    assert [pod["targets"] for pod in pods] == [["127.0.0.1:1"], ["127.0.0.1:9"]]
