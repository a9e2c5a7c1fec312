"""The commands as somebody types them: help that teaches, one document or message, nothing changed without a yes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from ops import console
from ops.errors import OpsError
from ops.inspection import snapshot
from ops.inspection.snapshot import MirrorSnapshot
from ops.recovery import connector_offsets, mirror_context, operation
from ops.status import command as status_command
from tests.support import recovery_pair as cases
from tests.support.recovery_pair import Kept, at_work, connectors, entry, group, known, lag
from tests.support.recovery_project import AFTER, FAILED_OVER, STACK_FILE, Project

READ_ONLY = (
    "Interrupted. Nothing was changed. If an earlier command was interrupted: `python -m ops status` shows where."
)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("status", ["status --stack stg --watch", "--every", "Exit 0 if all is well, 1"]),
        (
            "failover",
            ["failover --to stg --exact", "--unplanned", "--dry-run", "goes on with the same command", "Exit 0"],
        ),
        ("failback", ["failback --to dev", "--catch-up", "--dry-run", "goes on with the same command", "Exit 0"]),
    ],
)
def test_help_teaches_by_an_example(project: Project, command: str, words: list[str]) -> None:
    result = project.run(command, "--help")
    assert result.exit_code == 0
    text = " ".join(result.stdout.replace("│", " ").split())
    assert [word for word in [f"python -m ops {words[0]}", *words[1:]] if word not in text] == []


def test_a_status_is_a_screen_or_a_document_and_its_exit_code_reports_the_health(project: Project) -> None:
    assert "mm2 of stack stg: healthy" in project.run("status").stdout
    assert project.document("status")["health"] == "healthy"
    project.seen = {"connectors": connectors(task="FAILED")}
    assert project.document("status", code=1)["health"] == "degraded"
    assert project.run("status").exit_code == 1
    project.seen = {"unknown": {"recovery": "kubernetes: access must be given"}}
    assert project.document("status", code=2)["health"] == "unknown"
    assert "? recovery unknown: kubernetes: access must be given" in project.run("status").stdout


def test_a_status_that_is_watched_has_no_document(project: Project) -> None:
    reported = project.document("status", "--watch", code=2)
    assert "--watch and --json must not be given together" in reported["error"]


class Screen:
    """A screen that keeps what it was given."""

    shown: list[RenderableType]

    def __init__(self, **_: Any) -> None:
        type(self).shown = []

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, shown: RenderableType, *, refresh: bool) -> None:
        assert refresh
        self.shown.append(shown)


def test_a_status_that_is_watched_outlives_a_state_that_cannot_be_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [known(), OpsError("the stack is currently locked"), known(active="target"), KeyboardInterrupt()]
    observed: list[str] = []

    def load(*_: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def look(of: mirror_context.MirrorContext, _: Mapping[str, str]) -> MirrorSnapshot:
        observed.append(of.active)
        return cases.observe(of)

    clock = cases.Clock()
    monkeypatch.setattr(status_command, "time", clock)
    monkeypatch.setattr(status_command, "Live", Screen)
    monkeypatch.setattr(mirror_context, "load", load)
    monkeypatch.setattr(snapshot, "collect", look)
    assert project.run("status", "--watch", "--every", "7").exit_code == 0
    assert observed == ["source", "source", "target"]
    assert [str(one) for one in Screen.shown if isinstance(one, Text)] == ["the stack is currently locked"]
    assert (len(Screen.shown), clock.now) == (4, 1000 + 4 * 7)


def test_a_stack_that_cannot_be_read_is_one_message(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise OpsError("stack stg: must exist in the backend.")

    monkeypatch.setattr(mirror_context, "load", fail)
    for command in (["status"], ["failover", "--to", "stg"], ["failback", "--to", "dev"]):
        result = project.run(*command)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "error: stack stg: must exist in the backend." in result.stderr
        assert "Traceback" not in result.output


@pytest.mark.parametrize("more", [[], ["--exact"], ["--unplanned"]])
def test_a_dry_run_of_a_failover_reports_the_plan_and_changes_nothing(project: Project, more: list[str]) -> None:
    found = project.document("failover", "--to", "stg", "--dry-run", *more)
    first = "measure" if "--unplanned" in more else "drain"
    assert (found["steps"][0]["name"], found["exact"], found["resumes"]) == (first, "--exact" in more, False)
    shown = project.run("failover", "--to", "stg", "--dry-run", *more)
    assert "Failover of mm2 to stack stg" in shown.stdout
    assert shown.stdout.count("--dry-run") == 0
    again = "with --exact no group reads a record again" if "--exact" in more else "groups would read about 2 records"
    assert again in " ".join(shown.stdout.split())
    assert "Nothing was changed. The same command without --dry-run carries this out." in shown.stderr
    assert project.unchanged


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["status"], "Interrupted."),
        (["failover", "--to", "stg", "--dry-run"], READ_ONLY),
        (["failback", "--to", "dev"], READ_ONLY),
    ],
)
def test_ctrl_c_before_anything_is_known_is_answered(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: list[str], expected: str
) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(mirror_context, "load", interrupted)
    result = project.run(*command)
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (130, "", expected)


def test_a_dry_run_of_a_failback_reports_the_plan_and_changes_nothing(returned: Project) -> None:
    found = returned.document("failback", "--to", "dev", "--dry-run")
    assert (found["to"], found["steps"][0]["name"], found["steps"][-1]["name"]) == ("dev", "survey", "confirm")
    assert found["emptied"] == {"items-0": 2}
    assert "Failback of mm2 to rt-inventory-dev" in returned.run("failback", "--to", "dev", "--dry-run").stdout
    assert returned.unchanged


@pytest.mark.parametrize("more", [["--dry-run"], ["--yes"], ["--unplanned", "--yes"]])
def test_a_failover_from_a_stale_stack_file_is_refused(project: Project, more: list[str]) -> None:
    project.declare(f"{STACK_FILE}      state: paused\n")
    message = project.document("failover", "--to", "stg", *more, code=2)["error"]
    assert "mirror mm2 must be as it is deployed, active source, state running (got state paused)" in message
    assert project.unchanged


@pytest.mark.parametrize("more", [["--dry-run"], ["--yes"]])
def test_a_failback_from_a_stale_stack_file_is_refused(returned: Project, more: list[str]) -> None:
    returned.declare(STACK_FILE)
    message = returned.document("failback", "--to", "dev", *more, code=2)["error"]
    assert "as it is deployed, active target, state stopped (got active source, state running)" in message
    assert returned.unchanged


def test_what_is_under_way_goes_on_though_the_stack_file_is_ahead_of_what_is_deployed(project: Project) -> None:
    project.declare(AFTER)
    project.journal = Kept({**entry(finished=None, drain={}, prove={}, stop={}), "options": {}})
    assert project.document("failover", "--to", "stg", "--dry-run")["resumes"]
    project.journal = Kept(entry("failback", finished=None, survey={}, settle={}))
    assert project.document("failback", "--to", "dev", "--dry-run")["resumes"]


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["no terminal", "json"])
def test_where_nobody_can_be_asked_a_yes_must_be_given(project: Project, more: list[str]) -> None:
    result = project.run("failover", "--to", "stg", *more)
    assert result.exit_code == 2
    assert "--yes must be given where nobody can be asked" in result.output
    assert "[1/" not in result.stderr
    assert project.unchanged


def test_a_failback_asks_too(returned: Project) -> None:
    result = returned.run("failback", "--to", "dev")
    assert result.exit_code == 2
    assert "--yes must be given where nobody can be asked" in result.stderr
    assert returned.unchanged


def test_a_refused_failover_is_one_document_with_all_that_is_wrong(project: Project) -> None:
    project.seen = {"source": "is gone.", "target": "is down."}
    message = project.document("failover", "--to", "stg", "--yes", code=2)["error"]
    assert len(message.splitlines()) == 3
    assert "--unplanned" in message
    assert project.unchanged


@pytest.mark.parametrize("more", [["--dry-run"], ["--yes"], ["--unplanned", "--yes"]])
def test_a_failover_whose_journal_could_not_be_kept_is_refused_before_anything_changes(
    project: Project, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    project.journal.room = 11
    parts = tuple(replace(lag().partitions[0], partition=number) for number in range(2))
    project.seen = {
        "groups": tuple(group(f"g{number}") for number in range(3)),
        "lag": replace(lag(), partitions=parts),
    }
    if "--unplanned" in more:
        project.seen["lag"] = None
        monkeypatch.setattr("ops.recovery.failover.Failover.count_partitions", lambda _: 2)
    message = project.document("failover", "--to", "stg", *more, code=2)["error"]
    assert message == "the journal must fit (got 12 offsets of groups)"
    assert project.unchanged


def test_a_failover_that_cannot_stop_the_mirror_stays_before_that_step(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.recovery.failover.Failover.measure", lambda _: {"notMirrored": None})
    result = project.run("failover", "--to", "stg", "--unplanned", "--yes")
    assert result.exit_code == 2
    assert "error: stack stg: `pulumi up` must succeed (exit 255: it failed; error: no brokers)" in result.stderr
    assert (list(project.journal.steps), project.journal.under_way) == (["measure"], True)
    stopped = STACK_FILE.replace("- name: mm2\n", "- name: mm2\n      state: stopped\n")
    assert (project.folder / "Pulumi.stg.yaml").read_text("utf-8") == stopped


def test_a_failover_in_another_way_than_it_was_begun_is_refused(project: Project) -> None:
    project.journal = Kept({**entry(finished=None, stop={}), "options": {"path": "planned", "exact": True}})
    message = project.document("failover", "--to", "stg", "--yes", code=2)["error"]
    assert "exact True (got False)" in message
    assert project.unchanged


def test_a_failover_that_has_changed_nothing_yet_is_begun_as_it_is_asked_for_now(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> Any:
        raise OpsError("the source is written to")

    monkeypatch.setattr("ops.recovery.failover.Failover.drain", fail)
    project.journal = Kept({**entry(finished=None, drain={}, prove={}), "options": {"path": "planned", "exact": True}})
    assert project.document("failover", "--to", "stg", "--yes", code=2)["error"] == "the source is written to"
    assert project.journal.entry is not None
    assert (project.journal.entry["options"], project.journal.steps) == ({"path": "planned", "exact": False}, {})


def test_a_planned_failover_whose_source_is_lost_meanwhile_goes_on_unplanned(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.recovery.failover.Failover.measure", lambda _: {"notMirrored": None})
    stopped = entry(finished=None, stop={"boundary": {}, "seconds": 1.0}, offsets={"groups": {}, "seconds": 1.0})
    project.journal = Kept({**stopped, "options": {"path": "planned", "exact": False}})
    monkeypatch.setattr("ops.recovery.failover.Failover.switch", lambda _: {"switchedAt": "now"})
    monkeypatch.setattr("ops.recovery.failover.Failover.confirm", lambda _: {"active": "target", "clientsSecret": None})
    project.seen = {"source": "is gone."}
    found = project.document("failover", "--to", "stg", "--unplanned", "--yes")
    assert (found["path"], found["active"], found["recordsLost"]) == ("unplanned", "target", None)
    assert sorted(found["seconds"]) == ["confirm", "measure", "offsets", "stop", "switch"]
    assert not project.calls.exists()


def test_a_failback_that_has_only_looked_is_begun_anew_and_keeps_what_the_failover_noted(
    returned: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> Any:
        raise OpsError("not now")

    monkeypatch.setattr("ops.recovery.failback.Failback.survey", fail)
    monkeypatch.setattr("ops.recovery.failback.Failback.require_support", lambda _: None)
    before = {key: FAILED_OVER[key] for key in ("command", "finishedAt", "steps")}
    other = {**entry("failback", finished=None, survey={}), "options": {"to": "other"}, "before": before}
    returned.journal = Kept(other)
    assert returned.document("failback", "--to", "dev", "--yes", code=2)["error"] == "not now"
    assert returned.journal.entry is not None
    assert (returned.journal.entry["options"], returned.journal.entry["before"]) == ({"to": "dev"}, before)
    assert returned.journal.steps == {}


def test_a_failover_that_could_not_begin_lets_no_failback_go_ahead(project: Project) -> None:
    project.journal = Kept(entry(finished=None))
    message = project.document("failback", "--to", "dev", "--stack", "stg", "--yes", code=2)["error"]
    assert "mirror mm2: must have the target active (the source is)." in message
    assert project.unchanged


def test_a_failback_whose_operator_has_no_place_for_offsets_is_refused_before_it_changes_anything(
    returned: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(tp: connector_offsets.Place, *_: Any) -> None:
        raise OpsError(f"no place for offsets in {tp[2]}")

    monkeypatch.setattr(connector_offsets, "require_support", refuse)
    message = returned.document("failback", "--to", "dev", "--yes", code=2)["error"]
    assert message == "no place for offsets in mm2"
    assert returned.unchanged


def test_a_failback_that_could_not_begin_lets_no_failover_go_ahead(returned: Project) -> None:
    returned.journal = Kept({**entry("failback", finished=None), "before": FAILED_OVER})
    for more in ([], ["--unplanned"]):
        message = returned.document("failover", "--to", "stg", "--yes", *more, code=2)["error"]
        assert "mirror mm2: must have the source active (the target is already)." in message
    assert returned.unchanged


def test_a_failover_that_is_given_up_is_not_exact(project: Project) -> None:
    project.journal = Kept({**entry(finished=None, stop={}), "options": {"path": "planned", "exact": True}})
    message = project.document("failover", "--to", "stg", "--unplanned", "--exact", "--yes", code=2)["error"]
    assert "--exact: must be given for a planned failover only" in message
    assert project.unchanged


@pytest.mark.parametrize("command", [("failback", "--to", "dev"), ("failover", "--to", "stg")])
def test_a_second_recovery_is_refused_before_it_reads_or_asks(
    returned: Project, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    returned.journal = Kept({**entry("failback", finished=None), "options": {"to": "dev"}}, at_work())
    monkeypatch.setattr(snapshot, "collect", lambda *_, **__: pytest.fail("it looked"))
    message = returned.document(*command, "--yes", code=2)["error"]
    assert "a failover or failback must be carried out by one command at a time (held by" in message
    assert returned.unchanged


def test_a_failback_goes_to_the_source_of_the_mirror_only(returned: Project) -> None:
    message = returned.document("failback", "--to", "prod", "--stack", "stg", "--yes", code=2)["error"]
    assert message == "--to: must be the source of mirror mm2 (got prod, allowed dev)."
    assert "must be the source of a mirror in one stack file" in returned.run("failback", "--to", "prod").stderr
    assert returned.unchanged


def test_reports_of_an_operation_have_a_folder_of_their_own() -> None:
    found = operation.default_report_dir("failback", known())
    assert found.parent == Path("reports")
    assert found.name.startswith("stg-mm2-failback-20")


def test_what_is_read_is_shown_to_a_terminal_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.run("status").stderr == ""
    monkeypatch.setattr(console, "stderr", lambda: Console(stderr=True, force_terminal=True, width=80))
    with console.reading("stack stg [x]"):
        pass
    assert "reading stack stg [x]" in capsys.readouterr().err


UNDEPLOYED = OpsError("stack stg: the checkout must have no other undeployed changes")


@pytest.mark.parametrize("more", [["--dry-run"], ["--yes"], ["--unplanned", "--yes"]])
def test_what_else_lies_in_the_checkout_keeps_a_failover_from_beginning(project: Project, more: list[str]) -> None:
    project.undeployed = UNDEPLOYED
    message = project.document("failover", "--to", "stg", *more, code=2)["error"]
    assert message.startswith(str(UNDEPLOYED))
    assert "--without-preview carries out whatever else lies in the checkout" in message
    assert project.unchanged
    assert project.previewed == [{"stack": "stg", "mirror": "mm2", "resumes": False}]


def test_in_an_emergency_a_failover_begins_without_a_preview_and_its_plan_says_so(project: Project) -> None:
    project.undeployed = UNDEPLOYED
    found = project.document("failover", "--to", "stg", "--unplanned", "--without-preview", "--dry-run")
    assert found["warnings"][0].startswith("no preview was made: what else lies in the checkout is unknown")
    assert project.previewed == []


def test_what_a_preview_warns_of_is_in_the_plan(project: Project) -> None:
    project.of_preview = ["the policy pack refuses what is deployed already"]
    for path in ([], ["--unplanned"]):
        found = project.document("failover", "--to", "stg", *path, "--dry-run")
        assert found["warnings"][0] == project.of_preview[0]
    project.declare(AFTER)
    project.journal = Kept(entry("failback", finished=None, survey={}, settle={}))
    assert project.document("failback", "--to", "dev", "--dry-run")["warnings"][0] == project.of_preview[0]


def test_a_recovery_that_goes_on_is_previewed_again(project: Project) -> None:
    project.declare(AFTER)
    project.undeployed = UNDEPLOYED
    project.journal = Kept({**entry(finished=None, drain={}, prove={}, stop={}), "options": {}})
    project.document("failover", "--to", "stg", "--dry-run", code=2)
    project.journal = Kept(entry("failback", finished=None, survey={}, settle={}))
    assert project.document("failback", "--to", "dev", "--dry-run", code=2)["error"] == str(UNDEPLOYED)
    assert [one["resumes"] for one in project.previewed] == [True, True]
    assert project.previewed[1]["fails_back"]
    assert project.unchanged
