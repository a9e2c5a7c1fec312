"""Starting and rolling back, with scripts in the control plane's place."""

import json
import os
from pathlib import Path

import httpx
import pytest

from sandbox import control_plane
from sandbox.api_server import CrdError, definition_name, install_definitions
from sandbox.processes import ProcessError, free_ports, marked
from sandbox.state import SandboxState
from sandbox.toolchain import Tools

from .conftest import script


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def context(state: SandboxState, tools: Tools, said: list[str]) -> control_plane.SandboxContext:
    return control_plane.SandboxContext(state, tools, os.environ, said.append)


def assert_nothing_left(state: SandboxState) -> None:
    assert not marked(state)
    assert {path.name for path in state.path.iterdir()} <= {"logs", "reports", "lock", "sandbox.json"}


def test_a_plane_that_ends_at_once_is_shown_by_its_last_lines_and_leaves_nothing(
    context: control_plane.SandboxContext, state: SandboxState
) -> None:
    script(context.tools.controlplane, "import sys; sys.exit('no such flag: --tls')")
    with pytest.raises(control_plane.ControlPlaneError, match="no such flag: --tls"):
        control_plane.up(context)
    assert_nothing_left(state)
    assert "no such flag" in state.log("plane").read_text()


def test_a_plane_that_never_answers_is_given_up_and_stopped(
    context: control_plane.SandboxContext, state: SandboxState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_plane, "READY_WITHIN_S", 1.0)
    script(context.tools.controlplane, "import time; time.sleep(60)")
    with pytest.raises(control_plane.ControlPlaneError, match="must be ready within 1 s"):
        control_plane.up(context)
    assert_nothing_left(state)


def test_a_taken_port_is_replaced_by_another_one_and_then_given_up(
    context: control_plane.SandboxContext, state: SandboxState, said: list[str]
) -> None:
    script(context.tools.controlplane, "import sys; sys.exit('listen tcp: bind: address already in use')")
    with pytest.raises(control_plane.ControlPlaneError, match=r"port must be free .*3 times in a row"):
        control_plane.up(context)
    assert len([line for line in said if "choosing another one" in line]) == 3
    assert_nothing_left(state)


def test_a_missing_control_plane_is_one_clear_error(context: control_plane.SandboxContext, state: SandboxState) -> None:
    context.tools.controlplane.unlink()
    with pytest.raises(ProcessError, match=r"process plane: .*make setup"):
        control_plane.up(context)
    assert_nothing_left(state)


def test_an_interrupted_start_leaves_nothing(
    context: control_plane.SandboxContext, state: SandboxState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: SandboxState) -> bool:
        if marked(state):
            raise KeyboardInterrupt
        return False

    script(context.tools.controlplane, "import time; time.sleep(60)")
    monkeypatch.setattr(control_plane, "_answers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        control_plane.up(context)
    assert_nothing_left(state)


def test_a_second_up_at_the_same_time_is_refused(context: control_plane.SandboxContext, state: SandboxState) -> None:
    with (
        control_plane._locked(state),
        pytest.raises(control_plane.ControlPlaneError, match="only one up or down at a time"),
    ):
        control_plane.up(context)


def test_down_without_a_sandbox_says_so_and_makes_nothing(tmp_path: Path) -> None:
    assert control_plane.down(SandboxState(tmp_path / "never"), lambda _: None) is False
    assert not (tmp_path / "never").exists()


def test_processes_get_no_variable_that_they_do_not_need(context: control_plane.SandboxContext) -> None:
    inherited = control_plane.SandboxContext(
        context.state, context.tools, {"PATH": "/bin", "PULUMI_CONFIG_PASSPHRASE": "x"}, print
    ).inherited()
    assert inherited == {"PATH": "/bin"}


def test_free_ports_are_free_and_different() -> None:
    assert len(set(free_ports(20))) == 20


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: X\nmetadata:\n  name: kafkas.kafka.strimzi.io\n  labels:\n    a: b\n",
        "metadata:\n  annotations:\n    name: wrong\n  generation: 1\n  name: kafkas.kafka.strimzi.io\nspec:\n",
        '---\nmetadata:\n  labels:\n    x: "y"\n  name: "kafkas.kafka.strimzi.io"\n',
    ],
)
def test_the_name_of_a_definition_is_read_without_parsing_it_whole(text: str) -> None:
    assert definition_name(Path("kafka.yaml"), text) == "kafkas.kafka.strimzi.io"


def test_the_name_of_a_definition_in_json_is_read_too() -> None:
    text = '{"metadata":{"labels":{"name":"no"},"name":"kafkas.kafka.strimzi.io"},"spec":{"names":{}}}'
    assert definition_name(Path("kafka.json"), text) == "kafkas.kafka.strimzi.io"


def test_a_definition_without_a_name_is_refused_with_its_file() -> None:
    with pytest.raises(CrdError, match=r"kafka\.yaml: metadata\.name must be set"):
        definition_name(Path("kafka.yaml"), "metadata:\n  labels: {}\n")


def served_after(asked: list[str], times: int) -> httpx.Client:
    """An API server that takes each definition and serves each of its versions after it was asked so many times."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "PATCH":
            return httpx.Response(200, json=json.loads(request.content))
        asked.append(request.url.path)
        return httpx.Response(200 if asked.count(request.url.path) > times else 404)

    return httpx.Client(transport=httpx.MockTransport(answer), base_url="https://127.0.0.1")


def a_definition(folder: Path) -> Path:
    versions = [{"name": name, "served": name != "stored"} for name in ("v1", "v1beta2", "stored")]
    spec = {"group": "kafka.strimzi.io", "names": {"plural": "kafkas"}, "versions": versions}
    content = {"metadata": {"name": "kafkas.kafka.strimzi.io"}, "spec": spec}
    (folder / "kafkas.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_a_definition_is_installed_once_each_of_its_served_versions_answers(tmp_path: Path) -> None:
    asked: list[str] = []
    assert install_definitions(served_after(asked, 2), [a_definition(tmp_path)], 10) == ["kafkas.kafka.strimzi.io"]
    group = "/apis/kafka.strimzi.io"
    assert asked == [f"{group}/v1/kafkas"] * 3 + [f"{group}/v1beta2/kafkas"] * 3


def test_a_definition_that_is_never_served_is_given_up_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(CrdError, match=r"kafkas\.kafka\.strimzi\.io: must be served at .*/v1/kafkas within 0 s"):
        install_definitions(served_after([], 1000), [a_definition(tmp_path)], 0.3)
