"""Offsets of a source connector by way of the operator: what is written, what is waited for, what is told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.recovery import connector_offsets
from ops.recovery.connector_offsets import alter, entry_key, listed
from tests.ops.api_server import CONNECTOR, OPERATION, ApiServer, serving

PLACE = ("kafka.strimzi.io/v1", "there", "mm2")
SOURCE = "es-src->es-tgt.MirrorSourceConnector"
KEY = "es-src--es-tgt.MirrorSourceConnector.json"
MAP = "mm2-connector-offsets"
WANTED = {("items", 0): 41, ("items", 1): -1}
Operator = Callable[[ApiServer], None]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_offsets, "POLL_S", 0.01)
    monkeypatch.setattr(connector_offsets, "SILENT_AFTER_S", 0.05)


def mirror(state: str = "stopped", **connector: Any) -> dict[str, Any]:
    places = {"listOffsets": {"toConfigMap": {"name": MAP}}, "alterOffsets": {"fromConfigMap": {"name": MAP}}}
    told = [{"name": SOURCE, "connector": {"state": state.upper()}, "tasks": []}]
    return {
        "metadata": {"name": "mm2", "uid": "u-1", "annotations": {"mine": "stays"}},
        "spec": {
            "mirrors": [{"source": {"alias": "es-src"}, "sourceConnector": {"state": state, **places, **connector}}]
        },
        "status": {"connectors": told, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def obeying(held: dict[tuple[str, int], int]) -> Operator:
    """An operator that does what it is asked for, on the offsets that it holds."""

    def act(server: ApiServer) -> None:
        operation = server.annotations.get(OPERATION)
        if operation is None:
            return
        assert server.annotations[CONNECTOR] == SOURCE
        data = server.config_maps[MAP]["data"]
        if operation == "alter":
            for entry in json.loads(data[KEY])["offsets"]:
                assert entry["partition"]["cluster"] == "es-src"
                place = (entry["partition"]["topic"], entry["partition"]["partition"])
                held.pop(place, None)
                if entry["offset"] is not None:
                    held[place] = entry["offset"]["offset"]
        else:
            entries = [
                {"partition": {"cluster": "es-src", "topic": topic, "partition": number}, "offset": {"offset": at}}
                for (topic, number), at in held.items()
            ]
            data[KEY] = json.dumps({"offsets": entries})
        del server.annotations[OPERATION], server.annotations[CONNECTOR]

    return act


def warning(reason: str, message: str) -> Operator:
    """An operator that says this as long as it is asked."""

    def act(server: ApiServer) -> None:
        told = [{"type": "Warning", "status": "True", "reason": reason, "message": message}]
        server.resource["status"]["conditions"] = told if OPERATION in server.annotations else []

    return act


def refusal(server: ApiServer, folder: Path, within_s: float = 5.0) -> str:
    with serving(server, folder) as environment, pytest.raises(OpsError) as caught:
        alter(PLACE, SOURCE, WANTED, environment, lambda _: None, within_s)
    return str(caught.value)


def test_offsets_are_altered_and_read_back(tmp_path: Path) -> None:
    held = {("items", 0): 7, ("items", 1): 8, ("other", 0): 9}
    server, said = ApiServer(mirror(), obeying(held)), list[str]()
    with serving(server, tmp_path) as environment:
        alter(PLACE, SOURCE, WANTED, environment, said.append, 5.0)
    assert held == {("items", 0): 41, ("other", 0): 9}
    assert server.asked == ["alter", "list"]
    assert server.annotations == {"mine": "stays"}
    owner = server.config_maps[MAP]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("KafkaMirrorMaker2", "mm2", "u-1")
    assert any("alter" in line for line in said)


def test_a_config_map_that_exists_keeps_its_other_entries(tmp_path: Path) -> None:
    server = ApiServer(mirror(), obeying({}))
    server.config_maps[MAP] = {"metadata": {"name": MAP}, "data": {"other.json": "{}"}}
    with serving(server, tmp_path) as environment:
        alter(PLACE, SOURCE, WANTED, environment, lambda _: None, 5.0)
    assert server.config_maps[MAP]["data"]["other.json"] == "{}"


def test_nothing_to_alter_asks_nobody() -> None:
    alter(PLACE, SOURCE, {}, {"KUBECONFIG": "/does/not/exist"}, lambda _: None)


def test_offsets_are_listed_of_a_running_connector_too(tmp_path: Path) -> None:
    server = ApiServer(mirror("running"), obeying({("items", 0): 7}))
    with serving(server, tmp_path) as environment:
        assert listed(PLACE, SOURCE, environment, lambda _: None, 5.0) == {("items", 0): 7}
    assert entry_key(SOURCE) == KEY


def test_a_connector_that_shall_run_is_not_altered(tmp_path: Path) -> None:
    server = ApiServer(mirror("running"), obeying({}))
    message = refusal(server, tmp_path)
    assert "must be stopped before its offsets are altered (got its state is running)" in message
    assert not server.asked


def test_a_connector_that_does_not_stop_is_told_at_the_deadline(tmp_path: Path) -> None:
    server = ApiServer(mirror(), obeying({}))
    server.resource["status"]["connectors"][0]["tasks"] = [{"id": 0, "state": "RUNNING"}]
    assert "(got STOPPED after 0 s)" in refusal(server, tmp_path, 0.1)
    assert not server.asked


def test_an_operator_that_is_silent_is_told_and_asked_no_more(tmp_path: Path) -> None:
    server = ApiServer(mirror())
    message = refusal(server, tmp_path, 0.2)
    assert "the operator must alter the offsets" in message
    assert "got no answer" in message
    assert server.annotations == {"mine": "stays"}


def test_what_the_operator_says_against_it_is_told(tmp_path: Path) -> None:
    server = ApiServer(mirror(), warning("AlterOffsets", "no such partition"))
    message = refusal(server, tmp_path)
    assert "no such partition" in message
    assert server.asked == ["alter"] * connector_offsets.ATTEMPTS
    assert server.annotations == {"mine": "stays"}


def test_a_warning_of_before_is_no_answer(tmp_path: Path) -> None:
    server = ApiServer(mirror(), obeying({}))
    server.resource["status"]["conditions"] = [{"type": "Warning", "reason": "AlterOffsets", "message": "old"}]
    with serving(server, tmp_path) as environment:
        alter(PLACE, SOURCE, WANTED, environment, lambda _: None, 5.0)
    assert server.asked == ["alter", "list"]


def test_offsets_that_are_not_as_asked_for_are_told(tmp_path: Path) -> None:
    held: dict[tuple[str, int], int] = {}
    obey = obeying(held)

    def disturbed(server: ApiServer) -> None:
        if server.annotations.get(OPERATION) == "list":
            held[("items", 0)] = 5
        obey(server)

    message = refusal(ApiServer(mirror(), disturbed), tmp_path)
    assert "items-0: 5 instead of 41" in message


def test_an_operator_that_lists_nothing_is_told(tmp_path: Path) -> None:
    def careless(server: ApiServer) -> None:
        server.annotations.pop(OPERATION, None)
        server.annotations.pop(CONNECTOR, None)

    assert f"got nothing under {KEY}" in refusal(ApiServer(mirror(), careless), tmp_path)


def test_a_mirror_without_the_config_map_is_told(tmp_path: Path) -> None:
    server = ApiServer(mirror(alterOffsets=None), obeying({}))
    assert "must name the same ConfigMap" in refusal(server, tmp_path)


def test_an_api_server_that_does_not_answer_is_told(tmp_path: Path) -> None:
    with serving(ApiServer(mirror()), tmp_path) as environment:
        pass
    with pytest.raises(OpsError, match="the API server must answer"):
        listed(PLACE, SOURCE, environment, lambda _: None, 5.0)


def test_a_kubeconfig_that_is_not_there_is_told() -> None:
    with pytest.raises(OpsError, match="kubernetes: access must be given"):
        listed(PLACE, SOURCE, {"KUBECONFIG": "/does/not/exist"}, lambda _: None)
