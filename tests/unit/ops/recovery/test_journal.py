"""The journal of an operation: begun, resumed, refused to others, and what it does with broken content."""

import getpass
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.recovery import kubernetes_access, lease
from ops.recovery.journal import Journal
from ops.recovery.journal_store import KEY, JournalStore
from ops.recovery.lease import Lease
from tests.support.kept_objects import KeptObjects
from tests.support.mirror_api_server import serving

NAME = "mm2-failover"
OPTIONS = {"path": "planned", "exact": True}


ENTRY = {
    "version": 1,
    "command": "failover",
    "options": {},
    "startedAt": "now",
    "finishedAt": None,
    "steps": {},
    "before": None,
}


@pytest.fixture
def server() -> KeptObjects:
    return KeptObjects()


@pytest.fixture
def environment(server: KeptObjects, tmp_path: Path) -> Iterator[dict[str, str]]:
    with serving(server, tmp_path) as found:
        yield found


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process that began an operation has ended since, on this machine."""
    monkeypatch.setattr(lease.Holder, "has_ended", True)


def stored(server: KeptObjects) -> dict[str, Any]:
    """The journal as the ConfigMap holds it."""
    found: dict[str, Any] = json.loads(server.config_map(NAME)["data"][KEY])
    return found


def load(environment: dict[str, str]) -> Journal:
    return Journal.load("there", "mm2", environment)


def begun(environment: dict[str, str]) -> Journal:
    journal = load(environment)
    journal.begin("failover", OPTIONS)
    return journal


def failed_over(environment: dict[str, str]) -> None:
    journal = begun(environment)
    with journal.held():
        journal.done("drain", {"records": 7})
        journal.done("stop", {"boundary": {"items-0": 10}})
        journal.done("switch", {})
        journal.finish()


def test_a_mirror_that_was_never_failed_over_has_an_empty_journal(environment: dict[str, str]) -> None:
    journal = load(environment)
    assert (journal.entry, journal.under_way, dict(journal.steps)) == (None, False, {})


def test_what_is_begun_is_written_before_it_counts(server: KeptObjects, environment: dict[str, str]) -> None:
    begun(environment)
    assert (stored(server)["command"], stored(server)["options"], stored(server)["finishedAt"]) == (
        "failover",
        OPTIONS,
        None,
    )
    assert load(environment).under_way


@pytest.mark.usefixtures("ended")
def test_whoever_runs_the_command_next_goes_on_after_the_last_step(environment: dict[str, str]) -> None:
    begun(environment).done("drain", {"records": 7})
    other = load(environment)
    other.begin("failover", OPTIONS)
    assert other.steps["drain"]["records"] == 7
    other.done("prove", {})
    assert list(load(environment).steps) == ["drain", "prove"]


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("failback", {"to": "dev"}, "command 'failover' (got 'failback')"),
        ("failover", {"path": "unplanned", "exact": True}, "path 'planned' (got 'unplanned')"),
        ("failover", {"path": "planned", "exact": False}, "exact True (got False)"),
    ],
)
@pytest.mark.usefixtures("ended")
def test_another_operation_is_refused_while_one_is_under_way(
    server: KeptObjects, environment: dict[str, str], command: str, options: dict[str, Any], message: str
) -> None:
    begun(environment).done("stop", {})
    before = stored(server)
    with pytest.raises(OpsError, match="is not finished; it must be finished as it began") as caught:
        load(environment).begin(command, options)
    assert message in str(caught.value)
    assert "Do not delete the ConfigMap" in str(caught.value)
    assert stored(server) == before


@pytest.mark.parametrize("done", [(), ("drain",), ("drain", "prove")], ids=str)
@pytest.mark.parametrize(
    ("command", "options"), [("failback", {"to": "dev"}), ("failover", {"path": "planned", "exact": False})]
)
@pytest.mark.usefixtures("ended")
def test_what_has_changed_nothing_yet_is_begun_anew_as_it_is_asked_for_now(
    server: KeptObjects, environment: dict[str, str], done: tuple[str, ...], command: str, options: dict[str, Any]
) -> None:
    failed_over(environment)
    journal = load(environment)
    journal.begin("failover", OPTIONS)
    for step in done:
        journal.done(step, {})
    load(environment).begin(command, options)
    assert (stored(server)["command"], stored(server)["options"], stored(server)["steps"]) == (command, options, {})
    assert stored(server)["before"]["steps"]["stop"]["boundary"] == {"items-0": 10}


@pytest.mark.parametrize(
    ("done", "command", "begins"),
    [
        ((), "failback", True),
        (("drain",), "failback", True),
        (("drain", "stop"), "failback", False),
        ((), "failover", False),
        (("stop",), "failover", False),
    ],
)
def test_who_would_begin_something_has_to_be_judged(
    environment: dict[str, str], done: tuple[str, ...], command: str, begins: bool
) -> None:
    journal = load(environment)
    assert journal.begins(command)
    journal.begin("failover", OPTIONS)
    for step in done:
        journal.done(step, {})
    assert journal.begins(command) == begins
    journal.finish()
    assert journal.begins(command)


@pytest.mark.usefixtures("ended")
def test_a_failover_goes_on_without_the_source_that_is_given_up(
    server: KeptObjects, environment: dict[str, str]
) -> None:
    journal = begun(environment)
    journal.done("stop", {"boundary": {}})
    started = stored(server)["startedAt"]
    unplanned = {"path": "unplanned", "exact": False}
    load(environment).begin("failover", unplanned, gives_up=True)
    assert (stored(server)["options"], list(stored(server)["steps"])) == (unplanned, ["stop"])
    assert stored(server)["startedAt"] == started
    with pytest.raises(OpsError, match="must be finished as it began: path 'unplanned'"):
        load(environment).begin("failover", OPTIONS)


@pytest.mark.usefixtures("ended")
def test_only_an_operation_of_the_same_command_is_given_up(environment: dict[str, str]) -> None:
    begun(environment).done("stop", {})
    with pytest.raises(OpsError, match=r"a failover since .* is not finished"):
        load(environment).begin("failback", {"to": "dev"}, gives_up=True)


@pytest.mark.parametrize("gives_up", [False, True])
@pytest.mark.usefixtures("ended")
def test_whoever_goes_on_is_the_only_one_who_does(
    server: KeptObjects, environment: dict[str, str], gives_up: bool
) -> None:
    first = begun(environment)
    first.done("stop", {})
    begun_at = stored(server)
    assert "resumedAt" not in begun_at
    load(environment).begin("failover", OPTIONS, gives_up=gives_up)
    with pytest.raises(OpsError, match="must be written by one command at a time"):
        first.done("offsets", {})
    resumed = stored(server)
    assert resumed.pop("resumedAt") >= begun_at["startedAt"]
    assert resumed.pop("by") != begun_at.pop("by")
    assert resumed == begun_at


def test_steps_that_are_forgotten_are_done_again(server: KeptObjects, environment: dict[str, str]) -> None:
    journal = begun(environment)
    for step in ("drain", "prove", "stop"):
        journal.done(step, {})
    journal.forget("drain", "prove", "never done")
    assert (list(stored(server)["steps"]), list(journal.steps)) == (["stop"], ["stop"])
    journal.done("drain", {"records": 8})
    assert stored(server)["steps"]["drain"]["records"] == 8


def test_of_two_that_begin_at_once_the_second_learns_who_is_at_work(environment: dict[str, str]) -> None:
    first, second = load(environment), load(environment)
    first.begin("failover", OPTIONS)
    with pytest.raises(OpsError, match=r"one command at a time \(held by"):
        second.begin("failover", OPTIONS)
    assert not second.begun_here
    first.done("drain", {})


@pytest.mark.usefixtures("ended")
def test_of_two_that_go_on_at_once_the_second_is_refused(environment: dict[str, str]) -> None:
    begun(environment).done("stop", {})
    first, second = load(environment), load(environment)
    first.begin("failover", OPTIONS)
    with pytest.raises(OpsError, match="somebody else has changed it"):
        second.begin("failover", OPTIONS)


def test_a_second_command_changes_nothing(server: KeptObjects, environment: dict[str, str]) -> None:
    first = begun(environment)
    before = stored(server)
    with pytest.raises(OpsError, match="must be carried out by one command at a time"):
        load(environment).require_free()
    for command, options in (("failover", OPTIONS), ("failback", {"to": "dev"})):
        with pytest.raises(OpsError, match="must be carried out by one command at a time"):
            load(environment).begin(command, options, gives_up=True)
    assert stored(server) == before
    first.done("drain", {"records": 7})  # the first one is not ended by it


@pytest.mark.parametrize("error", [OpsError("it failed"), KeyboardInterrupt(), SystemExit(143)])
def test_a_command_that_ends_early_lets_the_next_one_go_on(environment: dict[str, str], error: BaseException) -> None:
    first = begun(environment)
    with pytest.raises(type(error)), first.held():
        raise error
    second = load(environment)
    second.require_free()
    second.begin("failover", OPTIONS)
    with pytest.raises(OpsError, match="held by"):
        load(environment).require_free()


def test_a_command_that_could_not_begin_keeps_nobody_waiting(server: KeptObjects, environment: dict[str, str]) -> None:
    server.refused.add(("POST", "configmaps"))
    with pytest.raises(OpsError, match=r"your account in .* must be allowed to do this"):
        begun(environment)
    server.refused.clear()
    begun(environment)


def test_who_is_at_work_is_known_until_the_end(environment: dict[str, str]) -> None:
    first = begun(environment)
    with first.held():
        assert str(load(environment).holder).startswith(f"{getpass.getuser()}@")
        first.finish()
        assert load(environment).holder is None
    assert load(environment).holder is None


def test_nothing_is_written_without_the_lease(server: KeptObjects, environment: dict[str, str]) -> None:
    journal = begun(environment)
    server.objects["leases", NAME]["spec"]["holderIdentity"] = "somebody else"
    server.objects["leases", NAME]["metadata"]["resourceVersion"] = "changed"
    journal._lease._renewed -= lease.DURATION_S
    before = stored(server)
    for change in (
        journal.finish,
        partial(journal.done, "stop", {}),
        partial(journal.start, "stop"),
        journal.require_held,
    ):
        with pytest.raises(OpsError, match="must be held by this command to change anything"):
            change()
    assert stored(server) == before


@pytest.mark.parametrize("lost", [1, 2])
def test_a_write_whose_answer_was_lost_is_no_work_of_somebody_else(
    server: KeptObjects, environment: dict[str, str], lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "FIRST_PAUSE_S", 0.01)
    server.lost_answers = lost  # the Lease's, the journal's
    first = begun(environment)
    server.lost_answers = 1
    first.done("drain", {"records": 7})
    first.done("prove", {})
    assert list(stored(server)["steps"]) == ["drain", "prove"]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {KEY: "not JSON"},
        {KEY: "[]"},
        {KEY: "null"},
        {KEY: '{"version": 1}'},
        {KEY: json.dumps({**ENTRY, "steps": []})},
        {KEY: json.dumps({**ENTRY, "version": 3})},
    ],
    ids=["no key", "no JSON", "a list", "nothing", "half", "steps of another shape", "another version"],
)
def test_content_that_is_no_journal_is_refused(
    server: KeptObjects, environment: dict[str, str], data: dict[str, str]
) -> None:
    server.objects["configmaps", NAME] = {"metadata": {"name": NAME, "resourceVersion": "1"}, "data": data}
    with pytest.raises(OpsError, match=rf"ConfigMap there/{NAME}: {KEY} must hold a journal"):
        load(environment)


def test_a_new_operation_keeps_what_the_one_before_has_learned(
    server: KeptObjects, environment: dict[str, str]
) -> None:
    failed_over(environment)
    assert not load(environment).under_way
    back = load(environment)
    back.begin("failback", {"to": "dev"})
    assert (back.under_way, dict(back.steps)) == (True, {})
    before = load(environment).entry
    assert before is not None
    assert before["before"]["command"] == "failover"
    assert before["before"]["steps"]["stop"]["boundary"] == {"items-0": 10}
    assert list(before["before"]["steps"]) == ["stop"]


def test_an_api_server_that_refuses_is_reported_with_the_remedy(
    server: KeptObjects, environment: dict[str, str]
) -> None:
    journal = begun(environment)
    del server.objects["configmaps", NAME]
    with pytest.raises(
        OpsError, match=r"the API server of the kubeconfig's current context must accept the request \(got 404"
    ):
        journal.done("drain", {})


def test_its_repr_shows_nothing_of_the_environment() -> None:
    place = "there", NAME, {"SECRET": "passphrase-4711"}
    assert "passphrase-4711" not in repr(vars(Journal(JournalStore(*place), Lease(*place), None, None)))
