"""The rest of a mirror fails over because its source is lost, after a topic of which Pulumi does not know.

The failover of the topic is killed when Pulumi begins to take it over, and applications work with the topic at the
target by then. When the source is back, the failback brings everything there, also what had not been copied.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.waiting import wait_until

from ...support import records
from ...support.api_proxy import Match
from ...support.killed_commands import Interruption
from ...support.projects import Project
from ...support.recovery_site import FAILBACK, MIRROR, SOURCE, TARGET, Site, disturbed_site
from ...support.running_sandbox import Sandbox

FAILOVER = ("failover", "--to", TARGET, "--yes", "--json")
MOVES, STAYS = "items", "store.inventory"
ORDERS, STOCK = "orders", "stock"
LOGIN, ONE_MORE = "inventory-app", "home again"
COPIED_S, ANSWERS_S = 60, 90


def numbered(what: str, number: int = 20) -> list[str]:
    """The values of some records."""
    return [f"{what} {each}" for each in range(number)]


# Of each topic what its group has read before the failover, and what is written at the target.
READ = {MOVES: numbered("item", 50), STAYS: numbered("stock", 50)}
AT_TARGET = {MOVES: numbered("item at the target"), STAYS: numbered("stock at the target")}
# Of the topic that moves: what its group reads at the target, in front of what is there in AT_TARGET.
READ_AT_TARGET = numbered("item that is read at the target")
# Of the other topic: what is copied and its group has not read, and what is not copied before the source is lost.
UNREAD, STRANDED = numbered("unread stock"), numbered("stranded stock")
EVERY = {
    MOVES: [*READ[MOVES], *READ_AT_TARGET, *AT_TARGET[MOVES]],
    STAYS: [*READ[STAYS], *UNREAD, *STRANDED, *AT_TARGET[STAYS]],
}


def beginning(step: str) -> Match:
    """The request that writes into the journal that a step begins."""
    return lambda call: call.journal is not None and call.journal.get("at") == step


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, with a group for each of two topics, known on both sides; one has something left to read."""
    with disturbed_site(sandbox, tmp_path_factory.mktemp("source-lost")) as found:
        project = found.project
        project.up(SOURCE)
        source = project.client(SOURCE)
        for topic, group in ((MOVES, ORDERS), (STAYS, STOCK)):
            records.write(source, topic, READ[topic])
            records.consume(source, topic, group)
        records.write(source, STAYS, UNREAD)
        project.up(TARGET)
        target = project.client(TARGET)
        copied = {*READ[STAYS], *UNREAD}
        wait_until("the rest is copied", lambda: copied <= set(records.read(target, STAYS)), COPIED_S)
        wait_until("its group is on the target", lambda: STAYS in records.committed(target, STOCK), COPIED_S)
        yield found


@contextmanager
def lost_source(site: Site) -> Iterator[None]:
    """The source's brokers are dead while the block runs; they have records that were not copied."""
    project, processes = site.project, site.project.sandbox.processes
    source, worker = project.client(SOURCE), project.worker(TARGET, MIRROR)
    processes.kill(worker, hold=True)  # the mirror goes first: records stay behind for certain
    records.write(source, STAYS, STRANDED)
    with site.without_brokers(SOURCE):
        processes.release(worker)
        yield
    wait_until("the source answers again", lambda: records.admits(source), ANSWERS_S)


def application(project: Project, stack: str) -> dict[str, Any]:
    """Properties of the application's client at a side."""
    login = project.sandbox.secret(project.namespace(stack), LOGIN)
    return project.client(stack) | {"sasl.username": LOGIN, "sasl.password": login["password"]}


def finished(site: Site, *words: str) -> dict[str, Any]:
    """Run a command, which must end well; return its document."""
    code, done, said = site.killer.finish(*words)
    assert code == 0, f"{done}\n{said}\n\n{site.project.sandbox.tails()}"
    return done


def held(site: Site, stack: str, topic: str) -> list[str]:
    """Every record of a topic on a side, as often as it is there."""
    return sorted(records.read(site.project.client(stack), topic))


def unread(site: Site, stack: str, topic: str, group: str) -> list[str]:
    """What a group has left to read on a side."""
    return sorted(records.read_on(site.project.client(stack), topic, group))


def copy_one_more(site: Site, topic: str) -> None:
    """Let the application write at the source again, and wait until it is on the target."""
    records.write(application(site.project, SOURCE), topic, [ONE_MORE])
    wait_until(f"{topic} is copied", lambda: ONE_MORE in held(site, TARGET, topic), COPIED_S)


@pytest.mark.nightly
def test_the_rest_fails_over_without_the_source_although_pulumi_does_not_know_of_the_topic(site: Site) -> None:
    project, target = site.project, site.project.client(TARGET)
    killed = Interruption(step="confirm", at=beginning("reconcile"), passed=True)
    site.killer.interrupt(killed, *FAILOVER, "--topic", MOVES)
    found = site.status()["recovery"]
    assert (found["step"], found["state"]) == ("reconcile", "interrupted")

    with lost_source(site):
        # Its group goes further at the target than the mirror has ever translated: whoever sets it now sets it back.
        records.write(application(project, TARGET), MOVES, READ_AT_TARGET)
        records.consume(target, MOVES, ORDERS)
        records.write(application(project, TARGET), MOVES, AT_TARGET[MOVES])
        assert unread(site, TARGET, MOVES, ORDERS) == sorted(AT_TARGET[MOVES])
        stood = records.committed(target, ORDERS)

        done = finished(site, *FAILOVER, "--unplanned")

        assert (done["active"], done["topics"], done["recordsLost"]) == ("target", None, None)
        assert ORDERS not in done["groups"]
        assert done["groups"][STOCK]["withoutPosition"] == []
        assert records.committed(target, ORDERS) == stood
        assert unread(site, TARGET, MOVES, ORDERS) == sorted(AT_TARGET[MOVES])
        assert held(site, TARGET, MOVES) == sorted(EVERY[MOVES])
        assert "failedOver" not in (project.folder / f"Pulumi.{TARGET}.yaml").read_text("utf-8")
        site.require_nothing_left_to_deploy(TARGET)
        records.write(application(project, TARGET), STAYS, AT_TARGET[STAYS])
        left = unread(site, TARGET, STAYS, STOCK)
        assert {*UNREAD, *AT_TARGET[STAYS]} <= set(left), "it skips nothing that is there"

    done = finished(site, *FAILBACK)

    assert (done["active"], done["recordsLost"], done["recordsBroughtOver"]) == ("source", 0, len(STRANDED))
    for topic, every in EVERY.items():
        for stack in (SOURCE, TARGET):
            assert held(site, stack, topic) == sorted(every), f"{topic} on {stack}: something is lost or there twice"
    assert unread(site, SOURCE, MOVES, ORDERS) == sorted(AT_TARGET[MOVES])
    assert unread(site, SOURCE, STAYS, STOCK) == sorted([*left, *STRANDED])
    for topic, every in EVERY.items():
        copy_one_more(site, topic)
        for stack in (SOURCE, TARGET):
            assert held(site, stack, topic) == sorted([*every, ONE_MORE]), f"{topic} on {stack}: it loops"
    assert site.status()["problems"] == []
