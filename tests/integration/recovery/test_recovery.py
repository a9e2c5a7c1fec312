"""Failing over and back with applications at work: what they lose, what they read again, and what an interruption does.

In every run `test_break_glass.py` has an application in an unplanned failover and the failback. The tests come in the
order of a site's life: there, back, there without the source, and back again.
"""

import subprocess
from collections.abc import Iterator
from functools import partial

import pytest

from sandbox.state import PROJECT
from tests.support.waiting import at_most, wait_until

from ...support.ops_commands import ops
from ...support.pair_at_work import ENDS_S, TOPIC, Site, at_work, running_again
from ...support.running_sandbox import Pair, Sandbox

pytestmark = pytest.mark.nightly

GROUP, LATE = "recovery-app", "recovery-late"


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with at_work(sandbox, pair, tmp_path_factory.mktemp("recovery"), GROUP) as site:
        yield site


@pytest.fixture
def source_brokers(site: Site) -> Iterator[None]:
    """The source's brokers, which run again afterwards."""
    with running_again(site):
        yield


def test_a_planned_failover_loses_and_repeats_nothing_however_often_it_is_interrupted(site: Site) -> None:
    before = (site.folder / "Pulumi.stg.yaml").read_text("utf-8")
    planned = ops(site.sandbox, "failover", "--to", "stg", "--exact", "--dry-run", "-C", str(site.folder))
    wanted = ["fence", "drain", "prove", "stop", "offsets", "switch", "confirm", "reconcile"]
    assert [step["name"] for step in planned["steps"]] == wanted
    assert (site.folder / "Pulumi.stg.yaml").read_text("utf-8") == before

    site.work()
    done, steps = site.run_interrupted("failover", "--to", "stg", "--exact")

    assert steps == wanted
    assert (done["active"], done["recordsLost"], done["groups"][GROUP]["repeated"]) == ("target", 0, 0)
    site.wait_for("target")
    site.work()
    assert site.application.lost == set()
    assert site.application.repeated == 0
    assert site.active() == "target"
    series = {
        (
            one["name"].removeprefix("rt_inventory_"),
            *(value for name, value in sample["labels"].items() if name != "stack"),
        )
        for one in ops(site.sandbox, "metrics", "--stack", "stg", "--no-verification")["metrics"]
        for sample in one["samples"]
        if sample["value"] == 1 or "cost" in one["name"] or "running" in one["name"]
    }
    assert series >= {("mirror_state", "mm2", "stopped"), ("mirror_active", "mm2", "target")}
    assert not [key for key in series if key[0] in ("mirror_up", "connector_running", "failover_cost_records")]


def test_an_up_from_an_old_checkout_does_not_switch_back(site: Site) -> None:
    result = site.sandbox.pulumi.run("stg", "up", "--yes", "--skip-preview", check=False, timeout_s=at_most(120))
    assert result.returncode != 0
    assert "active" in result.stdout + result.stderr
    assert site.active() == "target"


def test_a_failback_brings_what_was_written_on_the_target(site: Site) -> None:
    planned = ops(site.sandbox, "failback", "--to", "dev", "--dry-run", "-C", str(site.folder))
    assert (planned["resumes"], [step["name"] for step in planned["steps"][:2]]) == (False, ["fence", "survey"])
    assert site.active() == "target"

    done = site.run("failback", "--to", "dev", at={"drain": site.rest})

    assert (done["active"], done["recordsLost"], done["recordsBroughtOver"]) == ("source", 0, 0)
    site.wait_for("source")
    site.work()
    assert site.application.lost == set()
    assert site.application.repeated == 0
    assert site.application.acknowledged == site.held("dev")
    wait_until("the target has everything once", lambda: site.application.acknowledged == site.held("stg"), 60)


def test_an_unplanned_failover_says_what_nobody_can_know_and_the_failback_brings_it(
    site: Site, source_brokers: None
) -> None:
    site.work()
    late = ops(site.sandbox, "consume", "--stack", "dev", "--topic", TOPIC, "--group", LATE, "--max", "40")
    site.lose_source()

    refused = subprocess.run(
        site.command("failover", "--to", "stg"),
        cwd=PROJECT,
        env=site.sandbox.environment(),
        capture_output=True,
        text=True,
        timeout=at_most(ENDS_S),
        check=False,
    )
    assert refused.returncode == 2
    assert "--unplanned" in refused.stdout
    begun: list[str] = []
    steps = ["measure", "stop", "offsets", "switch", "confirm", "reconcile"]
    done = site.run("failover", "--to", "stg", "--unplanned", at={step: partial(begun.append, step) for step in steps})

    assert begun == steps
    assert (done["active"], done["recordsLost"], done["groups"][GROUP]["repeated"]) == ("target", None, None)
    assert TOPIC in done["newestMirrored"]
    held, stranded = site.go_on_at_target()
    assert stranded
    assert site.application.repeated <= done["groups"][GROUP]["left"]
    site.find_source()

    back, steps = site.run_interrupted("failback", "--to", "dev")

    assert steps[:4] == ["fence", "survey", "realign", "settle"]
    assert steps[-2:] == ["switch", "confirm"]
    # A record may have been written whose acknowledgement the killed brokers no longer sent.
    assert len(stranded) <= back["recordsBroughtOver"] <= len(site.application.sent - held)
    site.wait_for("source")
    site.work()
    assert site.application.lost == set()
    assert site.application.acknowledged <= site.held("dev") <= site.application.sent
    assert late["records"] == 40  # a group that is far behind is put right as well, and stays so
    assert ops(site.sandbox, "verify", "--stack", "stg")["verdict"] == "pass"
