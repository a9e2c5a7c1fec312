"""Who answers with no, or interrupts a command: nothing is an error, and what was changed is reported."""

import io
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ops.cli import app
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.recovery import operation
from tests.support.recovery_project import Project


class Terminal:
    """A console, and an input, where somebody sits, who answers `answer`; None: presses Ctrl-C."""

    is_terminal = True

    def __init__(self, answer: bool | None = None) -> None:
        self.answer = answer
        self.questions: list[str] = []

    def isatty(self) -> bool:
        return True

    def confirm(self, question: str, *, err: bool) -> bool:
        assert err
        self.questions.append(question)
        if self.answer is None:
            raise typer.Abort
        return self.answer


@pytest.mark.parametrize(("answer", "code"), [(True, None), (False, 1), (None, 130)])
def test_only_who_says_yes_changes_something_and_no_is_no_error(
    monkeypatch: pytest.MonkeyPatch, answer: bool | None, code: int | None
) -> None:
    said: list[str] = []
    monkeypatch.setattr(operation, "say", said.append)
    somebody = Terminal(answer)
    monkeypatch.setattr(operation, "stderr", lambda: somebody)
    monkeypatch.setattr("sys.stdin", somebody)
    monkeypatch.setattr(typer, "confirm", somebody.confirm)
    if answer:
        operation.require_yes(False, "Now?", as_json=False)
    else:
        with pytest.raises(typer.Exit) as ended:
            operation.require_yes(False, "Now?", as_json=False)
        assert (ended.value.exit_code, said) == (code, ["Nothing was changed."])
    assert somebody.questions == ["Now?"]


def test_without_an_input_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "stderr", Terminal)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(OpsError, match="--yes must be given"):
        operation.require_yes(False, "Now?", as_json=False)


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("", 130)])
def test_a_no_ends_a_failover_without_an_error(
    project: Project, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr(operation, "_somebody_is_there", lambda: True)
    result = CliRunner().invoke(app, ["failover", "--to", "stg", "-C", str(project.folder)], input=answer)
    assert result.exit_code == code
    assert result.stderr.rstrip().endswith("Nothing was changed.")
    assert "error" not in result.stderr
    assert project.unchanged


@pytest.mark.parametrize(
    ("step", "error", "code", "expected"),
    [
        (
            "drain",
            KeyboardInterrupt(),
            130,
            ["Interrupted at 1/6 (drain). Nothing was changed. To begin again: python -m ops failover --to stg"],
        ),
        (
            "switch",
            KeyboardInterrupt(),
            130,
            [
                "Interrupted at 5/6 (switch). Changed until then:",
                "  stop: stop the mirror",
                "  offsets: set the groups' offsets on the target, exactly",
                "  switch: in part, it is done again",
                "To go on behind the last step that was done: python -m ops failover --to stg --mirror mm2 --exact",
            ],
        ),
        ("offsets", SystemExit(143), 143, ["Interrupted at 4/6 (offsets). Changed until then:"]),
    ],
)
def test_who_interrupts_a_failover_learns_what_was_changed_and_what_to_type(
    project: Project, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException, code: int, expected: list[str]
) -> None:
    def interrupt(_: Any) -> Any:
        raise error

    names = ["drain", "prove", "stop", "offsets", "switch", "confirm"]
    for name in names:
        monkeypatch.setattr(f"ops.recovery.failover.Failover.{name}", interrupt if name == step else lambda _: {})
    result = project.run("failover", "--to", "stg", "--exact", "--yes")
    assert result.exit_code == code
    said = result.stderr[result.stderr.index("Interrupted at") :].splitlines()
    assert len(expected) == 1 or len(said) == len(expected)
    assert [line for line, start in zip(said, expected, strict=False) if not line.startswith(start)] == []


def test_who_interrupts_before_the_first_step_learns_that_nothing_was_changed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(snapshot, "collect", interrupt)
    result = project.run("failover", "--to", "stg", "--yes")
    assert (result.exit_code, result.stderr.strip()) == (130, "Interrupted. Nothing was changed.")
    assert project.unchanged
