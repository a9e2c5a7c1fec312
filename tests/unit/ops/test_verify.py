"""The verification is run as a process; secrets travel in its environment and nowhere else."""

import json
import os
import signal
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ops import cli, verify
from ops.errors import OpsError
from tests.support.waiting import wait_until

from .test_eighty_columns import screen

SECRET = "very-secret-4711"
OUTPUTS: dict[str, Any] = {
    "verificationRequests": {"mm2": {"source": {"sasl.password": {"env": "SOURCE_PASSWORD"}}}},
    "verificationEnvironment": {"mm2": {"SOURCE_PASSWORD": SECRET}},
}
JOB = """
import json, os, pathlib, sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
request = pathlib.Path(arguments["--request"])
folder = pathlib.Path(arguments["--report-dir"])
folder.mkdir(parents=True, exist_ok=True)
seen = {"mode": request.stat().st_mode, "argv": sys.argv, "secret": os.environ.get("SOURCE_PASSWORD"),
        "request": json.loads(request.read_text()), "again": json.loads(request.read_text()),
        "lying": os.listdir(os.environ.get("TMPDIR", folder))}
(folder / "seen.json").write_text(json.dumps(seen))
(folder / "report.json").write_text(json.dumps({"verdict": "VERDICT", "checks": [], "error": ERROR}))
print("last words")
sys.exit(CODE)
"""


def job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, verdict: str = "pass", error: str | None = None
) -> None:
    """Put a made-up `spark` package where the job is started."""
    package = tmp_path / "spark"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        JOB.replace("CODE", str(code)).replace("VERDICT", verdict).replace("ERROR", repr(error))
    )
    monkeypatch.setattr(verify, "PROJECT", tmp_path)


def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the process, and the job, an empty folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_the_secret_is_in_the_jobs_environment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job(tmp_path, monkeypatch, 0)
    temporary(tmp_path, monkeypatch)
    planned = verify.plan("stg", OUTPUTS)
    said: list[str] = []
    outcome = verify.run(planned, tmp_path / "out", os.environ, said.append)
    seen = json.loads((tmp_path / "out" / "seen.json").read_text())
    assert seen["secret"] == SECRET
    assert seen["request"] == seen["again"] == {"stack": "stg", **OUTPUTS["verificationRequests"]["mm2"]}
    assert SECRET not in " ".join(seen["argv"])
    assert stat.S_IMODE(seen["mode"]) == 0o600
    assert seen["lying"] == [], "whoever is killed leaves nothing"
    assert "SOURCE_PASSWORD" not in os.environ
    assert (outcome.exit_code, outcome.as_json()["verdict"], said) == (0, "pass", ["last words"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], []),
        (["--state", "s3://bucket/prefix"], ["--state", "s3://bucket/prefix"]),
        (["--state", "kept"], ["--state", "FOLDER/kept"]),
        (["--state", "/var/kept"], ["--state", "/var/kept"]),
        (["--push-gateway", "http://push.test:9091"], ["--push-gateway", "http://push.test:9091"]),
    ],
)
def test_the_job_is_reported_where_its_state_is_and_whom_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: list[str]
) -> None:
    job(tmp_path, monkeypatch, 0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verify, "stack_outputs", lambda *_: OUTPUTS)
    result = CliRunner().invoke(cli.app, ["verify", "--report-dir", "out", *arguments])
    assert result.exit_code == 0, result.output
    argv = json.loads((tmp_path / "out" / "seen.json").read_text())["argv"]
    assert argv[5:] == [word.replace("FOLDER", str(tmp_path)) for word in message]


@pytest.mark.parametrize(
    ("folder", "index"),
    [
        ("reports/stg-mm2-20260102T030405Z", "reports"),
        ("reports/demo/failover", "reports"),
        ("elsewhere/reports/run", "elsewhere/reports"),
        ("elsewhere/run", None),
        ("reports", None),
    ],
)
def test_a_run_is_listed_in_the_index_of_the_folder_of_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, index: str | None
) -> None:
    job(tmp_path, monkeypatch, 0)
    outcome = verify.run(verify.plan("stg", OUTPUTS), tmp_path / folder, os.environ, lambda _: None)
    argv = json.loads((tmp_path / folder / "seen.json").read_text())["argv"]
    assert argv[5:] == ([] if index is None else ["--index", str(tmp_path / index)])
    assert outcome.index is None, "this job has left none"


def test_a_run_has_its_reports_among_all_the_others_unless_it_is_reported_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planned, moment = verify.plan("stg", OUTPUTS), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    folder = verify.new_report_dir(planned, moment=moment)
    assert folder == Path("reports/stg-mm2-20260102T030405Z")
    assert verify.index_of(folder) is not None


def test_the_verdict_says_where_all_runs_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job(tmp_path, monkeypatch, 0)
    index = tmp_path / "runs" / "index.html"
    index.parent.mkdir()
    index.touch()
    outcome = verify.run(verify.plan("stg", OUTPUTS), tmp_path / "out", os.environ, lambda _: None, index=index.parent)
    assert outcome.as_json()["index"] == str(index)
    assert f"all runs: {index}" in "".join(screen(verify.verdict_table(outcome)).split("\n"))


def test_a_gateway_that_no_job_could_reach_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "stack_outputs", lambda *_: pytest.fail("nothing is looked up"))
    result = CliRunner().invoke(cli.app, ["verify", "--push-gateway", "https://user:s3cret@push.test"])
    assert result.exit_code == 2
    assert "verify: --push-gateway must" in result.output
    assert "s3cret" not in result.output


def test_a_failed_check_is_a_verdict_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job(tmp_path, monkeypatch, 1, "fail")
    assert verify.run(verify.plan("stg", OUTPUTS), tmp_path / "out", os.environ, lambda _: None).exit_code == 1


def test_a_job_that_cannot_judge_is_reported_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(tmp_path, monkeypatch, 2)
    with pytest.raises(OpsError, match=r"exit 2\)\. last words"):
        verify.run(verify.plan("stg", OUTPUTS), tmp_path / "out", os.environ, lambda _: None)


def test_all_that_a_job_could_not_do_is_reported_with_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(tmp_path, monkeypatch, 2, "error", "source es-src: is down.\ntarget es-tgt: is down.")
    with pytest.raises(
        OpsError, match=r"(?s)source es-src: is down\.\ntarget es-tgt: is down\. Report: .*report\.html"
    ):
        verify.run(verify.plan("stg", OUTPUTS), tmp_path / "out", os.environ, lambda _: None)


def test_a_report_of_an_earlier_run_does_not_pass_for_this_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(tmp_path, monkeypatch, 0)
    (tmp_path / "spark" / "__main__.py").write_text("print('died')")
    old = tmp_path / "out" / "report.json"
    old.parent.mkdir()
    old.write_text(json.dumps({"verdict": "pass", "checks": []}))
    with pytest.raises(OpsError, match="must be readable"):
        verify.run(verify.plan("stg", OUTPUTS), tmp_path / "out", os.environ, lambda _: None)


# Ignores what asks it to end, and so does the process that it has started: both write their ids first.
DEAF = """
import os, signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
if len(sys.argv) == 1:
    child = subprocess.Popen([sys.executable, __file__, "child"])
    print(os.getpid(), child.pid, flush=True)
time.sleep(60)
"""


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def deaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(verify, "LADDER", ((signal.SIGINT, 0.2), (signal.SIGTERM, 0.2), (signal.SIGKILL, 5.0)))
    file = tmp_path / "deaf.py"
    file.write_text(DEAF)
    return [sys.executable, str(file)]


def test_a_job_that_hangs_is_killed_with_all_that_it_has_started(deaf: list[str]) -> None:
    said: list[str] = []
    code, last = verify.follow(deaf, os.environ, said.append, 2.0)
    ids = [int(word) for word in said[0].split()]
    assert code == -signal.SIGKILL
    wait_until("both processes are gone", lambda: all(map(gone, ids)), 5)
    assert [line.partition(" s: ")[2] for line in said[1:]] == [
        "SIGINT, and 0 s to end",
        "SIGTERM, and 0 s to end",
        "SIGKILL, and 5 s to end",
    ]
    assert last.startswith("It had not ended after 2 s and was stopped.")


def test_a_job_is_killed_when_the_command_is_interrupted(deaf: list[str]) -> None:
    ids: list[int] = []

    def interrupt(line: str) -> None:
        if not ids:
            ids.extend(int(word) for word in line.split())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify.follow(deaf, os.environ, interrupt, 60)
    wait_until("both processes are gone", lambda: all(map(gone, ids)), 5)


def test_what_a_job_has_left_behind_is_not_waited_for() -> None:
    left = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)']).pid)"
    said: list[str] = []
    assert verify.follow([sys.executable, "-c", left], os.environ, said.append, 15)[0] == 0
    os.kill(int(said[0]), signal.SIGKILL)


def test_a_job_that_writes_what_it_knows_when_it_is_asked_to_end_is_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(tmp_path, monkeypatch, 130, "error", "stopped while comparing")
    main = tmp_path / "spark" / "__main__.py"
    wait = "import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    pass\n"
    main.write_text(
        f"import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{wait}{main.read_text()}"
    )
    planned = verify.plan("stg", {**OUTPUTS, "verificationRequests": {"mm2": {"limits": {"deadline_seconds": 2}}}})
    monkeypatch.setattr(verify, "GRACE_S", 0.0)
    with pytest.raises(OpsError, match=r"must be able to judge \(exit 130\)\. stopped while comparing"):
        verify.run(planned, tmp_path / "out", os.environ, lambda _: None)


def test_a_plan_shows_the_names_of_its_secrets_only() -> None:
    shown = repr(verify.plan("stg", OUTPUTS))
    assert "SOURCE_PASSWORD" in shown
    assert SECRET not in shown


def test_a_stack_without_a_mirror_is_reported_so() -> None:
    with pytest.raises(OpsError, match="must hold a mirror"):
        verify.plan("dev", {"verificationRequests": {}})
    with pytest.raises(OpsError, match=r"got 'mm9', allowed mm2"):
        verify.plan("stg", OUTPUTS, "mm9")


@pytest.mark.parametrize(
    ("found", "reported"),
    [
        ({"checks": [{"name": "lag", "ok": True, "observed": "0"}]}, [("lag", True)]),
        ({"failed": "lag, groups_no_loss", "unknown": "canary_latency"}, None),
        ({"verdict": "pass"}, []),
        ({}, []),
    ],
    ids=["a report, or an older stack", "an output", "all hold", "nothing"],
)
def test_checks_are_read_from_reports_and_outputs(
    found: dict[str, Any], reported: list[tuple[str, bool]] | None
) -> None:
    expected = (
        reported if reported is not None else [("lag", False), ("groups_no_loss", False), ("canary_latency", None)]
    )
    assert [(check["name"], check["ok"]) for check in verify.checks_of(found)] == expected


def test_two_runs_of_one_second_have_a_folder_each(tmp_path: Path) -> None:
    planned, moment = verify.plan("stg", OUTPUTS), datetime(2026, 11, 22, 8, 0, 59, tzinfo=UTC)
    found = [verify.new_report_dir(planned, tmp_path / "reports", moment) for _ in range(3)]
    assert [one.name[-16:] for one in found] == ["20261122T080059Z", "20261122T080100Z", "20261122T080101Z"]
    assert all(one.is_dir() for one in found)
    (tmp_path / "file").touch()
    with pytest.raises(OpsError, match=r"file must be writable \(Not a directory\). Choose one with --report-dir"):
        verify.new_report_dir(planned, tmp_path / "file", moment)
