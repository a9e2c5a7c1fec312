"""Demo clients as their Deployments run them, in containers of their image: variables, and the signal that ends a pod.

Kubernetes' part is left out, for the sandbox runs no pods: it only says whether it would take the Deployments.
"""

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from components import endpoint
from components.kafka import demo_clients
from components.kafka.demo_clients import DemoClientsArgs, Role, deployment_name, deployment_spec
from sandbox.state import PROJECT
from settings import parse
from settings.files import read_values
from tests.support.waiting import wait_until

from ...support.images import Images, first_process
from ...support.ops_commands import ops
from ...support.running_sandbox import Pair, Sandbox

TOPIC, GROUP, RATE = "store.inventory", "test-demo-clients", 40
CLIENTS = {"image": "registry.example.com/kafka/demo-clients:1.0.0", "topic": TOPIC, "group": GROUP, "rate": RATE}
MEMORY = 128 * 1024 * 1024  # of a pod, unless the settings say otherwise
LAST_WORDS = 1000  # characters of a client's stderr, for a message
LINE = re.compile(r"^(\d+) (\d+) \S+ \S+ (\{.*\})$", re.MULTILINE)


@dataclass(frozen=True)
class Client:
    """A container in a pod's place, and the files of its output."""

    process: "subprocess.Popen[bytes]"
    out: Path
    err: Path

    def seen(self) -> list[tuple[int, int]]:
        """Partition and offset of each record that it has shown."""
        return [(int(found[1]), int(found[2])) for found in LINE.finditer(self.err.read_text("utf-8"))]

    def last_words(self) -> str:
        """Whether it runs, and the end of what it wrote."""
        said = self.err.read_text("utf-8")[-LAST_WORDS:]
        return f"{self.err.stem}: exit code {self.process.poll()}, {len(self.seen())} records, it wrote: {said}"

    def stop(self) -> dict[str, Any]:
        """End it as a pod is ended; return its summary. It must have been content with the pod's memory."""
        client = first_process(self.process)
        assert client.memory_info().rss < MEMORY
        client.send_signal(signal.SIGTERM)
        code = self.process.wait(demo_clients.GRACE_S)
        assert code == 0, f"exit {code}: {self.out.read_text('utf-8')}\n{self.err.read_text('utf-8')[-2000:]}"
        found: dict[str, Any] = json.loads(self.out.read_text("utf-8"))
        return found


class Pods:
    """Starts what a stack's Deployments describe, from the image that this project builds for them."""

    def __init__(self, sandbox: Sandbox, images: Images, folder: Path) -> None:
        self.sandbox, self.images, self.folder, self.clients = sandbox, images, folder, list[Client]()

    def deployment(self, stack: str, outputs: dict[str, Any], role: Role, **settings: Any) -> dict[str, Any]:
        """The Deployment that an `up` would make."""
        values = {**read_values(PROJECT / f"Pulumi.{stack}.yaml"), "demoClients": {**CLIENTS, **settings}}
        found = parse(values, stack)
        assert found.demo_clients is not None
        servers = outputs["cluster"]["bootstrapServers"]
        logins = {user.name: endpoint.login(user, managed=True) for user in found.users}
        args = DemoClientsArgs(settings=found, clients=found.demo_clients, bootstrap_servers=servers, logins=logins)
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
        variables |= {"RT_INVENTORY_SANDBOX": str(self.sandbox.state.path)}  # by which a client that is left is found
        image = self.images.demo_clients
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                image.command(*container["args"]), env=image.environment(variables), stdout=stdout, stderr=stderr
            )
        self.clients.append(Client(process, out, err))
        return self.clients[-1]

    def wait_until(self, what: str, condition: Callable[[], bool], deadline_s: float) -> None:
        """Wait for what the clients do; when it does not come, say what each of them wrote."""
        wait_until(what, condition, deadline_s, otherwise=lambda: "\n".join(each.last_words() for each in self.clients))

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
def pods(sandbox: Sandbox, pair: Pair, images: Images, tmp_path: Path) -> Iterator[Pods]:
    made = Pods(sandbox, images, tmp_path)
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
    consumer = pods.deployment("dev", pair.dev, "consumer", user="rt-inv-app-dev-user")

    first, second, sender = pods.start(consumer), pods.start(consumer), pods.start(producer)
    pods.wait_until("both consumers to read", lambda: len(first.seen()) > RATE and len(second.seen()) > RATE, 90)
    gone = second.stop()
    left = len(first.seen())
    pods.wait_until("the other one to go on", lambda: len(first.seen()) > left + 3 * RATE, 60)
    third = pods.start(consumer)
    pods.wait_until("one more to read", lambda: len(third.seen()) > RATE, 60)
    sent = sender.stop()
    assert sent["failed"] == 0
    pods.wait_until("the rest", lambda: len([*first.seen(), *second.seen(), *third.seen()]) >= sent["delivered"], 60)
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
@pytest.mark.parametrize("login", [{"user": "rt-inv-app-dev-user"}, {"secret": "mm2-clients"}])
def test_kubernetes_takes_the_deployments(sandbox: Sandbox, pods: Pods, pair: Pair, role: Role, login: Any) -> None:
    wanted = pods.deployment("dev", pair.dev, role, producers=0, consumers=0, **login)
    command = ["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"]
    made = json.loads(sandbox.kubectl(*command, stdin=json.dumps(wanted)).stdout)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert (made["spec"]["replicas"], container["env"]) == (
        0,
        wanted["spec"]["template"]["spec"]["containers"][0]["env"],
    )
