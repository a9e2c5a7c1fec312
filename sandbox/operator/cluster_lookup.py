"""From a topic or user to its cluster: the label names it, and it must answer."""

from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from . import admin, layout
from .errors import NotReadyError
from .kubernetes_api import KAFKA, LABEL, Kubernetes, Object


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
    clusters: admin.Clusters
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
        plan = layout.load(self.folder / metadata["namespace"] / name, metadata["namespace"], name)
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
        if layout.load(self.folder / metadata["namespace"] / str(name), metadata["namespace"], str(name)) is None:
            return None
        return self.of(resource)
