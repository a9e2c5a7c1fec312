"""When a failback fences its target, when that is undone, who is named, and how it is reported while it stands."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka import topic_writers
from kafka.topic_writers import BrokerRights, TopicWriters
from ops.errors import OpsError
from ops.recovery import draining, target_fence
from ops.recovery.failback import COPYING, SWITCHING, Failback
from ops.recovery.journal import Journal
from ops.recovery.operation import Step, carry_out, of_journal
from ops.recovery.target_fence import FENCING, STEP, TargetFence, TargetFenceStatus, TargetFencing
from ops.status import document as status
from tests.support.applied_objects import MANAGER
from tests.support.failback_sides import AT_REST, LAST, NEW, Sides, work
from tests.support.fenced_source import AT_TARGET, Target, fenced_target
from tests.support.recovery_pair import Kept, entry, known, observe
from tests.support.recovery_project import Project

TOPICS = ["items", "items.inventory", "store.inventory"]
ROGUE, OTHER = "User:rogue", "User:other"


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(monkeypatch)


@pytest.fixture
def target(tmp_path: Path, sides: Sides, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    """A target at which everybody is refused once it is fenced."""
    allow(monkeypatch)
    with fenced_target(tmp_path) as found:
        yield found


def allow(monkeypatch: pytest.MonkeyPatch, **principals: str) -> None:
    """Let these principals write in spite of the fence."""
    found = TopicWriters(principals={f"User:{name}": why for name, why in principals.items()})
    monkeypatch.setattr(TargetFence, "writers", lambda *_: found)


def begun(target: Target, **steps: Any) -> Failback:
    """A failback that has copied everything, and whose journal names its steps."""
    done = work(target_fence=target.fence(), copy={}, **steps)
    done.journal.entry = {**(done.journal.entry or {}), "of": [step.name for step in done.steps()]}
    return done


def run(done: Failback, failing: str, error: BaseException) -> None:
    """Carry out the steps from the fence on up to one that ends with an error, in front of whatever it would do."""

    def fail() -> Any:
        raise error

    names = [step.name for step in done.steps()]
    steps = [
        Step(step.name, step.words, fail if step.name == failing else step.action if step.name == STEP else dict)
        for step in done.steps()[names.index(STEP) : names.index(failing) + 1]
    ]
    with pytest.raises(type(error)):
        carry_out(steps, done.journal, done.say, done.lift_fence)


def test_the_target_is_fenced_right_before_it_is_drained(target: Target) -> None:
    steps = work(target_fence=target.fence()).steps()
    at = [step.name for step in steps].index(STEP)
    assert [step.name for step in steps[at - 1 : at + 2]] == ["copy", STEP, "drain"]
    assert steps[at].words == "take the applications' right to write at rt-inventory-stg away"
    assert STEP not in [step.name for step in work().steps()]


def test_it_is_what_an_up_renders_while_the_source_is_active_by_pulumis_own_manager(target: Target) -> None:
    assert not target.is_fenced
    assert target.fence().may_write() == {AT_TARGET: True}
    assert target.fence().put_up() == [AT_TARGET]
    assert target.is_fenced
    assert target.fence().may_write() == {AT_TARGET: False}
    assert target.said == [f"  rt-inventory-stg: {AT_TARGET} may not write the mirrored topics any more"]
    target.fence().take_down()
    assert not target.is_fenced
    assert set(target.server.managers) == {MANAGER}


def test_it_is_in_the_journal_before_anything_is_changed(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    done, noted = begun(target), list[Any]()
    monkeypatch.setattr(TargetFence, "put_up", lambda _: noted.append(dict(done.journal.steps)) or [AT_TARGET])
    facts = done.fence_target()
    assert (noted[0][FENCING]["topics"], noted[0][FENCING]["denied"]) == (TOPICS, [])
    assert facts == {"topics": TOPICS, "users": [AT_TARGET], "denied": [], "mayWrite": {}, "unknown": []}


@pytest.mark.parametrize("failing", ["drain", "prove", "stop", "offsets", "forward"])
@pytest.mark.parametrize("error", [OpsError("refused"), KeyboardInterrupt(), SystemExit(143)], ids=repr)
def test_whatever_ends_a_failback_before_its_switch_takes_the_fence_down(
    target: Target, failing: str, error: BaseException
) -> None:
    done = begun(target)
    run(done, failing, error)
    assert not target.is_fenced
    assert not {STEP, FENCING} & set(done.journal.steps)
    found = of_journal(done.journal, "stg")
    assert found is not None
    assert (found.step, done.journal.may_have_changed) == (failing, True)


def test_it_stays_once_the_switch_is_recorded(target: Target, sides: Sides) -> None:
    done = work(target_fence=target.fence(), **LAST)
    done.journal.done(STEP, done.fence_target())
    sides.at_up = lambda: (_ for _ in ()).throw(OpsError("no bucket"))
    with pytest.raises(OpsError, match="no bucket"):
        done.switch()
    done.lift_fence()
    assert target.is_fenced
    assert done.fence_target() == {}, "a command that goes on from there has nothing to fence"


def test_a_killed_command_is_named_and_the_next_one_goes_on_or_takes_it_down(target: Target) -> None:
    killed = begun(target)
    killed.journal.start(STEP)
    killed.fence_target()  # and killed before it could be noted
    found = of_journal(killed.journal, "stg")
    assert found is not None
    assert f"failback interrupted at 7/14 ({STEP})" in (found.problem or "")
    again = Failback(killed.pair, killed.options, killed.pulumi, killed.journal, print, target_fence=target.fence())
    run(again, "drain", OpsError("refused"))
    assert not target.is_fenced


class Killed(BaseException):
    """Nothing more is done, as after SIGKILL."""


@pytest.mark.parametrize("last", [(TargetFencing, "remove_denials"), (Journal, "undo")], ids=str)
def test_a_command_killed_while_it_takes_the_fence_down_is_followed_by_one_that_fences_again(
    target: Target, monkeypatch: pytest.MonkeyPatch, last: tuple[type, str]
) -> None:
    done = begun(target)
    done.journal.done(STEP, done.fence_target())

    def kill(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as during:
        during.setattr(*last, kill)
        with pytest.raises(Killed):
            done.lift_fence()
    assert not target.is_fenced
    assert STEP not in done.journal.steps
    assert done.fence_target()["users"] == [AT_TARGET]
    assert target.is_fenced


@pytest.mark.parametrize(("switching", "is_fenced"), [({}, False), ({SWITCHING: {}}, True)], ids=["before", "after"])
def test_what_a_killed_command_has_left_is_taken_down_if_the_next_one_cannot_go_on(
    target: Target, switching: dict[str, Any], is_fenced: bool
) -> None:
    killed = begun(target)
    killed.journal.start(STEP)
    killed.fence_target()
    for name, facts in switching.items():
        killed.journal.done(name, facts)
    killed.target_fencing.lift_left(SWITCHING)
    assert target.is_fenced is is_fenced
    assert (FENCING in killed.journal.steps) is is_fenced
    assert killed.journal.under_way


def test_a_failback_that_cannot_go_on_leaves_no_fence_at_the_target(
    returned: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    lifted: list[str] = []
    monkeypatch.setattr("ops.recovery.target_fence.TargetFencing.lift_left", lambda *given: lifted.append(given[-1]))
    returned.journal, returned.seen = Kept(entry("failback", finished=None, copy={})), {"source": "is down."}
    assert "source rt-inventory-dev" in returned.document("failback", "--to", "dev", "--dry-run", code=2)["error"]
    assert lifted == []
    assert "Nothing was" not in returned.document("failback", "--to", "dev", "--yes", code=2)["error"]
    assert lifted == ["switching"]


def test_who_has_lost_the_lease_takes_nothing_down_and_says_so(
    target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    done = begun(target)
    journal = done.journal
    assert isinstance(journal, Kept)
    held = target.fence(journal.require_held)
    done = Failback(done.pair, done.options, done.pulumi, journal, print, target_fence=held)
    done.fence_target()
    journal.lease.lost = True
    done.lift_fence()
    assert target.is_fenced
    assert "The fence at rt-inventory-stg may still be up" in capsys.readouterr().out
    assert FENCING in journal.steps


@pytest.mark.parametrize("stopped", [False, True])
def test_what_was_written_since_it_was_drained_is_drained_again(target: Target, sides: Sides, stopped: bool) -> None:
    steps: dict[str, Any] = {**AT_REST, "prove": {}, **({"stop": {"ends": {}}} if stopped else {})}
    done = begun(target, **steps)
    sides.target.log[NEW] += 1
    done.fence_target()
    assert set(done.journal.steps) == {"copy", FENCING}
    assert sides.declared == ([{"failback": COPYING}, {}] if stopped else [])
    sides.target.log[NEW] -= 1
    unchanged = begun(target, **steps)
    unchanged.fence_target()
    assert set(steps) <= set(unchanged.journal.steps)


def test_who_writes_in_spite_of_the_fence_is_named(
    target: Target, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, rogue="super user")
    asked = list[str]()
    monkeypatch.setattr(draining, "drain", lambda *given: asked.append(given[-1]) or {"ends": {}, "records": 0})
    done = begun(target, **AT_REST)
    done.journal.done(STEP, done.fence_target())
    done.drain()
    assert asked == [f"{ROGUE} (super user)"]
    sides.target.log[NEW] += 1
    with pytest.raises(OpsError, match=rf"grew meanwhile: items\.inventory-0\)\. These may write: {ROGUE} \(super"):
        done.stop()


def test_principals_that_are_no_users_of_the_project_are_denied_until_the_failback_has_ended(
    target: Target, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, rogue="super user", other="a rule for topic items")
    calls = list[Any]()
    monkeypatch.setattr(topic_writers, "deny", lambda of, who, topics: calls.append(("deny", of, *who, *topics)))
    monkeypatch.setattr(
        topic_writers, "remove_denials", lambda of, who, topics: calls.append(("allow", of, *who, *topics))
    )
    for ended in (Failback.lift_fence, Failback.switch):
        done = work(target_fence=target.fence(), **LAST)
        facts = done.fence_target()
        assert (facts["denied"], facts["mayWrite"]) == ([OTHER], {ROGUE: "super user"})
        assert done.journal.steps[FENCING]["denied"] == [OTHER]
        ended(done)
        assert calls == [(what, sides.target, OTHER, *TOPICS) for what in ("deny", "allow")]
        calls.clear()


def test_who_may_write_all_the_same_is_named_without_the_mirrors_of_the_stack(tmp_path: Path) -> None:
    with fenced_target(tmp_path) as target, pytest.MonkeyPatch.context() as patched:
        text = target.file.read_text("utf-8").replace(
            "    version: 4.3.1\n", "    version: 4.3.1\n    superUsers: [boss]\n", 1
        )
        target.file.write_text(text, "utf-8")
        patched.setattr(topic_writers, "read_rights", lambda _: BrokerRights(rules=None, unknown=("no right",)))
        cluster: Any = SimpleNamespace(refusals=SimpleNamespace(user="rt-inv-stg-user"))
        found = target.fence().writers(cluster, TOPICS)
    assert (found.principals, found.unknown) == ({"User:boss": "super user"}, ("no right",))


def test_a_target_that_no_rule_can_fence_is_a_warning(target: Target) -> None:
    def chosen(*changes: tuple[str, str], without: bool = False) -> tuple[bool, list[str]]:
        before = text = target.file.read_text("utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        target.file.write_text(text, "utf-8")
        of = known(active="target"), target.folder, target.environment, print, lambda: None
        found, warnings = target_fence.chosen(*of, without=without)
        target.file.write_text(before, "utf-8")
        return found is not None, warnings

    unfenced, ends = "rt-inventory-stg is not fenced", ": from `drain` on, see to it that nobody writes there"
    assert chosen() == (True, [])
    assert chosen(without=True) == (False, [unfenced + ends])
    opened = ("      active: target", "      standby: open\n      active: target")
    assert chosen(opened) == (False, [f"{unfenced}, because mirror mm2 has standby: open{ends}"])
    found, (why,) = chosen(("topics: [items, ", "topics: ['it[ae]ms', "))
    assert (found, "no rule stands for it[ae]ms of its topics: stop them" in why) == (True, True), why
    found, (why,) = chosen(("target: rt-inv-app-stg-user", "target: rt-inv-stg-user"))
    assert (found, "rt-inv-stg-user serves both the mirror and applications" in why) == (True, True), why
    found, (why,) = chosen(("rt-inventory:cluster", "rt-inventory:clusters"))
    assert (found, "rt-inventory-stg is not fenced, because" in why) == (False, True), why
    target.file.unlink()
    with pytest.raises(OpsError, match=r"Pulumi\.stg\.yaml"):
        target.fence()


def test_a_target_whose_users_are_out_of_reach_is_named_before_anything_is_changed(target: Target) -> None:
    target.fence().require_reachable()
    Path(target.environment["KUBECONFIG"]).unlink()
    with pytest.raises(OpsError, match=r"target rt-inventory-stg: its KafkaUsers must be in reach.* --without-fence"):
        target.fence().require_reachable()


def of(target: Target, **changed: Any) -> Any:
    return replace(known(**{"active": "target", **changed}), project=target.folder)


def test_it_is_reported_while_it_stands(target: Target) -> None:
    pair = of(target)
    found = target_fence.observe(pair, target.environment)
    assert found == TargetFenceStatus(cluster="rt-inventory-stg", users={AT_TARGET: True})
    assert (found.in_force, found.evidence) == (False, None)
    target.fence().put_up()
    found = target_fence.observe(pair, target.environment)
    assert found is not None
    assert (found.in_force, found.refused) == (True, [AT_TARGET])
    seen = observe(pair, target_fence=found)
    (problem,) = status.problems(seen)
    assert f"{AT_TARGET} may not write the mirrored topics at rt-inventory-stg: a failback has fenced it" in problem
    assert status.document(seen)["targetFence"]["inForce"]


def test_where_it_cannot_be_read_it_is_unknown_and_not_well(target: Target) -> None:
    pair = of(target)
    assert target_fence.observe(of(target, active="source"), target.environment) is None
    for found in (target_fence.observe(pair, {"KUBECONFIG": "/does/not/exist"}), target_fence.unread(pair, "late")):
        assert found is not None
        assert (found.in_force, found.evidence) == (None, None)
        seen = observe(pair, target_fence=found)
        assert (status.health(seen), "target fence" in status.unknown(seen)) == (status.UNKNOWN, True)
    assert target_fence.unread(pair, None) is None
    target.file.unlink()
    without_file = target_fence.observe(pair, target.environment)
    assert without_file is not None
    assert "Pulumi.stg.yaml" in (without_file.unread or "")
