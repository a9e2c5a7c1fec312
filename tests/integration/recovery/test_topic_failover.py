"""One topic of a mirror fails over by itself, while the others flow on, and comes back with the whole mirror.

The tests come in the order of a site's life: a topic that is refused, one whose command is killed and goes on, what
is refused afterwards, and the failover and failback of the whole mirror.
"""

import json
import signal
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.support.waiting import wait_until

from ...support import records
from ...support.projects import KEY, TESTER, Project
from ...support.running_sandbox import Sandbox
from .test_fence import FAILOVER, MIRROR, SOURCE, TARGET, Site, Stubborn

MOVES, STAYS = "items", "store.inventory"
ORDERS, STOCK, BOTH = "orders", "stock", "both"
OF_TOPIC = (*FAILOVER, "--topic", MOVES)
COPIED_S = 60


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, with a group for each of two topics."""
    project = Project.of_example(sandbox, "active-passive", tmp_path_factory.mktemp("topics"))
    for config in project.config.values():
        config[f"{KEY}cluster"].pop("expose")
    tester = project.entry(SOURCE, "users", TESTER)
    tester["acls"] = [*tester["acls"], {"type": "group", "names": [BOTH], "operations": ["Delete"]}]
    mirror = project.entry(TARGET, "mirrors", MIRROR)
    mirror |= {"refreshTopicsSeconds": 5, "refreshGroupsSeconds": 5}
    try:
        project.up(SOURCE)
        client = project.client(SOURCE)
        for topic, group in ((MOVES, ORDERS), (STAYS, STOCK)):
            records.write(client, topic, [f"{topic} {number}" for number in range(50)])
            records.consume(client, topic, group)
        project.up(TARGET)
        yield Site(project)
    finally:
        project.destroy(TARGET, SOURCE)


def declared(site: Site) -> object:
    """What the stack file says of topics that are failed over by themselves."""
    config = yaml.safe_load((site.project.folder / f"Pulumi.{TARGET}.yaml").read_text("utf-8"))["config"]
    return config[f"{KEY}mirrors"][0].get("failedOver")


def held(site: Site, stack: str, topic: str, name: str) -> list[str]:
    """The records of one producer on a side."""
    return [value for value in records.read(site.project.client(stack), topic) if value.startswith(f"{name}-")]


def preview(site: Site) -> "subprocess.CompletedProcess[str]":
    """A preview of the target's stack, with the file as the commands have left it."""
    return subprocess.run(
        ["pulumi", "preview", "--expect-no-changes", "--non-interactive", "-s", TARGET],
        cwd=site.project.folder,
        env=site.project.sandbox.environment(),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def test_a_group_that_reads_other_topics_too_is_named_and_nothing_is_changed(site: Site) -> None:
    client = site.project.client(SOURCE)
    records.consume(client, MOVES, BOTH)
    records.consume(client, STAYS, BOTH)
    failed, said = site.run(*OF_TOPIC)
    assert f"{BOTH} reads {STAYS} too" in failed["error"], said
    assert declared(site) is None
    assert site.may_write(SOURCE)
    records.forget(client, BOTH)


def test_a_topic_fails_over_and_the_others_flow_on_although_the_command_was_killed(site: Site) -> None:
    client = site.project.client(SOURCE)
    with Stubborn(client, "moving").at_work() as moving, Stubborn(client, "staying", STAYS).at_work() as staying:
        assert site.until(r"\] stop: (?!done)", *OF_TOPIC, ended_by=signal.SIGKILL) == -signal.SIGKILL
        found = site.status()["recovery"]
        assert (found["step"], found["state"]) == ("stop", "interrupted")
        assert f"--topic {MOVES}" in found["continueWith"]
        done, said = site.run(*OF_TOPIC)
        assert (done["topics"], done["active"], done["recordsLost"]) == ([MOVES], "source", 0), said
        assert moving.refused == {"TOPIC_AUTHORIZATION_FAILED"}
        acknowledged, before = set(moving.acknowledged), len(staying.acknowledged)
        wait_until("the other topic is written", lambda: len(staying.acknowledged) > before + 20, COPIED_S)
        assert staying.refused == set()
    assert moving.acknowledged == acknowledged
    copied = held(site, TARGET, MOVES, "moving")
    assert (len(copied), set(copied)) == (len(acknowledged), acknowledged)
    assert (site.may_write(SOURCE, MOVES), site.may_write(TARGET, MOVES)) == (False, True)
    assert (site.may_write(SOURCE, STAYS), site.may_write(TARGET, STAYS)) == (True, False)
    wait_until(
        "the other topic is copied", lambda: staying.acknowledged <= set(held(site, TARGET, STAYS, "staying")), 60
    )
    assert set(done["groups"]) == {ORDERS}
    assert records.committed(site.project.client(TARGET), ORDERS)[MOVES] >= 50


def test_the_rest_is_verified_and_the_part_is_said_to_be_left_out(site: Site) -> None:
    folder = site.project.folder / "report"
    verdict, said = site.run("verify", "--stack", TARGET, "--report-dir", str(folder), "--json")
    assert verdict["verdict"] == "pass", said
    report = json.loads((folder / "report.json").read_text("utf-8"))
    assert report["scope"]["failed_over"] == [MOVES]
    assert MOVES not in {row["topic"] for row in report["partitions"]}
    assert STAYS in {row["topic"] for row in report["partitions"]}
    assert f"failed over by themselves, so not judged: {MOVES}" in report["warnings"]


def test_pulumi_agrees_and_the_status_names_what_is_split(site: Site) -> None:
    result = preview(site)
    assert result.returncode == 0, result.stdout + result.stderr
    found = site.status()
    assert (found["active"], found["problems"]) == ("source", [])
    assert found["failedOver"] == {"topics": [MOVES], "groups": [ORDERS], "pending": []}
    assert site.findings() == []
    assert declared(site) == {"topics": [MOVES], "groups": [ORDERS]}


def test_a_part_cannot_fail_back_and_cannot_fail_over_twice(site: Site) -> None:
    failed, _ = site.run("failback", "--to", SOURCE, "--yes", "--json")
    assert f"must have failed over as a whole to fail back (got {MOVES} alone)" in failed["error"]
    failed, _ = site.run(*OF_TOPIC)
    assert f"at the target already: {MOVES}" in failed["error"]
    failed, _ = site.run(*FAILOVER, "--topic", ".*")
    assert "leave --topic out" in failed["error"]
    assert site.status()["problems"] == []


@pytest.mark.nightly
def test_the_whole_mirror_takes_the_rest_over_and_everything_comes_back(site: Site) -> None:
    records.write(site.project.client(TARGET), MOVES, ["moving at the target"])
    records.consume(site.project.client(TARGET), MOVES, ORDERS)
    done, said = site.run(*FAILOVER)
    assert (done["active"], done["recordsLost"], done["topics"]) == ("target", 0, None), said
    assert declared(site) is None
    assert (site.may_write(SOURCE, STAYS), site.may_write(TARGET, STAYS)) == (False, True)
    result = preview(site)
    assert result.returncode == 0, result.stdout + result.stderr
    records.write(site.project.client(TARGET), STAYS, ["staying at the target"])
    done, said = site.run("failback", "--to", SOURCE, "--yes", "--json")
    assert (done["active"], done["recordsLost"]) == ("source", 0), said
    for topic, value in ((MOVES, "moving at the target"), (STAYS, "staying at the target")):
        there, here = (sorted(records.read(site.project.client(each), topic)) for each in (TARGET, SOURCE))
        assert value in here
        assert there == here, f"{topic}: something is lost or there twice"
    assert (site.may_write(SOURCE, MOVES), site.may_write(TARGET, MOVES)) == (True, False)
    assert site.status()["problems"] == []
