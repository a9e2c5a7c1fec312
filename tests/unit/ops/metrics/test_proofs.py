"""Which verification is the last, and what is exported of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from ops.metrics import mirror_metrics
from tests.support import report_documents as made
from tests.support.recovery_pair import known, proof

PREFIX = "rt_inventory_verification_"
EARLIER, LATER = "2026-09-21T10:00:00+00:00", "2026-09-22T10:00:00+00:00"


def reported(
    folder: Path, proven: dict[str, Any] | None = None, project: Path | None = None
) -> dict[tuple[str, ...], float]:
    pair = known(proven=proven if proven is not None else {})
    if project is not None:
        object.__setattr__(pair, "project", project)
    found = {}
    for family in mirror_metrics.verification_families(pair, folder):
        for labels, value in family.samples:
            assert (labels["stack"], labels["mirror"]) == ("stg", "mm2")
            own = [value for name, value in sorted(labels.items()) if name not in ("stack", "mirror")]
            found[family.name.removeprefix(PREFIX), *own] = value
    return found


def report(folder: Path, name: str, **changed: Any) -> Path:
    path = folder / name / "report.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(made.faulty() | changed), "utf-8")
    return path


def test_without_a_run_nothing_is_reported(tmp_path: Path) -> None:
    assert reported(tmp_path) == {}
    assert reported(tmp_path / "nowhere") == {}


def test_a_run_whose_report_lies_elsewhere_reports_what_the_outputs_know(tmp_path: Path) -> None:
    found = reported(tmp_path, proof("fail", failed=["records_complete"]))
    assert found["verdict", "fail"] == 1
    assert (found["check", "records_complete"], found["check", "lag"]) == (0, 1)
    assert found["finished_timestamp_seconds",] == 1_790_000_000 - 60
    assert found["records_compared",] == 10_000
    assert not [key for key in found if key[0] in ("finding_records", "duration_seconds", "exit_code")]


def test_a_run_whose_end_nobody_reports_is_left_out(tmp_path: Path) -> None:
    assert reported(tmp_path, {"how": "job", "run": "mm2-verify-1", "verdict": "pass"}) == {}
    assert reported(tmp_path, proof(age_s=None)) == {}


def test_the_report_of_the_outputs_own_run_reports_more(tmp_path: Path) -> None:
    proven = proof("fail")
    report(tmp_path, "up", finished_at=proven["finishedAt"], stack="stg")
    found = reported(tmp_path, {**proven, "report": "up/report.html"}, project=tmp_path)
    assert found["finding_records", "lost"] == 1250
    assert found["duration_seconds",] == 42.1


@pytest.mark.parametrize(("finished", "verdict"), [(EARLIER, "pass"), (LATER, "fail")])
def test_the_last_run_counts_whoever_started_it(tmp_path: Path, finished: str, verdict: str) -> None:
    """The `up` ended at 2026-09-21 14:12 UTC."""
    report(tmp_path, "stg-mm2-20260922T100000Z", finished_at=finished, stack="stg")
    assert reported(tmp_path, proof("pass"))["verdict", verdict] == 1


def test_reports_of_others_and_what_is_none_are_passed_over(tmp_path: Path) -> None:
    report(tmp_path, "stg-mm2-20260924T100000Z", finished_at=LATER, stack="prod")
    report(tmp_path, "stg-mm2-20260923T100000Z", finished_at=LATER, mirror="other")
    report(tmp_path, "stg-mm2-back-20260923T100000Z", finished_at=LATER)
    report(tmp_path, "stg-mm2-20260925T100000Z").write_text("{", "utf-8")
    report(tmp_path, "stg-mm2-20260926T100000Z").write_text("[]", "utf-8")
    report(tmp_path, "stg-mm2-20260922T100000Z", finished_at=EARLIER, verdict="unknown")
    assert reported(tmp_path)["verdict", "unknown"] == 1


@pytest.mark.parametrize("role", ["source", "target"])
def test_a_report_of_other_clusters_is_passed_over(tmp_path: Path, role: str) -> None:
    """A stack of the same name: in another sandbox, or destroyed and made anew."""
    request = known().request
    own = getattr(request, role).client_config["bootstrap.servers"]
    side = made.faulty()[role]
    report(tmp_path, "stg-mm2-20260923T100000Z", finished_at=LATER, **{role: side | {"bootstrap_servers": "b:9"}})
    report(tmp_path, "stg-mm2-20260922T100000Z", finished_at=EARLIER, verdict="unknown")
    assert reported(tmp_path)["verdict", "unknown"] == 1
    report(tmp_path, "stg-mm2-20260924T100000Z", finished_at=LATER, **{role: side | {"bootstrap_servers": own}})
    assert reported(tmp_path)["verdict", "fail"] == 1


def test_a_report_that_is_not_whole_is_no_traceback(tmp_path: Path) -> None:
    report(tmp_path, "stg-mm2-20260922T100000Z", finished_at=LATER, partitions=[{}])
    assert reported(tmp_path) == {}
