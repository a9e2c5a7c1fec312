"""One topic of a mirror fails over by itself, while the others flow on, and comes back with the whole mirror.

The tests come in the order of a site's life: an application's login is rotated, which is one for both sides; a topic is
refused, and one whose command is killed fails over; what is refused afterwards; the failover and failback of the whole
mirror; and a failover of the application that keeps its login.
"""

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from confluent_kafka import KafkaError, Producer
from kubernetes import client, config

from tests.support.waiting import at_most, wait_until

from ...support import records
from ...support.killed_commands import Interruption
from ...support.projects import KEY, TESTER, Project, output_of
from ...support.recovery_site import FAILBACK, MIRROR, SOURCE, TARGET, Site, disturbed_site
from ...support.running_sandbox import Sandbox
from ...support.stubborn_producer import Stubborn

FAILOVER = ("failover", "--to", TARGET, "--yes", "--json")
MOVES, STAYS = "items", "store.inventory"
ORDERS, STOCK, BOTH = "orders", "stock", "both"
OF_TOPIC = (*FAILOVER, "--topic", MOVES)
COPIED_S = 60
LOGIN, SECRET = "inventory-app", "mm2-clients"
ADDRESS = {"bootstrapServers", "ca.crt", "client.properties"}


@pytest.fixture(scope="module")
def site(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pair, with a group for each of two topics, and an application."""
    with disturbed_site(sandbox, tmp_path_factory.mktemp("topics")) as found:
        project = found.project
        tester = project.entry(SOURCE, "users", TESTER)
        tester["acls"] = [*tester["acls"], {"type": "group", "names": [BOTH], "operations": ["Delete"]}]
        mirror = project.entry(TARGET, "mirrors", MIRROR)
        mirror |= {"refreshTopicsSeconds": 5, "refreshGroupsSeconds": 5}
        project.up(SOURCE)
        settings = project.client(SOURCE)
        for topic, group in ((MOVES, ORDERS), (STAYS, STOCK)):
            records.write(settings, topic, [f"{topic} {number}" for number in range(50)])
            records.consume(settings, topic, group)
        records.write(client_of(own(project, SOURCE), project, SOURCE), MOVES, ["first"])
        project.up(TARGET)
        yield found


def given(project: Project) -> dict[str, str]:
    """What applications read."""
    return project.sandbox.secret(project.namespace(TARGET), SECRET)


def own(project: Project, stack: str) -> dict[str, str]:
    """The login as the operator of a side has written it."""
    return {"user": LOGIN, **project.sandbox.secret(project.namespace(stack), LOGIN)}


def client_of(login: dict[str, str], project: Project, stack: str) -> dict[str, Any]:
    """Properties of a client with a login at a side."""
    return project.client(stack) | {"sasl.username": login["user"], "sasl.password": login["password"]}


def reached_by(login: dict[str, str], at: dict[str, str]) -> dict[str, Any]:
    """Properties of a client that keeps its login and takes the address and the authority of the Secret."""
    return {
        "bootstrap.servers": at["bootstrapServers"],
        "ssl.ca.pem": at["ca.crt"],
        "security.protocol": login["securityProtocol"],
        "sasl.mechanism": login["saslMechanism"],
        "sasl.username": login["user"],
        "sasl.password": login["password"],
        "socket.timeout.ms": 5000,
        "log_level": 0,
    }


def declared(site: Site) -> object:
    """What the stack file says of topics that are failed over by themselves."""
    settings = yaml.safe_load((site.project.folder / f"Pulumi.{TARGET}.yaml").read_text("utf-8"))["config"]
    return settings[f"{KEY}mirrors"][0].get("failedOver")


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
        timeout=at_most(400),
        check=False,
    )


def test_both_sides_know_one_password_and_a_rotation_reaches_both(site: Site) -> None:
    project = site.project
    old = given(project)
    assert own(project, SOURCE)["password"] == own(project, TARGET)["password"] == old["password"]
    project.entry(SOURCE, "users", LOGIN)["passwordGeneration"] = 2
    project.up(SOURCE)
    assert records.admits(client_of(old, project, TARGET)), "until its own `up` the target has the old one"
    project.up(TARGET)
    new = given(project)
    assert new["password"] != old["password"]
    for stack in (SOURCE, TARGET):
        assert own(project, stack)["password"] == new["password"]
        assert records.admits(client_of(new, project, stack)), stack
        assert not records.admits(client_of(old, project, stack)), stack


def test_no_state_holds_the_password_in_plain_text(site: Site) -> None:
    project = site.project
    password = given(project)["password"]
    for stack in (SOURCE, TARGET):
        assert password not in output_of(project.run(stack, "stack", "export", timeout_s=at_most(60)))


@pytest.mark.nightly
def test_a_group_that_reads_other_topics_too_is_named_and_nothing_is_changed(site: Site) -> None:
    settings = site.project.client(SOURCE)
    records.consume(settings, MOVES, BOTH)
    records.consume(settings, STAYS, BOTH)
    failed, said = site.run(*OF_TOPIC)
    assert f"{BOTH} reads {STAYS} too" in failed["error"], said
    assert declared(site) is None
    assert site.may_write(SOURCE)
    records.forget(settings, BOTH)


def test_a_topic_fails_over_and_the_others_flow_on_although_the_command_was_killed(site: Site, nightly: bool) -> None:
    """It is killed in a nightly run only."""
    settings = site.project.client(SOURCE)
    with Stubborn(settings, "moving").at_work() as moving, Stubborn(settings, "staying", STAYS).at_work() as staying:
        if nightly:
            killed = Interruption(step="stop", line=r"\] stop: (?!done)")
            assert site.ended(killed, *OF_TOPIC) == -signal.SIGKILL
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


@pytest.mark.nightly
def test_a_part_cannot_fail_back_and_cannot_fail_over_twice(site: Site) -> None:
    failed, _ = site.run(*FAILBACK)
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
    done, said = site.run(*FAILBACK)
    assert (done["active"], done["recordsLost"]) == ("source", 0), said
    for topic, value in ((MOVES, "moving at the target"), (STAYS, "staying at the target")):
        there, here = (sorted(records.read(site.project.client(each), topic)) for each in (TARGET, SOURCE))
        assert value in here
        assert there == here, f"{topic}: something is lost or there twice"
    assert (site.may_write(SOURCE, MOVES), site.may_write(TARGET, MOVES)) == (True, False)
    assert site.status()["problems"] == []


@pytest.mark.nightly
def test_after_a_failover_the_same_login_goes_on_at_the_new_address(site: Site) -> None:
    project = site.project
    before, deployment = given(project), deploy(project)
    records.write(reached_by(before, before), MOVES, ["at the source"])
    code, done, said = site.killer.finish(*FAILOVER)
    assert code == 0, said
    assert (done["active"], done["recordsLost"]) == ("target", 0), said
    assert (done["workloads"], done["restart"]) == ([f"Deployment {project.namespace(TARGET)}/{deployment}"], None)
    after = given(project)
    assert {key for key in before if before[key] != after.get(key)} == ADDRESS
    assert set(after) == set(before)
    records.write(reached_by(before, after), MOVES, ["at the target"])
    found = records.read(project.client(TARGET), MOVES)
    assert {"first", "at the source", "at the target"} <= set(found)
    assert refusal(reached_by(before, before)) == "TOPIC_AUTHORIZATION_FAILED"


def refusal(settings: dict[str, Any]) -> str | None:
    """Name of the error with which a record is refused, None if it is not."""
    answers: list[KafkaError | None] = []
    producer = Producer(settings | {"message.timeout.ms": 15_000})
    producer.produce(MOVES, value="too late", on_delivery=lambda error, _: answers.append(error))
    assert producer.flush(20) == 0
    (error,) = answers
    return error.name() if error is not None else None


def deploy(project: Project) -> str:
    """A Deployment whose pods have the Secret as variables, in the mirror's namespace."""
    labels = {"app": "orders"}
    container = {"name": "orders", "image": "orders:1", "envFrom": [{"secretRef": {"name": SECRET}}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    body = {"metadata": {"name": "orders"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    api = config.new_client_from_config(config_file=str(project.sandbox.state.kubeconfig))
    client.AppsV1Api(api).create_namespaced_deployment(project.namespace(TARGET), body)
    return "orders"
