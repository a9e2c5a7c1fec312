"""The journal of an operation: begun, resumed, refused to others, and what it does with broken content."""

import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.recovery import journal
from ops.recovery.journal import KEY, Journal, now
from tests.support.mirror_api_server import ApiServer, serving
from tests.support.waiting import wait_until

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


class Versioned(ApiServer):
    """An API server that refuses to replace what has changed since it was read, as the real one does."""

    number = 0

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "PUT":
            held = self.config_maps.get(NAME)
            if held is None:
                return 404, {}
            if body["metadata"].get("resourceVersion") != held["metadata"]["resourceVersion"]:
                return 409, {}
            self.config_maps[NAME] = body
        code, found = (200, body) if method == "PUT" else super().answer(method, path, body)
        if method in ("POST", "PUT") and code == 200:
            self.number += 1
            found["metadata"]["resourceVersion"] = str(self.number)
        return code, found

    def has_written(self, times: int) -> bool:
        return self.number >= times

    @property
    def entry(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.config_maps[NAME]["data"][KEY])
        return found


@pytest.fixture
def server() -> Versioned:
    return Versioned({})


@pytest.fixture
def environment(server: Versioned, tmp_path: Path) -> Iterator[dict[str, str]]:
    with serving(server, tmp_path) as found:
        yield found


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process that began an operation has ended since."""
    monkeypatch.setattr(journal, "is_alive", lambda _: False)


def load(environment: dict[str, str]) -> Journal:
    return Journal.load("there", "mm2", environment)


def begun(environment: dict[str, str]) -> Journal:
    journal = load(environment)
    journal.begin("failover", OPTIONS)
    return journal


def failed_over(environment: dict[str, str]) -> None:
    journal = begun(environment)
    journal.done("drain", {"records": 7})
    journal.done("stop", {"boundary": {"items-0": 10}})
    journal.done("switch", {})
    journal.finish()


def test_a_mirror_that_was_never_failed_over_has_an_empty_journal(environment: dict[str, str]) -> None:
    journal = load(environment)
    assert (journal.entry, journal.under_way, dict(journal.steps)) == (None, False, {})


def test_what_is_begun_is_written_before_it_counts(server: Versioned, environment: dict[str, str]) -> None:
    begun(environment)
    assert (server.entry["command"], server.entry["options"], server.entry["finishedAt"]) == ("failover", OPTIONS, None)
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
    server: Versioned, environment: dict[str, str], command: str, options: dict[str, Any], message: str
) -> None:
    begun(environment).done("stop", {})
    before = server.entry
    with pytest.raises(OpsError, match="is not finished; it must be finished as it began") as caught:
        load(environment).begin(command, options)
    assert message in str(caught.value)
    assert "Do not delete the ConfigMap" in str(caught.value)
    assert server.entry == before


@pytest.mark.parametrize("done", [(), ("drain",), ("drain", "prove")], ids=str)
@pytest.mark.parametrize(
    ("command", "options"), [("failback", {"to": "dev"}), ("failover", {"path": "planned", "exact": False})]
)
@pytest.mark.usefixtures("ended")
def test_what_has_changed_nothing_yet_is_begun_anew_as_it_is_asked_for_now(
    server: Versioned, environment: dict[str, str], done: tuple[str, ...], command: str, options: dict[str, Any]
) -> None:
    failed_over(environment)
    journal = load(environment)
    journal.begin("failover", OPTIONS)
    for step in done:
        journal.done(step, {})
    load(environment).begin(command, options)
    assert (server.entry["command"], server.entry["options"], server.entry["steps"]) == (command, options, {})
    assert server.entry["before"]["steps"]["stop"]["boundary"] == {"items-0": 10}


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
def test_a_failover_goes_on_without_the_source_that_is_given_up(server: Versioned, environment: dict[str, str]) -> None:
    journal = begun(environment)
    journal.done("stop", {"boundary": {}})
    started = server.entry["startedAt"]
    unplanned = {"path": "unplanned", "exact": False}
    load(environment).begin("failover", unplanned, gives_up=True)
    assert (server.entry["options"], list(server.entry["steps"])) == (unplanned, ["stop"])
    assert server.entry["startedAt"] == started
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
    server: Versioned, environment: dict[str, str], gives_up: bool
) -> None:
    first = begun(environment)
    first.done("stop", {})
    begun_at = server.entry
    assert "resumedAt" not in begun_at
    load(environment).begin("failover", OPTIONS, gives_up=gives_up)
    with pytest.raises(OpsError, match="must be written by one command at a time"):
        first.done("offsets", {})
    resumed = server.entry
    assert resumed.pop("resumedAt") >= begun_at["startedAt"]
    assert resumed.pop("holder")["id"] != begun_at.pop("holder")["id"]
    assert resumed == begun_at


def test_steps_that_are_forgotten_are_done_again(server: Versioned, environment: dict[str, str]) -> None:
    journal = begun(environment)
    for step in ("drain", "prove", "stop"):
        journal.done(step, {})
    journal.forget("drain", "prove", "never done")
    assert (list(server.entry["steps"]), list(journal.steps)) == (["stop"], ["stop"])
    journal.done("drain", {"records": 8})
    assert server.entry["steps"]["drain"]["records"] == 8


@pytest.mark.usefixtures("ended")
def test_of_two_that_begin_at_once_the_second_is_refused(environment: dict[str, str]) -> None:
    first, second = load(environment), load(environment)
    first.begin("failover", OPTIONS)
    with pytest.raises(OpsError, match="must be written by one command at a time"):
        second.begin("failover", OPTIONS)


@pytest.mark.usefixtures("ended")
def test_of_two_that_go_on_at_once_the_second_is_refused(environment: dict[str, str]) -> None:
    begun(environment).done("stop", {})
    first, second = load(environment), load(environment)
    first.begin("failover", OPTIONS)
    with pytest.raises(OpsError, match="somebody else has changed it"):
        second.begin("failover", OPTIONS)


@pytest.mark.usefixtures("ended")
def test_of_two_that_go_on_at_once_the_second_is_reported_at_its_next_step(
    server: Versioned, environment: dict[str, str]
) -> None:
    first, second = begun(environment), load(environment)
    first.done("drain", {"records": 1})
    with pytest.raises(OpsError, match="somebody else has changed it"):
        second.done("drain", {"records": 2})
    assert server.entry["steps"]["drain"]["records"] == 1


def test_a_second_command_is_refused_at_once_with_who_is_at_work_and_since_when(
    server: Versioned, environment: dict[str, str]
) -> None:
    first = begun(environment)
    held, before = server.entry["holder"], server.entry
    second = load(environment)
    reported = (
        rf"a failover must be carried out by one command at a time \(held by {held['user']}@.*, process {os.getpid()}, "
        rf"since {re.escape(held['since'])}"
    )
    with pytest.raises(OpsError, match=reported):
        second.require_free()
    for command, options in (("failover", OPTIONS), ("failback", {"to": "dev"})):
        with pytest.raises(OpsError, match=reported):
            load(environment).begin(command, options, gives_up=True)
    assert server.entry == before
    first.done("drain", {})  # the first one is not ended by it


def test_of_two_that_begin_at_once_the_second_learns_who_is_at_work(environment: dict[str, str]) -> None:
    first, second = load(environment), load(environment)
    first.begin("failover", OPTIONS)
    with pytest.raises(OpsError, match=r"one command at a time \(held by"):
        second.begin("failover", OPTIONS)
    first.done("drain", {})


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


def test_a_holder_renews_its_entry_and_does_not_disturb_the_steps(
    server: Versioned, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "RENEW_S", 0.02)
    first = begun(environment)
    with first.held():
        for step in ("drain", "prove", "stop"):
            first.start(step)
            enough = server.number + 3
            wait_until("the entry is renewed", partial(server.has_written, enough), 10, every_s=0.01)
            first.done(step, {})
        first.finish()
    assert (list(server.entry["steps"]), server.entry["holder"]) == (["drain", "prove", "stop"], None)


def test_a_write_whose_answer_was_lost_is_no_work_of_somebody_else(
    server: Versioned, environment: dict[str, str]
) -> None:
    first = begun(environment)
    read = first._version
    first.done("drain", {"records": 7})
    first._version = read  # as if the answer had not come
    first.done("prove", {})
    assert list(server.entry["steps"]) == ["drain", "prove"]


@pytest.mark.parametrize(
    ("changed", "alive"),
    [
        ({}, True),
        ({"host": "elsewhere", "pid": 1}, True),
        ({"pid": 2**22 + 1}, False),
        ({"host": "elsewhere", "renewedAt": "2026-01-01T00:00:00+00:00"}, False),
        ({"renewedAt": "yesterday"}, False),
    ],
    ids=["this process", "another machine", "ended", "silent for long", "no time"],
)
def test_a_holder_is_at_work_while_its_process_runs_or_renews_its_entry(changed: dict[str, Any], alive: bool) -> None:
    assert journal.is_alive({**journal.this_process(now()), **changed}) == alive
    assert not journal.is_alive(None)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {KEY: "not JSON"},
        {KEY: "[]"},
        {KEY: "null"},
        {KEY: '{"version": 1}'},
        {KEY: json.dumps({**ENTRY, "steps": []})},
        {KEY: json.dumps({**ENTRY, "version": 2})},
    ],
    ids=["no key", "no JSON", "a list", "nothing", "half", "steps of another shape", "another version"],
)
def test_content_that_is_no_journal_is_refused(
    server: Versioned, environment: dict[str, str], data: dict[str, str]
) -> None:
    server.config_maps[NAME] = {"metadata": {"name": NAME, "resourceVersion": "1"}, "data": data}
    with pytest.raises(OpsError, match=rf"ConfigMap there/{NAME}: {KEY} must hold a journal"):
        load(environment)


def test_a_new_operation_keeps_what_the_one_before_has_learned(server: Versioned, environment: dict[str, str]) -> None:
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


def test_an_api_server_that_refuses_is_reported_with_the_remedy(server: Versioned, environment: dict[str, str]) -> None:
    journal = begun(environment)
    del server.config_maps[NAME]
    with pytest.raises(
        OpsError, match=r"the API server of the kubeconfig's current context must accept the request \(got 404"
    ):
        journal.done("drain", {})


def test_its_repr_shows_nothing_of_the_environment() -> None:
    assert "passphrase-4711" not in repr(Journal("there", NAME, {"SECRET": "passphrase-4711"}, None, None))
