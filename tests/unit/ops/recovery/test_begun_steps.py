"""What the journal knows of steps that were begun and not done: they may have changed something."""

import pytest

from ops.errors import OpsError
from ops.recovery.operation import of_journal
from tests.support.recovery_pair import Kept

EXACT, PLAIN = {"path": "planned", "exact": True}, {"path": "planned", "exact": False}


def ended(journal: Kept) -> Kept:
    """The journal as the next command reads it."""
    assert journal.entry is not None
    return Kept({**journal.entry})


def begun(*steps: str) -> Kept:
    """A failover that has done these steps but the last, in which it ended."""
    journal = Kept()
    journal.begin("failover", EXACT, steps=["drain", "prove", "stop", "offsets", "switch", "confirm"])
    for step in steps:
        journal.start(step)
        if step != steps[-1]:
            journal.done(step, {})
    return ended(journal)


def test_a_failover_that_ended_in_a_step_that_changes_something_is_not_begun_anew() -> None:
    journal = begun("drain", "prove", "stop")
    assert journal.may_have_changed
    assert not journal.begins("failback")
    before = journal.entry
    with pytest.raises(OpsError, match="must be finished as it began: exact True"):
        journal.begin("failover", PLAIN)
    assert journal.entry == before
    found = of_journal(journal, "stg")
    assert found is not None
    assert found.state == "interrupted"


def test_a_failover_that_was_sent_back_to_its_first_step_has_stopped_the_mirror_all_the_same() -> None:
    journal = begun("drain", "prove", "stop")
    journal.forget("drain", "prove")
    journal.start("drain")
    again = ended(journal)
    assert again.may_have_changed
    found = of_journal(again, "stg")
    assert found is not None
    assert found.state == "interrupted"
    with pytest.raises(OpsError, match="must be finished as it began"):
        again.begin("failover", PLAIN)


def test_a_failover_that_ended_in_a_step_that_changes_nothing_is_begun_anew() -> None:
    journal = begun("drain", "prove")
    assert not journal.may_have_changed
    journal.begin("failover", PLAIN)
    assert journal.entry is not None
    assert (journal.entry["options"], journal.entry["steps"], journal.entry["begun"]) == (PLAIN, {}, [])


def test_an_operation_whose_end_could_not_be_written_has_not_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_answer() -> None:
        raise OpsError("no answer")

    journal = begun("drain")
    monkeypatch.setattr(journal, "_write", no_answer)
    with pytest.raises(OpsError, match="no answer"):
        journal.finish()
    assert journal.under_way


@pytest.mark.parametrize("interrupted", [OpsError("no answer"), KeyboardInterrupt()])
def test_a_step_that_could_not_be_noted_is_not_done(
    monkeypatch: pytest.MonkeyPatch, interrupted: BaseException
) -> None:
    """A fence is taken down unless the switch is noted: memory must not know more than the cluster."""

    def no_answer() -> None:
        raise interrupted

    journal = begun("drain")
    before = dict(journal.steps)
    with monkeypatch.context() as patched:
        patched.setattr(journal, "_write", no_answer)
        with pytest.raises(type(interrupted)):
            journal.done("switching", {})
    assert journal.steps == before
    journal.done("switching", {})
    assert "switching" in journal.steps
