"""A line between the sites that is long and bad while the pair is brought up, and cut while the active side changes.

The tests come in the order of a site's life. What counts at the end of each is the truth: every record that was
acknowledged is once on the side that is active, and each group has left to read what it had left.
"""

import time
from collections.abc import Iterator

import pytest

from sandbox import network
from sandbox.network import Conditions
from tests.support.waiting import at_most, wait_until

from ...support.packet_loss import packet_filter
from ...support.projects import KEY
from ...support.recovery_site import FAILBACK, FAILOVER, GROUPS, MIRROR, SOURCE, TARGET, Site, disturbed_site
from ...support.running_sandbox import Sandbox

pytestmark = pytest.mark.nightly

RECORDS, MORE = 120, 30
LONG = Conditions(latency_ms=200, jitter_ms=100, bandwidth_kb=90)
"""A round trip of 200 ms, and the rate that TCP has on it if 1 % of the packets is lost: some 1.2 x 1,460 bytes in
0.2 s x 0.1 (Mathis et al., 1997) are 88 kB/s for each connection. Toxiproxy ends each connection at itself, so that TCP
does not see the length of the line and would lose no rate by its own."""
LOST_PERCENT = 1
CUT = Conditions(cut=True)
CUT_S, SHORT_DRAIN_S = 20.0, 15.0
ENDS_S = at_most(600)
"""Connect may leave the tasks of a worker that was cut off from its group to nobody for five minutes, if there is no
other (scheduled.rebalance.max.delay.ms)."""


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, brought up over the long line: each side has a context of its own, so that the mirror crosses it."""
    folder = tmp_path_factory.mktemp("long-line")
    with disturbed_site(sandbox, folder) as found:
        project = found.project
        for stack, config in project.config.items():
            config["kubernetes:context"] = stack
            config[f"{KEY}cluster"]["expose"] = {"type": "loadbalancer"}
        project.config[TARGET][f"{KEY}verification"] = {"when": "on-change", "reportDir": str(folder / "reports")}
        try:
            project.up(SOURCE)
            assert found.write(SOURCE, RECORDS)
            for number, group in enumerate(GROUPS):
                found.read_on(SOURCE, group, 3 * number + 1)
            set_line(found, LONG)
            with packet_filter(tmp_path_factory.mktemp("packet-filter")).losing(LOST_PERCENT, ports(found)) as loss:
                project.up(TARGET)
                assert loss.packets > 0
            set_line(found, Conditions())
            yield found
        finally:
            set_line(found, Conditions())


def set_line(site: Site, conditions: Conditions) -> None:
    network.change(site.project.sandbox.state, conditions, None, print)


def ports(site: Site) -> set[int]:
    """Those by which the other site reaches the clusters that are up."""
    found = network.document(site.project.sandbox.state)
    assert found is not None
    return {int(proxy["listen"].rpartition(":")[2]) for proxy in found["proxies"].values()}


def test_a_pair_that_comes_up_over_a_long_and_bad_line_is_verified(site: Site) -> None:
    found = site.project.outputs(TARGET)["verifications"][MIRROR]
    assert (found["verdict"], found["recordsCompared"]) == ("pass", RECORDS)
    assert site.held(TARGET) == site.acknowledged


def test_a_planned_failover_gives_up_where_the_line_stays_cut_and_applications_may_write_again(site: Site) -> None:
    code, done, said = cut_in(site, "drain", None, *FAILOVER, "--drain", str(int(SHORT_DRAIN_S)))

    assert code == 2, f"{done} {said}"
    assert "who is active has not changed" in done["error"], done
    assert not site.is_fenced, said
    assert site.write(SOURCE, MORE)
    assert not site.write(TARGET)
    assert site.status()["problems"] == []


def test_a_planned_failover_waits_while_the_line_is_cut_and_loses_nothing(site: Site) -> None:
    left = site.unread(SOURCE)

    code, done, said = cut_in(site, "drain", CUT_S, *FAILOVER)

    assert code == 0, f"{done} {said}"
    assert (done["active"], done["recordsLost"], done["stranded"]) == ("target", 0, {})
    assert site.held(TARGET) == site.acknowledged
    assert site.unread(TARGET) == left
    assert site.is_fenced
    assert not site.write(SOURCE)
    assert site.write(TARGET, MORE)
    assert site.status()["problems"] == []


def test_a_failback_waits_while_the_line_is_cut_and_brings_everything_back_once(site: Site) -> None:
    left = site.unread(TARGET)

    code, done, said = cut_in(site, "copy", CUT_S, *FAILBACK)

    assert code == 0, f"{done} {said}"
    assert (done["active"], done["recordsLost"], done["stranded"]) == ("source", 0, {})
    assert site.held(SOURCE) == site.acknowledged
    assert site.unread(SOURCE) == left
    assert not site.is_fenced
    assert site.write(SOURCE)
    assert not site.write(TARGET)
    wait_until("the target has everything once", lambda: site.held(TARGET) == site.acknowledged, 60)
    assert site.status()["problems"] == []


def cut_in(site: Site, step: str, seconds: float | None, *words: str) -> tuple[int, dict[str, object], str]:
    """Run a command and cut the line when it begins a step: for so long, in which it must not end, else until it ends.

    Returns its exit code, its document and what it has printed.
    """
    command = site.killer.start(*words, proxied=False)
    try:
        wait_until(f"{step} begins", lambda: f"] {step}: " in command.said or command.ended, 240)
        assert not command.ended, command.said
        set_line(site, CUT)
        if seconds is not None:
            time.sleep(seconds)
            assert not command.ended, command.said
            set_line(site, Conditions())
        code, done = command.end(ENDS_S)
    finally:
        set_line(site, Conditions())
    return code, done, command.said
