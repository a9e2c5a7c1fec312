"""A failover and a failback while the line between the sites is cut: they wait, say for what, and lose nothing.

Commands and the mirror reach the other site over the line. The tests come in the order of a site's life.
"""

import re
from collections.abc import Iterator

import pytest

from ops.recovery.operation import NOTHING_CHANGED
from sandbox import network
from sandbox.network import Conditions

from ...support.api_proxy import ApiServerProxy
from ...support.killed_commands import Command, Killer
from ...support.projects import KEY, Project
from ...support.recovery_site import FAILBACK, FAILOVER, GROUPS, SOURCE, TARGET, Site, without_shim
from ...support.running_sandbox import Sandbox
from ...support.waiting import wait_until

BROKEN, HEALTHY = Conditions(cut=True), Conditions()
CUT = "waiting for an answer: source es-src"
UNREADABLE = r"position cannot be read \(target es-src"
SHORT = ("--drain", "20")


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, the line to whose source is a proxy."""
    folder = tmp_path_factory.mktemp("cut-line")
    project = Project.of_example(sandbox, "active-passive", folder)
    project.config[TARGET][f"{KEY}cluster"].pop("expose")
    proxy = ApiServerProxy(sandbox.kubeconfig, folder)
    try:
        project.up(SOURCE)
        set_line(sandbox, project, HEALTHY)
        found = Site(project, Killer(folder, without_shim(sandbox), proxy))
        assert found.write(SOURCE, 120)
        project.up(TARGET)
        for number, group in enumerate(GROUPS):
            found.read_on(SOURCE, group, 3 * number + 1)
        yield found
    finally:
        proxy.close()
        set_line(sandbox, project, HEALTHY)
        project.destroy(TARGET, SOURCE)


def set_line(sandbox: Sandbox, project: Project, conditions: Conditions) -> None:
    """Set what happens on the line to the source."""
    network.change(sandbox.state, conditions, str(project.config[SOURCE][f"{KEY}cluster"]["name"]), print)


def reaches(command: Command, pattern: str) -> None:
    """Wait until a command has said something, as long as it runs."""
    wait_until(f"it says {pattern}", lambda: command.ended or re.search(pattern, command.said, re.MULTILINE), 180)
    assert not command.ended, f"it must go on: {command.said}"


def test_a_line_that_stays_cut_while_the_source_is_drained_ends_the_failover_at_its_deadline(site: Site) -> None:
    command = site.killer.start(*FAILOVER, *SHORT, proxied=False)
    reaches(command, "nothing written for")
    set_line(site.project.sandbox, site.project, BROKEN)

    code, document = command.end()

    set_line(site.project.sandbox, site.project, HEALTHY)
    assert (code, CUT in command.said) == (2, True), command.said
    assert "must answer within 20 s" in document["error"]
    assert "who is active has not changed" in document["error"]
    found = site.progress()
    assert found is not None
    assert (found.step, found.state) == ("drain", NOTHING_CHANGED)
    assert not site.is_fenced
    wait_until("applications may write again", lambda: site.write(SOURCE), 60)


def test_a_line_that_is_cut_while_the_source_is_drained_is_waited_for_and_the_failover_loses_nothing(
    site: Site,
) -> None:
    command = site.killer.start(*FAILOVER, proxied=False)
    reaches(command, "nothing written for")
    left = site.unread(SOURCE)
    set_line(site.project.sandbox, site.project, BROKEN)
    reaches(command, CUT)
    set_line(site.project.sandbox, site.project, HEALTHY)

    code, done = command.end()

    assert (code, done["active"], done["recordsLost"], done["stranded"]) == (0, "target", 0, {}), command.said
    assert site.held(TARGET) == site.acknowledged
    assert site.unread(TARGET) == left
    assert not site.write(SOURCE)
    assert site.write(TARGET, 30)


def test_a_line_that_is_cut_while_records_are_copied_back_is_waited_for_and_the_failback_loses_nothing(
    site: Site,
) -> None:
    command = site.killer.start(*FAILBACK, proxied=False)
    reaches(command, r"^\[\d+/\d+\] copy: (?!done)")
    set_line(site.project.sandbox, site.project, BROKEN)
    reaches(command, UNREADABLE)
    assert site.write(TARGET, 5), "applications go on"
    left = site.unread(TARGET)
    set_line(site.project.sandbox, site.project, HEALTHY)

    code, done = command.end()

    if code != 0:  # it has said what it waited for, and goes on
        assert "run the command again" in done["error"].lower(), done
        code, done, _ = site.killer.finish(*FAILBACK)
    assert (code, done["active"], done["recordsLost"], done["stranded"]) == (0, "source", 0, {}), command.said
    assert site.held(SOURCE) == site.acknowledged
    assert site.unread(SOURCE) == left
    assert site.write(SOURCE)
    assert not site.write(TARGET)
    assert site.status()["problems"] == []
