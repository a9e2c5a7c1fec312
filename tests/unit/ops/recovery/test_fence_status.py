"""What is not well about a fence, and that a declared one is carried out once the source answers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.inspection.snapshot import MirrorSnapshot
from ops.recovery import fencing
from ops.recovery.fence import FENCING
from ops.recovery.fencing import LEFT_BEHIND, TAKES_WRITES, FenceStatus
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import of_journal
from ops.status import command as status_command
from ops.status import document as status
from tests.support.fenced_source import APPLICATION, FENCE, WRITTEN, Source, fenced_source
from tests.support.recovery_pair import Kept, entry, known, observe

FAILED_OVER = entry(stop={"copied": {}}, fencing={**WRITTEN, "denied": []})


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    with fenced_source(tmp_path) as found:
        yield found


def of(source: Source, **changed: Any) -> MirrorContext:
    return replace(known(**changed), project=source.folder)


def fence(users: dict[str, bool], *, declared: bool = False) -> FenceStatus:
    return FenceStatus(cluster="rt-inventory-dev", stack="dev", users=users, declared=declared)


@pytest.mark.parametrize(
    ("active", "users", "declared", "issue"),
    [
        ("source", {"app": True}, False, None),
        ("source", {"app": False, "other": True}, False, LEFT_BEHIND),
        ("source", {"app": True}, True, LEFT_BEHIND),
        ("target", {"app": False}, True, None),
        ("target", {"app": False, "other": True}, True, TAKES_WRITES),
        ("target", {}, False, None),
    ],
    ids=str,
)
def test_a_fence_is_a_problem_where_it_should_not_be_and_its_lack_where_it_should(
    active: str, users: dict[str, bool], declared: bool, issue: str | None
) -> None:
    found = fence(users, declared=declared).issue(active, recovers=False)
    assert (found[0] if found else None) == issue
    assert fence(users, declared=declared).issue(active, recovers=True) is None
    seen = observe(known(active=active), fence=fence(users, declared=declared))
    assert bool(status.problems(seen)) == (issue is not None)
    assert status.document(seen)["fence"]["declared"] == declared
    ended, at_work = Kept(entry(finished=None, drain={})), Kept(entry(finished=None, stop={}))
    for journal, issue_found in ((ended, issue is not None), (at_work, False)):
        assert bool(replace(seen, recovery=of_journal(journal, "stg")).fence_issue) == issue_found


def test_the_fence_is_read_from_the_users_of_the_source(source: Source) -> None:
    pair = of(source)
    found = fencing.observe(pair, source.environment)
    assert found == fence({APPLICATION: True})
    source.fence().put_up(FENCE)
    found = fencing.observe(pair, source.environment)
    assert found == fence({APPLICATION: False}, declared=True)
    assert found.in_force


def test_what_cannot_be_fenced_or_read_is_unknown(source: Source) -> None:
    assert fencing.observe(of(source, sourceStack=None), source.environment) is None
    assert fencing.observe(of(source, active=None), source.environment) is None
    assert fencing.observe(of(source), {"KUBECONFIG": "/does/not/exist"}) is None


@pytest.mark.parametrize("changed", [{"active": "target"}, {"failedOver": {"topics": ["items"]}}], ids=str)
def test_a_fence_that_must_be_up_and_cannot_be_read_is_unknown_and_not_well(
    source: Source, changed: dict[str, Any]
) -> None:
    pair = of(source, **changed)
    found = fencing.observe(pair, {"KUBECONFIG": "/does/not/exist"})
    assert found is not None
    assert (found.in_force, found.document()["declared"]) == (None, None)
    seen = observe(pair, fence=found)
    assert status.health(seen) == status.UNKNOWN
    assert "access must be given by KUBECONFIG" in status.document(seen)["unknown"]["fence"]
    assert "fence" not in status.unknown(observe(pair, source="is down", fence=found))
    without_file = fencing.observe(of(source, sourceStack="prod", **changed), source.environment)
    assert without_file is not None
    assert "Pulumi.prod.yaml" in status.unknown(observe(pair, fence=without_file))["fence"]
    assert fencing.unread(pair, None) is None
    assert fencing.unread(of(source), "no rights") is None


@pytest.mark.parametrize(
    ("journal", "fenced"),
    [
        (FAILED_OVER, True),
        (entry(stop={}), False),
        ({**FAILED_OVER, "finishedAt": None}, False),
        ({**FAILED_OVER, "command": "failback"}, False),
        ({**entry("failback", None, survey={}), "before": FAILED_OVER}, True),
        ({**entry("failback", None, survey={}, realign={}), "before": FAILED_OVER}, False),
        (None, False),
    ],
    ids=["failed over", "without a fence", "under way", "failed back", "a failback begun", "a failback", "never"],
)
def test_a_declared_fence_is_carried_out_if_nothing_else_is_under_way(
    source: Source, monkeypatch: pytest.MonkeyPatch, journal: Any, fenced: bool
) -> None:
    monkeypatch.setattr(Journal, "load", lambda *_, **__: Kept(journal))
    fencing.carry_out_declared(of(source, active="target"), source.environment, print)
    assert source.specs() == source.rendered(fenced=fenced)
    assert FENCING in FAILED_OVER["steps"]


def test_a_process_that_wakes_up_after_a_failback_fences_nothing(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([FAILED_OVER, {**entry("failback", survey={}), "before": FAILED_OVER}])
    monkeypatch.setattr(Journal, "load", lambda *_, **__: Kept(next(found)))
    with pytest.raises(OpsError, match="has gone on since"):
        fencing.carry_out_declared(of(source, active="target"), source.environment, print)
    assert (source.specs(), source.declared) == (source.rendered(fenced=False), None)


def test_watching_carries_it_out_and_survives_a_source_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[MirrorContext]()

    def away(pair: MirrorContext, *_: Any) -> list[str]:
        asked.append(pair)
        raise OpsError("API server is away")

    def seen(active: str, **users: bool) -> MirrorSnapshot:
        return observe(known(active=active), fence=fence(users))

    monkeypatch.setattr(fencing, "carry_out_declared", away)
    for each in (seen("source", app=True), seen("target", app=False), observe(fence=None), seen("source", app=False)):
        status_command._fence(each)
    assert not asked
    status_command._fence(seen("target", app=True))
    assert len(asked) == 1


@pytest.mark.parametrize("fenced", [True, False])
def test_a_topic_that_is_failed_over_alone_is_to_be_fenced_although_the_source_is_active(
    source: Source, fenced: bool
) -> None:
    split = of(
        source,
        mirror={"topics_exclude": ["items"], "failed_over": ["items"]},
        failedOver={"topics": ["items"], "groups": ["orders"]},
    )
    if fenced:
        source.fence().put_up(source.fence().of(["items"], []))
    found = fencing.observe(split, source.environment)
    assert found is not None
    assert (found.refused, found.declared) == ([], False), "the rest is not fenced"
    issue = found.issue("source", recovers=False)
    if fenced:
        assert issue is None
        return
    assert issue is not None
    assert (issue[0], APPLICATION in issue[1]) == (TAKES_WRITES, True)
    assert found.document()["mayWriteFailedOver"] == [APPLICATION]
