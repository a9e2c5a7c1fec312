"""A failover that makes its changes directly: when Pulumi and the source are asked, and where they cannot follow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.inspection.probes import ANSWER_WITHIN_S
from ops.pulumi.stack import PulumiStack
from ops.recovery import break_glass, changes, stranded_records
from ops.recovery.failover import PLANNED, UNPLANNED, Failover, Options
from tests.support.failover_sides import OFFSETS
from tests.support.recovery_pair import Kept, entry, known
from tests.support.recovery_project import Project

SECRET = break_glass.BreakGlassSecret(namespace="rt-inventory-stg", mirror="mm2", context=None, environment={})


@pytest.fixture
def copy(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """A copy beside the mirror; what it says of why it is outdated may be replaced."""
    why: list[str | None] = [None]
    monkeypatch.setattr(break_glass, "find", lambda *_: SECRET)
    monkeypatch.setattr(break_glass, "why_outdated", lambda *_: why[0])
    return why


def names(found: Any) -> list[str]:
    return [step["name"] for step in found["steps"]]


def test_a_plan_ends_with_pulumi_where_the_changes_are_made_directly(project: Project, copy: list[str | None]) -> None:
    found = project.document("failover", "--to", "stg", "--dry-run")
    assert names(found)[-2:] == ["confirm", "reconcile"]
    assert not [warning for warning in found["warnings"] if "pulumi up" in warning]
    assert len(project.previewed) == 1


def test_without_an_up_to_date_copy_each_change_is_an_up(project: Project, copy: list[str | None]) -> None:
    copy[0] = "Secret stg/mm2-break-glass is not of the last `up`"
    found = project.document("failover", "--to", "stg", "--dry-run")
    assert names(found)[-1] == "confirm"
    assert [warning for warning in found["warnings"] if "not of the last `up`" in warning]


def test_break_glass_leaves_pulumi_out(
    project: Project, copy: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(break_glass, "load", lambda *_: project.pair)
    found = project.document("failover", "--to", "stg", "--break-glass", "--dry-run")
    assert "reconcile" not in names(found)


@pytest.mark.parametrize(
    ("more", "within_s", "unanswered"),
    [([], ANSWER_WITHIN_S, None), (["--unplanned"], stranded_records.ANSWERS_WITHIN_S, "is gone.")],
)
def test_a_source_that_is_given_up_is_asked_once_and_not_for_long(
    project: Project, monkeypatch: pytest.MonkeyPatch, more: list[str], within_s: float, unanswered: str | None
) -> None:
    def begin(of: Failover) -> Any:
        begun.append(of.unanswered)
        raise OpsError("far enough")

    begun: list[str | None] = []
    monkeypatch.setattr(Failover, "measure", begin)
    monkeypatch.setattr(Failover, "drain", begin)
    project.seen = {"source": unanswered}
    assert project.document("failover", "--to", "stg", "--yes", *more, code=2)["error"] == "far enough"
    assert (begun, project.source_within_s) == ([unanswered], within_s)


def of(
    how: list[str], *, preview_first: bool, monkeypatch: pytest.MonkeyPatch, refuses: str = ""
) -> Callable[[], None]:
    def preview(*_: Any, **options: Any) -> list[str]:
        how.append(f"preview {options}")
        if refuses:
            raise OpsError(refuses)
        return ["found"]

    monkeypatch.setattr(changes, "require_none", preview)
    monkeypatch.setattr(PulumiStack, "up", lambda _, mirror, __: how.append(f"up {mirror}"))
    engine = PulumiStack(folder=Path(), name="stg", environment={})
    direct = break_glass.DirectChanges(folder=Path(), name="stg", secret=SECRET, environment={})
    made = changes.FailoverChanges(mirror="mm2", changes=direct, pulumi=engine).reconcile(preview_first=preview_first)
    assert made is not None
    return made


def test_an_unplanned_failover_previews_before_pulumi_takes_over_and_not_before_the_switch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    of(done, preview_first=True, monkeypatch=monkeypatch)()
    assert done == ["preview {'resumes': True}", "up mm2"]
    done.clear()
    with pytest.raises(OpsError, match="other changes"):
        of(done, preview_first=True, monkeypatch=monkeypatch, refuses="other changes")()
    assert done == ["preview {'resumes': True}"]
    done.clear()
    of(done, preview_first=False, monkeypatch=monkeypatch)()
    assert done == ["up mm2"]


def failover(reconcile: Callable[[], None] | None, path: str = PLANNED, **changed: Any) -> Failover:
    options = Options(path=path, exact=False, drain_s=30.0, report_dir=Path("reports"))
    engine = PulumiStack(folder=Path(), name="stg", environment={})
    journal = Kept(entry(finished=None, offsets=OFFSETS, drain={"ends": {}}, stop={}))
    return Failover(known(**changed), options, engine, journal, lambda _: None, None, reconcile)


@pytest.mark.parametrize("path", [PLANNED, UNPLANNED])
def test_what_pulumi_cannot_take_over_leaves_the_target_active(path: str) -> None:
    def refuse() -> None:
        raise OpsError("stack stg: must not be locked.")

    steps = failover(refuse, path).steps()
    assert steps[-1].name == "reconcile"
    with pytest.raises(OpsError, match=r"must not be locked\.\nThe target is active, and applications may work there"):
        steps[-1].action()
    assert failover(None, path).steps()[-1].name == "confirm"
