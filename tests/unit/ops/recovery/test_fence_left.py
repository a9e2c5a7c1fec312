"""A killed command has left its fence: the next one goes on, takes it down, or reports that it is up."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ops.cli import app
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.recovery import fence, operation, target_fence
from ops.recovery.fence import FENCING, SourceFence
from ops.recovery.target_fence import TargetFence
from tests.support.recovery_pair import Kept, at_work, entry
from tests.support.recovery_project import Project

STEPS = ["fence", "drain", "prove", "stop", "offsets", "switch", "confirm"]
NOTED = {"topics": ["items"], "denied": []}
LEFT = "! The fence at rt-inventory-dev is still up: applications may write nothing there."
TO_GO_ON = "! To go on: python -m ops failover --to stg --mirror mm2"
GONE = "the fence at rt-inventory-dev is taken down, for the source stays active"
ENDS: dict[str, tuple[list[str], str, BaseException | None, int]] = {
    "no": ([], "n\n", None, 1),
    "ctrl-c at the question": ([], "", None, 130),
    "ctrl-c while it reads": (["--yes"], "", KeyboardInterrupt(), 130),
    "terminated while it reads": (["--yes"], "", SystemExit(143), 143),
    "an error": (["--yes"], "", OpsError("no preview"), 2),
    "other options than it was begun with": (["--yes", "--exact"], "", None, 2),
}


@pytest.fixture
def lifted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sides whose fence was taken down; both can be fenced, and somebody is there to answer."""
    found: list[str] = []
    rights: Any = None
    at_source = SourceFence(cluster="rt-inventory-dev", file=Path("-"), mirror_users=(), rights=rights, log=print)
    at_target = TargetFence(cluster="rt-inventory-stg", file=Path("-"), mirror="mm2", rights=rights, log=print)
    monkeypatch.setattr(fence, "chosen", lambda *_, without: (None if without else at_source, []))
    monkeypatch.setattr(target_fence, "chosen", lambda *_, without: (None if without else at_target, []))
    monkeypatch.setattr(SourceFence, "require_reachable", lambda _: None)
    monkeypatch.setattr(TargetFence, "require_reachable", lambda _: None)
    monkeypatch.setattr(SourceFence, "take_down", lambda *_: found.append("source"))
    monkeypatch.setattr(TargetFence, "take_down", lambda *_: found.append("target"))
    monkeypatch.setattr(operation, "_somebody_is_there", lambda: True)
    return found


def killed(project: Project, **steps: Any) -> None:
    options = {"path": "planned", "exact": False}
    journal = entry(finished=None, **{"fence": {}, FENCING: NOTED, **steps})
    project.journal = Kept({**journal, "of": STEPS, "options": options})


def run(
    project: Project, monkeypatch: pytest.MonkeyPatch, *words: str, text: str, error: BaseException | None
) -> Result:
    def fail(*_: Any, **__: Any) -> Any:
        raise error or AssertionError

    if error is not None:
        monkeypatch.setattr(snapshot, "collect", fail)
    return CliRunner().invoke(app, [*words, "-C", str(project.folder)], input=text)


@pytest.mark.parametrize("how", ENDS)
def test_a_failover_that_does_not_go_on_takes_it_down(
    project: Project, monkeypatch: pytest.MonkeyPatch, lifted: list[str], how: str
) -> None:
    more, text, error, code = ENDS[how]
    killed(project)
    result = run(project, monkeypatch, "failover", "--to", "stg", *more, text=text, error=error)
    assert (result.exit_code, lifted) == (code, ["source"]), result.output
    assert GONE in result.stderr
    assert (project.journal.under_way, set(project.journal.steps), project.journal.may_have_changed) == (
        True,
        set(),
        False,
    )
    if how == "no":
        assert "Nothing was changed by this command. The failover that was interrupted at 2/7 (drain)" in result.stderr
    if how == "ctrl-c while it reads":
        assert "Interrupted at 1/7 (fence). Nothing was changed. To begin again: " in result.stderr


@pytest.mark.parametrize(
    "more", [["--unplanned"], ["--without-fence"]], ids=["the source is given up", "rights out of reach"]
)
def test_one_that_cannot_take_it_down_reports_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, lifted: list[str], more: list[str]
) -> None:
    killed(project)
    result = run(project, monkeypatch, "failover", "--to", "stg", *more, text="n\n", error=None)
    said = " ".join(result.stderr.split())
    assert (result.exit_code, lifted, project.journal.written) == (1, [], [])
    assert f"{LEFT} {TO_GO_ON}" in said


def test_one_that_does_not_get_the_lease_reports_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, lifted: list[str]
) -> None:
    killed(project)

    def overtaken(*_: Any, **__: Any) -> Any:
        project.journal.lease.held_by = at_work()
        raise OpsError("no answer")

    monkeypatch.setattr(snapshot, "collect", overtaken)
    result = run(project, monkeypatch, "failover", "--to", "stg", "--yes", text="", error=None)
    assert (result.exit_code, lifted, project.journal.written) == (2, [], [])
    assert LEFT in result.stderr
    assert "one command at a time (held by" in result.stderr


@pytest.mark.parametrize("case", ["dry run", "the switch has begun", "no fence"])
def test_nothing_is_taken_down_where_it_must_stay_or_there_is_none(
    project: Project, monkeypatch: pytest.MonkeyPatch, lifted: list[str], case: str
) -> None:
    killed(project, **({"switching": {}} if case == "the switch has begun" else {}))
    if case == "no fence":
        project.journal = Kept(entry(finished=None, drain={}))
    more = ["--dry-run"] if case == "dry run" else []
    error = OpsError("no preview")
    result = run(project, monkeypatch, "failover", "--to", "stg", *more, text="", error=error)
    assert (result.exit_code, lifted, project.journal.written) == (2, [], [])
    assert "fence" not in result.stderr


@pytest.mark.parametrize("how", ["no", "ctrl-c at the question", "ctrl-c while it reads", "an error"])
def test_a_failback_that_does_not_go_on_takes_the_one_at_the_target_down(
    returned: Project, monkeypatch: pytest.MonkeyPatch, lifted: list[str], how: str
) -> None:
    more, text, error, code = ENDS[how]
    steps = {"copy": {}, target_fence.STEP: {}, target_fence.FENCING: NOTED}
    returned.journal = Kept({**entry("failback", finished=None, **steps), "options": {"to": "dev"}})
    result = run(returned, monkeypatch, "failback", "--to", "dev", *more, text=text, error=error)
    assert (result.exit_code, lifted) == (code, ["target"]), result.output
    assert "the fence at rt-inventory-stg is taken down, for the target stays active" in result.stderr
    assert set(returned.journal.steps) == {"copy"}


def test_ctrl_c_before_the_journal_is_read_refers_to_the_status(
    project: Project, monkeypatch: pytest.MonkeyPatch, lifted: list[str]
) -> None:
    killed(project)

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(fence, "chosen", interrupted)
    result = run(project, monkeypatch, "failover", "--to", "stg", "--yes", text="", error=None)
    assert (result.exit_code, lifted) == (130, [])
    assert "If an earlier command was interrupted: `python -m ops status` shows where." in result.stderr
