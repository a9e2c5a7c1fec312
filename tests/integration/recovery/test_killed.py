"""Failovers and failbacks that a producer ignores, that are killed, cut off from the API server, or frozen.

A nightly run kills them in every step, the others in some.

What counts at the end is the truth: each record that was acknowledged is once on the side that is active, each group
has left to read what it had left, and no fence is left behind. The tests come in the order of a site's life: failovers
that end before their switch, one that another machine takes over, and the failback; in a nightly run there and back
again.
"""

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence

import pytest

from ops.errors import OpsError
from ops.recovery import fencing
from ops.recovery.operation import NOTHING_CHANGED, UNDER_WAY
from ops.recovery.target_fence import TARGET_FENCED
from tests.support.waiting import at_most, wait_until

from ...support import records
from ...support.killed_commands import (
    API,
    BOTH,
    PULUMI,
    Interruption,
    another_machine,
    change_of,
    notes,
    pulumis,
)
from ...support.projects import KEY, TESTER
from ...support.recovery_site import (
    BOSS,
    FAILBACK,
    FAILOVER,
    FAR_AHEAD,
    GROUPS,
    SHARERS,
    SOURCE,
    TARGET,
    TOPIC,
    TOPICS,
    UNPLANNED,
    Site,
    disturbed_site,
)
from ...support.running_sandbox import Sandbox
from ...support.stubborn_producer import Stubborn

HOUR_AHEAD, HOUR_BEHIND = another_machine(ahead_s=3600), another_machine(ahead_s=-3600)
NOTHING_WRITTEN, VERIFYING, GROUP_SET = "nothing written for", r"^  \S", "^  group "
USERS, COPY, CLIENTS, ANY_MIRROR = "kafkausers/", "secrets/mm2-break-glass", "secrets/mm2-clients", "kafkamirrormaker2s"
FENCE_GOES_UP, FENCE_GOES_DOWN = change_of(USERS), change_of(USERS)
ENDS_S, REFUSED_S = at_most(400), 60

UNCLEAN = "unclean.leader.election.enable"
TOPIC_CHANGES = change_of("kafkatopics", by_pulumi=True)
SWITCH_KILLED = Interruption(step="switch", at=change_of(CLIENTS), passed=True)
RECONCILE_KILLED = Interruption(step="reconcile", who=BOTH, at=pulumis)
FAILOVER_KILLED = [
    Interruption(step="fence", at=FENCE_GOES_UP, passed=True),
    # It is asked to end, and killed while it takes the fence down.
    Interruption(step="drain", line=NOTHING_WRITTEN, number=signal.SIGTERM, at=FENCE_GOES_DOWN, passed=True),
    Interruption(step="drain", line=NOTHING_WRITTEN),
    Interruption(step="prove", line=VERIFYING),
    Interruption(step="stop", at=change_of(f"{ANY_MIRROR}/"), passed=True),
    Interruption(step="stop", who=API),
    Interruption(step="offsets", line=GROUP_SET),
    SWITCH_KILLED,
    Interruption(step="switch", who=API),
    Interruption(step="confirm"),
    Interruption(step="reconcile", at=pulumis),
    Interruption(step="reconcile", who=PULUMI, at=pulumis),
    RECONCILE_KILLED,
]
PULUMI_CHANGES = change_of(ANY_MIRROR, by_pulumi=True)
FAILBACK_KILLED = [
    Interruption(step="fence", nightly=True),
    Interruption(step="survey", line="were not copied before the failover", nightly=True),
    Interruption(step="realign", nightly=True),
    Interruption(step="settle", who=PULUMI, at=PULUMI_CHANGES, passed=True, nightly=True),
    Interruption(step="settle", nightly=True),
    Interruption(step="prepare", who=BOTH, at=PULUMI_CHANGES, passed=True, nightly=True),
    Interruption(step="position", at=change_of(f"{ANY_MIRROR}/mm2-failback"), passed=True, nightly=True),
    Interruption(step="copy", at=PULUMI_CHANGES, nightly=True),
    Interruption(step="fence-target", at=FENCE_GOES_UP, passed=True),
    Interruption(step="drain", line=NOTHING_WRITTEN, nightly=True),
    Interruption(step="prove", line=VERIFYING, nightly=True),
    Interruption(step="stop", who=PULUMI, at=PULUMI_CHANGES, nightly=True),
    Interruption(step="stop", who=API, nightly=True),
    Interruption(step="offsets", line=GROUP_SET, nightly=True),
    Interruption(step="forward", nightly=True),
    Interruption(step="switch", at=change_of(USERS), passed=True, nightly=True),
    Interruption(step="switch", who=PULUMI, at=PULUMI_CHANGES, passed=True),
    Interruption(step="switch", who=BOTH, at=PULUMI_CHANGES, passed=True, nightly=True),
    Interruption(step="switch", at=change_of(USERS), passed=True, nightly=True),
    Interruption(step="confirm", nightly=True),
]


def tried(every: Sequence[Interruption], nightly: bool) -> list[Interruption]:
    """The interruptions of this run."""
    return [one for one in every if nightly or not one.nightly]


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, whose source has a super user and an application user, TESTER, with rights on all topics."""
    with disturbed_site(sandbox, tmp_path_factory.mktemp("killed")) as found:
        project = found.project
        project.config[SOURCE][f"{KEY}cluster"]["superUsers"] = [BOSS]
        project.config[SOURCE][f"{KEY}users"].append({"name": BOSS, "exported": True})
        project.up(SOURCE)
        assert found.write(SOURCE, 120)
        project.up(TARGET)
        for number, group in enumerate(GROUPS):
            found.read_on(SOURCE, group, 3 * number + 1)
        yield found


def let_lead_unclean(site: Site, value: str) -> None:
    """Set this for each topic of the source's stack file. No mirror copies it."""
    for topic in site.project.config[SOURCE][f"{KEY}topics"]:
        topic["config"] = {UNCLEAN: value}


def test_an_up_gets_over_an_api_server_that_is_overloaded(site: Site) -> None:
    """It answers 429 and 503, each with the time after which to ask again."""
    let_lead_unclean(site, "true")
    overload = site.killer.proxy.overload(TOPIC_CHANGES, 429, 503, 429, 503)
    site.up(SOURCE)
    assert overload.left == []
    assert site.topic_settings(SOURCE, UNCLEAN) == {"true"}
    site.require_nothing_left_to_deploy(SOURCE)


def test_an_up_whose_token_expires_in_the_middle_says_so_and_the_next_one_ends_it(site: Site) -> None:
    """It has read everything and begins to change it. Of an object that it has changed it would wait for the status."""
    let_lead_unclean(site, "false")
    proxy = site.killer.proxy
    proxy.forget()
    outage = proxy.outage(TOPIC_CHANGES, 0)
    with pytest.raises(OpsError, match=r"the API server must accept who runs Pulumi .* log in again"):
        site.up(SOURCE)
    assert outage.refused
    assert [call for call in proxy.calls if "/kafkatopics/" in call.path and call.status == 200], "it had begun"
    assert site.topic_settings(SOURCE, UNCLEAN) == {"true"}
    proxy.forget()
    site.up(SOURCE)
    assert site.topic_settings(SOURCE, UNCLEAN) == {"false"}
    site.require_nothing_left_to_deploy(SOURCE)


def test_a_super_user_that_bypasses_the_fence_is_named_and_the_failover_rolls_back(site: Site) -> None:
    with Stubborn(site.project.client(SOURCE, BOSS), "boss").at_work() as boss:
        failed, said = site.run(*FAILOVER, "--drain", "8")
        assert not boss.refused
    message = failed["error"]
    assert "items-" in message, message
    assert f"User:{BOSS} (super user)" in message, message
    assert "the fence at rt-inventory-dev is taken down" in said
    assert not site.is_fenced
    found = site.status()
    assert (found["active"], found["problems"]) == ("source", [])
    assert found["fence"]["mayWrite"], found["fence"]
    assert site.write(SOURCE)
    assert not site.write(TARGET), "the standby is read-only"


@pytest.mark.nightly
def test_a_command_killed_in_the_fence_is_reported(site: Site) -> None:
    """The next test goes on with it."""
    killed = Interruption(step="fence", line="may not write")
    assert site.ended(killed, *FAILOVER) == -signal.SIGKILL
    assert site.is_fenced
    found = site.status()
    assert found["recovery"]["step"] == "fence"
    assert found["recovery"]["state"] == "interrupted"
    assert [problem for problem in found["problems"] if "failover interrupted at 1/8 (fence)" in problem]


def test_a_command_that_is_asked_to_end_before_the_switch_takes_the_fence_down(site: Site) -> None:
    asked = Interruption(step="drain", line=r"\] drain: (?!done)", number=signal.SIGTERM)
    assert site.ended(asked, *FAILOVER) not in (0, -signal.SIGTERM)
    assert not site.is_fenced
    assert site.write(SOURCE)
    assert site.status()["problems"] == []


def test_a_fence_that_nobody_needs_is_found(site: Site) -> None:
    fenced = site.fence().of(TOPICS, [])
    site.fence().put_up(fenced)
    assert site.findings() == [fencing.LEFT_BEHIND]
    assert not site.write(SOURCE)
    site.fence().take_down(fenced)
    assert site.findings() == []
    assert site.write(SOURCE)


def test_a_failover_that_is_frozen_and_wakes_after_another_one_has_switched_does_nothing_more(site: Site) -> None:
    """Another machine takes it over; its commands are killed too, while they switch and while Pulumi reconciles.

    Its clock is an hour ahead, then an hour behind.
    """
    frozen = Interruption(step="offsets", line=GROUP_SET, number=signal.SIGSTOP)
    proxy = site.killer.proxy
    proxy.forget()
    site.jump_ahead(TARGET, FAR_AHEAD)
    site.require_shared(SOURCE)
    with Stubborn(site.project.client(SOURCE), "stubborn").at_work() as producer:
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
            left = site.unread(SOURCE)
            assert left[FAR_AHEAD], "which it would skip on the target"

            for one, machine in ((SWITCH_KILLED, HOUR_AHEAD), (RECONCILE_KILLED, HOUR_BEHIND)):
                site.interrupt(one, *FAILOVER, before=machine)
                assert not site.write(SOURCE), one
            code, done, said = site.killer.finish(*FAILOVER, before=HOUR_AHEAD)

            assert (code, done["active"], done["recordsLost"], done["stranded"]) == (0, "target", 0, {}), said
            assert producer.refused == {"TOPIC_AUTHORIZATION_FAILED"}
            acknowledged = set(producer.acknowledged)
            time.sleep(2.0)  # it goes on trying
            assert producer.acknowledged == acknowledged
            assert site.unread(TARGET) == left
            assert {
                group: (done["groups"][group]["repeated"], done["groups"][group]["skipped"]) for group in GROUPS
            } == (dict.fromkeys(GROUPS, (0, 0)))
            claimed = site.journal().steps["offsets"]["groups"]
            assert {group: claimed[group]["offsets"] for group in GROUPS} == site.offsets(TARGET)
            assert SHARERS not in done["groups"], "it has no offsets to carry over"
            site.require_shared(TARGET)
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
    held = [value for value in records.read(site.project.client(TARGET), TOPIC) if value.startswith("stubborn-")]
    assert (len(held), set(held)) == (len(acknowledged), acknowledged)
    assert site.progress() is None
    seen = site.status()
    assert seen["problems"] == []
    assert (seen["fence"]["inForce"], seen["fence"]["declared"]) == (True, True)
    assert site.findings() == []
    site.require_nothing_left_to_deploy(TARGET)


def test_an_up_of_a_fenced_source_changes_no_user(site: Site) -> None:
    """Its preview lists the rules: a refresh reads only as many of a list as Pulumi had set."""
    before = {user: site.user(user)["metadata"]["generation"] for user in (TESTER, "rt-inv-dev-user", BOSS)}
    words = (["up", "--yes", "--skip-preview"], ["preview", "--expect-no-changes"])
    for command in words:
        result = subprocess.run(
            ["pulumi", *command, "--refresh", "--non-interactive", "-s", SOURCE],
            cwd=site.project.folder,
            env=site.project.sandbox.environment(),
            capture_output=True,
            text=True,
            timeout=ENDS_S,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
    assert {user: site.user(user)["metadata"]["generation"] for user in before} == before
    assert site.is_fenced


def test_a_source_that_takes_writes_again_is_found_and_fenced_by_who_watches(site: Site) -> None:
    opened = site.fence()
    opened.open_for_applications(opened.of(TOPICS, []))
    assert fencing.TAKES_WRITES in site.findings()
    watching = site.killer.start("status", "--stack", TARGET, "--watch", "--every", "1", proxied=False)
    try:
        wait_until("the source is fenced", lambda: any(one["type"] == "deny" for one in site.rules(TESTER)), REFUSED_S)
    finally:
        watching.interrupt()
    wait_until("it is refused", lambda: not site.write(SOURCE), REFUSED_S)


def test_a_failback_that_is_killed_in_its_steps_brings_everything_back_once(site: Site, nightly: bool) -> None:
    assert site.write(SOURCE, 15, BOSS), "what nobody copies any more is stranded there"
    stranded = site.held(SOURCE) - site.held(TARGET)
    assert len(stranded) >= 15
    assert site.write(TARGET, 30)
    site.read_on(TARGET, GROUPS[0], 5)
    left = {}
    for one in tried(FAILBACK_KILLED, nightly):
        site.interrupt(one, *FAILBACK)
        if one.step not in ("switch", "confirm"):
            assert not site.write(SOURCE), f"{one}: the target is active"
        if one.step in ("fence", "settle", "copy") or (one.step, one.who) == ("stop", PULUMI):
            assert site.write(TARGET), f"{one}: applications go on, for nothing was fenced or the command has lifted it"
        elif one.step in ("drain", "prove", "stop", "offsets"):
            assert not site.write(TARGET), f"{one}: it is fenced"
        if one.step in ("copy", "fence-target") or (one.step, one.who) == ("stop", PULUMI):
            left = site.unread(TARGET)
        if (one.step, one.who) == ("stop", API):
            assert [problem for problem in site.status()["problems"] if "a failback has fenced it" in problem]
            assert site.findings() == [TARGET_FENCED]

    code, done, said = site.killer.finish(*FAILBACK)

    assert (code, done["active"], done["recordsLost"], done["stranded"]) == (0, "source", 0, {}), said
    assert done["recordsBroughtOver"] == len(stranded)
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


@pytest.mark.nightly
def test_an_unplanned_failover_that_is_killed_while_it_measures_has_changed_nothing(site: Site) -> None:
    """The next test begins a planned one in its place."""
    site.interrupt(Interruption(step="measure"), *UNPLANNED)
    found = site.progress()
    assert found is not None
    assert (found.state, found.problem) == (NOTHING_CHANGED, None)
    assert not site.is_fenced
    assert site.write(SOURCE)
    assert not site.write(TARGET)


@pytest.mark.nightly
def test_a_planned_failover_that_is_killed_in_its_steps_loses_and_claims_nothing(site: Site) -> None:
    refused, killed = 0, FAILOVER_KILLED
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
