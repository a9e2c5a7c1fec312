"""What exists is adopted as it is: the stack file describes it, and the preview after the import shows no change."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.waiting import at_most

from ...support.ops_commands import run
from ...support.running_sandbox import Pair, Sandbox

ROOT = Path(__file__).parents[3]
NAMESPACE = "legacy"
READY_S = 100
KINDS = ("kafka", "kafkanodepool", "kafkauser", "kafkatopic", "kafkamirrormaker2")
PROJECT = """\
name: adopted
main: {main}
runtime: python
options:
  refresh: always
"""
OBJECTS = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaNodePool
metadata: {name: nodes, namespace: legacy, labels: {strimzi.io/cluster: legacy, team: storage}}
spec: {replicas: 1, roles: [broker, controller], storage: {type: ephemeral}}
---
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: legacy, namespace: legacy, annotations: {owner: storage}}
spec:
  kafka:
    listeners:
      - {name: tls, port: 9093, type: internal, tls: true, authentication: {type: scram-sha-512}}
    authorization: {type: simple}
    config:
      offsets.topic.replication.factor: 1
      transaction.state.log.replication.factor: 1
      transaction.state.log.min.isr: 1
  entityOperator: {topicOperator: {}, userOperator: {}}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: reader, namespace: legacy, labels: {strimzi.io/cluster: legacy, team: sales}}
spec:
  authentication: {type: scram-sha-512, password: {valueFrom: {secretKeyRef: {name: reader-secret, key: secret}}}}
  authorization:
    type: simple
    acls:
      - {resource: {type: topic, name: Orders_EU, patternType: literal}, operations: [Read, Describe]}
      - {resource: {type: group, name: "*"}, operations: [Read], host: "*"}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: mirror, namespace: legacy, labels: {strimzi.io/cluster: legacy}}
spec:
  authentication: {type: scram-sha-512}
  authorization:
    type: simple
    acls:
      - {resource: {type: topic, name: "*"}, operations: [All]}
      - {resource: {type: group, name: "*"}, operations: [All]}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata:
  name: orders-of-europe
  namespace: legacy
  labels: {strimzi.io/cluster: legacy}
  annotations: {owner: sales, exception.rt-inventory/topic-replication: "until 2027-03-31: one broker"}
spec: {topicName: Orders_EU, partitions: 2, replicas: 1, config: {retention.ms: 604800000}}
"""


@pytest.fixture
def existing(sandbox: Sandbox, pair: Pair) -> Iterator[None]:
    """A cluster with users, a topic and a mirror that nobody made with Pulumi."""
    sandbox.kubectl("create", "namespace", NAMESPACE)
    try:
        secrets = {
            "reader-secret": {"secret": "made-before-pulumi-came"},
            "upstream": {"pw": pair.dev["userPasswords"]["rt-inv-dev-user"]},
            "upstream-ca": {"ca.crt": pair.dev["clusterCaCertificate"]},
        }
        for name, data in secrets.items():
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
            sandbox.kubectl("apply", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(body))
        sandbox.kubectl("apply", "-f", "-", stdin=OBJECTS)
        wait(sandbox, "kafka/legacy")
        for name in ("kafkauser/reader", "kafkauser/mirror", "kafkatopic/orders-of-europe"):
            wait(sandbox, name)
        listener = sandbox.get("kafka", "-n", NAMESPACE, "legacy")["status"]["listeners"][0]
        body = mirror(pair.dev["cluster"]["bootstrapServers"], listener["bootstrapServers"])
        sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(body))
        wait(sandbox, "kafkamirrormaker2/legacy-mirror")
        yield
    finally:
        sandbox.kubectl("delete", "namespace", NAMESPACE, "--timeout=100s", check=False)


def mirror(source: str, target: str) -> dict[str, object]:
    """A mirror with few keys: what it does not say must not be said by its stack either."""

    def end(alias: str, servers: str, user: str, secret: str, key: str, ca: str) -> dict[str, object]:
        return {
            "alias": alias,
            "bootstrapServers": servers,
            "tls": {"trustedCertificates": [{"secretName": ca, "certificate": "ca.crt"}]},
            "authentication": {
                "type": "scram-sha-512",
                "username": user,
                "passwordSecret": {"secretName": secret, "password": key},
            },
        }

    target_end = {
        **end("here", target, "mirror", "mirror", "password", "legacy-cluster-ca-cert"),
        "groupId": "legacy-group",
        **{f"{kind}StorageTopic": f"legacy-{kind}" for kind in ("config", "offset", "status")},
        "config": {f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")},
    }
    flow = {
        "source": end("there", source, "rt-inv-dev-user", "upstream", "pw", "upstream-ca"),
        "topicsPattern": r"store\.inventory|items\.(inventory|none)",
        "groupsPattern": "nobody",
        "sourceConnector": {
            "config": {
                "replication.factor": 1,
                "offset-syncs.topic.replication.factor": 1,
                "offset-syncs.topic.location": "target",
                "sync.topic.acls.enabled": False,
                "producer.override.linger.ms": 5,
            }
        },
        "checkpointConnector": {
            "config": {"checkpoints.topic.replication.factor": 1, "offset-syncs.topic.location": "target"}
        },
    }
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "legacy-mirror", "namespace": NAMESPACE},
        "spec": {"replicas": 1, "target": target_end, "mirrors": [flow]},
    }


def wait(sandbox: Sandbox, name: str) -> None:
    kind, name = name.split("/")
    sandbox.wait_ready(NAMESPACE, f"{kind}.kafka.strimzi.io/{name}", READY_S)


def generations(sandbox: Sandbox) -> dict[str, int]:
    """Generation of each object: the API server raises it when a spec changes."""
    kinds = ",".join(f"{kind}.kafka.strimzi.io" for kind in KINDS)
    items = sandbox.get(kinds, "-n", NAMESPACE)["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["generation"] for each in items}


@pytest.mark.usefixtures("existing")
def test_what_exists_is_adopted_without_a_change(sandbox: Sandbox, tmp_path: Path) -> None:
    main = os.path.relpath(ROOT, tmp_path)
    (tmp_path / "Pulumi.yaml").write_text(PROJECT.format(main=main), encoding="utf-8")
    before = generations(sandbox)

    done = ops(sandbox, "--namespace", NAMESPACE, "--stack", "prod", "--folder", str(tmp_path), "--adopt", "--json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert not reported["differences"], reported["differences"]
    assert reported["changes"] == {"create": 1}, "the mirror's break-glass copy"
    assert reported["adopted"] == 7
    assert reported["takenOver"]["KafkaUser reader"] == ["kubectl-client-side-apply"]

    values = yaml.safe_load((tmp_path / "Pulumi.prod.yaml").read_text(encoding="utf-8"))["config"]
    assert values["rt-inventory:topics"][0]["name"] == "Orders_EU"
    exception = {"exception.rt-inventory/topic-replication": "until 2027-03-31: one broker"}
    assert values["rt-inventory:topics"][0]["annotations"] == exception
    assert values["rt-inventory:mirrors"][0]["groupId"] == "legacy-group"
    assert "made-before-pulumi-came" not in json.dumps(values) + done.stdout + done.stderr

    preview = pulumi(sandbox, tmp_path, "preview", "--stack", "prod", "--json")
    steps = [step for step in json.loads(preview.stdout)["steps"] if step["op"] not in ("same", "read", "refresh")]
    created = ("create", "legacy-mirror-break-glass-secret")
    assert [(step["op"], step["urn"].rpartition("::")[2]) for step in steps] == [created]
    up = pulumi(sandbox, tmp_path, "up", "--stack", "prod", "--yes", "--skip-preview", "--non-interactive")
    assert up.returncode == 0, up.stdout + up.stderr
    assert generations(sandbox) == before
    topic = sandbox.get("kafkatopic", "-n", NAMESPACE, "orders-of-europe")["metadata"]["annotations"]
    assert {key: topic.get(key) for key in ("owner", *exception)} == {"owner": "sales", **exception}

    # The first change of what kubectl wrote: no conflict, and the labels that the stack does not know stay.
    document = {"config": values}
    (reader,) = [user for user in values["rt-inventory:users"] if user["name"] == "reader"]
    reader["acls"].append({"type": "topic", "names": ["returns"], "operations": ["Read"]})
    (tmp_path / "Pulumi.prod.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    changed = pulumi(sandbox, tmp_path, "up", "--stack", "prod", "--yes", "--skip-preview", "--non-interactive")
    assert changed.returncode == 0, changed.stdout + changed.stderr
    user = sandbox.get("kafkauser", "-n", NAMESPACE, "reader")
    rules = user["spec"]["authorization"]["acls"]
    assert [rule["resource"]["name"] for rule in rules] == ["Orders_EU", "*", "returns"]
    assert user["metadata"]["labels"]["team"] == "sales"


def ops(sandbox: Sandbox, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(sandbox, "import", *arguments)


def pulumi(sandbox: Sandbox, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["pulumi", "-C", str(folder), *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=sandbox.environment(), capture_output=True, text=True, timeout=at_most(300), check=False
    )
