"""A disk that fills up under a verification: no report and no state is half of one, and the run does not pass."""

import json
from pathlib import Path

import pytest

from contract.documents import parse
from contract.fields import RequestError
from spark import command
from spark.audit.command import _write as write_audit
from spark.report import index, publish
from spark.state.store import StoreError
from tests.support.full_disk import REASON, full_disk
from tests.support.report_documents import clean, faulty
from tests.support.state_writers import opened
from tests.support.verification_states import entry, state
from tests.unit.contract.test_request import ENVIRONMENT, GOOD

NAME = "mm2.json"
NAMES = {"report.json", "report.html", "junit.xml", "metrics.prom"}


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_whichever_file_has_no_room_the_report_is_all_of_the_run_before(tmp_path: Path, name: str) -> None:
    publish.write_report(tmp_path / "probe", faulty())
    publish.write_report(tmp_path / "report", clean())
    before = files(tmp_path / "report")
    assert set(before) == NAMES
    with full_disk(sizes(tmp_path / "probe")[name] - 1), pytest.raises(OSError, match=REASON):
        publish.write_report(tmp_path / "report", faulty())
    assert files(tmp_path / "report") == before


def test_a_run_whose_report_has_no_room_ends_with_one_error_that_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    request, folder = tmp_path / "request.json", tmp_path / "report"
    request.write_text(json.dumps({"mirror": {"name": "mm2"}}), encoding="utf-8")
    publish.write_report(folder, clean())
    before = files(folder)
    monkeypatch.setattr("spark.signals.handle", lambda _: None)
    monkeypatch.setattr("spark.signals.ignore", lambda: None)
    monkeypatch.setattr(command, "load", lambda *_: parse(GOOD, ENVIRONMENT))
    monkeypatch.setattr(command, "require_java", lambda _: None)
    monkeypatch.setattr(command, "verify", lambda *_, **__: clean())
    with full_disk(64):
        code = command.main(["--request", str(request), "--report-dir", str(folder)])
    said = f"--report-dir: must be a folder to write to (got {folder}: {REASON})\n"
    assert (code, capsys.readouterr().err) == (2, said)
    assert files(folder) == before


def test_an_index_without_room_keeps_its_runs_and_leaves_nothing_beside_them(tmp_path: Path) -> None:
    index.add(tmp_path, clean(), tmp_path / "1" / "report.html")
    before = files(tmp_path)
    with full_disk(64), pytest.raises(OSError, match=REASON):
        index.add(tmp_path, faulty(), tmp_path / "2" / "report.html")
    assert files(tmp_path) == before


def test_a_state_without_room_is_the_one_before(tmp_path: Path) -> None:
    folder = opened(str(tmp_path))
    folder.save(NAME, lambda stored: state(entry()))
    with full_disk(64), pytest.raises(StoreError, match=f"{tmp_path}: cannot be written: {REASON}"):
        folder.save(NAME, lambda stored: state(entry(), entry("orders")))
    assert folder.load(NAME) == state(entry())
    assert set(files(tmp_path)) == {NAME, f"{NAME}.lock"}


def test_a_report_of_an_audit_without_room_is_the_one_before(tmp_path: Path) -> None:
    report = tmp_path / "audit.json"
    write_audit(report, "{}")
    with full_disk(8), pytest.raises(RequestError, match=rf"--report: must be .* \(got {report}: {REASON}\)"):
        write_audit(report, json.dumps({"topics": ["items"]}))
    assert files(tmp_path) == {"audit.json": "{}"}
