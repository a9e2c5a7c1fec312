"""One process at a time may change something, whatever clocks say and however long a process was frozen."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ops.errors import OpsError
from ops.recovery import kubernetes_access, lease
from ops.recovery.lease import CHANGE_WITHIN_S, DURATION_S, Holder, Lease
from tests.support.kept_objects import KeptObjects
from tests.support.mirror_api_server import serving
from tests.support.recovery_pair import Clock
from tests.support.waiting import wait_until

NAME = "mm2-failover"
PROJECT = Path(__file__).parents[4]
SOMEBODY = "alice@laptop/4711/0a0a0a0a/12345678"


@pytest.fixture
def server() -> KeptObjects:
    return KeptObjects()


@pytest.fixture
def environment(server: KeptObjects, tmp_path: Path) -> Iterator[dict[str, str]]:
    with serving(server, tmp_path) as found:
        yield found


class Sleeper(Clock):
    """A clock on which something may happen while somebody sleeps."""

    happens: Callable[[], None] = staticmethod(lambda: None)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.happens()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Sleeper:
    clock = Sleeper()
    monkeypatch.setattr(lease, "time", clock)
    monkeypatch.setattr(lease, "_clock", clock.monotonic)
    return clock


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(lease, "log", found.append)
    return found


def held(
    server: KeptObjects, identity: str | None = SOMEBODY, renewed: datetime | None = None, seconds: int = 60
) -> None:
    """Let somebody hold the Lease; each call renews it."""
    at = (renewed or datetime.now(UTC)).isoformat(timespec="microseconds")
    spec = {"holderIdentity": identity, "leaseDurationSeconds": seconds, "acquireTime": at, "renewTime": at}
    server.version += 1
    metadata = {"name": NAME, "resourceVersion": str(server.version), "uid": "uid"}
    server.objects["leases", NAME] = {"metadata": metadata, "spec": spec}


def mine(environment: dict[str, str]) -> Lease:
    return Lease("there", NAME, environment)


def spec(server: KeptObjects) -> dict[str, Any]:
    found: dict[str, Any] = server.objects["leases", NAME]["spec"]
    return found


def test_a_lease_is_taken_renewed_and_given_back(server: KeptObjects, environment: dict[str, str]) -> None:
    own = mine(environment)
    own.acquire()
    assert (spec(server)["holderIdentity"], spec(server)["leaseDurationSeconds"]) == (own.identity, DURATION_S)
    acquired = spec(server)["acquireTime"]
    own._renew()
    assert spec(server)["acquireTime"] == acquired < spec(server)["renewTime"]
    own.release()
    assert spec(server).get("holderIdentity") is None
    assert own.holder() is None
    with pytest.raises(OpsError, match="must be held by this command to change anything"):
        own.require()
    other = mine(environment)
    other.acquire()
    assert spec(server)["leaseTransitions"] == 1
    found = other.holder()
    assert found is not None
    assert (found.identity, found.is_here, found.has_ended, found.seems_at_work) == (other.identity, True, False, True)


def test_times_have_the_form_that_the_api_server_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Even(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Even":
            return cls(2026, 11, 22, 8, tzinfo=UTC)

    monkeypatch.setattr(lease, "datetime", Even)
    assert lease._now().isoformat() == "2026-11-22T08:00:00.000001+00:00"


@pytest.mark.parametrize("skew", [timedelta(hours=-3), timedelta(0), timedelta(hours=3)], ids=str)
def test_who_does_not_renew_for_the_duration_is_taken_over_from_whatever_the_clocks_say(
    server: KeptObjects, environment: dict[str, str], clock: Sleeper, said: list[str], skew: timedelta
) -> None:
    held(server, renewed=datetime.now(UTC) + skew)
    own = mine(environment)
    own.acquire()
    assert clock.now == 1000 + 60
    assert spec(server)["holderIdentity"] == own.identity
    assert [line.split(", ")[1].split(" s at most")[0] for line in said] == ["60", "50", "40", "30", "20", "10"]
    assert "held by alice@laptop, process 4711, since" in said[0]
    assert "this command takes over" in said[0]


@pytest.mark.parametrize("skew", [timedelta(hours=-3), timedelta(0), timedelta(hours=3)], ids=str)
def test_who_renews_is_at_work_and_the_second_command_is_refused(
    server: KeptObjects, environment: dict[str, str], clock: Sleeper, said: list[str], skew: timedelta
) -> None:
    held(server, renewed=datetime.now(UTC) + skew)

    def renewed_after_ten_seconds() -> None:
        if clock.now >= 1010:
            held(server, renewed=datetime.now(UTC) + skew)

    clock.happens = renewed_after_ten_seconds
    with pytest.raises(OpsError, match=r"one command at a time \(held by alice@laptop, process 4711"):
        mine(environment).acquire()
    assert clock.now <= 1011
    assert spec(server)["holderIdentity"] == SOMEBODY


def test_the_duration_is_the_holders_own(server: KeptObjects, environment: dict[str, str], clock: Sleeper) -> None:
    held(server, seconds=15)
    mine(environment).acquire()
    assert clock.now == 1015


def test_what_was_watched_before_the_question_is_not_watched_again_after_it(
    server: KeptObjects, environment: dict[str, str], clock: Sleeper
) -> None:
    held(server)
    own = mine(environment)
    assert own.wait_until_free()
    waited_until = clock.now
    own.acquire()
    assert clock.now == waited_until


def test_one_that_is_given_back_meanwhile_is_free_at_once(
    server: KeptObjects, environment: dict[str, str], clock: Sleeper
) -> None:
    held(server)
    clock.happens = partial(held, server, None)
    mine(environment).acquire()
    assert clock.now == 1001


def test_whoever_was_faster_is_not_written_over(
    server: KeptObjects, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = server.answer
    held(server, None)

    def overtaken(method: str, path: str, body: Any) -> tuple[int, Any]:
        found = 200, json.loads(json.dumps(answer(method, path, body)[1]))
        monkeypatch.setattr(server, "answer", answer)
        held(server)
        return found

    monkeypatch.setattr(server, "answer", overtaken)
    with pytest.raises(OpsError, match=r"must be held by this command .*held by alice@laptop"):
        mine(environment).acquire()
    assert spec(server)["holderIdentity"] == SOMEBODY


def test_a_holder_renews_over_what_somebody_has_noted_on_its_lease(
    server: KeptObjects, environment: dict[str, str]
) -> None:
    own = mine(environment)
    own.acquire()
    before = spec(server)["renewTime"]
    server.objects["leases", NAME]["metadata"]["resourceVersion"] = "annotated"
    own._renew()
    assert spec(server)["renewTime"] > before


def test_a_process_that_has_ended_on_this_machine_keeps_nobody_waiting(
    server: KeptObjects, environment: dict[str, str], clock: Sleeper
) -> None:
    user, _, machine, own = mine(environment).identity.rsplit("/", 3)
    held(server, f"{user}/{2**22 + 1}/{machine}/{own}")
    mine(environment).acquire()
    assert clock.now == 1000
    held(server, f"{user}/{os.getpid()}/{machine}/other")
    with pytest.raises(OpsError, match="one command at a time"):
        mine(environment).acquire()
    assert clock.now == 1000, "one that runs here and renewed it by the same clock is at work"


def test_a_process_of_another_machine_with_the_same_name_is_not_looked_for_here() -> None:
    assert not Holder(identity=f"me@here/{2**22 + 1}/another0/1", since="then").has_ended
    assert not Holder(identity="an identity of somebody else", since="then").is_here
    assert "an identity of somebody else" in str(Holder(identity="an identity of somebody else", since="then"))


SKEWS = [timedelta(hours=-3), timedelta(0), timedelta(hours=3)]


@pytest.mark.parametrize("reader", SKEWS, ids=lambda skew: f"here {skew}")
@pytest.mark.parametrize("holder", SKEWS, ids=lambda skew: f"there {skew}")
def test_a_holder_seems_at_work_until_its_lease_has_run_out_by_the_clock_of_the_api_server(
    server: KeptObjects, environment: dict[str, str], reader: timedelta, holder: timedelta
) -> None:
    """It may have been killed on another machine, where nobody can find out; both machines' clocks may be wrong."""
    server.clock_ahead_s = -reader.total_seconds()
    mine(environment).acquire()
    spec(server)["holderIdentity"] = SOMEBODY
    at = datetime.now(UTC) - reader + holder
    spec(server)["renewTime"] = at.isoformat(timespec="microseconds")
    for later_s, at_work in ((0, True), (DURATION_S - 5, True), (DURATION_S + 5, False)):
        server.clock_ahead_s = later_s - reader.total_seconds()
        found = mine(environment).holder()
        assert found is not None
        assert found.seems_at_work is at_work, later_s
    renewed = found.renewed_at
    assert renewed is not None
    assert abs(datetime.now(UTC) - reader - renewed) < timedelta(seconds=10), "it is shown by the same clock"


def test_without_what_the_api_server_stored_the_times_of_both_machines_are_compared(
    server: KeptObjects, environment: dict[str, str]
) -> None:
    for ago_s, at_work in ((5, True), (DURATION_S + 5, False), (-DURATION_S - 5, False)):
        held(server, renewed=datetime.now(UTC) - timedelta(seconds=ago_s))
        found = mine(environment).holder()
        assert found is not None
        assert found.seems_at_work is at_work, ago_s
    assert lease._date("yesterday") is lease._date(None) is None
    held(server, seconds=15, renewed=datetime.now(UTC) - timedelta(seconds=20))
    found = mine(environment).holder()
    assert found is not None
    assert not found.seems_at_work, "it has held it for 15 s only"


def test_a_holder_renews_before_too_little_is_left_for_a_change(
    server: KeptObjects, environment: dict[str, str], clock: Sleeper
) -> None:
    own = mine(environment)
    own.acquire()
    renewed = spec(server)["renewTime"]
    clock.now += DURATION_S - CHANGE_WITHIN_S - 1
    own.require()
    assert spec(server)["renewTime"] == renewed
    clock.now += 1
    own.require()
    assert spec(server)["renewTime"] > renewed


def test_a_frozen_holder_goes_on_if_nobody_else_came(
    server: KeptObjects, environment: dict[str, str], clock: Sleeper
) -> None:
    own = mine(environment)
    own.acquire()
    clock.now += 100 * DURATION_S
    own.require()
    assert spec(server)["holderIdentity"] == own.identity


@pytest.mark.parametrize("now", [SOMEBODY, None], ids=["taken over", "taken over and given back"])
def test_a_frozen_holder_that_wakes_after_another_took_over_changes_nothing_more(
    server: KeptObjects, environment: dict[str, str], clock: Sleeper, now: str | None
) -> None:
    own = mine(environment)
    own.acquire()
    clock.now += DURATION_S + 1
    held(server, now)
    for _ in range(2):
        with pytest.raises(OpsError, match=r"must be held by this command .* changes nothing more"):
            own.require()
    own.release()
    assert spec(server)["holderIdentity"] == now, "what is not held is not given back"


def test_a_holder_that_is_cut_off_changes_nothing_once_its_time_is_over(
    server: KeptObjects, environment: dict[str, str], clock: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "TRIED_WITHIN_S", 0.1)
    own = mine(environment)
    own.acquire()
    monkeypatch.setattr(server, "answer", lambda *_: (503, {}))
    own.require()
    clock.now += DURATION_S - CHANGE_WITHIN_S
    with pytest.raises(OpsError, match="must accept the request"):
        own.require()


def test_an_answer_that_was_lost_does_not_lose_the_lease(
    server: KeptObjects, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_access, "FIRST_PAUSE_S", 0.01)
    own = mine(environment)
    server.lost_answers = 1
    own.acquire()
    server.lost_answers = 1
    own._renew()
    own._renew()
    own.require()


def test_it_is_renewed_while_the_work_goes_on_and_given_back_at_its_end(
    server: KeptObjects, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_S", 0.02)
    own = mine(environment)
    own.acquire()
    before = server.version
    with own.kept():
        wait_until("it is renewed", lambda: server.version >= before + 3, 10, every_s=0.01)
    assert spec(server).get("holderIdentity") is None


HOLDING = """
import os, sys
from ops.recovery import lease
lease.RENEW_S, lease.DURATION_S, lease.CHANGE_WITHIN_S = 0.1, 2, 0.5
own = lease.Lease("there", "mm2-failover", dict(os.environ))
own.acquire()
with own.kept():
    print("held", flush=True)
    for line in sys.stdin:
        try:
            own.require()
            print("changed", flush=True)
        except Exception as error:
            print("refused", error, flush=True)
"""


def test_a_process_that_is_stopped_and_wakes_after_the_takeover_changes_nothing(
    server: KeptObjects, environment: dict[str, str], said: list[str]
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDING],
        cwd=PROJECT,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "held\n"
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "changed\n"
        child.send_signal(signal.SIGSTOP)
        user, process, _, unique = spec(server)["holderIdentity"].rsplit("/", 3)
        spec(server)["holderIdentity"] = f"{user}/{process}/elsewhere/{unique}"  # here its time would be compared
        own = mine(environment)
        own.acquire()
        child.send_signal(signal.SIGCONT)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline().startswith("refused Lease there/mm2-failover: must be held by this command")
        assert spec(server)["holderIdentity"] == own.identity
    finally:
        child.kill()
        child.communicate()
