"""When a failover fences its source, when that is undone, and what a failback does with the fence."""

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from contract.verification_request import ClusterConfig
from kafka import topic_writers
from kafka.errors import ClusterError, Refusals
from kafka.topic_writers import TopicWriters
from ops.errors import OpsError
from ops.recovery import draining, fence, mirror_context
from ops.recovery.failover import PLANNED, UNPLANNED, Failover
from ops.recovery.fence import FENCING, SourceFence
from ops.recovery.fencing import Fencing
from ops.recovery.journal import Journal
from ops.recovery.operation import Step, carry_out, of_journal
from tests.support.failover_sides import DRAINED, ITEMS, OFFSETS, STOPPED, Sides, work
from tests.support.fenced_source import APPLICATION, FENCE, MIRROR, TOPICS, WRITTEN, Source, fenced_source
from tests.support.recovery_pair import Kept, entry, known, lag

NAMES = ["fence", "drain", "prove", "stop", "offsets", "switch", "confirm"]
ROGUE, OTHER = "User:rogue", "User:other"


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


@pytest.fixture
def source(tmp_path: Path, sides: Sides, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """A source at which everybody is refused."""
    allow(monkeypatch)
    with fenced_source(tmp_path) as found:
        yield found


def allow(monkeypatch: pytest.MonkeyPatch, unknown: tuple[str, ...] = (), **principals: str) -> None:
    """Let these principals write in spite of the fence."""
    found = TopicWriters(principals={f"User:{name}": why for name, why in principals.items()}, unknown=unknown)
    monkeypatch.setattr(SourceFence, "writers", lambda *_: found)


def fenced(source: Source) -> bool:
    """Whether the source is fenced; the stack file and the users must agree."""
    is_fenced = source.declared is not None
    assert source.specs() == source.rendered(fenced=is_fenced)
    return is_fenced


def begun(source: Source, **steps: Any) -> Failover:
    """A planned failover whose journal names its steps."""
    done = work(fence=source.fence(), **steps)
    done.journal.entry = {**(done.journal.entry or {}), "of": NAMES}
    return done


def run(done: Failover, failing: str, error: BaseException) -> None:
    """Carry out the steps up to one that ends with an error, in front of whatever it would do."""

    def fail() -> Any:
        raise error

    steps = [
        type(step)(step.name, step.words, fail if step.name == failing else step.action)
        for step in done.steps()
        if step.name in NAMES[: NAMES.index(failing) + 1]
    ]
    with pytest.raises(type(error)):
        carry_out(steps, done.journal, done.say, done.lift_fence)


def test_the_fence_is_the_first_step_of_a_planned_failover_only(source: Source) -> None:
    assert [step.name for step in work(fence=source.fence()).steps()] == NAMES
    assert work().steps()[0].name == "drain"
    assert work(UNPLANNED, fence=source.fence()).steps()[0].name == "measure"


def test_what_is_fenced_is_in_the_journal_before_anything_is_changed(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, noted = work(fence=source.fence()), list[Any]()
    monkeypatch.setattr(SourceFence, "put_up", lambda *_: noted.append(dict(done.journal.steps)) or [APPLICATION])
    facts = done.fence()
    assert fence.made(noted[0][FENCING]) == FENCE
    assert facts == {**WRITTEN, "users": [APPLICATION], "denied": [], "mayWrite": {}, "unknown": []}


@pytest.mark.parametrize("failing", ["drain", "prove", "stop", "offsets"])
@pytest.mark.parametrize("error", [OpsError("refused"), KeyboardInterrupt(), SystemExit(143)], ids=repr)
def test_whatever_ends_a_failover_before_its_switch_takes_the_fence_down(
    source: Source, failing: str, error: BaseException
) -> None:
    done = begun(source)
    run(done, failing, error)
    assert not fenced(source)
    assert not {"fence", FENCING} & set(done.journal.steps)
    found = of_journal(done.journal, "stg")
    assert found is not None
    assert done.journal.may_have_changed == (failing in ("stop", "offsets"))
    assert (found.step, found.number) == (failing, NAMES.index(failing) + 1)


def test_a_fence_stays_once_the_switch_is_recorded(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    done = work(fence=source.fence(), **DRAINED, **STOPPED, offsets=OFFSETS)
    done.journal.done("fence", done.fence())
    monkeypatch.setattr(type(done.changes), "up", lambda *_: (_ for _ in ()).throw(OpsError("no bucket")))
    with pytest.raises(OpsError, match="no bucket"):
        done.switch()
    done.lift_fence()
    assert fenced(source)


def test_a_killed_command_goes_on_with_what_it_has_fenced_or_takes_it_down(source: Source) -> None:
    killed = begun(source)
    killed.journal.start("fence")
    killed.fence()  # and killed before it could be noted
    assert (killed.journal.may_have_changed, fenced(source)) == (True, True)
    found = of_journal(killed.journal, "stg")
    assert found is not None
    assert "interrupted at 1/7 (fence)" in (found.problem or "")
    again = Failover(known(), killed.options, killed.changes, killed.journal, print, source.fence())
    run(again, "drain", OpsError("refused"))
    assert not fenced(source)


def test_a_fence_that_cannot_be_taken_down_is_reported_and_stays_in_the_journal(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, done = list[str](), work(fence=source.fence())
    done = Failover(done.pair, done.options, done.changes, done.journal, said.append, source.fence())
    monkeypatch.setattr(SourceFence, "take_down", lambda *_: (_ for _ in ()).throw(OpsError("API server is away")))
    run(done, "drain", OpsError("refused"))
    assert any("may still be up" in line and "API server is away" in line for line in said)
    assert not [line for line in said if "is taken down" in line]
    assert FENCING in done.journal.steps
    assert "fence" not in done.journal.steps, "a part of it may be down"
    assert done.journal.may_have_changed


class Killed(BaseException):
    """Nothing more is done, as after SIGKILL."""


@pytest.mark.parametrize("last", [(SourceFence, "_write"), (Fencing, "_allow_again"), (Journal, "undo")])
def test_a_command_killed_while_it_takes_the_fence_down_is_followed_by_one_that_fences_again(
    source: Source, monkeypatch: pytest.MonkeyPatch, last: tuple[type, str]
) -> None:
    done = begun(source)
    done.journal.done("fence", done.fence())

    def kill(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as during:
        during.setattr(*last, kill)
        with pytest.raises(Killed):
            done.lift_fence()
    assert source.specs() == source.rendered(fenced=False)
    assert done.journal.may_have_changed, "status reports it"
    again = Failover(known(), done.options, done.changes, done.journal, print, source.fence())
    seen = list[bool]()
    drain = Step("drain", "", lambda: {"fenced": seen.append(fenced(source))})
    carry_out([again.steps()[0], drain], again.journal, again.say)
    assert seen == [True]


def test_who_has_lost_the_lease_takes_nothing_down(source: Source) -> None:
    journal = Kept(entry(finished=None))
    at_source, _ = fence.at_source(known(), source.folder, source.environment, print, journal.require_held)
    done = Failover(known(), work().options, work().changes, journal, print, at_source)
    done.fence()
    journal.lease.lost = True
    done.lift_fence()
    assert fenced(source)


@pytest.mark.parametrize("stopped", [False, True])
def test_what_was_written_since_it_was_drained_is_drained_again(source: Source, sides: Sides, stopped: bool) -> None:
    steps: dict[str, Any] = {**DRAINED, "prove": {}, **(STOPPED if stopped else {})}
    done = work(fence=source.fence(), **steps)
    sides.source.log[ITEMS] += 1
    done.fence()
    assert not {"drain", "prove", "stop", "offsets"} & set(done.journal.steps)
    assert sides.declared == ([{"state": "running"}] if stopped else [])
    assert sides.ups == ([None] if stopped else [])
    unchanged = work(fence=source.fence(), **{**steps, "drain": {"ends": {"items-0": 11, "store.inventory-1": 5}}})
    unchanged.fence()
    assert "drain" in unchanged.journal.steps


def test_who_writes_in_spite_of_the_fence_is_named(
    source: Source, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, rogue="super user")
    done = work(fence=source.fence())
    monkeypatch.setattr(draining, "_measured", lambda _: lag(0))

    def write() -> None:
        sides.source.log[ITEMS] += 1

    sides.source.at = write
    with pytest.raises(OpsError, match=r"must stop writing \(still written within 30 s: items-0\)") as caught:
        carry_out(done.steps(), done.journal, done.say, done.lift_fence)
    assert f"These may write: {ROGUE} (super user)." in str(caught.value)
    assert not fenced(source)


def test_the_refusal_before_the_switch_names_them_too(
    source: Source, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, rogue="super user")
    done = work(fence=source.fence(), **DRAINED, **STOPPED, offsets=OFFSETS)
    done.journal.done("fence", done.fence())
    sides.source.log[ITEMS] += 1
    with pytest.raises(OpsError, match=rf"grew meanwhile: items-0\)\. These may write: {ROGUE}"):
        done.switch()


def test_principals_that_are_no_users_of_the_project_are_denied_by_rules_which_go_with_the_fence(
    source: Source, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, rogue="super user", other="a rule for topic items")
    calls = list[Any]()
    monkeypatch.setattr(topic_writers, "deny", lambda _, who, topics: calls.append(("deny", *who, *topics)))
    monkeypatch.setattr(topic_writers, "remove_denials", lambda _, who, topics: calls.append(("allow", *who, *topics)))
    done = work(fence=source.fence())
    facts = done.fence()
    assert (facts["denied"], facts["mayWrite"]) == ([OTHER], {ROGUE: "super user"})
    assert done.journal.steps[FENCING]["denied"] == [OTHER]
    done.lift_fence()
    assert calls == [(what, OTHER, *FENCE.topics) for what in ("deny", "allow")]


def test_a_principal_that_cannot_be_denied_is_named(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, other="a rule for topic items")
    monkeypatch.setattr(topic_writers, "deny", lambda *_: "Cluster authorization failed")
    done = work(fence=source.fence())
    facts = done.fence()
    assert (facts["denied"], list(facts["mayWrite"])) == ([], [OTHER])
    assert done.journal.steps[FENCING]["denied"] == []


def test_principals_of_whom_nobody_knows_whether_they_are_denied_stay_noted(
    source: Source, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswered(*_: object) -> None:
        raise ClusterError("no answer")

    allow(monkeypatch, other="a rule for topic items")
    calls = list[Any]()
    monkeypatch.setattr(topic_writers, "deny", unanswered)
    monkeypatch.setattr(topic_writers, "remove_denials", lambda _, who, __: calls.append(who))
    done = work(fence=source.fence())
    facts = done.fence()
    assert (facts["denied"], list(facts["mayWrite"])) == ([OTHER], [OTHER])
    done.lift_fence()
    assert calls == [[OTHER]]


@pytest.mark.parametrize(
    ("code", "may_be_there"), [(KafkaError.CLUSTER_AUTHORIZATION_FAILED, False), (KafkaError._TIMED_OUT, True)]
)
def test_rules_of_which_no_answer_came_may_be_there(code: int, may_be_there: bool) -> None:
    answer = Future[None]()
    answer.set_exception(KafkaException(KafkaError(code)))
    side = ClusterConfig(role="source", alias="es-src", client_config={"sasl.username": "mirror"})
    admin = SimpleNamespace(create_acls=lambda rules, request_timeout: dict.fromkeys(rules, answer))
    cluster: Any = SimpleNamespace(admin=admin, refusals=Refusals(side))
    if may_be_there:
        with pytest.raises(ClusterError, match="cannot deny principals to write"):
            topic_writers.deny(cluster, [OTHER], ["items"])
    else:
        assert topic_writers.deny(cluster, [OTHER], ["items"]) == KafkaError(code).str()


def unplanned(source: Source, monkeypatch: pytest.MonkeyPatch) -> Failover:
    monkeypatch.setattr(mirror_context, "load", lambda *_: known(active="target", state="stopped"))
    return work(UNPLANNED, fence=source.fence(), stop={**STOPPED["stop"], "copied": None}, offsets=OFFSETS)


def test_an_unplanned_failover_declares_the_fence_at_its_switch_and_carries_it_out_afterwards(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = unplanned(source, monkeypatch)
    done.switch()
    assert source.declared == WRITTEN
    assert source.specs() == source.rendered(fenced=False)
    assert done.confirm()["pendingFence"] is None
    assert fenced(source)


def test_an_unplanned_failover_goes_on_if_the_source_cannot_be_fenced(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = unplanned(source, monkeypatch)
    monkeypatch.setattr(SourceFence, "put_up", lambda *_: (_ for _ in ()).throw(OpsError("API server is away")))
    done.switch()
    assert done.confirm()["pendingFence"] == "API server is away"
    assert (source.declared, FENCING in done.journal.steps) == (WRITTEN, True)
    monkeypatch.setattr(SourceFence, "declare", lambda *_: (_ for _ in ()).throw(OpsError("not writable")))
    done.switch()


def test_an_unplanned_failover_that_ends_takes_nothing_down(source: Source) -> None:
    planned = work(PLANNED, fence=source.fence())
    planned.fence()
    taken_over = Failover(known(), work(UNPLANNED).options, planned.changes, planned.journal, print, source.fence())
    taken_over.lift_fence()
    assert fenced(source)


def failing_back(source: Source, journal: Kept) -> Fencing:
    return Fencing(pair=known(active="target"), at_source=source.fence(), journal=journal, say=lambda _: None)


def test_a_failback_keeps_the_fence_of_the_failover_until_its_switch(source: Source, sides: Sides) -> None:
    before = entry(stop={"copied": {}}, fencing={**WRITTEN, "denied": []})
    journal = Kept(before)
    journal.begin("failback", {"to": "dev"}, steps=["fence", "survey"])
    back = failing_back(source, journal)
    journal.start("fence")
    journal.done("fence", back.put_up(sides.source))
    assert fenced(source)
    assert not journal.may_have_changed, "nothing but what the failover has declared"
    back.open_for_applications()
    assert source.specs()[APPLICATION] == source.rendered(fenced=False)[APPLICATION]
    assert source.specs()[MIRROR] == source.rendered(fenced=True)[MIRROR]
    back.take_down()
    assert not fenced(source)


def test_a_failback_after_a_failover_without_a_fence_puts_one_up(source: Source, sides: Sides) -> None:
    journal = Kept(entry(stop={"copied": {}}))
    journal.begin("failback", {"to": "dev"}, steps=["fence"])
    failing_back(source, journal).put_up(sides.source)
    assert fenced(source)


def test_a_source_that_does_not_answer_is_an_error_of_the_fence(
    source: Source, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides.source, "connect", lambda *_: (_ for _ in ()).throw(ClusterError("is down")))
    with pytest.raises(ClusterError, match="is down"):
        work(fence=source.fence()).fence()
    assert not fenced(source)


def test_a_failover_fences_what_the_source_has_now_whatever_an_earlier_operation_has_fenced(
    source: Source, sides: Sides
) -> None:
    for command in ("failback", "failover"):
        done = begun(source)
        before = {**entry(command), "steps": {FENCING: {"topics": ["items"]}}}
        done.journal.entry = {**(done.journal.entry or {}), "before": before}
        done.fence()
        assert set(done.journal.steps[FENCING]["topics"]) == set(TOPICS)
        done.lift_fence()
