"""A run that cannot judge still leaves its three reports: the error, the exit code and what was known."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract.documents import parse
from kafka.cluster import Topic
from kafka.connector_status import ConnectorState
from kafka.errors import ClusterError
from kafka.mirror_position import CutState
from spark import command
from spark.report import publish
from spark.report.html import as_html
from spark.report.publish import as_junit, refused_document, stopped_document
from spark.run_context import RunContext

from ..contract.test_request import ENVIRONMENT, GOOD
from .test_report import FOLLOWING

NOW = datetime.now(UTC)
ERROR = "source es-src (k1:9093, user reader): <is> down. Start it."


def context(**known: Any) -> RunContext:
    return RunContext(request=parse(GOOD, ENVIRONMENT), **known)


def run(folder: Path, document: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[int, dict[str, Any]]:
    """Run the command on a request; returns its exit code and report.json."""
    path = folder / "request.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)}
    try:
        code = command.main(["--request", str(path), "--report-dir", str(folder / "report")])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    written = json.loads((folder / "report" / "report.json").read_text())
    FOLLOWING.validate(written)
    return code, written


def test_a_run_that_had_to_stop_reports_its_error_and_the_cut_it_had_taken() -> None:
    found = stopped_document(context(cut=CutState({("items", 0): 17})), ERROR, 2, NOW, [])
    FOLLOWING.validate(json.loads(publish.as_json(found)))
    assert (found["verdict"], found["exit_code"], found["error"]) == ("error", 2, ERROR)
    assert found["cut"]["offsets"] == {"items-0": 17}
    assert found["source"] == {"alias": "es-src", "user": "reader", "bootstrap_servers": "127.0.0.1:1"}


def test_checks_are_reported_only_once_their_facts_are_known() -> None:
    topic = Topic(name="items", replicas={0: 1}, compacted=False)
    known: dict[str, Any] = {
        "source_topics": {"items": topic},
        "target_topics": {"items": topic},
        "connectors": [ConnectorState("c", "FAILED", ())],
    }
    assert stopped_document(context(**known), ERROR, 2, NOW, [])["checks"] == []
    checks = {
        check["name"]: check["ok"]
        for check in stopped_document(context(waited=True, **known), ERROR, 2, NOW, [])["checks"]
    }
    assert (checks["topics_present"], checks["connectors_running"]) == (True, False)
    assert not {"records_complete", "groups_no_loss"} & set(checks)


def test_a_wrong_request_has_a_report_with_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(GOOD | {"mirror": {"name": "mm2"}}))
    refused = refused_document(path, ERROR, 2, NOW)
    assert refused["mirror"] == "mm2"
    assert refused["source"]["alias"] == "es-src"
    assert set(refused) == set(stopped_document(context(), ERROR, 2, NOW, []))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mirror": 3}', '{"mirror": {"name": []}}'])
def test_a_request_that_is_no_request_has_a_report_too(tmp_path: Path, text: str) -> None:
    path = tmp_path / "request.json"
    path.write_text(text)
    refused = refused_document(path, ERROR, 2, NOW)
    FOLLOWING.validate(json.loads(publish.as_json(refused)))
    assert "&lt;is&gt; down" in as_html(refused)
    assert 'errors="1"' in as_junit(refused)


def test_the_error_stands_in_the_page_and_is_an_error_of_the_test_suite() -> None:
    found = stopped_document(context(warnings=["source es-src: ends soon"]), ERROR, 2, NOW, [])
    page = as_html(found)
    assert "&lt;is&gt; down" in page
    assert "ends soon" in page
    assert '<error message="source es-src (k1:9093, user reader): &lt;is&gt; down. Start it."' in as_junit(found)


def test_an_unknown_key_ends_in_one_message_and_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = run(tmp_path, GOOD | {"miror": {}}, monkeypatch)
    expected = "request: miror must be a known key (got miror, allowed limits, mirror, source, stack, target)"
    assert (code, report["verdict"], report["exit_code"], report["error"]) == (2, "error", 2, expected)
    assert capsys.readouterr() == ("", expected + "\n")
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        "report.json",
        "report.html",
        "junit.xml",
        "metrics.prom",
    }


def test_a_cluster_that_refuses_ends_in_one_message_and_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ClusterError(ERROR)

    monkeypatch.setattr(command, "verify", refuse)
    code, report = run(tmp_path, GOOD, monkeypatch)
    assert (code, report["error"]) == (2, ERROR)
    assert capsys.readouterr().err == ERROR + "\n"


def test_a_run_ends_at_its_deadline_and_says_what_it_was_doing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hang(known: RunContext, *_: object, **__: object) -> None:
        known.stage = "comparing records"
        time.sleep(30)

    monkeypatch.setattr(command, "verify", hang)
    code, report = run(tmp_path, GOOD | {"limits": {"deadline_seconds": 1}}, monkeypatch)
    assert (code, report["verdict"]) == (2, "error")
    assert report["error"] == (
        "verification: must end within 1 s (got no end while comparing records). "
        "Look for what is slow there, or raise limits.deadline_seconds."
    )


def started(folder: Path, *program: str, **environment: str) -> "subprocess.Popen[str]":
    """A run in a process of its own, with a good request and its report in `folder`."""
    request = folder / "request.json"
    request.write_text(json.dumps(GOOD))
    return subprocess.Popen(
        [sys.executable, *program, "--request", str(request), "--report-dir", str(folder / "report")],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **ENVIRONMENT, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_says_so_and_leaves_what_it_knew(tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "import sys, time; from spark import command\n"
        "def hang(facts, *_, **more):\n    facts.stage = 'comparing records'; print('hangs', flush=True)\n"
        # in short naps: a signal that arrives just before a call blocks is looked at when the call ends
        "    for _ in range(600): time.sleep(0.1)\n"
        "command.verify = hang; sys.exit(command.main())"
    )
    with started(tmp_path, "-c", program) as process:
        assert process.stdout
        assert process.stdout.readline() == "hangs\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "stopped while comparing records\n")
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert (report["verdict"], report["exit_code"]) == ("stopped", 130)


class SurpriseError(Exception):
    """Stands for any error that nobody foresaw."""


def surprise(*_: object, **__: object) -> None:
    raise SurpriseError("with made-up-password in it\nand two lines")


UNFORESEEN = (
    "verification: must not meet an error that it does not foresee (got SurpriseError while reading the request). "
    "Set RT_INVENTORY_DEBUG=1 to see where, and report it."
)


@pytest.mark.parametrize("broken", ["verify", "load"])
def test_an_error_that_nobody_foresaw_is_reported_by_its_type_alone_in_one_line_and_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    monkeypatch.delenv("RT_INVENTORY_DEBUG", raising=False)
    monkeypatch.setattr(command, broken, surprise)
    code, report = run(tmp_path, GOOD, monkeypatch)
    assert (code, report["verdict"], report["exit_code"], report["error"]) == (2, "error", 2, UNFORESEEN)
    assert capsys.readouterr() == ("", UNFORESEEN + "\n")


def test_its_trace_is_reported_without_secrets_to_who_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RT_INVENTORY_DEBUG", "1")
    monkeypatch.setattr(command, "verify", surprise)
    assert run(tmp_path, GOOD, monkeypatch)[0] == 2
    said = capsys.readouterr().err
    assert "SurpriseError: with [hidden] in it" in said
    assert said.splitlines()[-1] == UNFORESEEN
    assert "made-up-password" not in said


def test_a_check_that_breaks_breaks_the_report_of_its_error_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "verify", surprise)
    monkeypatch.setattr("spark.report.publish.judge_part", surprise)
    code, report = run(tmp_path, GOOD, monkeypatch)
    assert (code, report["error"], report["source"]["alias"]) == (2, UNFORESEEN, "es-src")


@pytest.mark.parametrize("broken", ["as_html", "as_junit"])
def test_a_page_that_cannot_be_made_leaves_the_report_of_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    monkeypatch.setattr(command, "verify", lambda *_, **__: stopped_document(context(), ERROR, 2, NOW, []))
    monkeypatch.setattr(f"spark.report.publish.{broken}", surprise)
    code, report = run(tmp_path, GOOD, monkeypatch)
    assert (code, report["error"]) == (2, UNFORESEEN)
    assert "Traceback" not in capsys.readouterr().err


SLOW_IMPORT = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "spark.command":
            print("importing", flush=True)
            time.sleep(1)
            print("imported", flush=True)
sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("times", [1, 2])
def test_a_run_that_is_stopped_while_it_loads_its_modules_ends_as_documented(
    tmp_path: Path, number: signal.Signals, times: int
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    with started(tmp_path, "-m", "spark", PYTHONPATH=str(tmp_path)) as process:
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        if times == 2:
            time.sleep(0.3)
            process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    if times == 1:
        assert said == "stopped while reading the request\n"
        report = json.loads((tmp_path / "report" / "report.json").read_text())
        assert (report["verdict"], report["exit_code"]) == ("stopped", 130)
    else:
        assert said == "", "who asks twice gets no report"
