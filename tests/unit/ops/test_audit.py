"""The audit is run as a process: secrets travel in its environment alone, and its exit code is passed on."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ops import audit, verify
from ops.cli import app

SECRET = "very-secret-4711"
OUTPUTS: dict[str, Any] = {
    "verificationRequests": {"mm2": {"source": {"sasl.password": {"env": "SOURCE_PASSWORD"}}}},
    "verificationEnvironment": {"mm2": {"SOURCE_PASSWORD": SECRET}},
}
JOB = """
import json, os, sys
with open(sys.argv[sys.argv.index("--request") + 1]) as file:
    request = json.load(file)
with open("SEEN", "w") as file:
    json.dump({"argv": sys.argv[1:], "secret": os.environ.get("SOURCE_PASSWORD"), "request": request}, file)
print("buckets: 1 complete")
sys.exit(CODE)
"""


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, *arguments: str) -> tuple[Any, dict[str, Any]]:
    """Run the command with a made-up job, and return what the job has seen."""
    package = tmp_path / "spark"
    package.mkdir()
    (package / "__init__.py").touch()
    seen = tmp_path / "seen.json"
    (package / "__main__.py").write_text(JOB.replace("CODE", str(code)).replace("SEEN", str(seen)))
    monkeypatch.setattr(verify, "PROJECT", tmp_path)
    monkeypatch.setattr(audit, "stack_outputs", lambda *_: OUTPUTS)
    result = CliRunner().invoke(app, ["audit", *arguments])
    return result, json.loads(seen.read_text()) if seen.exists() else {}


def test_the_job_has_the_request_as_its_input_and_the_secrets_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "audits"
    options = ("--stack", "acme/kafka/stg", "--report-dir", str(folder), "--listen", "127.0.0.1:9404", "--once")
    result, seen = run(tmp_path, monkeypatch, 0, *options)
    assert result.exit_code == 0
    assert seen["secret"] == SECRET
    assert seen["request"]["stack"] == "stg"
    words = seen["argv"]
    assert words[0] == "audit"
    assert [words[words.index(name) + 1] for name in ("--state", "--report", "--metrics")] == [
        str(folder / "state"),
        str(folder / "audit.json"),
        "127.0.0.1:9404",
    ]
    assert "--once" in words
    assert SECRET not in " ".join(words)
    assert "buckets: 1 complete" in result.stderr
    assert SECRET not in result.output + result.stderr


@pytest.mark.parametrize("code", [1, 2])
def test_the_exit_code_is_the_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    result, _ = run(tmp_path, monkeypatch, code, "--report-dir", str(tmp_path / "audits"))
    assert result.exit_code == code


def test_a_mirror_that_the_stack_has_not_is_refused_and_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, seen = run(tmp_path, monkeypatch, 0, "--mirror", "other")
    assert (result.exit_code, seen) == (2, {})
    assert "--mirror must be one of the stack's (got 'other', allowed mm2)" in " ".join(result.stderr.split())
