"""Steps in their order, each noted when it is done; after an interruption the next run goes on behind the last."""

from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from ops.errors import OpsError
from ops.recovery.operation import Step, carry_out, steps_document, steps_table, undone_unless_ended
from tests.support.recovery_pair import Kept, entry

NAMES = ("drain", "prove", "stop")


def noting(ran: list[str], failing: str | None = None, error: BaseException | None = None) -> list[Step]:
    def action(name: str) -> Callable[[], dict[str, Any]]:
        def run() -> dict[str, Any]:
            if name == failing:
                raise error or OpsError(f"{name} failed")
            ran.append(name)
            return {"learned": name}

        return run

    return [Step(name, f"words of {name}", action(name)) for name in NAMES]


def under_way(*done: str) -> Kept:
    steps: dict[str, Any] = {name: {"learned": name} for name in done}
    return Kept(entry(finished=None, **steps))


def test_steps_run_in_their_order_and_each_is_noted_with_what_it_learned() -> None:
    ran, said, journal = list[str](), list[str](), under_way()
    carry_out(noting(ran), journal, said.append)
    assert ran == list(NAMES) == list(journal.steps)
    assert journal.steps["prove"]["learned"] == "prove"
    assert journal.steps["prove"]["seconds"] >= 0
    assert not journal.under_way
    assert len(journal.written) == 2 * len(NAMES) + 1
    assert said[0] == "[1/3] drain: words of drain"
    assert said[-1].startswith("[3/3] stop: done in")


@pytest.mark.parametrize("done", range(len(NAMES) + 1))
def test_an_interrupted_operation_goes_on_after_its_last_step(done: int) -> None:
    ran, said, journal = list[str](), list[str](), under_way(*NAMES[:done])
    carry_out(noting(ran), journal, said.append)
    assert ran == list(NAMES[done:])
    assert [line for line in said if "done before, at 2026" in line] == [
        f"[{at}/3] {name}: done before, at {journal.steps[name]['finishedAt']}"
        for at, name in enumerate(NAMES[:done], 1)
    ]
    assert not journal.under_way


@pytest.mark.parametrize("error", [OpsError("prove failed"), KeyboardInterrupt(), SystemExit(143)])
def test_an_error_leaves_the_journal_at_the_last_step_that_was_done(error: BaseException) -> None:
    ran, journal = list[str](), under_way()
    with pytest.raises(type(error)):
        carry_out(noting(ran, "prove", error), journal, lambda _: None)
    assert (list(journal.steps), journal.under_way) == (["drain"], True)


@pytest.mark.parametrize("error", [OpsError("no answer"), KeyboardInterrupt(), SystemExit(143)])
@pytest.mark.parametrize(("dry_run", "times"), [(False, 1), (True, 0)])
def test_what_must_not_outlive_a_command_is_undone_unless_it_ends_or_only_plans(
    error: BaseException, dry_run: bool, times: int
) -> None:
    undone: list[str] = []
    with pytest.raises(type(error)), undone_unless_ended(lambda: undone.append("fence"), dry_run=dry_run):
        raise error
    with undone_unless_ended(lambda: undone.append("fence"), dry_run=dry_run):
        pass
    assert undone == ["fence"] * times


def test_the_plan_shows_which_steps_are_done() -> None:
    journal = under_way("drain")
    assert [(step["name"], step["done"]) for step in steps_document(noting([]), journal)] == [
        ("drain", True),
        ("prove", False),
        ("stop", False),
    ]
    console = Console(width=80, no_color=True)
    with console.capture() as shown:
        console.print(steps_table(noting([]), journal))
    lines = [line for line in shown.get().splitlines() if "words of" in line]
    assert ["done" in line for line in lines] == [True, False, False]


def test_steps_of_an_operation_that_has_ended_are_not_done_in_the_next() -> None:
    assert not any(step["done"] for step in steps_document(noting([]), Kept(entry(drain={}, prove={}))))
