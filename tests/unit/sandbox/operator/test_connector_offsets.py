import json
from typing import Any

import pytest

from sandbox.operator import NotReadyError, connect
from sandbox.operator.connect import OFFSETS_CONNECTOR, OFFSETS_OPERATION, offsets_key
from sandbox.operator.connectors import Connector
from tests.support.api_objects import MemoryKubernetes

NAME = "src->tgt.MirrorSourceConnector"
KEY = "src--tgt.MirrorSourceConnector.json"
OFFSETS = {"offsets": [{"partition": {"cluster": "src", "partition": 0, "topic": "items"}, "offset": {"offset": 122}}]}


class Rest:
    """Connect's offsets of one connector; `refusal` is what it answers to a change."""

    def __init__(self, refusal: NotReadyError | None = None) -> None:
        self.held: Any = OFFSETS
        self.refusal = refusal

    def offsets(self, name: str) -> Any:
        assert name == NAME
        return self.held

    def alter_offsets(self, name: str, offsets: Any) -> None:
        if self.refusal:
            raise self.refusal
        self.held = offsets

    def reset_offsets(self, name: str) -> None:
        self.held = {"offsets": []}


def manage(
    annotations: dict[str, str],
    rest: Rest | None = None,
    kubernetes: MemoryKubernetes | None = None,
    state: str = "STOPPED",
    *,
    config_map: str | None = "kept",
) -> tuple[tuple[tuple[str, str], ...], dict[str, str]]:
    """The warnings, and the annotations that are left."""
    left = dict(annotations)
    resource = {"metadata": {"namespace": "here", "name": "mm2", "annotations": left}}
    wanted = [
        Connector(
            name=NAME,
            config={},
            state="stopped",
            auto_restart=False,
            max_restarts=None,
            source_alias="src",
            list_offsets_to=config_map,
            alter_offsets_from=config_map,
        )
    ]
    states = {NAME: {"status": {"connector": {"state": state}}}}
    memory: Any = kubernetes or MemoryKubernetes()
    found: Any = rest or Rest()
    return connect.manage_offsets(memory, resource, found, wanted, states), left


def asked(operation: str, connector: str = NAME) -> dict[str, str]:
    return {OFFSETS_OPERATION: operation, OFFSETS_CONNECTOR: connector, "other": "stays"}


def test_the_key_holds_no_character_that_a_config_map_refuses() -> None:
    assert offsets_key(NAME) == KEY


def test_offsets_are_listed_into_the_config_map_beside_what_it_holds() -> None:
    kubernetes = MemoryKubernetes()
    kubernetes.config_maps["kept"] = {"other.json": "{}"}
    warnings, left = manage(asked("list"), kubernetes=kubernetes, state="RUNNING")
    assert not warnings
    assert left == {"other": "stays"}
    assert json.loads(kubernetes.config_maps["kept"][KEY]) == OFFSETS
    assert kubernetes.config_maps["kept"]["other.json"] == "{}"


def test_offsets_are_altered_to_what_the_config_map_holds() -> None:
    kubernetes, rest = MemoryKubernetes(), Rest()
    wanted = {"offsets": [{"partition": {"cluster": "src", "partition": 0, "topic": "items"}, "offset": None}]}
    kubernetes.config_maps["kept"] = {KEY: json.dumps(wanted)}
    warnings, left = manage(asked("alter"), rest, kubernetes)
    assert not warnings
    assert left == {"other": "stays"}
    assert rest.held == wanted


def test_offsets_are_reset() -> None:
    rest = Rest()
    assert manage(asked("reset"), rest) == ((), {"other": "stays"})
    assert rest.held == {"offsets": []}


@pytest.mark.parametrize("operation", ["alter", "reset"])
def test_a_connector_that_is_not_stopped_keeps_its_offsets_and_the_annotations(operation: str) -> None:
    kubernetes, rest = MemoryKubernetes(), Rest()
    kubernetes.config_maps["kept"] = {KEY: '{"offsets": []}'}
    warnings, left = manage(asked(operation), rest, kubernetes, "RUNNING")
    assert [reason for reason, _ in warnings] == ["AlterOffsets" if operation == "alter" else "ResetOffsets"]
    assert "Connector is not in STOPPED state" in warnings[0][1]
    assert left == asked(operation)
    assert rest.held == OFFSETS


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (None, "ConfigMap here/kept does not exist."),
        ({}, f"Data field {KEY} is missing."),
        ({KEY: "{"}, f"Failed to parse contents of {KEY} as JSON"),
    ],
)
def test_a_config_map_that_cannot_be_used_is_a_warning(values: dict[str, str] | None, message: str) -> None:
    kubernetes = MemoryKubernetes()
    if values is not None:
        kubernetes.config_maps["kept"] = values
    warnings, left = manage(asked("alter"), kubernetes=kubernetes)
    assert [reason for reason, _ in warnings] == ["AlterOffsets"]
    assert message in warnings[0][1]
    assert left == asked("alter")


@pytest.mark.parametrize(("operation", "field"), [("list", "listOffsets"), ("alter", "alterOffsets")])
def test_a_resource_that_names_no_config_map_is_reported(operation: str, field: str) -> None:
    warnings, _ = manage(asked(operation), config_map=None)
    assert field in warnings[0][1]


def test_an_error_of_connect_is_reported_verbatim() -> None:
    kubernetes = MemoryKubernetes()
    kubernetes.config_maps["kept"] = {KEY: '{"offsets": []}'}
    refusal = NotReadyError("ConnectRestException", "PATCH /offsets: 400 no such partition")
    warnings, left = manage(asked("alter"), Rest(refusal), kubernetes)
    assert "400 no such partition" in warnings[0][1]
    assert left == asked("alter")


def test_a_rebalancing_connect_is_asked_again_and_warns_of_nothing() -> None:
    kubernetes = MemoryKubernetes()
    kubernetes.config_maps["kept"] = {KEY: '{"offsets": []}'}
    with pytest.raises(NotReadyError, match="rebalancing"):
        manage(asked("alter"), Rest(NotReadyError("Rebalancing", "it is rebalancing")), kubernetes)


def test_an_operation_without_connector_or_of_no_known_name_is_reported() -> None:
    for annotations, message in (({OFFSETS_OPERATION: "list"}, OFFSETS_CONNECTOR), (asked("forget"), "forget")):
        warnings, left = manage(annotations)
        assert [reason for reason, _ in warnings] == ["ManageOffsets"]
        assert message in warnings[0][1]
        assert left == annotations


def test_a_connector_of_another_resource_is_left_to_it() -> None:
    assert manage(asked("list", "other->tgt.MirrorSourceConnector"))[0] == ()
    assert manage({"other": "stays"}) == ((), {"other": "stays"})
