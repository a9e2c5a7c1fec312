"""`ops promote`: what is changed when, what goes on after a failure, and what is recorded."""

import json
import os
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ops.errors import OpsError
from ops.promotion import command
from ops.pulumi.stack import PulumiStack

from ...support.promotion_project import DEV_FILE, STG_FILE, Stand, document, job, made, promote


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    return made(tmp_path, monkeypatch)


def test_a_dry_run_shows_the_plan_and_changes_nothing(stand: Stand) -> None:
    found = document(promote(stand, "--dry-run", "--json"), 0)
    assert found["result"] == "planned"
    assert found["changes"] == [{"key": "topics[audit].config[retention.ms]", "old": 1000, "new": 2000}]
    assert found["preview"] == [{"operation": "update", "resource": "KafkaTopic audit"}]
    assert found["proofs"][0]["verdict"] == "pass"
    assert stand.stg == STG_FILE
    assert not stand.records
    assert stand.words == [
        *("stack ls", "stack output", "preview", "config set-all", "preview"),
    ]
    with_copy = [call for call in stand.calls if "--config-file" in call]
    assert [call[0] for call in with_copy] == ["config", "preview"], "what is judged must be what would be written"
    (copy,) = {call[call.index("--config-file") + 1] for call in with_copy}
    assert not Path(copy).exists(), "the copy must not stay"


def test_an_approved_promotion_writes_the_file_ups_verifies_and_records(stand: Stand) -> None:
    (stand.folder / "Pulumi.stg.yaml").chmod(0o640)
    found = document(promote(stand, "--yes", "--json"), 0)
    assert found["result"] == "promoted"
    assert "retention.ms: 2000" in stand.stg
    assert stand.stg.startswith("# asked about this stage")
    assert stat.S_IMODE((stand.folder / "Pulumi.stg.yaml").stat().st_mode) == 0o640
    assert stand.words[5:] == ["up", "stack ls", "stack output", "stack ls", "stack output"]
    assert stand.records == [found]
    assert (found["by"], found["approval"]["by"], found["approval"]["how"]) == ("ada", None, "--yes")
    assert (found["up"], found["verification"][0]["verdict"], found["git"]) == ("succeeded", "pass", None)
    assert found["finishedAt"] >= found["approval"]["at"] >= found["startedAt"]


def test_a_verification_that_the_up_has_run_is_not_run_again(stand: Stand) -> None:
    stand.verified("pass", datetime.now(UTC) + timedelta(hours=1))
    assert document(promote(stand, "--yes", "--json"), 0)["result"] == "promoted"
    assert stand.words[5:] == ["up", "stack ls", "stack output"]


def test_whoever_sits_there_sees_the_plan_and_decides(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_at_terminal", lambda: True)
    declined = promote(stand, answer="n\n")
    assert declined.exit_code == 0, "an answer is no error"
    assert "topics[audit].config[retention.ms]" in declined.stderr
    assert declined.stdout.rstrip().endswith("declined")
    assert stand.stg == STG_FILE
    assert not stand.records
    assert promote(stand, answer="y\n").exit_code == 0
    assert (stand.records[0]["approval"]["by"], stand.records[0]["approval"]["how"]) == ("ada", "at the terminal")


def test_a_failed_up_leaves_the_file_as_it_is_wanted_and_the_same_command_goes_on(stand: Stand) -> None:
    stand.up_ends(255)
    found = document(promote(stand, "--yes", "--json"), 1)
    assert (found["result"], found["up"]) == ("failed", "failed")
    assert "broker 0 did not start" in found["error"]
    assert "Pulumi.stg.yaml has the new settings: remove the cause and run this again." in found["error"]
    assert "retention.ms: 2000" in stand.stg
    assert stand.records[0]["result"] == "failed"
    stand.up_ends(0)
    again = document(promote(stand, "--yes", "--json", "--record", str(stand.folder / "again.json")), 0)
    assert (again["result"], again["changes"], again["written"]) == ("promoted", [], False)
    assert json.loads((stand.folder / "again.json").read_text(encoding="utf-8")) == again


def test_an_interrupted_promotion_leaves_a_record(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PulumiStack, "up", interrupted)
    assert promote(stand, "--yes").exit_code == 130
    (kept,) = stand.records
    assert (kept["result"], kept["written"], "up" in kept) == ("interrupted", True, False)


def test_a_file_that_somebody_changes_meanwhile_is_left_alone(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(_: object) -> bool:
        (stand.folder / "Pulumi.stg.yaml").write_text(STG_FILE + "# and more\n", encoding="utf-8")
        return True

    monkeypatch.setattr(command, "_approval", lambda _: changed)
    result = promote(stand, "--yes", "--json")
    assert result.exit_code == 2
    assert "must stay as it is while it is promoted" in json.loads(result.stdout)["error"]
    assert stand.stg.endswith("# and more\n")
    assert "up" not in stand.words


def test_settings_that_no_command_line_takes_are_reported(stand: Stand) -> None:
    many = [{"name": f"topic-{number}", "partitions": 1, "replicas": 1} for number in range(3000)]
    stack = PulumiStack(folder=stand.folder, name="stg", environment=os.environ)
    with pytest.raises(OpsError, match=r"topics must fit into a command line \(got \d+ bytes, allowed 131071\)"):
        stack.set_config(stand.folder / "Pulumi.stg.yaml", {"topics": many})


def test_a_target_that_is_not_green_afterwards_is_reported(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(tmp_path, monkeypatch, "fail")
    found = document(promote(stand, "--yes", "--json"), 1)
    assert (found["result"], found["up"]) == ("not proven", "succeeded")
    assert "mirror mm2 of stack stg: its verification must be green" in found["error"]


def test_nothing_to_promote_is_no_failure_and_verifies_what_an_earlier_run_may_not_have(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stand.folder / "Pulumi.stg.yaml").write_text(STG_FILE.replace("1000", "2000"), encoding="utf-8")
    stand.previews("gate")
    dry = document(promote(stand, "--dry-run", "--json"), 0)
    assert (dry["result"], "verification" in dry) == ("nothing to promote", False)
    found = document(promote(stand, "--yes", "--json"), 0)
    assert (found["result"], found["verification"][0]["verdict"]) == ("nothing to promote", "pass")
    job(tmp_path, monkeypatch, "fail")
    assert document(promote(stand, "--yes", "--json"), 1)["result"] == "not proven"
    assert "up" not in stand.words


def test_the_record_knows_the_commit_and_whether_the_files_are_committed(stand: Stand) -> None:
    git = ["git", "-C", str(stand.folder), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    found = document(promote(stand, "--dry-run", "--json"), 0)
    assert found["git"] == {"commit": head, "uncommitted": False}
    (stand.folder / "Pulumi.dev.yaml").write_text(DEV_FILE.replace("2000", "3000"), encoding="utf-8")
    assert document(promote(stand, "--dry-run", "--json"), 0)["git"] == {"commit": head, "uncommitted": True}


def test_the_table_reports_the_plan_and_the_result(stand: Stand) -> None:
    result = promote(stand, "--yes")
    assert result.exit_code == 0, result.output
    for words in ("dev → stg: settings that travel", "topics[audit].config[retention.ms]", "proof: mirror mm2 of stg"):
        assert words in result.stdout
    assert "pulumi up: update KafkaTopic audit" in result.stdout
    assert "[4/7] policy gate and preview of stg with the new settings" in result.stderr
    assert result.stdout.rstrip().endswith("promoted")
