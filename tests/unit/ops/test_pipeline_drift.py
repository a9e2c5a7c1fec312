"""Drift and verification of a pipeline, with stand-ins for Pulumi and the job: what is asked, reported and left."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ops import verify
from ops.cli import app
from ops.errors import OpsError
from ops.pipeline import documents, stack_checks
from ops.verify import Plan, Verdict

from ...support import event_logs as recorded
from ...support.pulumi_program import PulumiProgram, on_path

CHANGED = "error: no changes were expected but changes occurred"
Refresh = Callable[..., Result]


def result(operation: str, name: str, *, replicas: tuple[int, int] = (3, 3)) -> recorded.Event:
    """What a refresh found of a topic; its inputs are what the stack and the cluster say."""
    metadata = recorded.step(operation, recorded.topic(name), name=name)["resourcePreEvent"]["metadata"]
    for side, value in zip(("old", "new"), replicas, strict=True):
        if metadata[side]:
            inputs = {**metadata[side]["inputs"], "spec": {"replicas": value}}
            metadata[side] = {**metadata[side], "inputs": inputs}
    return {"resOutputsEvent": {"metadata": metadata}}


@pytest.fixture
def refresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refresh:
    """`ops pipeline drift` where Pulumi writes these events."""
    program = on_path(tmp_path / "bin", monkeypatch)

    def run(log: str | None, exit_code: int = 0, stderr: str = "") -> Result:
        program.answers("refresh", log=log, exit_code=exit_code, stderr=stderr)
        arguments = ["pipeline", "drift", "--stack", "stg", "--documents", str(tmp_path / "documents")]
        return CliRunner().invoke(app, arguments)

    return run


def left(tmp_path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((tmp_path / "documents" / "drift-stg.json").read_text(encoding="utf-8"))
    return content


def test_no_drift_is_one_line_and_exit_0(refresh: Refresh, tmp_path: Path) -> None:
    done = refresh(recorded.log(result("same", "items")))
    assert (done.exit_code, done.stdout) == (0, "no drift: stack stg\n")
    assert left(tmp_path) == {"stack": "stg", "drifted": False, "changes": []}
    arguments = PulumiProgram(tmp_path / "bin").words
    assert arguments[:3] == ["refresh", "--stack", "stg"]
    assert {"--preview-only", "--expect-no-changes", "--non-interactive"} <= set(arguments)


def test_drift_is_named_with_what_differs_and_exit_1(refresh: Refresh, tmp_path: Path) -> None:
    log = recorded.log(result("update", "items", replicas=(3, 1)), result("delete", "orders"), result("same", "stores"))
    done = refresh(log, 255, CHANGED)
    assert done.exit_code == 1
    assert done.stdout.splitlines() == ["update KafkaTopic items: spec.replicas", "delete KafkaTopic orders"]
    assert [(each["operation"], each["name"]) for each in left(tmp_path)["changes"]] == [
        ("update", "items"),
        ("delete", "orders"),
    ]


@pytest.mark.parametrize(
    ("log", "exit_code", "stderr", "message"),
    [
        (recorded.log(recorded.diagnostic("cluster unreachable")), 255, "", "cluster unreachable"),
        (None, 255, "error: no stack named 'stg' found", "stack stg: must exist in the backend"),
        (None, 255, "error: the stack is currently locked by 1 lock(s)", "somebody else's update must end first"),
        (recorded.log(), 255, CHANGED, "its event log does not contain"),
        (recorded.log(), 255, "error: something else", "something else"),
        (None, 0, "", "refresh must succeed"),
    ],
)
def test_a_refresh_that_fails_is_exit_2_and_its_reason_is_in_the_document(
    refresh: Refresh, tmp_path: Path, log: str | None, exit_code: int, stderr: str, message: str
) -> None:
    done = refresh(log, exit_code, stderr)
    assert done.exit_code == 2
    assert message in done.stderr
    assert message in left(tmp_path)["error"]


OUTPUTS = {"verificationRequests": {"retail": {}, "mm2": {}}, "verificationEnvironment": {}}


def verified(monkeypatch: pytest.MonkeyPatch, **verdicts: str) -> dict[str, Any]:
    """The document of a verification whose job ends with these verdicts, or cannot judge where there is none."""

    def run(planned: Plan, report_dir: Path, *_: Any, index: Path) -> Verdict:
        assert index == report_dir.parent
        if planned.mirror not in verdicts:
            raise OpsError(f"mirror {planned.mirror}: verification must be able to judge")
        report = {"verdict": verdicts[planned.mirror], "checks": []}
        return Verdict(mirror=planned.mirror, exit_code=0, report=report, report_dir=report_dir)

    monkeypatch.setattr(verify, "run", run)
    return stack_checks.verify_mirrors("acme/stg", OUTPUTS, Path("reports"), {}, lambda _: None)


def test_every_mirror_is_verified_into_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    document = verified(monkeypatch, mm2="pass", retail="pass")
    assert [(each["mirror"], each["report"]) for each in document["mirrors"]] == [
        ("mm2", "reports/stg-mm2/report.html"),
        ("retail", "reports/stg-retail/report.html"),
    ]
    assert stack_checks.all_passed(document)


@pytest.mark.parametrize("verdict", ["fail", "unknown"])
def test_one_mirror_that_does_not_pass_is_enough(monkeypatch: pytest.MonkeyPatch, verdict: str) -> None:
    assert not stack_checks.all_passed(verified(monkeypatch, mm2="pass", retail=verdict))


def test_a_mirror_that_cannot_be_judged_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    document = verified(monkeypatch, retail="pass")
    assert not stack_checks.all_passed(document)
    documents.write(tmp_path, documents.VERIFICATION, "stg", document)
    text = documents.report(documents.read(tmp_path))
    assert "| stg | retail | pass |" in text
    assert "mirror mm2: verification must be able to judge" in text


@pytest.mark.parametrize(
    ("outputs", "said"), [(None, "stack stg is not deployed yet"), ({"cluster": {}}, "stack stg declares no mirror")]
)
def test_where_there_is_no_mirror_there_is_nothing_to_verify(outputs: dict[str, Any] | None, said: str) -> None:
    document = stack_checks.verify_mirrors("stg", outputs, Path("reports"), {}, lambda _: None)
    assert document == {"stack": "stg", "mirrors": [], "said": f"nothing to verify: {said}"}
    assert stack_checks.all_passed(document)
