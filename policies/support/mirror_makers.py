"""KafkaMirrorMaker2, in the shape of each API version, and the topics that it copies, makes or leaves out.

v1 has one `target` and in every mirror a `source`; v1beta2 has a list of `clusters`, and mirrors and `connectCluster`
that name them by alias. v1 has no heartbeat connector and no `pause`; v1beta2 also knows the older names of the
exclude patterns.

MirrorMaker makes its own topics compacted and never copies them. Up to Kafka 3.9 it takes every name that ends in
`.internal` or `-internal` for internal, later only names like its own (Kafka's ReplicationPolicy). Connect's three are
those of its workers' configuration, or the operator's defaults.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policies.support.clusters import topic_name
from policies.support.java_patterns import EVERYTHING, GROUPS_EXCLUDE, TOPICS_EXCLUDE, Selection
from policies.support.policy_builder import Config, Option, Resource
from policies.support.resources import (
    CONNECT,
    MIRROR,
    TOPIC,
    Props,
    each,
    flag,
    if_known,
    is_v1,
    mapping,
    sequence,
    text,
    whole,
    within,
)

SOURCE, CHECKPOINT, HEARTBEAT = "sourceConnector", "checkpointConnector", "heartbeatConnector"
_OLDER_NAMES = {
    "topicsExcludePattern": "topicsBlacklistPattern",
    "groupsExcludePattern": "groupsBlacklistPattern",
}
# The connector's own configuration counts where the field is not set.
_IN_CONFIG = {
    "topicsPattern": (SOURCE, "topics"),
    "topicsExcludePattern": (SOURCE, "topics.exclude"),
    "groupsPattern": (CHECKPOINT, "groups"),
    "groupsExcludePattern": (CHECKPOINT, "groups.exclude"),
}
PATTERNS = tuple(_IN_CONFIG)
FOLLOWED = "rt-inventory/exact-offsets"
"""Annotation of a mirror whose groups a follower sets on the target, in place of MirrorMaker."""
DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
_NOT_RUNNING = ("paused", "stopped")
# Simple names, because Strimzi's images brought a class of their own before Kafka had one.
_IDENTITY = "IdentityReplicationPolicy"


def is_followed(props: Props) -> bool:
    """Whether a follower sets the groups of a mirror on the target."""
    return flag(within(props, "metadata", "annotations", FOLLOWED), False)


@dataclass(frozen=True, kw_only=True)
class ReplicationFlow:
    """One mirror of the resource: its place, its two clusters, and the mirror itself."""

    where: str
    source: Props
    target: Props
    mirror: Props
    has_heartbeats: bool
    has_pause: bool

    @property
    def aliases(self) -> tuple[str, str]:
        """Aliases of source and target; empty where the resource does not name one."""
        return str(self.source.get("alias", "")), str(self.target.get("alias", ""))

    @property
    def connectors(self) -> tuple[str, ...]:
        """Connectors that the mirror declares and that its API version has."""
        known = (SOURCE, CHECKPOINT, HEARTBEAT) if self.has_heartbeats else (SOURCE, CHECKPOINT)
        return tuple(
            connector for connector in known if connector in [*self.mirror]
        )  # `in` alone would ask for an unknown value

    def config(self, connector: str) -> Props:
        """Configuration of one of the connectors."""
        return mapping(mapping(self.mirror.get(connector)).get("config"))

    @property
    def identity(self) -> bool:
        """Whether topics keep their names."""
        policy = text(self.config(SOURCE).get("replication.policy.class")) or DEFAULT_POLICY
        return policy.rpartition(".")[2] == _IDENTITY

    @property
    def naming(self) -> str | None:
        """What decides how topics are called on the target: nothing with identity naming, else alias and separator.

        Two mirrors with the same naming give a topic the same name. None for a policy that is not Kafka's.
        """
        if self.identity:
            return ""
        config = self.config(SOURCE)
        if (text(config.get("replication.policy.class")) or DEFAULT_POLICY) != DEFAULT_POLICY:
            return None
        return self.aliases[0] + str(config.get("replication.policy.separator", "."))

    @property
    def topics(self) -> Selection:
        """The topics that the mirror copies, with MirrorMaker's patterns where it sets none."""
        include, exclude = self.pattern("topicsPattern"), self.pattern("topicsExcludePattern")
        return Selection(EVERYTHING if include is None else include, TOPICS_EXCLUDE if exclude is None else exclude)

    @property
    def groups(self) -> Selection:
        """The groups whose offsets the mirror translates, with MirrorMaker's patterns where it sets none."""
        include, exclude = self.pattern("groupsPattern"), self.pattern("groupsExcludePattern")
        return Selection(EVERYTHING if include is None else include, GROUPS_EXCLUDE if exclude is None else exclude)

    def pattern(self, key: str) -> str | None:
        """`topicsPattern`, `topicsExcludePattern`, `groupsPattern` or `groupsExcludePattern`; None if not set."""
        for known in (key, _OLDER_NAMES.get(key, key)):
            if self.mirror.get(known) is not None:
                return str(self.mirror[known])
        connector, name = _IN_CONFIG[key]
        value = self.config(connector).get(name)
        return None if value is None else str(value)


def replication_flows(type_: str, props: Props) -> list[ReplicationFlow]:
    """Every mirror of the resource, in its order."""
    spec = mapping(props.get("spec"))
    found = []
    for index, declared in enumerate(sequence(spec.get("mirrors"))):
        mirror = mapping(declared)
        if is_v1(type_):
            source, target = mapping(mirror.get("source")), mapping(spec.get("target"))
        else:
            source = _by_alias(spec, mirror.get("sourceCluster"))
            target = _by_alias(spec, mirror.get("targetCluster", spec.get("connectCluster")))
        found.append(
            ReplicationFlow(
                where=f"mirrors[{index}]",
                source=source,
                target=target,
                mirror=mirror,
                has_heartbeats=not is_v1(type_),
                has_pause=not is_v1(type_),
            )
        )
    return found


def topic_flows(resources: Sequence[Resource]) -> Iterator[tuple[Resource, ReplicationFlow]]:
    """Every mirror of these resources that copies topics, with the resource to which it belongs."""

    def of(resource: Resource) -> Iterator[tuple[Resource, ReplicationFlow]]:
        for flow in replication_flows(resource.type_, resource.props):
            if SOURCE in flow.connectors:
                yield resource, flow

    return each((resource for resource in resources if resource.type_ in MIRROR), of)


def cluster_endpoints(type_: str, props: Props) -> Iterator[tuple[str, Props]]:
    """Every cluster to which the resource connects, with its place: `target`, `mirrors[0].source`, `clusters[x]`."""
    spec = mapping(props.get("spec"))
    if is_v1(type_):
        yield "target", mapping(spec.get("target"))
        for flow in replication_flows(type_, props):
            yield f"{flow.where}.source", flow.source
        return
    for index, cluster in enumerate(sequence(spec.get("clusters"))):
        yield f"clusters[{if_known(mapping(cluster), 'alias') or index}]", mapping(cluster)


def is_running(props: Props, flow: ReplicationFlow, name: str = SOURCE) -> bool:
    """Whether a connector of the mirror runs now; the source connector copies topics.

    A reverse direction may lie stopped, ready for the way back. Strimzi reads `pause` only where no `state` is set.
    """
    connector = flow.mirror.get(name)
    if connector is None or whole(within(props, "spec", "replicas")) == 0:
        return False
    state = text(within(connector, "state"))
    if state is not None:
        return state not in _NOT_RUNNING
    return not (flow.has_pause and flag(within(connector, "pause"), False))


def connect_cluster(type_: str, props: Props) -> tuple[str, Props]:
    """The cluster in which Connect's workers keep their state, with its place."""
    spec = mapping(props.get("spec"))
    if is_v1(type_):
        return "target", mapping(spec.get("target"))
    alias = spec.get("connectCluster")
    return f"clusters[{alias}]", _by_alias(spec, alias)


def workers(type_: str, props: Props) -> tuple[str, Props]:
    """Place and configuration of Connect's workers: that of `target`, or of the cluster that `connectCluster` names."""
    where, cluster = connect_cluster(type_, props)
    return where, mapping(cluster.get("config"))


def _by_alias(spec: Props, alias: object) -> Props:
    clusters = (mapping(cluster) for cluster in sequence(spec.get("clusters")))
    return next((cluster for cluster in clusters if alias is not None and cluster.get("alias") == alias), {})


# The source's topics are resources of another stack, so that only the configuration can list them.
SOURCE_TOPICS: dict[str, Option] = {
    "sourceTopics": {
        "type": "array",
        "items": {"type": "string"},
        "default": [],
        "description": "names of topics on the source cluster",
    }
}


def source_topics(config: Config) -> list[str]:
    """Topics that the option `sourceTopics` lists."""
    return [str(topic) for topic in sequence(config["sourceTopics"])]


def declared_topics(resources: Sequence[Resource]) -> list[str]:
    """The stack's own topics, by their names in Kafka, once each."""

    def check(resource: Resource) -> Iterator[str]:
        yield topic_name(resource.props)

    return list(dict.fromkeys(each((resource for resource in resources if resource.type_ in TOPIC), check)))


def known_topics(resources: Sequence[Resource], config: Config) -> list[str]:
    """The stack's own topics and those that the configuration lists, once each."""
    return list(dict.fromkeys([*declared_topics(resources), *source_topics(config)]))


HEARTBEATS = "heartbeats"
_INTERNAL_ENDS = (".internal", "-internal")
# The mirror's separator, which may be empty, is part of the names since Kafka 3.1 (DefaultReplicationPolicy).
_OFFSETS = re.compile(r"mm2-offset-syncs(?P<a>[._-]?).+(?P=a)internal|.+?(?P<b>[._-]?)checkpoints(?P=b)internal")
_COPIES_INTERNAL_NAMES_SINCE = 4
_STORAGE = {"config": "configs", "offset": "offsets", "status": "status"}


def is_kafkas(topic: str) -> bool:
    """Whether Kafka keeps names like this for itself, as `__consumer_offsets`."""
    return topic.startswith("__")


def is_mirror_makers(topic: str, *, copies_internal_names: bool = False) -> bool:
    """Whether MirrorMaker takes a topic of this name for its own, by default whether one of any release does."""
    if topic == HEARTBEATS or topic.endswith(f".{HEARTBEATS}") or _OFFSETS.fullmatch(topic) is not None:
        return True
    return topic.endswith(_INTERNAL_ENDS) and (topic.startswith("mm2") or not copies_internal_names)


def copies_internal_names(mirror: Props) -> bool | None:
    """Whether a KafkaMirrorMaker2 copies topics that end in `internal` and are not MirrorMaker's; None: not known."""
    version = re.match(r"(\d+)\.", str(if_known(mapping(if_known(mirror, "spec")), "version") or ""))
    return int(version[1]) >= _COPIES_INTERNAL_NAMES_SINCE if version else None


def connect_storage(type_: str, props: Props) -> Iterator[str]:
    """Topics in which the workers of a KafkaMirrorMaker2 or KafkaConnect keep their state, those known already."""
    spec = mapping(props.get("spec"))
    if is_v1(type_):
        holder = mapping(spec.get("target")) if type_ in MIRROR else spec
        found = [if_known(holder, f"{kind}StorageTopic") for kind in _STORAGE]
    else:
        config = mapping(spec.get("config")) if type_ in CONNECT else workers(type_, props)[1]
        group = "connect-cluster" if type_ in CONNECT else "mirrormaker2-cluster"
        found = [if_known(config, f"{kind}.storage.topic", f"{group}-{end}") for kind, end in _STORAGE.items()]
    yield from (str(topic) for topic in found if topic is not None)
