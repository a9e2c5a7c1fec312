"""A failover of topics as somebody types it, and how its steps differ from those of a whole mirror."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.pulumi.stack_file import change_mirror, mirror_entry
from ops.recovery import failover_result, mirror_context
from ops.recovery.changes import FailoverChanges
from ops.recovery.failover_scope import SomeTopics, WholeMirror
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import of_journal
from ops.recovery.topic_selection import TopicSelection
from tests.support.failover_sides import DRAINED, OFFSETS, STOPPED, Sides, work
from tests.support.recovery_pair import Kept, Side, entry, known
from tests.support.recovery_project import FAILED_OVER, STACK_FILE, Project

TOPICS = "      topics: [items, items.inventory, store.inventory]\n"


@pytest.fixture
def source(project: Project, monkeypatch: pytest.MonkeyPatch) -> Side:
    side = Side("es-src", {TopicPartition(name, 0): 5 for name in ("items", "items.inventory", "store.inventory")})
    side.held = {"orders": {TopicPartition("items", 0): 3}}
    side.states = {"orders": "STABLE"}
    monkeypatch.setattr(MirrorContext, "source", lambda _: side)
    project.declare(STACK_FILE + TOPICS)
    return side


def test_a_plan_names_the_topics_and_who_must_point_applications_to_the_target(project: Project, source: Side) -> None:
    found = project.document("failover", "--to", "stg", "--topic", "items", "--dry-run")
    assert found["topics"] == ["items"]
    steps = {step["name"]: step["words"] for step in found["steps"]}
    assert list(steps) == ["drain", "prove", "stop", "offsets", "switch", "confirm", "reconcile"]
    assert steps["stop"] == "leave items out of the mirror, which goes on with the rest"
    assert [line for line in found["warnings"] if line.startswith("Secret mm2-clients stays as it is")]
    assert "workloads" not in found
    shown = project.run("failover", "--to", "stg", "--topic", "items", "--dry-run").output
    assert "Failover of mm2 to stack stg, planned, of items alone" in shown
    assert project.unchanged


@pytest.mark.parametrize("more", [["--unplanned"], ["--break-glass"]])
def test_a_part_of_a_mirror_fails_over_as_planned_and_by_pulumi_only(
    project: Project, source: Side, more: list[str]
) -> None:
    failed = project.document("failover", "--to", "stg", "--topic", "items", "--yes", *more, code=2)
    assert "A source that is lost is lost for all topics: leave --topic out." in failed["error"]
    assert project.unchanged


def test_a_group_that_would_be_on_both_sides_is_refused_before_anybody_is_asked(project: Project, source: Side) -> None:
    source.held["orders"][TopicPartition("store.inventory", 0)] = 1
    failed = project.document("failover", "--to", "stg", "--topic", "items", "--yes", code=2)
    assert "orders reads store.inventory too" in failed["error"]
    assert project.unchanged


def test_the_plan_of_the_rest_says_that_a_failback_brings_all_back(project: Project, source: Side) -> None:
    project.pair = known({"topics_exclude": ["items"]}, failedOver={"topics": ["items"], "groups": ["orders"]})
    found = project.document("failover", "--to", "stg", "--dry-run")
    assert [line for line in found["warnings"] if line.startswith("items failed over before: this is for the rest")]
    both = "groups that failed over before have read other topics at the source too (orders store.inventory)"
    assert not [line for line in found["warnings"] if line.startswith(both)]
    source.held["orders"][TopicPartition("store.inventory", 0)] = 1
    found = project.document("failover", "--to", "stg", "--dry-run")
    assert [line for line in found["warnings"] if line.startswith(both)]


def moved_topics() -> Kept:
    """A failover of items past its switch, after which Pulumi could not take over what was changed."""
    options = {"path": "planned", "exact": False, "topic": "items", "topics": ["items"]}
    return Kept({**entry(finished=None, stop={}, switching={}, switch={}, confirm={}), "options": options})


def test_a_lost_source_goes_on_with_the_rest_where_pulumi_cannot_take_topics_over(
    project: Project, source: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.journal = moved_topics()
    project.declare(STACK_FILE + TOPICS + "      failedOver: {topics: [items], groups: [orders]}\n")
    asked: list[dict[str, Any]] = []
    plain = FailoverChanges.of

    def noted(*arguments: Any, **more: Any) -> FailoverChanges:
        asked.append(more)
        return plain(*arguments, **more)

    monkeypatch.setattr(FailoverChanges, "of", noted)
    found = project.document("failover", "--to", "stg", "--unplanned", "--dry-run")
    assert [line for line in found["warnings"] if line.startswith("items failed over before: this is for the rest")]
    assert asked[0]["new_split"]
    failed = project.document("failover", "--to", "stg", "--yes", code=2)
    assert "must be finished as it began: " in failed["error"]
    assert project.unchanged


def test_what_pulumi_cannot_take_over_is_left_by_a_command_that_is_allowed() -> None:
    def fails() -> None:
        raise OpsError("pulumi up failed")

    chosen = TopicSelection(pattern="items", topics=("items",))
    nothing: Any = None
    scope = SomeTopics(
        pair=known(), chosen=chosen, file=Path(), rights=nothing, journal=Kept(), environment={}, say=print
    )
    whole, part = work(), work()
    part.scope = scope
    for done, way in ((whole, "--break-glass"), (part, "python -m ops failover --to stg --unplanned")):
        done._reconcile = fails
        with pytest.raises(OpsError) as caught:
            done.reconcile()
        assert way in str(caught.value)
        assert ("--break-glass" in str(caught.value)) == (done is whole)


def test_an_interrupted_failover_of_topics_is_continued_by_its_own_command() -> None:
    options = {"path": "planned", "exact": True, "topic": "items(\\..*)?", "topics": ["items"]}
    found = of_journal(Kept({**entry(finished=None, fence={}), "options": options}), "stg")
    assert found is not None
    assert found.continue_with == ("python -m ops failover --to stg --mirror mm2 --exact --topic 'items(\\..*)?'")


def test_the_failover_of_the_rest_takes_the_parts_in_before_it_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    Sides(monkeypatch)
    done = work(offsets=OFFSETS, **STOPPED, **DRAINED)
    part = {**entry(stop={"boundary": {"moved-0": 3}, "copied": {"moved-0": 2}}), "options": {"topic": "moved"}}
    done.journal.entry = {**(done.journal.entry or {}), "before": part}
    done.switch()
    assert done.journal.steps["stop"]["boundary"] == {"moved-0": 3, **STOPPED["stop"]["boundary"]}


def test_the_switch_of_the_whole_mirror_ends_the_split(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = Sides(monkeypatch)
    changes: Any = type("Changes", (), {"file": project.folder / "Pulumi.stg.yaml", "environment": {}})()
    declared: list[dict[str, Any]] = []
    changes.set_mirror, changes.up = lambda _, values: declared.append(values), lambda *_: None
    scope = WholeMirror(pair=known(), changes=changes, say=lambda _: None)
    scope.switch()
    change_mirror(changes.file, "mm2", {"failedOver": {"topics": ["items"]}})
    assert mirror_entry(changes.file, "mm2")["failedOver"] == {"topics": ["items"]}
    scope.switch()
    at_target = {"state": "stopped", "active": "target"}
    assert declared == [at_target, {**at_target, "failedOver": None}]
    assert sides.declared == []


def test_the_summary_names_the_topics_and_that_the_secret_stays() -> None:
    steps: dict[str, Any] = {
        "drain": {"ends": {}},
        "stop": {"boundary": {}, "copied": {}},
        "offsets": {"groups": {}},
        "switch": {"switchedAt": "2026-11-22T08:00:00+00:00"},
        "confirm": {"active": "source", "clientsSecret": "mm2-clients", "stranded": {}},
    }
    options = work().options
    options = type(options)(
        path="planned", exact=False, drain_s=1.0, report_dir=Path(), part={"topic": "items", "topics": ["items"]}
    )
    done = failover_result.result(mirror_context.narrowed(known(), ["items"], {}), options, Kept(entry(**steps)))
    assert (done["topics"], done["active"], done["recordsLost"]) == (["items"], "source", 0)
    screen = Console(file=StringIO(), width=200)
    screen.print(failover_result.summary(done))
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "the target of stack stg is active for items since" in text
    assert "Secret mm2-clients stays as it is" in text
    assert "Applications find" not in text


def test_a_failback_of_a_mirror_that_is_split_is_refused_and_changes_nothing(project: Project) -> None:
    project.pair, project.journal = (
        known({"topics_exclude": ["items"]}, failedOver={"topics": ["items"]}),
        Kept(FAILED_OVER),
    )
    failed = project.document("failback", "--to", "dev", "--yes", code=2)
    assert failed["error"] == (
        "mirror mm2: must have failed over as a whole to fail back (got items alone). Take the rest over, "
        "python -m ops failover --to stg, then fail back: all topics return.\nNothing was changed."
    )
    assert project.unchanged
