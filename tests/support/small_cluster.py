"""A small Kafka cluster of their own for the operator's tests, and the few calls that they make to the API server."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from kubernetes import client, config

from sandbox.processes import Processes
from sandbox.state import SandboxState
from tests.support.waiting import wait_until

NAMESPACE = "operator-tests"
CLUSTER = "small"
USER = "tester"
PASSWORD = "first-password-of-tester"
REBALANCE_DELAY_MS = 5000
STRIMZI = ("kafka.strimzi.io", "v1")
PLURALS = {
    "Kafka": "kafkas",
    "KafkaNodePool": "kafkanodepools",
    "KafkaUser": "kafkausers",
    "KafkaTopic": "kafkatopics",
    "KafkaMirrorMaker2": "kafkamirrormaker2s",
}
Object = dict[str, Any]


@dataclass
class Kit:
    """Calls to the sandbox's API server and process registry, for one cluster in one namespace."""

    state: SandboxState
    namespace: str = NAMESPACE
    cluster: str = CLUSTER

    def __post_init__(self) -> None:
        api = config.new_client_from_config(config_file=str(self.state.kubeconfig))
        self.custom = client.CustomObjectsApi(api)
        self.core = client.CoreV1Api(api)
        self.processes = Processes(self.state)

    def apply(self, kind: str, name: str, spec: Object, annotations: dict[str, str] | None = None) -> None:
        body = {
            "apiVersion": "/".join(STRIMZI),
            "kind": kind,
            "metadata": {
                "name": name,
                "labels": {"strimzi.io/cluster": self.cluster},
                "annotations": annotations or {},
            },
            "spec": spec,
        }
        try:
            self.custom.create_namespaced_custom_object(*STRIMZI, self.namespace, PLURALS[kind], body)
        except client.ApiException as error:
            if error.status != 409:
                raise
            self.change(kind, name, {"spec": spec})

    def change(self, kind: str, name: str, patch: Object) -> None:
        self.custom.patch_namespaced_custom_object(*STRIMZI, self.namespace, PLURALS[kind], name, patch)

    def get(self, kind: str, name: str) -> Object | None:
        try:
            found: Object = self.custom.get_namespaced_custom_object(*STRIMZI, self.namespace, PLURALS[kind], name)
        except client.ApiException as error:
            if error.status == 404:
                return None
            raise
        return found

    def delete(self, kind: str, name: str, deadline_s: float = 60.0) -> None:
        """Delete and wait until the operator let go of it."""
        try:
            self.custom.delete_namespaced_custom_object(*STRIMZI, self.namespace, PLURALS[kind], name)
        except client.ApiException as error:
            if error.status != 404:
                raise
        wait_until(f"{kind} {name} is deleted", lambda: self.get(kind, name) is None, deadline_s)

    def condition(self, kind: str, name: str) -> Object:
        """The condition Ready or NotReady, empty if it does not stand for the present generation."""
        found = self.get(kind, name) or {"metadata": {"generation": 0}}
        status = found.get("status") or {}
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return {}
        return next((entry for entry in status.get("conditions", []) if entry["type"] in ("Ready", "NotReady")), {})

    def is_ready(self, kind: str, name: str) -> bool:
        """Whether the operator calls the resource Ready as it is asked for now."""
        found = self.condition(kind, name)
        return (found.get("type"), found.get("status")) == ("Ready", "True")

    def ready(self, kind: str, name: str, deadline_s: float = 90.0) -> Object:
        """The resource when it is Ready."""
        wait_until(f"{kind} {name} is Ready", lambda: self.is_ready(kind, name), deadline_s)
        found = self.get(kind, name)
        assert found
        return found

    def refused(self, kind: str, name: str, reason: str, deadline_s: float = 60.0) -> str:
        """The message when the resource is not Ready for this reason; a moment later it may be another one."""

        def message() -> str | None:
            found = self.condition(kind, name)
            return str(found["message"]) if found.get("reason") == reason else None

        return str(wait_until(f"{kind} {name} says {reason}", message, deadline_s))

    def secret(self, name: str, values: dict[str, str]) -> None:
        body = {"metadata": {"name": name}, "stringData": values}
        try:
            self.core.create_namespaced_secret(self.namespace, body)
        except client.ApiException as error:
            if error.status != 409:
                raise
            self.core.patch_namespaced_secret(name, self.namespace, body)

    def read_secret(self, name: str) -> dict[str, str]:
        data = self.core.read_namespaced_secret(name, self.namespace).data or {}
        return {key: base64.b64decode(value).decode(errors="surrogateescape") for key, value in data.items()}

    def broker(self) -> str:
        return f"kafka.{self.namespace}.{self.cluster}.0"

    def worker(self, mirror: str, replica: int = 0) -> str:
        return f"mirror.{self.namespace}.{mirror}.{replica}"

    def pid(self, process: str) -> int | None:
        return {entry.name: entry.pid for entry in self.processes.entries()}.get(process)

    def folder(self) -> Path:
        return self.state.clusters / self.namespace / self.cluster

    def listener(self, name: str = "tls") -> Object:
        found = self.get("Kafka", self.cluster)
        assert found
        listener: Object = next(entry for entry in found["status"]["listeners"] if entry["name"] == name)
        return listener

    def client_config(self, user: str = USER, password: str = PASSWORD) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.listener()["bootstrapServers"],
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.pem": self.listener()["certificates"][0],
            "socket.timeout.ms": 20_000,
            "log_level": 0,
        }

    def admits(self, settings: dict[str, Any], timeout_s: float = 4.0) -> bool:
        """True if a client with these properties gets an answer."""
        try:
            AdminClient(settings).list_topics(timeout=timeout_s)
        except Exception:
            return False
        return True

    def annotate_secret(self, name: str, annotation: str) -> None:
        self.core.patch_namespaced_secret(name, self.namespace, {"metadata": {"annotations": {annotation: "true"}}})

    def create_cluster(self, listeners: list[Object] | None = None, **kafka: Any) -> None:
        """One broker with a client listener (or these), a user with all rights, and nothing else but `kafka`."""
        try:
            self.core.create_namespace({"metadata": {"name": self.namespace}})
        except client.ApiException as error:
            if error.status != 409:
                raise
        storage = {"type": "ephemeral"}
        self.apply("KafkaNodePool", "pool", {"replicas": 1, "roles": ["controller", "broker"], "storage": storage})
        spec = kafka_spec()
        self.apply("Kafka", self.cluster, {"kafka": spec | {"listeners": listeners or spec["listeners"]} | kafka})
        self.ready("Kafka", self.cluster)
        self.secret(f"{USER}-credentials", {"password": PASSWORD})
        self.apply("KafkaUser", USER, user_spec(f"{USER}-credentials", ALL_RIGHTS))
        self.ready("KafkaUser", USER)

    def remove_cluster(self, *others: tuple[str, str]) -> None:
        """Delete `others`, then the cluster and its namespace, and wait until all are gone."""
        for kind, name in (*others, ("KafkaUser", USER), ("Kafka", self.cluster), ("KafkaNodePool", "pool")):
            self.delete(kind, name)
        self.core.delete_namespace(self.namespace)
        wait_until("the namespace is gone", lambda: not self._namespace_exists())

    def _namespace_exists(self) -> bool:
        return any(entry.metadata.name == self.namespace for entry in self.core.list_namespace().items)


ALL_RIGHTS: list[Object] = [
    {"resource": {"type": "topic", "name": "*"}, "operations": ["All"]},
    {"resource": {"type": "group", "name": "*"}, "operations": ["All"]},
    {"resource": {"type": "cluster"}, "operations": ["All"]},
]


def kafka_spec() -> Object:
    factors = ("offsets.topic", "transaction.state.log")
    return {
        "listeners": [
            {"name": "tls", "port": 9093, "type": "internal", "tls": True, "authentication": {"type": "scram-sha-512"}}
        ],
        "authorization": {"type": "simple"},
        "config": {
            **{f"{name}.replication.factor": 1 for name in factors},
            "transaction.state.log.min.isr": 1,
            "default.replication.factor": 1,
            "auto.create.topics.enable": False,
        },
    }


def user_spec(secret: str, acls: list[Object]) -> Object:
    reference = {"name": secret, "key": "password"}
    return {
        "authentication": {"type": "scram-sha-512", "password": {"valueFrom": {"secretKeyRef": reference}}},
        "authorization": {"type": "simple", "acls": acls},
    }


def rotate(kit: Kit, user: str, generation: int) -> None:
    """Let the user operator read the password of a user again, as a stack does that rotates it."""
    metadata = {"annotations": {"rt-inventory/password-generation": str(generation)}}
    kit.change("KafkaUser", user, {"spec": {"template": {"secret": {"metadata": metadata}}}})


def mirror_spec(kit: Kit, password_secret: str, replicas: int = 1) -> Object:
    """A mirror of the small cluster to itself: prefixed names keep source and target topics apart."""

    def side(alias: str, secret: str) -> Object:
        return {
            "alias": alias,
            "bootstrapServers": kit.listener()["bootstrapServers"],
            "tls": {"trustedCertificates": [{"secretName": f"{kit.cluster}-cluster-ca-cert", "certificate": "ca.crt"}]},
            "authentication": {
                "type": "scram-sha-512",
                "username": USER,
                "passwordSecret": {"secretName": secret, "password": "password"},
            },
        }

    # Kafka would leave the tasks of a worker that went unassigned for five minutes.
    config: Object = {"scheduled.rebalance.max.delay.ms": REBALANCE_DELAY_MS}
    config |= {f"{name}.storage.replication.factor": 1 for name in ("config", "offset", "status")}
    target = {
        **side("there", USER),
        "groupId": "copy",
        "configStorageTopic": "copy-configs",
        "offsetStorageTopic": "copy-offsets",
        "statusStorageTopic": "copy-status",
        "config": config,
    }
    source_config = {
        "replication.factor": 1,
        "offset-syncs.topic.replication.factor": 1,
        "sync.topic.acls.enabled": False,
    }
    mirror = {
        "source": side("here", password_secret),
        "topicsPattern": "mirrored",
        "groupsPattern": ".*",
        "sourceConnector": {"tasksMax": 1, "config": {**source_config, "refresh.topics.interval.seconds": 5}},
        "checkpointConnector": {"tasksMax": 1, "config": {"checkpoints.topic.replication.factor": 1}},
    }
    return {"replicas": replicas, "target": target, "mirrors": [mirror]}
