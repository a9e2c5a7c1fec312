"""`ops promote`: what proves a source, and everything for which a promotion is refused."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from ...support import event_logs as recorded
from ...support.promotion_project import DEV_FILE, LONG_AGO, PROVEN, STG_FILE, Stand, document, job, made, promote


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    return made(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("verdict", "moment", "unknown", "message"),
    [
        ("fail", PROVEN, None, "mirror mm2 of stack stg: its verification must be green (got fail: records_complete;"),
        ("unknown", PROVEN, "acls_synced", "must be green (got unknown: acls_synced; report r.html)"),
        ("pass", LONG_AGO, None, "its verification must be recent (got one 71 h old, allowed 24 h). Verify it now:"),
        (None, None, None, "mirror mm2 of stack stg: its verification must be recent (got none)"),
        ("pass", None, None, "its verification must be recent (got none)"),
    ],
)
def test_a_source_that_is_not_proven_is_refused(
    stand: Stand, verdict: str | None, moment: datetime | None, unknown: str | None, message: str
) -> None:
    stand.verified(verdict, moment, unknown=unknown)
    found = document(promote(stand, "--yes", "--json"), 1)
    assert found["result"] == "refused"
    (problem,) = found["problems"]
    assert message in problem
    assert stand.stg == STG_FILE
    assert "up" not in stand.words
    assert not stand.records


def test_the_time_of_a_run_in_pods_is_read_from_pulumis_state(stand: Stand) -> None:
    stand.verified("pass", PROVEN, pods=True)
    (proof,) = document(promote(stand, "--dry-run", "--json"), 0)["proofs"]
    assert proof["provenAt"] == PROVEN.isoformat(timespec="seconds")
    stand.verified("pass", LONG_AGO, pods=True)
    (problem,) = document(promote(stand, "--dry-run", "--json"), 1)["problems"]
    assert "got one 71 h old" in problem


def test_a_mirror_at_rest_proves_nothing(stand: Stand) -> None:
    outputs = json.loads(stand.pulumi.answer("stack output")["stdout"])
    outputs["mirrors"]["mm2"]["state"] = "stopped"
    stand.pulumi.answers("stack output", stdout=json.dumps(outputs))
    (problem,) = document(promote(stand, "--dry-run", "--json"), 1)["problems"]
    assert "(got no such mirror that is up and runs)" in problem


def test_what_a_stack_may_leave_unknown_is_green(stand: Stand) -> None:
    stand.verified("unknown", PROVEN, unknown="lag")
    assert document(promote(stand, "--dry-run", "--json"), 0)["result"] == "planned"


def test_what_the_run_itself_forgave_no_more_is_not_green(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.verified("unknown", PROVEN, unknown="lag", refused=True)
    (problem,) = document(promote(stand, "--dry-run", "--json"), 1)["problems"]
    assert "got unknown: lag" in problem
    stand.verified("pass", PROVEN, allowed="records_complete")
    job(tmp_path, monkeypatch, "unknown", allowed_unknown=["records_complete"])
    assert document(promote(stand, "--dry-run", "--json", "--verify"), 0)["result"] == "planned"
    job(tmp_path, monkeypatch, "unknown", allowed_unknown=[])
    (problem,) = document(promote(stand, "--dry-run", "--json", "--verify"), 1)["problems"]
    assert "got unknown: records_complete" in problem


def test_an_old_proof_is_accepted_for_a_reason_that_is_recorded_and_a_red_one_never(stand: Stand) -> None:
    reason = ["--without-verification", "moved to new disks, CHG-17"]
    stand.verified("pass", LONG_AGO)
    found = document(promote(stand, "--dry-run", "--json", *reason), 0)
    assert found["withoutVerification"] == "moved to new disks, CHG-17"
    assert document(promote(stand, "--dry-run", "--json", "--max-age-hours", "72"), 0)["result"] == "planned"
    stand.verified("fail", PROVEN)
    assert document(promote(stand, "--dry-run", "--json", *reason), 1)["result"] == "refused"


def test_verifying_now_stands_for_an_old_proof(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand.verified("fail", LONG_AGO)
    found = document(promote(stand, "--dry-run", "--json", "--verify"), 0)
    assert found["proofs"][0]["verdict"] == "pass"
    job(tmp_path, monkeypatch, "fail")
    (problem,) = document(promote(stand, "--dry-run", "--json", "--verify"), 1)["problems"]
    assert "got fail: records_complete" in problem


def test_a_source_without_a_mirror_that_is_up_proves_nothing(stand: Stand) -> None:
    stand.stacks(dev=3, stg=0)
    (problem,) = document(promote(stand, "--dry-run", "--json"), 1)["problems"]
    assert problem.startswith("stack dev: a mirror of it, or one that reads from it, must be verified (got no such")


def test_every_reason_against_the_source_is_reported_at_once(stand: Stand) -> None:
    stand.verified("fail", PROVEN)
    run = "urn:pulumi:stg::x::rt-inventory:verification:Verification$pulumi-python:dynamic/verification:Run::mm2"
    stand.previews(
        "preview",
        recorded.step("update", recorded.topic("orders"), name="orders"),
        recorded.step("refresh", recorded.topic("bills"), name="bills"),
        recorded.step("update", run),
    )
    _, undeployed = document(promote(stand, "--yes", "--json"), 1)["problems"]
    assert undeployed.startswith(
        "stack dev: must be deployed as in Pulumi.dev.yaml (an `up` would update KafkaTopic orders, update Run mm2)."
    )
    always = DEV_FILE + "  rt-inventory:verification: { when: always }\n"
    (stand.folder / "Pulumi.dev.yaml").write_text(always, encoding="utf-8")
    _, undeployed = document(promote(stand, "--yes", "--json"), 1)["problems"]
    assert "(an `up` would update KafkaTopic orders)" in undeployed


def test_what_the_policy_forbids_is_refused(stand: Stand) -> None:
    stand.previews("gate", recorded.violation("topic-retention", "topic audit: too short."), failed=True)
    found = document(promote(stand, "--yes", "--json"), 1)
    assert found["problems"] == ["policy topic-retention: topic audit: too short."]
    assert not found["policy"]["summary"]["passed"]
    assert stand.stg == STG_FILE


def test_settings_that_the_target_cannot_have_are_reported_with_what_to_prepare(stand: Stand) -> None:
    platform = "  rt-inventory:platform: {{ {} }}\n"
    (stand.folder / "Pulumi.dev.yaml").write_text(DEV_FILE + platform.format("version: 0.45.0"), encoding="utf-8")
    before = STG_FILE + platform.format("apiVersion: kafka.strimzi.io/v1")
    (stand.folder / "Pulumi.stg.yaml").write_text(before, encoding="utf-8")
    result = promote(stand, "--yes", "--json")
    assert result.exit_code == 2, result.output
    error = json.loads(result.stdout)["error"]
    assert error.startswith("stack stg: its settings must be good with those of dev (nothing was changed). Prepare")
    assert "rt-inventory:platform" in error
    assert stand.stg == before


def test_nothing_is_promoted_while_a_failback_is_under_way(stand: Stand) -> None:
    moving = "      active: target\n      failback: settling\n"
    (stand.folder / "Pulumi.stg.yaml").write_text(STG_FILE + moving, encoding="utf-8")
    result = promote(stand, "--yes", "--json")
    assert result.exit_code == 2, result.output
    error = json.loads(result.stdout)["error"]
    assert error.startswith("stack stg: no failback may be under way (got one of mirror mm2). Finish it first:")
    assert not stand.calls


def test_without_a_terminal_somebody_must_have_approved(stand: Stand) -> None:
    result = promote(stand, "--json")
    assert result.exit_code == 2
    assert "somebody must approve" in json.loads(result.stdout)["error"]
    assert not stand.calls


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "dev"], "--from and --to must be two stacks (got dev twice)"),
        (["--without-verification", " "], "--without-verification must have a reason"),
        (["--to", "nowhere"], "Pulumi.nowhere.yaml: must be readable"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_2(stand: Stand, arguments: list[str], message: str) -> None:
    result = promote(stand, "--dry-run", "--json", *arguments)
    assert result.exit_code == 2
    assert message in json.loads(result.stdout)["error"]
