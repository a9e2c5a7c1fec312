"""One violation of every rule, as resources of one stack `stg`, and the configuration that asks for them.

Each violation has resources of its own, so that all of them can stand in one program.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.policies import kit

# Options without which a rule asks for nothing.
CONFIGURATION: dict[str, dict[str, Any]] = {
    "disaster-recovery-offsets": {"mirrors": ["mm-offsets"]},
    "topics-mirrored": {"sourceTopics": ["orders"]},
    "unescaped-dots": {"sourceTopics": ["store.inventory", "store-inventory"]},
    "owned-prefixes": {"owners": {"mm-owned": ["orders."]}},
}
_YESTERDAY = datetime.now(UTC).date() - timedelta(days=1)
_TOMORROW = _YESTERDAY + timedelta(days=2)
Change = Callable[[kit.Sample], object]


def _changed(sample: kit.Sample, name: str, change: Change) -> list[kit.Sample]:
    sample.props["metadata"]["name"] = name
    change(sample)
    return [sample]


def _topic(name: str, change: Change = lambda topic: None) -> list[kit.Sample]:
    return _changed(kit.topic(kit.V1), name, change)


def _cluster(name: str, change: Change) -> list[kit.Sample]:
    return _changed(kit.cluster(kit.V1), f"{name}-stg", change)


def _pool(name: str, change: Change) -> list[kit.Sample]:
    return _changed(kit.node_pool(kit.V1), name, change)


def _mirror(name: str, change: Change, shape: str = kit.V1) -> list[kit.Sample]:
    return _changed(kit.mirror(shape), name, change)


def _user(name: str, change: Change) -> list[kit.Sample]:
    return _changed(kit.user(kit.V1), f"rt-inv-{name}-stg-user", change)


def _connector(mirror: kit.Sample, connector: str) -> Any:
    return kit.flow(mirror)[connector]["config"]


def _reversed(mirror: kit.Sample) -> None:
    """The same mirror in the other direction."""
    source, target = kit.source(mirror), kit.target(mirror)
    for key in ("alias", "bootstrapServers"):
        source[key], target[key] = target[key], source[key]


def _excepted(topic: kit.Sample, rule: str, until: object) -> None:
    topic.annotated(**{f"exception.rt-inventory/{rule}": f"until {until}: a reason"})


def violations() -> dict[str, list[kit.Sample]]:
    """The resources that break each rule, by its name."""
    return {
        "topic-replication": _topic("one.replica", lambda topic: topic.spec.update(replicas=1)),
        "topic-min-insync": _topic("one.in.sync", lambda topic: topic.spec.update(config={"min.insync.replicas": 1})),
        "topic-retention": _topic("short", lambda topic: topic.spec.update(config={"retention.ms": 60_000})),
        "cluster-replication": _cluster(
            "factor", lambda cluster: kit.brokers(cluster)["config"].update({"default.replication.factor": 1})
        ),
        "cluster-min-insync": _cluster(
            "in-sync", lambda cluster: kit.brokers(cluster)["config"].update({"min.insync.replicas": 1})
        ),
        "unclean-leader-election": _topic(
            "unclean", lambda topic: topic.spec.update(config={"unclean.leader.election.enable": True})
        ),
        "ephemeral-storage": _pool("ephemeral", lambda pool: pool.spec.update(storage={"type": "ephemeral"})),
        "delete-claim": _pool("deleted", lambda pool: pool.spec["storage"].update(deleteClaim=True)),
        "deletion-protection": _topic("unprotected"),
        "mirror-replication": _mirror(
            "mm-factor", lambda mirror: _connector(mirror, "sourceConnector").update({"replication.factor": 1})
        ),
        "autoscaled-brokers": [kit.pod_autoscaler(kit.V1, "KafkaNodePool", "brokers")],
        "namespace-names": [kit.core("Namespace", "2-somewhere")],
        "cluster-names": _changed(kit.cluster(kit.V1), "some.where", lambda cluster: None),
        "user-names": _changed(kit.user(kit.V1), "some.body", lambda user: None),
        "topic-names": _topic("upper", lambda topic: topic.spec.update(topicName="Upper")),
        "mirror-names": _mirror("mm-alias", lambda mirror: kit.source(mirror).update(alias="ES.SRC")),
        "stage-in-names": _topic("orders.dev"),
        "metric-name-collision": [
            *_topic("collision.a"),
            *_topic("collision", lambda topic: topic.spec.update(topicName="collision_a")),
        ],
        "internal-topic-names": _topic("offsets", lambda topic: topic.spec.update(topicName="__consumer_offsets")),
        "connect-cluster": _mirror(
            "mm-connect", lambda mirror: mirror.spec.update(connectCluster="es-src"), kit.V1BETA2
        ),
        "replication-policy": _mirror(
            "mm-policy", lambda mirror: _connector(mirror, "checkpointConnector").pop("replication.policy.class")
        ),
        "disaster-recovery-offsets": _mirror(
            "mm-offsets",
            lambda mirror: _connector(mirror, "checkpointConnector").update({"sync.group.offsets.enabled": False}),
        ),
        "mirror-intervals": _mirror(
            "mm-interval",
            lambda mirror: _connector(mirror, "sourceConnector").update({"refresh.topics.interval.seconds": 3600}),
        ),
        "identity-loops": [*_mirror("mm-there", lambda mirror: None), *_mirror("mm-back", _reversed)],
        "pattern-syntax": _mirror("mm-syntax", lambda mirror: kit.flow(mirror).update(groupsPattern="items(")),
        "internal-topics-mirrored": _mirror(
            "mm-internal",
            lambda mirror: kit.flow(mirror).update(topicsPattern="[_a-n].*", topicsExcludePattern="nothing"),
        ),
        "group-patterns": _mirror("mm-groups", lambda mirror: kit.flow(mirror).update(groupsExcludePattern="nothing")),
        "unescaped-dots": _mirror("mm-dots", lambda mirror: kit.flow(mirror).update(topicsPattern="store.inventory")),
        "connect-storage-mirrored": _mirror(
            "mm-storage", lambda mirror: (_reversed(mirror), kit.flow(mirror).update(topicsPattern="[a-n].*"))
        )
        + _mirror("mm-home", lambda mirror: None),
        "mirrors-overlap": [*_mirror("mm-one", lambda mirror: None), *_mirror("mm-two", lambda mirror: None)],
        "topics-mirrored": _mirror("mm-topics", lambda mirror: kit.flow(mirror).update(topicsPattern="store")),
        "owned-prefixes": _mirror("mm-owned", lambda mirror: kit.flow(mirror).update(topicsPattern="items")),
        "listener-tls": _cluster("plain", lambda cluster: kit.brokers(cluster)["listeners"][1].update(tls=False)),
        "listener-authentication": _cluster(
            "anonymous", lambda cluster: kit.brokers(cluster)["listeners"][1].pop("authentication")
        ),
        "mirror-tls": _mirror("mm-plain", lambda mirror: kit.source(mirror).pop("tls")),
        "hostname-verification": _mirror(
            "mm-hosts",
            lambda mirror: kit.source(mirror)["config"].update({"ssl.endpoint.identification.algorithm": ""}),
        ),
        "plain-authentication": _mirror(
            "mm-sasl", lambda mirror: kit.source(mirror)["authentication"].update(type="plain")
        ),
        "wildcard-acls": _user(
            "root",
            lambda user: user.spec["authorization"]["acls"][0].update(
                operations=["All"], resource={"type": "topic", "name": "*", "patternType": "literal"}
            ),
        ),
        "mirror-superusers": [
            *_cluster(
                "superusers",
                lambda cluster: kit.brokers(cluster)["authorization"].update(superUsers=["User:root-of-mirrors"]),
            ),
            *_mirror(
                "mm-superuser",
                lambda mirror: (
                    kit.target(mirror).update(
                        bootstrapServers=f"superusers-stg-kafka-bootstrap.{kit.NAMESPACE}.svc:9093"
                    ),
                    kit.target(mirror)["authentication"].update(username="root-of-mirrors"),
                ),
            ),
        ],
        "plain-secrets": [kit.core("ConfigMap", "settings", data={"client.properties": "ssl.key.password=made-up\n"})],
        "pinned-images": _mirror("mm-image", lambda mirror: mirror.spec.update(image="registry.example.com/mm:latest")),
        "resources-set": _mirror("mm-resources", lambda mirror: mirror.spec.pop("resources")),
        "operator-pinned": _changed(
            kit.subscription(), "strimzi", lambda operator: operator.spec.update(installPlanApproval="Automatic")
        ),
        "replica-limits": _mirror("mm-workers", lambda mirror: mirror.spec.update(replicas=100)),
        "autoscaler-bounds": _changed(
            kit.scaled_object(kit.V1), "to-nothing", lambda scaler: scaler.spec.pop("minReplicaCount")
        ),
        "autoscaler-tasks": [
            *_mirror("mm-tasks", lambda mirror: None),
            *_changed(
                kit.pod_autoscaler(kit.V1, name="mm-tasks"),
                "mm-tasks",
                lambda scaler: scaler.spec.update(maxReplicas=9),
            ),
        ],
        "storage-limits": _pool("huge", lambda pool: pool.spec["storage"].update(size="100Ti")),
        "partition-limits": _topic("wide", lambda topic: topic.spec.update(partitions=1000)),
        "partitions-per-broker": [
            *_cluster("dense", lambda cluster: None),
            *_changed(_in_cluster(kit.node_pool(kit.V1), "dense-stg"), "dense", lambda pool: None),
            *[
                topic
                for number in range(40)
                for topic in _changed(
                    _in_cluster(kit.topic(kit.V1), "dense-stg"),
                    f"dense.{number}",
                    lambda topic: topic.spec.update(partitions=120),
                )
            ],
        ],
        "policy-exceptions": _topic("expired", lambda topic: _excepted(topic, "topic-retention", _YESTERDAY)),
        "active-exceptions": _topic("excused", lambda topic: _excepted(topic, "topic-retention", _TOMORROW)),
    }


def _in_cluster(sample: kit.Sample, cluster: str) -> kit.Sample:
    sample.props["metadata"]["labels"] = {"strimzi.io/cluster": cluster}
    return sample
