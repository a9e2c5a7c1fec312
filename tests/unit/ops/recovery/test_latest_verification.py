"""Which verification `status` shows: that of the last `up`, or a newer one whose report lies here."""

import json
from pathlib import Path
from typing import Any

from ops.recovery.mirror_context import latest_proof
from tests.support import report_documents as made
from tests.support.recovery_pair import known, proof

OF_UP = {**proof(), "finishedAt": "2026-09-21T10:00:00+00:00"}


def report(reports: Path, finished_at: str, document: dict[str, Any]) -> Path:
    path = reports / "stg-mm2-20260922T100000Z" / "report.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**document, "finished_at": finished_at}), "utf-8")
    return path.with_name("report.html")


def test_a_newer_run_of_verify_replaces_what_the_last_up_has_found(tmp_path: Path) -> None:
    page = report(tmp_path, "2026-09-22T10:00:00+00:00", made.faulty())
    found = latest_proof(known(proven=OF_UP), tmp_path)
    assert found is not None
    assert (found["verdict"], found["finishedAt"]) == ("fail", "2026-09-22T10:00:00+00:00")
    assert "records_complete" in found["failed"].split(", ")
    assert (found["report"], found["recordsCompared"]) == (str(page), made.faulty()["records_compared"])


def test_an_older_run_or_none_leaves_what_the_last_up_has_found(tmp_path: Path) -> None:
    assert latest_proof(known(proven=OF_UP), tmp_path / "none") == OF_UP
    report(tmp_path, "2026-09-20T10:00:00+00:00", made.faulty())
    assert latest_proof(known(proven=OF_UP), tmp_path) == OF_UP


def test_a_pair_that_nobody_has_verified_has_none(tmp_path: Path) -> None:
    assert latest_proof(known(proven={}), tmp_path) is None
