"""Administration of one Kafka cluster over its mTLS replication listener, with the operator's own certificate.

`ClusterLookup` finds the cluster of a KafkaTopic or KafkaUser by its label and checks that it answers.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from sandbox.operator import NotReadyError
from sandbox.operator.kafka_nodes import REPLICATION, TRUSTED, Layout, load
from sandbox.operator.kubernetes_api import KAFKA, LABEL, Kubernetes, Object

Result = TypeVar("Result")
REQUEST_TIMEOUT_S = 10.0
HEALTH_TIMEOUT_S = 3.0
SILENCE_S = 15.0

_quiet = logging.getLogger("sandbox.operator.librdkafka")
_quiet.setLevel(logging.CRITICAL)  # a stopped broker would otherwise write a line per connection attempt


@dataclass(frozen=True)
class Health:
    """Which broker ids answer, and whether all partitions have all their replicas in sync."""

    brokers: frozenset[int]
    in_sync: bool


@dataclass
class _Kept:
    """A client, what it was made of, and when it was made or answered last."""

    mark: str
    client: AdminClient
    answered_at: float


class Clusters:
    """Admin clients by cluster, made on first use and kept while they answer; safe to use from several threads."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], _Kept] = {}
        self._lock = threading.Lock()

    def client(self, layout: Layout) -> AdminClient:
        """The admin client of a cluster, a new one if its addresses or certificate changed."""
        return self._kept(layout).client

    def health(self, layout: Layout) -> Health:
        """The cluster's health; a client that had no answer for `SILENCE_S` makes room for a new one.

        librdkafka 2.16 forgets every address, its first ones too, when a broker that is being stopped lists no
        brokers (librdkafka issue 5301): such a client never finds its cluster again.
        """
        kept = self._kept(layout)
        found = _health(kept.client)
        if found.brokers:
            kept.answered_at = time.monotonic()
        elif time.monotonic() - kept.answered_at > SILENCE_S:
            with self._lock:
                if self._clients.get(_key(layout)) is kept:
                    del self._clients[_key(layout)]
        return found

    def forget(self, namespace: str, cluster: str) -> None:
        """Drop the client of a cluster that is gone or was restarted."""
        with self._lock:
            dropped = self._clients.pop((namespace, cluster), None)
        del dropped  # only now: its end waits for its threads, and nobody else should wait for that

    def _kept(self, layout: Layout) -> _Kept:
        settings = client_settings(layout)
        files = [layout.folder / name for name in ("operator.crt", TRUSTED)]
        mark = layout.cluster_id + str(settings) + str([file.stat().st_mtime_ns for file in files])
        with self._lock:
            known = self._clients.get(_key(layout))
            if known is not None and known.mark == mark:
                return known
            new = _Kept(mark, AdminClient(settings, logger=_quiet), time.monotonic())
            self._clients[_key(layout)] = new
        return new


def _key(layout: Layout) -> tuple[str, str]:
    return layout.namespace, layout.cluster


def client_settings(layout: Layout) -> dict[str, str | int | float | bool]:
    """librdkafka properties of the operator's connection; paths only, no key material."""
    return {
        "bootstrap.servers": layout.addresses(REPLICATION),
        "security.protocol": "SSL",
        "ssl.ca.location": str(layout.folder / TRUSTED),
        "ssl.certificate.location": str(layout.folder / "operator.crt"),
        "ssl.key.location": str(layout.folder / "operator.key"),
        "ssl.endpoint.identification.algorithm": "https",
        "socket.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
        "reconnect.backoff.max.ms": 1000,
        "client.id": "cluster-operator",
    }


def _health(client: AdminClient) -> Health:
    """The cluster's health as this client sees it; no brokers if there is no answer within `HEALTH_TIMEOUT_S`."""
    try:
        metadata = client.list_topics(timeout=HEALTH_TIMEOUT_S)
    except KafkaException:
        return Health(frozenset(), False)
    in_sync = all(
        len(partition.isrs) == len(partition.replicas)
        for topic in metadata.topics.values()
        for partition in topic.partitions.values()
    )
    return Health(frozenset(metadata.brokers), in_sync)


def result(future: "Future[Result]", what: str) -> Result:
    """The future's value; raises NotReadyError that names `what` was asked and the broker's answer."""
    try:
        return future.result(timeout=REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise refused(error, what) from error
    except TimeoutError as error:
        raise NotReadyError(
            "KafkaTimeout", f"{what}: no answer from the cluster in {REQUEST_TIMEOUT_S:.0f} s."
        ) from error


def results(futures: "Mapping[Any, Future[Any]]", what: Callable[[Any], str]) -> None:
    """Wait for all futures; raises the first failure."""
    for key, future in futures.items():
        result(future, what(key))


def refused(error: KafkaException, what: str) -> NotReadyError:
    """The condition for a request that the cluster refused: the broker's error name in CamelCase, and its words."""
    details = error.args[0]
    name = str(details.name()).strip("_")
    reason = "".join(word.capitalize() for word in name.split("_"))
    return NotReadyError(reason or "KafkaError", f"{what}: {details.str()}")


@dataclass(frozen=True)
class Cluster:
    """A cluster that answers: its admin client, number of brokers and whether it authorizes."""

    name: str
    client: AdminClient
    brokers: int
    authorizes: bool


@dataclass
class ClusterLookup:
    """Finds the cluster that a resource's label names."""

    kubernetes: Kubernetes
    clusters: Clusters
    folder: Path

    def of(self, resource: Object) -> Cluster:
        """The cluster of a topic or user; raises NotReadyError if it is not labelled, not there or does not answer."""
        metadata = resource["metadata"]
        subject = f"{resource['kind']} {metadata['name']}"
        name = (metadata.get("labels") or {}).get(LABEL)
        if not name:
            raise NotReadyError(
                "NoClusterLabel",
                f"{subject}: must have the label {LABEL} with the name of its Kafka resource (got none).",
            )
        kafka = self.kubernetes.get(KAFKA, metadata["namespace"], name)
        plan = load(self.folder / metadata["namespace"] / name, metadata["namespace"], name)
        if kafka is None:
            raise NotReadyError(
                "ClusterNotFound",
                f"{subject}: there is no Kafka {name} in the namespace {metadata['namespace']}. Create it, or change "
                f"the label {LABEL}.",
            )
        if plan is None or not (plan.folder / "operator.crt").exists():
            raise NotReadyError("ClusterNotReady", f"{subject}: Kafka {name} is being created.", retry_s=1)
        if not self.clusters.health(plan).brokers:
            raise NotReadyError("ClusterNotReady", f"{subject}: Kafka {name} does not answer.", retry_s=1)
        authorization = (kafka["spec"]["kafka"].get("authorization") or {}).get("type")
        return Cluster(name, self.clusters.client(plan), len(plan.nodes), authorization == "simple")

    def if_it_stays(self, resource: Object) -> Cluster | None:
        """The cluster of a resource that is being deleted, None if the cluster goes away or never was there."""
        metadata = resource["metadata"]
        name = (metadata.get("labels") or {}).get(LABEL)
        kafka = self.kubernetes.get(KAFKA, metadata["namespace"], name) if name else None
        if kafka is None or kafka["metadata"].get("deletionTimestamp"):
            return None
        if load(self.folder / metadata["namespace"] / str(name), metadata["namespace"], str(name)) is None:
            return None
        return self.of(resource)
