"""Failovers and failbacks that are killed in the middle of their steps, cut off from the API server, or frozen.

A nightly run kills them in every step, the others in some.

What counts at the end is the truth: each record that was acknowledged is once on the side that is active, each group
has left to read what it had left, and no fence is left behind. The tests come in the order of a site's life.
"""

import signal
from collections.abc import Iterator, Sequence

import pytest

from ops.recovery.operation import NOTHING_CHANGED, UNDER_WAY
from ops.recovery.target_fence import TARGET_FENCED
from tests.support.waiting import wait_until

from ...support.api_proxy import ApiServerProxy
from ...support.killed_commands import (
    API,
    BOTH,
    PULUMI,
    Interruption,
    Killer,
    change_of,
    notes,
    pulumis,
)
from ...support.projects import KEY, Project
from ...support.recovery_site import (
    BOSS,
    FAILBACK,
    FAILOVER,
    GROUPS,
    SOURCE,
    TARGET,
    Site,
    without_shim,
)
from ...support.running_sandbox import Sandbox

UNPLANNED = ("failover", "--to", TARGET, "--unplanned", "--yes", "--json")
OTHER_MACHINE = ("unshare", "--map-root-user", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh")
NOTHING_WRITTEN, VERIFYING, GROUP_SET = "nothing written for", r"^  \S", "^  group "
USERS, COPY, CLIENTS, ANY_MIRROR = "kafkausers/", "secrets/mm2-break-glass", "secrets/mm2-clients", "kafkamirrormaker2s"
FENCE_GOES_UP, FENCE_GOES_DOWN = change_of(USERS), change_of(USERS)

FAILOVER_KILLED = [
    Interruption(step="fence", at=FENCE_GOES_UP, passed=True, nightly=True),
    # It is asked to end, and killed while it takes the fence down.
    Interruption(
        step="drain", line=NOTHING_WRITTEN, number=signal.SIGTERM, at=FENCE_GOES_DOWN, passed=True, nightly=True
    ),
    Interruption(step="drain", line=NOTHING_WRITTEN, nightly=True),
    Interruption(step="prove", line=VERIFYING, nightly=True),
    Interruption(step="stop", at=change_of(f"{ANY_MIRROR}/"), passed=True, nightly=True),
    Interruption(step="stop", who=API, nightly=True),
    Interruption(step="offsets", line=GROUP_SET),
    Interruption(step="switch", at=change_of(CLIENTS), passed=True),
    Interruption(step="switch", who=API, nightly=True),
    Interruption(step="confirm", nightly=True),
    Interruption(step="reconcile", at=pulumis, nightly=True),
    Interruption(step="reconcile", who=PULUMI, at=pulumis, nightly=True),
    Interruption(step="reconcile", who=BOTH, at=pulumis),
]
PULUMI_CHANGES = change_of(ANY_MIRROR, by_pulumi=True)
FAILBACK_KILLED = [
    Interruption(step="fence", nightly=True),
    Interruption(step="survey", line="were not copied before the failover", nightly=True),
    Interruption(step="realign", nightly=True),
    Interruption(step="settle", who=PULUMI, at=PULUMI_CHANGES, passed=True),
    Interruption(step="settle", nightly=True),
    Interruption(step="prepare", who=BOTH, at=PULUMI_CHANGES, passed=True, nightly=True),
    Interruption(step="position", at=change_of(f"{ANY_MIRROR}/mm2-failback"), passed=True, nightly=True),
    Interruption(step="copy", at=PULUMI_CHANGES),
    Interruption(step="fence-target", at=FENCE_GOES_UP, passed=True),
    Interruption(step="drain", line=NOTHING_WRITTEN, nightly=True),
    Interruption(step="prove", line=VERIFYING, nightly=True),
    Interruption(step="stop", who=PULUMI, at=PULUMI_CHANGES, nightly=True),
    Interruption(step="stop", who=API, nightly=True),
    Interruption(step="offsets", line=GROUP_SET, nightly=True),
    Interruption(step="forward", nightly=True),
    Interruption(step="switch", at=change_of(USERS), passed=True, nightly=True),
    Interruption(step="switch", who=BOTH, at=PULUMI_CHANGES, passed=True),
    Interruption(step="switch", at=change_of(USERS), passed=True, nightly=True),
    Interruption(step="confirm", nightly=True),
]


def tried(every: Sequence[Interruption], nightly: bool) -> list[Interruption]:
    """The interruptions of this run."""
    return [one for one in every if nightly or not one.nightly]


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, whose source has a super user and an application user, TESTER, with rights on all topics."""
    folder = tmp_path_factory.mktemp("killed")
    project = Project.of_example(sandbox, "active-passive", folder)
    for config in project.config.values():
        config[f"{KEY}cluster"].pop("expose")
    project.config[SOURCE][f"{KEY}cluster"]["superUsers"] = [BOSS]
    project.config[SOURCE][f"{KEY}users"].append({"name": BOSS, "exported": True})
    proxy = ApiServerProxy(sandbox.kubeconfig, folder)
    try:
        project.up(SOURCE)
        found = Site(project, Killer(folder, without_shim(sandbox), proxy))
        assert found.write(SOURCE, 120)
        project.up(TARGET)
        for number, group in enumerate(GROUPS):
            found.read_on(SOURCE, group, 3 * number + 1)
        yield found
    finally:
        proxy.close()
        project.destroy(TARGET, SOURCE)


def test_a_planned_failover_that_is_killed_in_its_steps_loses_and_claims_nothing(site: Site, nightly: bool) -> None:
    refused, killed = 0, tried(FAILOVER_KILLED, nightly)
    for one in killed:
        site.interrupt(one, *FAILOVER)
        may_write = site.write(SOURCE)
        refused += not may_write
        assert not may_write or one.at in (FENCE_GOES_UP, FENCE_GOES_DOWN), one
    left = site.unread(SOURCE)

    code, done, said = site.killer.finish(*FAILOVER)

    assert (code, done["active"], done["recordsLost"], done["stranded"]) == (0, "target", 0, {}), said
    assert refused >= len(killed) - 2
    assert site.held(TARGET) == site.acknowledged
    assert site.unread(TARGET) == left
    assert {group: (done["groups"][group]["repeated"], done["groups"][group]["skipped"]) for group in GROUPS} == (
        dict.fromkeys(GROUPS, (0, 0))
    )
    claimed = site.journal().steps["offsets"]["groups"]
    assert {group: claimed[group]["offsets"] for group in GROUPS} == site.offsets(TARGET)
    assert site.is_fenced
    assert not site.write(SOURCE)
    assert site.write(TARGET)
    assert site.progress() is None
    assert site.status()["problems"] == []
    assert site.findings() == []
    site.require_nothing_left_to_deploy(TARGET)


def test_a_failback_that_is_killed_in_its_steps_brings_everything_back_once(site: Site, nightly: bool) -> None:
    assert site.write(SOURCE, 15, BOSS), "what nobody copies any more is stranded there"
    assert site.write(TARGET, 30)
    site.read_on(TARGET, GROUPS[0], 5)
    left = {}
    for one in tried(FAILBACK_KILLED, nightly):
        site.interrupt(one, *FAILBACK)
        if one.step not in ("switch", "confirm"):
            assert not site.write(SOURCE), f"{one}: the target is active"
        if one.step in ("fence", "settle", "copy") or (one.step, one.who) == ("stop", PULUMI):
            assert site.write(TARGET), f"{one}: applications go on, for nothing was fenced or the command has lifted it"
            left = site.unread(TARGET) if one.step in ("copy", "stop") else left
        elif one.step in ("drain", "prove", "stop", "offsets"):
            assert not site.write(TARGET), f"{one}: it is fenced"
        if (one.step, one.who) == ("stop", API):
            assert [problem for problem in site.status()["problems"] if "a failback has fenced it" in problem]
            assert site.findings() == [TARGET_FENCED]

    code, done, said = site.killer.finish(*FAILBACK)

    assert (code, done["active"], done["recordsLost"], done["stranded"]) == (0, "source", 0, {}), said
    assert done["recordsBroughtOver"] == 15
    assert site.held(SOURCE) == site.acknowledged
    assert site.unread(SOURCE) == left
    claimed = site.journal().steps["offsets"]["groups"]
    assert {group: claimed[group]["offsets"] for group in GROUPS} == site.offsets(SOURCE)
    assert not site.is_fenced
    assert site.write(SOURCE)
    assert not site.write(TARGET)
    wait_until("the target has everything once", lambda: site.held(TARGET) == site.acknowledged, 60)
    assert site.progress() is None
    assert site.status()["problems"] == []
    assert site.findings() == []
    site.require_nothing_left_to_deploy(SOURCE)
    site.require_nothing_left_to_deploy(TARGET)


def test_an_unplanned_failover_that_is_killed_while_it_measures_has_changed_nothing(site: Site) -> None:
    """The next test begins a planned one in its place."""
    site.interrupt(Interruption(step="measure"), *UNPLANNED)
    found = site.progress()
    assert found is not None
    assert (found.state, found.problem) == (NOTHING_CHANGED, None)
    assert not site.is_fenced
    assert site.write(SOURCE)
    assert not site.write(TARGET)


def test_a_failover_that_is_frozen_and_wakes_after_another_one_has_switched_does_nothing_more(site: Site) -> None:
    frozen = Interruption(step="offsets", line=GROUP_SET, number=signal.SIGSTOP)
    proxy = site.killer.proxy
    proxy.forget()
    with proxy.trap(notes("offsets")):
        first = site.killer.start(*FAILOVER, at=frozen)
        wait_until("the first one is frozen", lambda: first.reached.is_set() or first.ended, 120)
        assert not first.ended, first.said
    try:
        found = site.progress()
        assert found is not None
        assert (found.step, found.state) == ("offsets", UNDER_WAY)
        code, refused, _ = site.killer.finish(*FAILOVER)
        assert (code, "one command at a time" in refused["error"]) == (2, True), refused

        code, done, said = site.killer.finish(*FAILOVER, before=OTHER_MACHINE)

        assert (code, done["active"], done["recordsLost"]) == (0, "target", 0), said
        assert site.write(TARGET, 10)
        for group in GROUPS:  # applications work there: whoever sets a group now sets it back
            site.read_on(TARGET, group, 2)
        before = site.offsets(TARGET)
        journal = site.journal().entry
        proxy.calls = []
    finally:
        first.send(signal.SIGCONT)
    code, _ = first.end()

    # Its connections are as old as the Lease: whichever it finds out first, it may take down nothing without the Lease.
    assert (code, "must be held by this command to change anything" in first.said) == (2, True), first.said
    changed = [call for call in proxy.calls if call.changes and call.status != 409]
    assert changed == []
    assert "is taken down" not in first.said
    assert site.offsets(TARGET) == before
    assert site.journal().entry == journal
    assert site.is_fenced
    assert not site.write(SOURCE)
    assert site.held(TARGET) == site.acknowledged
    assert site.status()["problems"] == []
    site.require_nothing_left_to_deploy(TARGET)
