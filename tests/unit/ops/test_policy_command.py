"""The command with a stand-in for Pulumi: what it is asked, its end, its deadline, and what is left of it."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ops.cli import app
from ops.connection import PROJECT
from ops.pulumi import process

from ...support import event_logs as recorded
from ...support.pulumi_program import PulumiProgram, on_path

TOO_FEW = "topic items: replicas must be >= 3 (got 1)."


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiProgram:
    program = on_path(tmp_path / "bin", monkeypatch)
    program.answers(log=recorded.log(), stdout="what Pulumi shows")
    return program


def policy(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["policy", "--stack", "stg", *arguments])


def test_pulumi_is_asked_for_a_preview_with_the_pack_and_an_event_log(fake: PulumiProgram, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}", encoding="utf-8")
    result = policy("--config", str(config))
    assert result.exit_code == 0, result.output
    assert result.stdout == "nothing found: stack stg, 0 resources, pack rt-inventory 0.1.0\n"
    arguments = fake.words
    log = arguments.pop()
    assert arguments == [
        *("preview", "--stack", "stg", "--policy-pack", str(PROJECT / "policies")),
        *("--policy-pack-config", str(config), "--non-interactive", "--color", "never", "--event-log"),
    ]
    assert (fake.calls[-1]["debug"], fake.calls[-1]["folder"]) == ("true", str(PROJECT))
    assert not Path(log).parent.exists(), "the event log must not stay"


def test_a_configuration_beside_the_stack_file_is_given_to_the_pack(fake: PulumiProgram, tmp_path: Path) -> None:
    beside = tmp_path / "policy.stg.json"
    beside.write_text('{"topic-replication": {"minimum": 1}}', encoding="utf-8")
    (tmp_path / "policy.dev.json").write_text("{}", encoding="utf-8")
    assert policy("--folder", str(tmp_path)).exit_code == 0
    arguments = fake.words
    assert arguments[arguments.index("--policy-pack-config") + 1] == str(beside)


def test_another_pack_and_another_project_can_be_named(fake: PulumiProgram, tmp_path: Path) -> None:
    project, pack = tmp_path / "project", tmp_path / "pack"
    project.mkdir()
    assert policy("--folder", str(project), "--pack", str(pack)).exit_code == 0
    assert str(pack) in fake.words
    assert fake.calls[-1]["folder"] == str(project)


def test_the_documents_report_what_changes_and_what_is_found(fake: PulumiProgram, tmp_path: Path) -> None:
    created = recorded.step("create", recorded.topic(), name="items")
    fake.answers(
        log=recorded.log(created, recorded.violation("topic-replication", TOO_FEW), failed=True), exit_code=255
    )
    assert policy("--out", str(tmp_path / "out")).exit_code == 1
    document = json.loads((tmp_path / "out" / "preview-stg.json").read_text(encoding="utf-8"))
    assert [(each["operation"], each["kind"], each["name"]) for each in document["changes"]] == [
        ("create", "KafkaTopic", "items")
    ]
    assert [each["message"] for each in document["findings"]] == [TOO_FEW]
    assert document["summary"]["passed"] is False
    sarif = json.loads((tmp_path / "out" / "preview-stg.sarif").read_text(encoding="utf-8"))
    assert len(sarif["runs"][0]["results"]) == 1


def test_a_preview_that_fails_leaves_a_document_that_says_so(fake: PulumiProgram, tmp_path: Path) -> None:
    fake.answers(log=recorded.log(recorded.diagnostic("topics: must be right"), failed=True), exit_code=255)
    assert policy("--out", str(tmp_path)).exit_code == 2
    document = json.loads((tmp_path / "preview-stg.json").read_text(encoding="utf-8"))
    assert document.keys() == {"stack", "error"}
    assert "topics: must be right" in document["error"]
    assert not (tmp_path / "preview-stg.sarif").exists()


def test_a_mandatory_finding_is_exit_1_in_every_form(fake: PulumiProgram, tmp_path: Path) -> None:
    fake.answers(log=recorded.log(recorded.violation("topic-replication", TOO_FEW), failed=True), exit_code=255)
    table = policy()
    assert table.exit_code == 1
    assert TOO_FEW in table.stdout
    sarif = tmp_path / "reports" / "policy.sarif"
    result = policy("--json", "--sarif", str(sarif))
    assert result.exit_code == 1
    assert json.loads(result.stdout)["findings"][0]["message"] == TOO_FEW
    assert json.loads(sarif.read_text(encoding="utf-8"))["runs"][0]["results"][0]["message"]["text"] == TOO_FEW


def test_an_advisory_finding_is_shown_and_exit_0(fake: PulumiProgram) -> None:
    fake.answers(log=recorded.log(recorded.violation("topic-naming", TOO_FEW, level="advisory")))
    result = policy()
    assert result.exit_code == 0
    assert "0 mandatory, 1 advisory" in result.stdout


def test_a_preview_that_fails_is_one_message_and_exit_2_and_no_report(fake: PulumiProgram, tmp_path: Path) -> None:
    fake.answers(log=recorded.log(recorded.diagnostic("topics: x"), failed=True), exit_code=255)
    sarif = tmp_path / "policy.sarif"
    result = policy("--json", "--sarif", str(sarif))
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"].endswith("\n  topics: x")
    assert "error: stack stg: preview must succeed" in result.stderr
    assert not sarif.exists()


def test_debug_shows_what_pulumi_wrote(fake: PulumiProgram) -> None:
    fake.changes("any", stderr="a warning")
    result = policy("--debug")
    assert result.exit_code == 0
    assert "what Pulumi shows" in result.stderr
    assert "a warning" in result.stderr
    assert "what Pulumi shows" not in policy().output


def test_without_pulumi_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = policy()
    assert result.exit_code == 2
    assert "pulumi must be on PATH" in result.stderr


def test_a_folder_that_is_not_there_is_reported(fake: PulumiProgram, tmp_path: Path) -> None:
    result = policy("--folder", str(tmp_path / "nowhere"))
    assert result.exit_code == 2
    assert "nowhere: must exist" in result.stderr


def test_a_stack_must_be_named() -> None:
    assert CliRunner().invoke(app, ["policy"]).exit_code == 2


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (None, "waiting for Pulumi and the policy pack to start"),
        (recorded.lines(recorded.STARTED), "0 resources seen, waiting for the program"),
        (
            recorded.lines(recorded.STARTED, recorded.step("create", recorded.topic(), name="items")),
            "1 resource seen, waiting for KafkaTopic items",
        ),
        (recorded.log(), "waiting for Pulumi to end"),
    ],
)
def test_a_preview_that_does_not_end_is_stopped_and_says_what_it_waited_for(
    fake: PulumiProgram, log: str | None, expected: str
) -> None:
    fake.answers(log=log, endless=True)
    result = policy("--within", "1")
    assert result.exit_code == 2
    assert f"preview must end within 1 s (got no end; {expected})" in result.stderr
    assert not fake.runs
    assert not fake.log_folder.exists()


def test_one_that_ignores_signals_is_killed(fake: PulumiProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    ladder = ((signal.SIGINT, 0.2), (signal.SIGTERM, 0.2), (signal.SIGKILL, 10.0))
    monkeypatch.setattr(process, "PREVIEW_LADDER", ladder)
    fake.answers(endless=True, ignores=[signal.SIGINT, signal.SIGTERM])
    assert policy("--within", "1").exit_code == 2
    assert not fake.runs


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_pulumi_too(fake: PulumiProgram, number: signal.Signals, code: int) -> None:
    fake.answers(endless=True)
    command = [sys.executable, "-m", "ops", "policy", "--stack", "stg"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            deadline = time.monotonic() + 30
            while not fake.calls:
                assert time.monotonic() < deadline, "waited 30 s for Pulumi to start"
                time.sleep(0.05)
            process.send_signal(number)
            assert process.wait(timeout=30) == code
        finally:
            process.kill()
    assert not fake.runs
    assert not fake.log_folder.exists()


def test_help_teaches_by_an_example() -> None:
    result = CliRunner().invoke(app, ["policy", "--help"], env={"COLUMNS": "200"})
    assert "python -m ops policy --stack stg" in result.stdout
