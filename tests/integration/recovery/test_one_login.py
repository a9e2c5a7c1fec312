"""An application with one login for both sides: a rotation reaches both, and a failover changes its address alone."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from kubernetes import client, config

from sandbox.state import PROJECT

from ...support import records
from ...support.projects import KEY, Project, output_of
from ...support.running_sandbox import Sandbox

SOURCE, TARGET, LOGIN, TOPIC, SECRET = "dev", "stg", "inventory-app", "items", "mm2-clients"
ENDS_S = 400
ADDRESS = {"bootstrapServers", "ca.crt", "client.properties"}


@pytest.fixture(scope="module")
def project(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project.of_example(sandbox, "active-passive", tmp_path_factory.mktemp("one-login"))
    for each in project.config.values():
        each[f"{KEY}cluster"].pop("expose")
    project.config[TARGET][f"{KEY}verification"] = {"when": "never"}
    try:
        project.up(SOURCE)
        records.write(client_of(own(project, SOURCE), project, SOURCE), TOPIC, ["first"])
        project.up(TARGET)
        yield project
    finally:
        project.destroy(TARGET, SOURCE)


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


def test_both_sides_know_one_password_and_a_rotation_reaches_both(project: Project) -> None:
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


def test_no_state_holds_the_password_in_plain_text(project: Project) -> None:
    password = given(project)["password"]
    for stack in (SOURCE, TARGET):
        assert password not in output_of(project.run(stack, "stack", "export", timeout_s=60))


@pytest.mark.nightly
def test_after_a_failover_the_same_login_goes_on_at_the_new_address(project: Project) -> None:
    before, deployment = given(project), deploy(project)
    records.write(reached_by(before, before), TOPIC, ["at the source"])
    done = fail_over(project)
    assert (done["active"], done["recordsLost"]) == ("target", 0)
    assert (done["workloads"], done["restart"]) == ([f"Deployment {project.namespace(TARGET)}/{deployment}"], None)
    after = given(project)
    assert {key for key in before if before[key] != after.get(key)} == ADDRESS
    assert set(after) == set(before)
    records.write(reached_by(before, after), TOPIC, ["at the target"])
    held = records.read(project.client(TARGET), TOPIC)
    assert {"first", "at the source", "at the target"} <= set(held)
    assert refusal(reached_by(before, before)) == "TOPIC_AUTHORIZATION_FAILED"


def refusal(settings: dict[str, Any]) -> str | None:
    """Name of the error with which a record is refused, None if it is not."""
    answers: list[KafkaError | None] = []
    producer = Producer(settings | {"message.timeout.ms": 15_000})
    producer.produce(TOPIC, value="too late", on_delivery=lambda error, _: answers.append(error))
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


def fail_over(project: Project) -> Any:
    """Fail over by the command; return its document."""
    result = subprocess.run(
        [sys.executable, "-m", "ops", "failover", "--to", TARGET, "--yes", "--json", "-C", str(project.folder)],
        cwd=PROJECT,
        env=project.sandbox.environment(),
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        check=False,
    )
    assert result.returncode == 0, output_of(result)
    return json.loads(result.stdout)
