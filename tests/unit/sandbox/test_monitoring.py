"""How monitoring is asked for, and what is said of it."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox import monitoring
from sandbox.monitoring import CONFIGURED_BY, MonitoringFiles
from sandbox.processes import Processes
from sandbox.state import SandboxState, StateError
from sandbox.toolchain import ToolchainError, Tools

from .conftest import script
from .test_cli import process


@pytest.fixture
def with_programs(tools: Tools) -> Tools:
    for program in (tools.prometheus, tools.promtool, tools.alertmanager):
        script(program, "")
    script(tools.amtool, "import sys; sys.exit('unknown receiver' if 'wrong' in open(sys.argv[2]).read() else 0)")
    return tools


def answered(state: SandboxState, configured_by: str | None = None) -> MonitoringFiles:
    files = MonitoringFiles(state.monitoring)
    files.folder.mkdir()
    addresses = {"prometheus": "127.0.0.1:1", "alertmanager": "127.0.0.1:2", CONFIGURED_BY: configured_by}
    files.addresses.write_text(json.dumps(addresses), encoding="utf-8")
    return files


def test_without_the_programs_it_is_said_what_to_run(with_programs: Tools) -> None:
    monitoring.check(with_programs, None)
    gone = replace(with_programs, alertmanager=Path("/nowhere/alertmanager"))
    with pytest.raises(ToolchainError, match=r"not installed: alertmanager\. Run `make setup`"):
        monitoring.check(gone, None)


def test_a_configuration_that_alertmanager_would_refuse_is_refused_at_once(
    with_programs: Tools, tmp_path: Path
) -> None:
    file = tmp_path / "alertmanager.yml"
    with pytest.raises(StateError, match=r"must be a file \(got .*alertmanager.yml\)"):
        monitoring.check(with_programs, file)
    file.write_text("wrong", encoding="utf-8")
    with pytest.raises(StateError, match=r"amtool must accept the file \(got: unknown receiver\)"):
        monitoring.check(with_programs, file)
    file.write_text("right", encoding="utf-8")
    monitoring.check(with_programs, file)


def test_a_configuration_alone_is_wrong_usage(state: SandboxState) -> None:
    answer = process(state, "up", "--alertmanager-config", "x.yml")
    assert answer.returncode == 2
    assert "needs --monitoring" in answer.stderr


def test_what_does_not_answer_is_named_with_its_log(state: SandboxState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "READY_WITHIN_S", 0.1)
    with pytest.raises(monitoring.MonitoringError, match=r"alertmanager \(log: .*\), prometheus \(log: "):
        monitoring.up(state, None, lambda _: None)


def test_the_end_is_asked_for_and_waited_for(state: SandboxState, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not monitoring.down(state)
    files = answered(state)
    files.request.write_text("{}", encoding="utf-8")
    monkeypatch.setattr(monitoring, "STOPPED_WITHIN_S", 0.1)
    with pytest.raises(monitoring.MonitoringError, match="must be stopped within"):
        monitoring.down(state)
    assert not files.request.exists()
    monkeypatch.setattr(time, "sleep", lambda _: files.addresses.unlink())
    assert monitoring.down(state)


def test_what_never_answered_is_not_wanted_any_more_either(
    state: SandboxState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "READY_WITHIN_S", 0.1)
    with pytest.raises(monitoring.MonitoringError):
        monitoring.up(state, None, lambda _: None)
    assert monitoring.down(state)
    assert not MonitoringFiles(state.monitoring).request.exists()
    assert not monitoring.down(state)


def test_a_server_that_runs_without_a_known_address_is_waited_for(
    state: SandboxState, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(state)
    processes.start("prometheus", ["/bin/sleep", "60"], {}, state.log("prometheus"))
    monkeypatch.setattr(time, "sleep", lambda _: processes.stop("prometheus", 0))
    assert monitoring.down(state)
    assert not monitoring.down(state)


def test_a_later_request_without_a_file_keeps_the_one_that_is_used(
    state: SandboxState, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(monitoring, "_is_ready", lambda *_: True)
    for file in (tmp_path / "own.yml", None):
        monitoring.up(state, file, lambda _: None)
        request = json.loads(MonitoringFiles(state.monitoring).request.read_text(encoding="utf-8"))
        assert request == {CONFIGURED_BY: str(tmp_path / "own.yml")}


def test_addresses_become_variables_once_they_are_known(state: SandboxState) -> None:
    assert monitoring.environment(state) == {}
    answered(state)
    wanted = {"PROMETHEUS_URL": "http://127.0.0.1:1", "ALERTMANAGER_URL": "http://127.0.0.1:2"}
    assert monitoring.environment(state) == wanted
    state.clear()
    assert monitoring.environment(state) == {}
