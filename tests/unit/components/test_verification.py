"""The run of the verification job: when it is due, how it is started, and what is made of what it leaves."""

import json
import os
import stat
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from components import verification_run
from components import verification_run as verification_job
from components.verification.verification import _shown, fingerprint, named_checkpoints
from components.verification_run import VerificationProvider, must_run, source_has_records, whole_numbers

from ...support.component_settings import mirror

REQUEST = {"mirror": {"name": "mm2"}, "limits": {"allow_unknown": ["groups_synced"]}}
SECRET = "secret-of-the-source"
DUE = {"passed": True, "trigger": "a", "reportDir": "r", "when": "on-change"}


@pytest.mark.parametrize(
    ("olds", "news", "due"),
    [
        ({}, {}, False),
        ({}, {"trigger": "b"}, True),
        ({}, {"reportDir": "s"}, True),
        ({}, {"when": "always"}, True),
        ({"when": "always"}, {}, False),
        ({"passed": False}, {}, True),
        ({"passed": None}, {}, True),
    ],
)
def test_the_job_is_due_after_a_change_until_it_passes_or_always(
    olds: dict[str, Any], news: dict[str, Any], due: bool
) -> None:
    assert must_run({**DUE, **olds}, {**DUE, **news}) is due


EMPTY = {"records_compared": 0, "checks": [{"name": "records_complete", "ok": None}]}
EMPTY_AS_KEPT = {"records_compared": 0, "checks": [{"name": "records_complete"}]}  # Pulumi keeps no None


@pytest.mark.parametrize(
    ("olds", "has_records", "due"),
    [
        (EMPTY, True, True),
        (EMPTY, False, False),
        ({**EMPTY, "records_compared": 7}, True, False),
        ({"records_compared": 0, "checks": [{"name": "records_complete", "ok": True}]}, True, False),
        (EMPTY_AS_KEPT, True, True),
        ({}, True, False),
    ],
)
def test_a_proof_of_an_empty_pair_is_renewed_once_there_are_records(
    monkeypatch: pytest.MonkeyPatch, olds: dict[str, Any], has_records: bool, due: bool
) -> None:
    asked: list[tuple[Any, Any]] = []

    def answer(request: Any, environment: Any) -> bool:
        asked.append((request, environment))
        return has_records

    monkeypatch.setattr(verification_run, "source_has_records", answer)
    news = {**DUE, "request": {"limits": {"deadline_seconds": 9.0}}, "environment": {"PASSWORD": SECRET}}
    found = VerificationProvider().diff("id", {**DUE, **olds}, news)
    assert found.changes is due
    assert asked == (
        [({"limits": {"deadline_seconds": 9}}, {"PASSWORD": SECRET})] if olds in (EMPTY, EMPTY_AS_KEPT) else []
    )


@pytest.mark.parametrize(("passed", "more"), [(True, {}), (None, {}), (False, {"passed": False})])
def test_a_run_that_failed_the_up_says_so_in_the_outputs(passed: bool | None, more: dict[str, bool]) -> None:
    found = {"passed": passed, "verdict": "unknown", "report": "r", "finishedAt": "now", "recordsCompared": 0}
    shown = _shown({**found, "checks": [{"name": "records_complete"}]})
    del found["passed"]
    assert shown == {**found, "unknown": "records_complete", **more}


def test_a_source_that_does_not_answer_has_no_records_that_anybody_knows_of() -> None:
    side = {"alias": "a", "client_config": {"bootstrap.servers": "127.0.0.1:1"}}
    assert source_has_records({"source": side, "target": side, "mirror": {"topics": ["items"]}}, {}) is False


def test_the_fingerprint_changes_with_each_of_its_parts() -> None:
    parts = [[{"mirror": 1}, {"spec": 1}, "Ready"], [{"name": "u"}]]
    base = fingerprint(*parts)
    assert base == fingerprint([{"mirror": 1}, {"spec": 1}, "Ready"], [{"name": "u"}])
    others = [
        fingerprint([{"mirror": 2}, {"spec": 1}, "Ready"], [{"name": "u"}]),
        fingerprint([{"mirror": 1}, {"spec": 2}, "Ready"], [{"name": "u"}]),
        fingerprint([{"mirror": 1}, {"spec": 1}, "WorkerHeld"], [{"name": "u"}]),
        fingerprint([{"mirror": 1}, {"spec": 1}, "Ready"], [{"name": "v"}]),
    ]
    assert len({base, *others}) == 5


@pytest.mark.parametrize(
    ("separator", "version", "named"),
    [
        (".", "4.3.1", None),
        ("", "3.0.1", None),
        ("", "4.3.1", None),
        ("_", "4.3.1", None),
        ("_", "3.0.1", "us.checkpoints.internal"),
    ],
)
def test_the_checkpoints_are_named_in_the_request_where_the_separator_does_not_report(
    separator: str, version: str, named: str | None
) -> None:
    found = named_checkpoints(mirror(separator=separator), version)
    assert found.get("checkpoints_topic") == named


def test_whole_numbers_are_passed_as_integers() -> None:
    assert json.dumps(whole_numbers({"a": [3.0, 0.5], "b": True, "c": None})) == '{"a": [3, 0.5], "b": true, "c": null}'


def job(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    """Put a made-up job in the place of `python -m spark`."""
    start = """\
        import json, os, pathlib, stat, sys, time
        request, report = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[4])
        report.mkdir(parents=True, exist_ok=True)
        """
    (folder / "spark").mkdir()
    (folder / "spark" / "__init__.py").touch()
    (folder / "spark" / "__main__.py").write_text(textwrap.dedent(start) + textwrap.dedent(body))
    monkeypatch.setattr(verification_job, "PROJECT", folder)
    monkeypatch.setenv("PYTHONPATH", "")


def run(deadline_s: float = 30) -> tuple[verification_job.Outcome, list[str]]:
    said: list[str] = []
    outcome = verification_job.run(
        REQUEST, {"SOURCE_PASSWORD": SECRET}, report_dir=Path("reports/x"), deadline_s=deadline_s, log=said.append
    )
    return outcome, said


def test_two_runs_into_one_folder_go_one_after_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job(
        monkeypatch,
        tmp_path,
        """
        assert not (report / "report.json").exists()
        own = json.dumps({"verdict": str(os.getpid()), "checks": []})
        (report / "report.json").write_text(own)
        time.sleep(1)
        assert (report / "report.json").read_text() == own
        """,
    )
    with ThreadPoolExecutor(2) as pool:
        outcomes = [each.result() for each in [pool.submit(run), pool.submit(run)]]
    assert all(outcome.passed for outcome, _ in outcomes), outcomes
    assert len({outcome.verdict for outcome, _ in outcomes}) == 2
    waited = [line for _, said in outcomes for line in said if line.startswith("waiting up to 30 s for another run")]
    assert len(waited) == 1


def test_a_run_whose_folder_another_one_keeps_ends_with_what_it_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job(monkeypatch, tmp_path, "time.sleep(4)")
    with ThreadPoolExecutor(2) as pool:
        pool.submit(run)
        time.sleep(1)
        outcome, _ = run(deadline_s=1)
    assert not outcome.passed
    assert "must have reports/x to itself (got another run in it for 1 s)" in outcome.message


def test_secrets_reach_the_job_by_its_environment_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job(
        monkeypatch,
        tmp_path,
        """
        facts = {"argv": sys.argv, "secret": os.environ["SOURCE_PASSWORD"], "lying": os.listdir(os.environ["TMPDIR"]),
                 "mode": stat.S_IMODE(request.stat().st_mode), "text": request.read_text()}
        (report / "facts.json").write_text(json.dumps(facts))
        document = {"verdict": "pass", "checks": [], "finished_at": "2026-01-31T12:00:00+00:00", "records_compared": 7}
        (report / "report.json").write_text(json.dumps(document))
        print("done", file=sys.stderr)
        """,
    )
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    outcome, said = run()
    facts = json.loads((tmp_path / "reports" / "x" / "facts.json").read_text())
    assert (outcome.passed, outcome.verdict, outcome.report) == (True, "pass", "reports/x/report.html")
    assert (outcome.finished_at, outcome.records_compared) == ("2026-01-31T12:00:00+00:00", 7)
    assert facts["secret"] == SECRET
    assert SECRET not in json.dumps([facts["argv"], facts["text"], said, outcome.message])
    assert facts["mode"] == stat.S_IRUSR | stat.S_IWUSR
    assert facts["lying"] == [], "whoever is killed leaves nothing"
    assert said == ["done"]
    assert "SOURCE_PASSWORD" not in os.environ


def test_the_job_is_reported_where_its_state_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = """
        (report / "report.json").write_text(json.dumps({"verdict": "pass", "checks": []}))
        print(*sys.argv[5:])
        """
    job(monkeypatch, tmp_path, body)
    said: list[str] = []
    for state in ("s3://bucket/prefix", None):
        verification_job.run(REQUEST, {}, report_dir=Path("reports/x"), deadline_s=30, log=said.append, state=state)
    assert said == ["--state s3://bucket/prefix"]


def test_a_failed_verdict_names_every_check_that_does_not_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job(
        monkeypatch,
        tmp_path,
        """
        check = lambda name, ok, observed: {"name": name, "ok": ok, "expected": "e", "observed": observed}
        checks = [check("records_complete", False, "3 lost in items-0"), check("records_unique", True, "0 doubled"),
                  check("groups_synced", None, "nothing"), check("connectors_running", None, "does not answer")]
        (report / "report.json").write_text(json.dumps({"verdict": "fail", "checks": checks}))
        sys.exit(1)
        """,
    )
    outcome, _ = run()
    assert (outcome.passed, outcome.verdict) == (False, "fail")
    assert outcome.message.splitlines()[:3] == [
        "mirror mm2: verification must hold (got verdict fail).",
        "  records_complete failed: 3 lost in items-0 (expected e)",
        "  connectors_running unknown: does not answer (expected e)",
    ]
    assert "reports/x/report.html" in outcome.message
    assert len(outcome.checks) == 4


def test_names_from_a_cluster_reach_the_log_of_an_up_as_text_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job(
        monkeypatch,
        tmp_path,
        r"""
        evil = "group x\r\n::stop-commands::token\x1b[2J"
        print(evil.replace("\r\n", " "))
        checks = [{"name": "groups_synced", "ok": False, "expected": "e", "observed": evil}]
        (report / "report.json").write_text(json.dumps({"verdict": "fail", "checks": checks, "error": evil}))
        sys.exit(1)
        """,
    )
    outcome, said = run()
    for text in (outcome.message, *said):
        assert "\x1b" not in text
        assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert r"group x\x0d\x0a\x3a:stop-commands::token\x1b[2J" in outcome.message


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        (
            "print('cluster es-src cannot be reached'); sys.exit(2)",
            "must be able to judge (exit 2). cluster es-src cannot",
        ),
        ("sys.exit(0)", "must leave a report (got none at reports/x"),
        ("os.kill(os.getpid(), 9)", "must be able to judge (exit -9)"),
    ],
)
def test_a_job_that_cannot_judge_is_no_pass(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, reported: str
) -> None:
    job(monkeypatch, tmp_path, body)
    outcome, _ = run()
    assert (outcome.passed, outcome.verdict) == (False, "error")
    assert reported in outcome.message


def test_what_a_job_could_not_do_is_reported_with_its_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = """
        error = "source es-src: is down.\\ntarget es-tgt: is down."
        (report / "report.json").write_text(json.dumps({"verdict": "error", "checks": [], "error": error}))
        sys.exit(2)
        """
    job(monkeypatch, tmp_path, body)
    outcome, _ = run()
    assert (outcome.passed, outcome.verdict, outcome.report) == (False, "error", "reports/x/report.html")
    assert "source es-src: is down.\ntarget es-tgt: is down." in outcome.message


def test_a_job_that_is_silent_is_reported_to_be_at_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(verification_job, "REPORTED_EVERY_S", 0.2)
    job(monkeypatch, tmp_path, "print('waiting for the mirror', flush=True); time.sleep(1.5); sys.exit(2)")
    outcome, said = run()
    assert not outcome.passed
    reported = [line for line in said if line.startswith("still at work after ")]
    assert len(reported) >= 2
    assert reported[-1].endswith(" s of at most 30 s: waiting for the mirror")


def test_an_old_report_does_not_pass_for_a_new_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job(monkeypatch, tmp_path, "sys.exit(0)")
    old = tmp_path / "reports" / "x" / "report.json"
    old.parent.mkdir(parents=True)
    old.write_text(json.dumps({"verdict": "pass", "checks": []}))
    assert run()[0].verdict == "error"


def test_a_job_without_end_is_stopped_at_its_deadline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job(monkeypatch, tmp_path, "print(os.getpid(), flush=True); time.sleep(600)")
    outcome, said = run(deadline_s=1)
    assert "must end within 1 s" in outcome.message
    assert not Path(f"/proc/{said[0]}").exists()
