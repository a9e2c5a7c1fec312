"""A failback that goes on after it was killed: it surveys again, unless `settle` has begun."""

from typing import Any

import pytest

from ops.errors import OpsError
from tests.support.recovery_pair import Kept, entry
from tests.support.recovery_project import FAILED_OVER, Project

OLD: dict[str, Any] = {"copied": {}, "stranded": {"gone-0": 3}, "emptied": {"gone-0": 3}, "anew": {"gone-0": 0}}
NEW: dict[str, Any] = {"copied": {}, "stranded": {}, "emptied": {}, "anew": {}}


@pytest.fixture
def killed(returned: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A failback that ends at its step `settle`, as often as it is tried, and that surveys something else each time."""

    def fail(_: Any) -> Any:
        raise OpsError("not now")

    monkeypatch.setattr("ops.recovery.failback.Failback.survey", lambda _: NEW)
    monkeypatch.setattr("ops.recovery.failback.Failback._alter", lambda *_: None)
    monkeypatch.setattr("ops.recovery.failback.Failback.settle", fail)
    return returned


def begun(*begun: str, at: str | None = None, **steps: Any) -> Kept:
    before = {key: FAILED_OVER[key] for key in ("command", "finishedAt", "steps")}
    found = {**entry("failback", finished=None, **steps), "options": {"to": "dev"}, "before": before}
    return Kept({**found, "begun": list(begun), "at": at, "of": ["survey", "realign", "settle"]})


def go_on(project: Project) -> Any:
    assert project.document("failback", "--to", "dev", "--yes", code=2)["error"] == "not now"
    return project.journal.steps["survey"]


@pytest.mark.parametrize(
    "journal",
    [
        begun("survey", "realign", at="realign", survey=OLD),
        begun("survey", "realign", at="realign", survey=OLD, realign={"partitions": 0}),
        begun(survey=OLD, realign={"partitions": 0}),  # of a release that noted no beginnings
    ],
    ids=["in realign", "after realign", "of an earlier release"],
)
def test_it_surveys_again(killed: Project, journal: Kept) -> None:
    killed.journal = journal
    assert go_on(killed)["stranded"] == {}
    assert journal.may_have_changed
    assert [one["steps"].keys() & {"survey", "realign"} for one in journal.written][:1] == [set()]
    assert {"survey", "realign"} <= journal.steps.keys()


@pytest.mark.parametrize(
    "journal",
    [
        begun("survey", "realign", "settle", at="settle", survey=OLD, realign={"partitions": 0}),
        begun(at="settle", survey=OLD, realign={"partitions": 0}),
    ],
    ids=["it", "it in an earlier release"],
)
def test_the_first_survey_stays_once_settle_has_begun(killed: Project, journal: Kept) -> None:
    killed.journal = journal
    assert go_on(killed)["stranded"] == {"gone-0": 3}


def test_the_plan_of_one_that_goes_on_shows_what_is_done_again(killed: Project) -> None:
    killed.journal = begun("survey", "realign", at="realign", survey=OLD, realign={"partitions": 0})
    plan = killed.document("failback", "--to", "dev", "--dry-run")
    assert (plan["resumes"], [one["name"] for one in plan["steps"] if one["done"]]) == (True, [])
    assert killed.unchanged


def test_a_failover_under_way_keeps_its_steps(killed: Project) -> None:
    killed.journal = Kept(entry(finished=None, drain={}))
    killed.document("failback", "--to", "dev", "--dry-run", code=2)
    assert [*killed.journal.steps] == ["drain"]
