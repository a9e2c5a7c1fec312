"""Offsets of a source connector by way of the operator: what is written, what is waited for, what is reported."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.errors import OpsError
from ops.recovery import connector_offsets, kubernetes_access
from ops.recovery.connector_offsets import alter, entry_key, listed
from tests.support.mirror_api_server import OPERATION, ApiServer, serving

PLACE = ("kafka.strimzi.io/v1", "there", "mm2")
SOURCE = "es-src->es-tgt.MirrorSourceConnector"
KEY = "es-src--es-tgt.MirrorSourceConnector.json"
MAP = "mm2-connector-offsets"
MANAGED_BY, STRIMZI = "app.kubernetes.io/managed-by", "strimzi-cluster-operator"
PATIENT_S = 120.0  # a loaded machine takes seconds to import the client of Kubernetes
WANTED = {("items", 0): 41, ("items", 1): -1}
Operator = Callable[[ApiServer], None]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector_offsets, "POLL_S", 0.01)
    monkeypatch.setattr(connector_offsets, "SILENT_AFTER_S", 0.05)
    monkeypatch.setattr(kubernetes_access, "TRIED_WITHIN_S", 0.2)


def mirror(state: str = "stopped", **connector: Any) -> dict[str, Any]:
    places = {"listOffsets": {"toConfigMap": {"name": MAP}}, "alterOffsets": {"fromConfigMap": {"name": MAP}}}
    reported = [{"name": SOURCE, "connector": {"state": state.upper()}, "tasks": []}]
    return {
        "metadata": {"name": "mm2", "uid": "u-1", "annotations": {"mine": "stays"}},
        "spec": {
            "mirrors": [{"source": {"alias": "es-src"}, "sourceConnector": {"state": state, **places, **connector}}]
        },
        "status": {"connectors": reported, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def obeying(held: dict[tuple[str, int], int], domain: str = "strimzi.io") -> Operator:
    """An operator that does what it is asked for by its own annotations, on the offsets that it holds."""
    asking, of_connector = f"{domain}/connector-offsets", f"{domain}/mirrormaker-connector"

    def act(server: ApiServer) -> None:
        operation = server.annotations.get(asking)
        if operation is None:
            return
        assert server.annotations[of_connector] == SOURCE
        # When it lists it makes the ConfigMap, or applies its own label and entry: another value there is a conflict.
        found = server.config_maps.setdefault(MAP, {"metadata": {"name": MAP}})
        data = found.setdefault("data", {})
        labels = found["metadata"].setdefault("labels", {})
        assert labels.get(MANAGED_BY, STRIMZI) == STRIMZI, "the label of another manager"
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
            assert KEY not in data, "an entry of another manager"
            labels[MANAGED_BY] = STRIMZI
            data[KEY] = json.dumps({"offsets": entries})
        del server.annotations[asking], server.annotations[of_connector]

    return act


def warning(reason: str, message: str) -> Operator:
    """An operator that says this as long as it is asked."""

    def act(server: ApiServer) -> None:
        reported = [{"type": "Warning", "status": "True", "reason": reason, "message": message}]
        server.resource["status"]["conditions"] = reported if OPERATION in server.annotations else []

    return act


def refusal(server: ApiServer, folder: Path, within_s: float = PATIENT_S) -> str:
    with serving(server, folder) as environment, pytest.raises(OpsError) as caught:
        alter(PLACE, SOURCE, WANTED, environment, lambda _: None, within_s)
    return str(caught.value)


def test_offsets_are_altered_and_read_back(tmp_path: Path) -> None:
    held = {("items", 0): 7, ("items", 1): 8, ("other", 0): 9}
    server, said = ApiServer(mirror(), obeying(held)), list[str]()
    with serving(server, tmp_path) as environment:
        alter(PLACE, SOURCE, WANTED, environment, said.append, PATIENT_S)
    assert held == {("items", 0): 41, ("other", 0): 9}
    assert server.asked == ["alter", "list"]
    assert server.annotations == {"mine": "stays"}
    owner = server.config_maps[MAP]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("KafkaMirrorMaker2", "mm2", "u-1")
    assert any("alter" in line for line in said)


@pytest.mark.parametrize("allowed", range(6))
def test_nothing_is_changed_any_more_once_it_is_forbidden(tmp_path: Path, allowed: int) -> None:
    class Counting(ApiServer):
        changes = 0

        def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
            self.changes += method != "GET"
            return super().answer(method, path, body)

    server = Counting(mirror(), obeying({("items", 0): 7, ("items", 1): 8}))
    left, changes = iter(range(allowed)), list[int]()

    def lost() -> None:
        if next(left, None) is None:
            changes.append(server.changes)
            raise OpsError("no longer")

    with serving(server, tmp_path) as environment, pytest.raises(OpsError, match="no longer"):
        alter(PLACE, SOURCE, WANTED, environment, lambda _: None, PATIENT_S, require_permission=lost)
    assert changes[0] == server.changes


def test_ibms_operator_is_asked_by_annotations_of_its_own_group(tmp_path: Path) -> None:
    held, domain = {("items", 0): 7}, "eventstreams.ibm.com"
    server = ApiServer(mirror())
    server.resource["spec"]["mirrors"][0] |= {"sourceCluster": "es-src", "source": None}
    server.operator = obeying(held, domain)
    place = ("eventstreams.ibm.com/v1beta2", "there", "mm2")
    with serving(server, tmp_path) as environment:
        alter(place, SOURCE, WANTED, environment, lambda _: None, PATIENT_S)
    assert held == {("items", 0): 41}
    assert server.asked == ["alter", "list"]
    assert server.annotations == {"mine": "stays"}


@pytest.mark.parametrize(
    ("api_version", "connector", "message"),
    [
        ("example.com/v1", {}, "by an operator whose annotations are known (got a resource of example.com/v1)"),
        ("eventstreams.ibm.com/v1beta2", {"listOffsets": None}, "it is older than platform.version says"),
    ],
)
def test_what_cannot_be_asked_for_offsets_is_refused_and_nothing_is_changed(
    tmp_path: Path, api_version: str, connector: dict[str, Any], message: str
) -> None:
    server = ApiServer(mirror(**connector))
    before = json.dumps(server.resource)
    with serving(server, tmp_path) as environment, pytest.raises(OpsError) as caught:
        connector_offsets.require_support((api_version, "there", "mm2"), SOURCE, environment, None)
    assert message in str(caught.value)
    assert json.dumps(server.resource) == before
    assert not server.config_maps


def test_a_mirror_that_can_be_asked_for_offsets_is_not_refused(tmp_path: Path) -> None:
    server = ApiServer(mirror())
    with serving(server, tmp_path) as environment:
        connector_offsets.require_support(PLACE, SOURCE, environment, None)
    assert not server.asked


def test_a_config_map_that_exists_keeps_its_other_entries(tmp_path: Path) -> None:
    server = ApiServer(mirror(), obeying({}))
    server.config_maps[MAP] = {"metadata": {"name": MAP}, "data": {"other.json": "{}"}}
    with serving(server, tmp_path) as environment:
        alter(PLACE, SOURCE, WANTED, environment, lambda _: None, PATIENT_S)
    assert server.config_maps[MAP]["data"]["other.json"] == "{}"


@pytest.mark.parametrize("label", ["rt-inventory", STRIMZI])
def test_a_listing_finds_nothing_that_another_manager_has_written(tmp_path: Path, label: str) -> None:
    """An earlier version of the command has left its label; the operator's own stays."""
    server = ApiServer(mirror(), obeying({("items", 0): 7}))
    metadata = {"name": MAP, "labels": {MANAGED_BY: label, "mine": "stays"}}
    server.config_maps[MAP] = {"metadata": metadata, "data": {KEY: "{}", "other.json": "{}"}}
    with serving(server, tmp_path) as environment:
        assert listed(PLACE, SOURCE, environment, lambda _: None, PATIENT_S) == {("items", 0): 7}
    assert metadata["labels"] == {MANAGED_BY: STRIMZI, "mine": "stays"}
    assert server.config_maps[MAP]["data"]["other.json"] == "{}"


def test_nothing_to_alter_asks_nobody() -> None:
    alter(PLACE, SOURCE, {}, {"KUBECONFIG": "/does/not/exist"}, lambda _: None)


def test_offsets_are_listed_of_a_running_connector_too(tmp_path: Path) -> None:
    server = ApiServer(mirror("running"), obeying({("items", 0): 7}))
    with serving(server, tmp_path) as environment:
        assert listed(PLACE, SOURCE, environment, lambda _: None, PATIENT_S) == {("items", 0): 7}
    assert entry_key(SOURCE) == KEY


def test_a_connector_that_shall_run_is_not_altered(tmp_path: Path) -> None:
    server = ApiServer(mirror("running"), obeying({}))
    message = refusal(server, tmp_path)
    assert "must be stopped before its offsets are altered (got its state is running)" in message
    assert not server.asked


def test_a_connector_that_does_not_stop_is_reported_at_the_deadline(tmp_path: Path) -> None:
    server = ApiServer(mirror(), obeying({}))
    server.resource["status"]["connectors"][0]["tasks"] = [{"id": 0, "state": "RUNNING"}]
    assert "(got STOPPED after 0 s)" in refusal(server, tmp_path, 0.1)
    assert not server.asked


def test_an_operator_that_is_silent_is_reported_and_asked_no_more(tmp_path: Path) -> None:
    server = ApiServer(mirror())
    message = refusal(server, tmp_path, 0.2)
    assert "the operator must alter the offsets" in message
    assert "got no answer" in message
    assert server.annotations == {"mine": "stays"}


def test_what_the_operator_says_against_it_is_reported(tmp_path: Path) -> None:
    server = ApiServer(mirror(), warning("AlterOffsets", "no such partition"))
    message = refusal(server, tmp_path)
    assert "no such partition" in message
    assert server.asked == ["alter"] * connector_offsets.ATTEMPTS
    assert server.annotations == {"mine": "stays"}


def test_a_warning_of_before_is_no_answer(tmp_path: Path) -> None:
    server = ApiServer(mirror(), obeying({}))
    server.resource["status"]["conditions"] = [{"type": "Warning", "reason": "AlterOffsets", "message": "old"}]
    with serving(server, tmp_path) as environment:
        alter(PLACE, SOURCE, WANTED, environment, lambda _: None, PATIENT_S)
    assert server.asked == ["alter", "list"]


def test_offsets_that_are_not_as_asked_for_are_reported(tmp_path: Path) -> None:
    held: dict[tuple[str, int], int] = {}
    obey = obeying(held)

    def disturbed(server: ApiServer) -> None:
        if server.annotations.get(OPERATION) == "list":
            held[("items", 0)] = 5
        obey(server)

    message = refusal(ApiServer(mirror(), disturbed), tmp_path)
    assert "items-0: 5 instead of 41" in message


def test_an_operator_that_lists_nothing_is_reported(tmp_path: Path) -> None:
    def careless(server: ApiServer) -> None:
        server.annotations.pop(OPERATION, None)
        server.annotations.pop("strimzi.io/mirrormaker-connector", None)

    assert f"got nothing under {KEY}" in refusal(ApiServer(mirror(), careless), tmp_path)


def test_a_mirror_without_the_config_map_is_reported(tmp_path: Path) -> None:
    server = ApiServer(mirror(alterOffsets=None), obeying({}))
    assert "must name the same ConfigMap" in refusal(server, tmp_path)


def test_the_context_that_a_stack_names_is_used_and_named(tmp_path: Path) -> None:
    server = ApiServer(mirror("running"), obeying({("items", 0): 7}))
    with serving(server, tmp_path) as environment:
        file = Path(environment["KUBECONFIG"])
        known = yaml.safe_load(file.read_text(encoding="utf-8"))
        nowhere = {"name": "nowhere", "cluster": {"server": "https://127.0.0.1:9"}}
        known["clusters"].append(nowhere)
        known["contexts"].append({"name": "nowhere", "context": {"cluster": "nowhere", "user": "me"}})
        file.write_text(yaml.safe_dump({**known, "current-context": "nowhere"}), encoding="utf-8")
        assert listed(PLACE, SOURCE, environment, lambda _: None, PATIENT_S, context="here") == {("items", 0): 7}
        with pytest.raises(OpsError, match="the API server of context nowhere must answer"):
            listed(PLACE, SOURCE, environment, lambda _: None, PATIENT_S, context="nowhere")
        with pytest.raises(OpsError, match=r"got context stg: .*correct kubernetes:context of the stack"):
            listed(PLACE, SOURCE, environment, lambda _: None, PATIENT_S, context="stg")


def test_an_api_server_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    with serving(ApiServer(mirror()), tmp_path) as environment:
        pass
    with pytest.raises(OpsError, match="the API server of the kubeconfig's current context must answer"):
        listed(PLACE, SOURCE, environment, lambda _: None, PATIENT_S)


def test_a_kubeconfig_that_is_not_there_is_reported() -> None:
    with pytest.raises(OpsError, match="kubernetes: access must be given"):
        listed(PLACE, SOURCE, {"KUBECONFIG": "/does/not/exist"}, lambda _: None)
