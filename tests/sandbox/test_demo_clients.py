"""Demo clients as their Deployments run them, as processes: command, variables, and the signal that ends a pod.

Kubernetes' part is left out, for the sandbox runs no pods: it only says whether it would take the Deployments.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from components import demo_clients
from components.demo_clients import DemoClientsArgs, Role, deployment_name, deployment_spec
from sandbox.state import PROJECT
from settings import parse
from settings.files import read_values
from tests.waiting import wait_until

from .clients import ops
from .harness import Pair, Sandbox

TOPIC, GROUP, RATE = "store.inventory", "test-demo-clients", 40
CLIENTS = {"image": "registry.example.com/kafka/demo-clients:1.0.0", "topic": TOPIC, "group": GROUP, "rate": RATE}
MEMORY = 128 * 1024 * 1024  # of a pod, unless the settings say otherwise
LINE = re.compile(r"^(\d+) (\d+) \S+ (\{.*\})$", re.MULTILINE)


@dataclass(frozen=True)
class Client:
    """A process in a pod's place, and the files that it writes."""

    process: "subprocess.Popen[bytes]"
    out: Path
    err: Path

    def seen(self) -> list[tuple[int, int]]:
        """Partition and offset of each record that it has shown."""
        return [(int(found[1]), int(found[2])) for found in LINE.finditer(self.err.read_text("utf-8"))]

    def stop(self) -> dict[str, Any]:
        """End it as a pod is ended; return its summary. It must have been content with the pod's memory."""
        assert psutil.Process(self.process.pid).memory_info().rss < MEMORY
        self.process.terminate()
        code = self.process.wait(demo_clients.GRACE_S)
        assert code == 0, f"exit {code}: {self.out.read_text('utf-8')}\n{self.err.read_text('utf-8')[-2000:]}"
        found: dict[str, Any] = json.loads(self.out.read_text("utf-8"))
        return found


class Pods:
    """Starts what a stack's Deployments describe, in a folder that holds what their image does."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.folder, self.clients = sandbox, folder, list[Client]()
        shutil.copytree(PROJECT / "ops", folder / "ops", ignore=shutil.ignore_patterns("__pycache__"))
        dockerfile = (PROJECT / "images" / "demo-clients" / "Dockerfile").read_text("utf-8")
        self.entrypoint: list[str] = json.loads(dockerfile.rpartition("ENTRYPOINT ")[2])

    def deployment(self, stack: str, outputs: dict[str, Any], role: Role, **settings: Any) -> dict[str, Any]:
        """The Deployment that an `up` would make."""
        values = {**read_values(PROJECT / f"Pulumi.{stack}.yaml"), "demoClients": {**CLIENTS, **settings}}
        found = parse(values, stack)
        assert found.demo_clients is not None
        servers = outputs["cluster"]["bootstrapServers"]
        args = DemoClientsArgs(settings=found, clients=found.demo_clients, bootstrap_servers=servers)
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": deployment_name(found, role), "namespace": found.cluster.namespace},
            "spec": deployment_spec(args, role),
        }

    def start(self, deployment: dict[str, Any]) -> Client:
        """Start one of its pods' containers."""
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        variables = self._variables(container["env"], deployment["metadata"]["namespace"])
        name = f"{deployment['metadata']['name']}-{len(self.clients)}"
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [str(Path(sys.executable).with_name(self.entrypoint[0])), *self.entrypoint[1:], *container["args"]],
                cwd=self.folder,
                env={"PATH": os.defpath, "RT_INVENTORY_SANDBOX": str(self.sandbox.state.path), **variables},
                stdout=stdout,
                stderr=stderr,
            )
        self.clients.append(Client(process, out, err))
        return self.clients[-1]

    def _variables(self, env: list[dict[str, Any]], namespace: str) -> dict[str, str]:
        """Variables as the kubelet resolves them."""
        found = {}
        for each in env:
            reference = each.get("valueFrom", {}).get("secretKeyRef")
            if reference is None:
                found[each["name"]] = str(each["value"])
                continue
            data = self.sandbox.secret(namespace, reference["name"])
            if reference["key"] in data or not reference.get("optional"):
                found[each["name"]] = data[reference["key"]]
        return found


@pytest.fixture
def pods(sandbox: Sandbox, pair: Pair, tmp_path: Path) -> Iterator[Pods]:
    made = Pods(sandbox, tmp_path)
    yield made
    for client in made.clients:
        if client.process.poll() is None:
            client.process.kill()
            client.process.wait(10)


def test_no_record_is_lost_or_repeated_while_clients_come_and_go(sandbox: Sandbox, pair: Pair, pods: Pods) -> None:
    # The group begins behind what other tests have sent.
    ops(sandbox, "consume", "-s", "dev", "-t", TOPIC, "-g", GROUP, "--until-end")
    # The producer learns from the Secret of the active side where that is, the consumers from their stack's user.
    producer = pods.deployment("stg", pair.stg, "producer", secret="mm2-clients")
    consumer = pods.deployment("dev", pair.dev, "consumer", user="rt-inv-dev-user")

    first, second, sender = pods.start(consumer), pods.start(consumer), pods.start(producer)
    wait_until("both consumers to read", lambda: len(first.seen()) > RATE and len(second.seen()) > RATE, 90)
    gone = second.stop()
    left = len(first.seen())
    wait_until("the other one to go on", lambda: len(first.seen()) > left + 3 * RATE, 60)
    third = pods.start(consumer)
    wait_until("one more to read", lambda: len(third.seen()) > RATE, 60)
    sent = sender.stop()
    assert sent["failed"] == 0
    wait_until("the rest", lambda: len([*first.seen(), *second.seen(), *third.seen()]) >= sent["delivered"], 60)
    read = [gone, first.stop(), third.stop()]

    written = {
        (row["partition"], offset)
        for row in sent["partitions"]
        for offset in range(row["firstOffset"], row["lastOffset"] + 1)
    }
    seen = [*first.seen(), *second.seen(), *third.seen()]
    assert len(written) == sent["delivered"]
    assert set(seen) == written
    assert len(seen) == len(written) == sum(each["records"] for each in read)
    assert ops(sandbox, "consume", "-s", "dev", "-t", TOPIC, "-g", GROUP, "--until-end")["records"] == 0
    passwords = pair.dev["userPasswords"].values()
    texts = [file.read_text("utf-8") for client in pods.clients for file in (client.out, client.err)]
    assert not [password for password in passwords if any(password in text for text in texts)]


@pytest.mark.parametrize("role", ["producer", "consumer"])
@pytest.mark.parametrize("login", [{"user": "rt-inv-dev-user"}, {"secret": "mm2-clients"}])
def test_kubernetes_takes_the_deployments(sandbox: Sandbox, pods: Pods, pair: Pair, role: Role, login: Any) -> None:
    wanted = pods.deployment("dev", pair.dev, role, producers=0, consumers=0, **login)
    command = ["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"]
    made = json.loads(sandbox.kubectl(*command, stdin=json.dumps(wanted)).stdout)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert (made["spec"]["replicas"], container["env"]) == (
        0,
        wanted["spec"]["template"]["spec"]["containers"][0]["env"],
    )
