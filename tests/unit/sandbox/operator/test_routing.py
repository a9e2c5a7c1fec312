"""AlertmanagerConfigs as a part of Alertmanager's configuration."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from sandbox.monitoring import MonitoringFiles
from sandbox.operator import alertmanager
from sandbox.operator.alertmanager import SILENT, Routing
from sandbox.operator.kubernetes_api import Kubernetes
from tests.support.api_objects import MemoryKubernetes

ADDRESS = "http://127.0.0.1:1/services/very-secret"
SPEC: dict[str, Any] = {
    "route": {
        "receiver": "info",
        "groupBy": ["alertname"],
        "groupWait": "1s",
        "routes": [
            {"receiver": "pages", "matchers": [{"name": "severity", "matchType": "=~", "value": 'crit"ical|b'}]},
        ],
    },
    "receivers": [
        {"name": "info"},
        {
            "name": "pages",
            "slackConfigs": [
                {
                    "apiURL": {"name": "slack", "key": "address"},
                    "sendResolved": True,
                    "iconURL": "x",
                    "actions": [{"type": "button", "titleLink": "y"}],
                }
            ],
        },
    ],
    "inhibitRules": [
        {"sourceMatch": [{"name": "severity", "value": "critical"}], "targetMatch": [], "equal": ["stack"]}
    ],
}


def resource(spec: dict[str, Any] = SPEC, name: str = "alerts") -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name}, "spec": spec}


class Bench:
    def __init__(self, folder: Path) -> None:
        self.files = MonitoringFiles(folder / "monitoring")
        self.kubernetes = MemoryKubernetes(slack={"address": ADDRESS})
        amtool = folder / "amtool"
        amtool.write_text('#!/bin/sh\nif grep -q nonsense "$2"; then echo no such word; exit 1; fi\n', encoding="utf-8")
        amtool.chmod(0o755)
        self.routing = Routing(cast(Kubernetes, self.kubernetes), self.files, amtool)

    def write(self, *objects: dict[str, Any], own: str | None = None) -> Path:
        return self.routing.write(own, objects)

    def read(self, *objects: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.write(*objects).read_text(encoding="utf-8"))
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_without_objects_nobody_is_notified(bench: Bench) -> None:
    assert bench.write() == bench.write(resource()), "another file would restart Alertmanager"
    assert bench.read() == SILENT


def test_a_file_of_the_users_is_used_as_it_is(bench: Bench) -> None:
    assert bench.write(resource(), own="/somewhere/own.yml") == Path("/somewhere/own.yml")


def test_an_object_routes_alerts_of_its_namespace_to_receivers_of_its_own(bench: Bench) -> None:
    found = bench.read(resource())
    assert found["route"]["receiver"] == "nobody"
    (route,) = found["route"]["routes"]
    assert route["matchers"] == ['namespace="ns"']
    assert (route["receiver"], route["continue"], route["group_by"]) == ("ns/alerts/info", True, ["alertname"])
    assert route["routes"] == [{"receiver": "ns/alerts/pages", "matchers": ['severity=~"crit\\"ical|b"']}]
    assert [each["name"] for each in found["receivers"]] == ["nobody", "ns/alerts/info", "ns/alerts/pages"]
    assert found["inhibit_rules"] == [
        {
            "source_matchers": ['namespace="ns"', 'severity="critical"'],
            "target_matchers": ['namespace="ns"'],
            "equal": ["stack"],
        }
    ]


def test_a_secret_address_lies_in_a_file_of_its_own_and_in_no_configuration(bench: Bench) -> None:
    found = bench.read(resource())
    (slack,) = found["receivers"][2]["slack_configs"]
    file = Path(slack.pop("api_url_file"))
    assert file.read_text(encoding="utf-8") == ADDRESS
    assert file.stat().st_mode & 0o777 == 0o600
    assert slack == {"send_resolved": True, "icon_url": "x", "actions": [{"type": "button", "title_link": "y"}]}
    assert ADDRESS not in json.dumps(found)


@pytest.mark.parametrize(
    ("receiver", "said"),
    [
        ({"emailConfigs": [{}]}, "receiver r: emailConfigs must be one of slackConfigs, webhookConfigs."),
        ({"slackConfigs": [{"apiURL": {"name": "slack", "key": "no"}}]}, "Secret slack must have the key no"),
        ({"slackConfigs": [{"channel": "nonsense"}]}, "no such word"),
    ],
)
def test_what_cannot_be_used_is_left_out_and_named_once_and_the_others_stay(
    bench: Bench, caplog: pytest.LogCaptureFixture, receiver: dict[str, Any], said: str
) -> None:
    wrong = {"route": {"receiver": "r"}, "receivers": [{"name": "r", **receiver}]}
    for _ in range(2):
        assert len(bench.read(resource(wrong, "wrong"), resource())["route"]["routes"]) == 1
    (record,) = caplog.records
    assert record.getMessage().startswith("AlertmanagerConfig ns/wrong: left out: ")
    assert said in record.getMessage()


def test_the_own_file_stays_below_what_objects_add_and_may_be_half_written(bench: Bench) -> None:
    bench.write()
    own = {"route": {"receiver": "mine", "routes": [{"receiver": "mine"}]}, "receivers": [{"name": "mine"}]}
    bench.files.alertmanager.write_text(json.dumps(own), encoding="utf-8")
    found = bench.read(resource())
    assert [route["receiver"] for route in found["route"]["routes"]] == ["ns/alerts/info", "mine"]
    bench.files.alertmanager.write_text("route: [", encoding="utf-8")
    assert bench.read(resource()) == found
    bench.files.routing.unlink()
    assert bench.read()["receivers"] == SILENT["receivers"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("iconURL", "icon_url"), ("groupBy", "group_by"), ("title", "title"), ("callbackId", "callback_id")],
)
def test_fields_are_spelled_as_alertmanager_does(name: str, wanted: str) -> None:
    assert alertmanager.snake(name) == wanted
