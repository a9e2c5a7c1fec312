"""Looks at one cluster through its admin interface: brokers, topics, rights, groups, certificates.

Joins no group, writes nothing, reads no record.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # the package does not list it

from ops.doctor.seen import Certificate, Right
from spark.clusters import tls
from spark.clusters.cluster import CALL_DEADLINE_S, Cluster
from spark.clusters.leaders import Broker, silence
from spark.clusters.refusals import DENIED, code_of
from spark.clusters.topic_configs import topic_configs
from spark.request.model import Mirror

GROUPS_MAX = 100
BROKERS_MAX = 50
_WORDS = {
    AclOperation.READ: "Read",
    AclOperation.WRITE: "Write",
    AclOperation.ALTER: "Alter",
    AclOperation.DESCRIBE: "Describe",
    AclOperation.DESCRIBE_CONFIGS: "DescribeConfigs",
    AclOperation.ALTER_CONFIGS: "AlterConfigs",
}
_READ_TOPIC = (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
_OWN_TOPIC = (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE)
_COPY = (AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.ALTER)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The brokers with the addresses that they advertise, those that take no connection, and the topics' partitions."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    silent: tuple[tuple[Broker, str], ...]
    topics: Mapping[str, int]


def layout(cluster: Cluster) -> Layout:
    """Return brokers and topics; each broker is tried at its advertised address."""
    seen = cluster.admin.list_topics(timeout=CALL_DEADLINE_S)
    brokers = [Broker(one.id, str(one.host), int(one.port or 0)) for one in seen.brokers.values()]
    tried = sorted(brokers)[:BROKERS_MAX]
    with ThreadPoolExecutor(16) as pool:
        answers = list(zip(tried, pool.map(silence, tried), strict=True))
    return Layout(
        cluster_id=str(seen.cluster_id) if seen.cluster_id else None,
        brokers=tuple(brokers),
        silent=tuple((broker, why) for broker, why in answers if why is not None),
        topics={name: len(topic.partitions) for name, topic in seen.topics.items() if topic.error is None},
    )


def groups(cluster: Cluster, mirror: Mirror) -> tuple[dict[str, str], list[Right]]:
    """Return the states of the groups, and the rights that this user lacks to see them or to set their offsets."""
    states = cluster.group_states()
    if not mirror.sync_group_offsets:
        return states, []
    if not states and not cluster.sees_groups():
        return states, [("Describe", "the mirrored groups")]
    if cluster.side.role == "source":
        return states, []
    carried = sorted(group for group in states if mirror.carries_group(group))[:GROUPS_MAX]
    lacks: list[Right] = []
    if carried:
        futures = cluster.admin.describe_consumer_groups(
            carried, include_authorized_operations=True, request_timeout=CALL_DEADLINE_S
        )
        for group, future in futures.items():
            lacks += _missing(future, (AclOperation.READ,), f"group {group}", "Read")
    return states, lacks


def rights(cluster: Cluster, mirror: Mirror, topics: Iterable[str]) -> list[Right]:
    """Return the rights on topics that the mirror needs on this side and its user lacks; absent topics lack nothing.

    `topics` are the names at the source of what the mirror carries.
    """
    source = cluster.side.role == "source"
    config = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS) if mirror.topic_configs.sync else ()
    needed: dict[str, Any] = {
        name if source else mirror.target_topic(name): _READ_TOPIC if source else (*_COPY, *config) for name in topics
    }
    needed |= {one.name: _OWN_TOPIC for one in mirror.internal_topics if one.location == cluster.side.role}
    if not needed:
        return []
    futures = cluster.admin.describe_topics(
        TopicCollection(sorted(needed)), include_authorized_operations=True, request_timeout=CALL_DEADLINE_S
    )
    lacks: list[Right] = []
    for name, future in futures.items():
        # No broker tells an absent topic from a hidden one: what the mirror need not keep counts as absent.
        lacks += _missing(future, needed[name], f"topic {name}", "Describe" if mirror.keeps(name) else None)
    return lacks


def policies(cluster: Cluster, mirror: Mirror) -> dict[str, str]:
    """Return the clean-up policies of the mirror's own topics that are there and may be described."""
    names = [one.name for one in mirror.internal_topics if one.location == cluster.side.role]
    found = topic_configs(cluster, names).found
    return {name: str(config["cleanup.policy"].value) for name, config in found.items() if "cleanup.policy" in config}


def certificates(config: Mapping[str, str], addresses: Iterable[str]) -> list[Certificate]:
    """Return the certificates of a client's configuration, and those that brokers show at `host:port`."""
    if "SSL" not in config.get("security.protocol", "").upper():
        return []
    wanted = sorted(set(addresses))[:BROKERS_MAX]
    with ThreadPoolExecutor(16) as pool:
        shown = [one for one in pool.map(tls.shown, wanted) if one is not None]
    return [Certificate(what=what, ends=ends) for what, ends in dict.fromkeys([*tls.held(config), *shown])]


def _missing(future: Any, needed: Iterable[AclOperation], resource: str, denied: str | None) -> list[Right]:
    try:
        granted = future.result().authorized_operations
    except KafkaException as error:
        return [(denied, resource)] if denied is not None and code_of(error) in DENIED else []
    return [(_WORDS[one], resource) for one in needed if granted and one not in granted]
