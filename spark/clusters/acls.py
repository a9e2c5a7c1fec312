"""ACLs of topics, and which of them MirrorMaker copies.

Rules: org.apache.kafka.connect.mirror.MirrorSourceConnector (syncTopicAcls, shouldReplicateAcl, targetAclBinding):
ACLs of literal names of mirrored topics only; ALLOW WRITE is not copied, ALLOW ALL becomes ALLOW READ, nothing is ever
removed from the target.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from spark.clusters.asking import denial, reason
from spark.clusters.cluster import CALL_DEADLINE_S, Cluster
from spark.request.model import Mirror


@dataclass(frozen=True, order=True)
class TopicAcl:
    """One ACL of a literal topic name; operation and permission as Kafka names them (READ, ALLOW)."""

    topic: str
    principal: str
    operation: str
    permission: str
    host: str

    def __str__(self) -> str:
        return f"{self.permission} {self.operation} on topic {self.topic} for {self.principal} from {self.host}"


@dataclass(frozen=True, kw_only=True)
class TopicAcls:
    """The ACLs of one cluster; `refused` says why they are not known."""

    acls: frozenset[TopicAcl] = frozenset()
    refused: str | None = None


def topic_acls(cluster: Cluster) -> TopicAcls:
    """Return the ACLs of all literal topic names; needs DESCRIBE on the cluster."""
    anything: Any = None  # the package's types do not know that None matches every name
    every = AclBindingFilter(
        ResourceType.TOPIC,
        anything,
        ResourcePatternType.LITERAL,
        anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    what, needs, admin = "describe ACLs", "DESCRIBE on the cluster", cluster.admin
    try:
        # librdkafka takes a refusal of DescribeAcls for an empty answer, so what the user may do is asked first.
        allowed = admin.describe_cluster(include_authorized_operations=True, request_timeout=CALL_DEADLINE_S).result()
        if AclOperation.DESCRIBE not in (allowed.authorized_operations or []):
            return TopicAcls(refused=denial(cluster.side, what, needs))
        bindings = admin.describe_acls(every, request_timeout=CALL_DEADLINE_S).result()
    except KafkaException as error:
        return TopicAcls(refused=reason(cluster.side, what, needs, error))
    return TopicAcls(
        acls=frozenset(
            TopicAcl(one.name, one.principal, one.operation.name, one.permission_type.name, one.host)
            for one in bindings
        )
    )


def copies(mirror: Mirror, source: Iterable[TopicAcl]) -> dict[TopicAcl, TopicAcl]:
    """Return the ACLs that MirrorMaker makes on the target, each with the one at the source that it comes from."""
    found: dict[TopicAcl, TopicAcl] = {}
    for one in sorted(source):
        if not mirror.carries_topic(one.topic) or (one.permission, one.operation) == ("ALLOW", "WRITE"):
            continue
        operation = "READ" if (one.permission, one.operation) == ("ALLOW", "ALL") else one.operation
        found[replace(one, topic=mirror.target_topic(one.topic), operation=operation)] = one
    return found
