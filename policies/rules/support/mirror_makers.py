"""KafkaMirrorMaker2, in the shape of each API version.

v1 has one `target` and in every mirror a `source`; v1beta2 has a list of `clusters`, and mirrors and `connectCluster`
that name them by alias. v1 has no heartbeat connector; v1beta2 also knows the older names of the exclude patterns.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from .kinds import STRIMZI_V1
from .values import Props, if_known, mapping, sequence

SOURCE, CHECKPOINT, HEARTBEAT = "sourceConnector", "checkpointConnector", "heartbeatConnector"
_OLDER_NAMES = {
    "topicsExcludePattern": "topicsBlacklistPattern",
    "groupsExcludePattern": "groupsBlacklistPattern",
}
DEFAULT_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
# Simple names, because Strimzi's images brought a class of their own before Kafka had one.
_IDENTITY = "IdentityReplicationPolicy"


@dataclass(frozen=True, kw_only=True)
class Flow:
    """One mirror of the resource: its place, its two clusters, and the mirror itself."""

    where: str
    source: Props
    target: Props
    mirror: Props
    has_heartbeats: bool

    @property
    def aliases(self) -> tuple[str, str]:
        """Aliases of source and target; empty where the resource does not name one."""
        return str(self.source.get("alias", "")), str(self.target.get("alias", ""))

    @property
    def connectors(self) -> tuple[str, ...]:
        """Connectors that the mirror declares and that its API version has."""
        known = (SOURCE, CHECKPOINT, HEARTBEAT) if self.has_heartbeats else (SOURCE, CHECKPOINT)
        return tuple(each for each in known if each in [*self.mirror])  # `in` alone would ask for an unknown value

    def config(self, connector: str) -> Props:
        """Configuration of one of the connectors."""
        return mapping(mapping(self.mirror.get(connector)).get("config"))

    @property
    def identity(self) -> bool:
        """Whether topics keep their names."""
        policy = str(self.config(SOURCE).get("replication.policy.class", DEFAULT_POLICY))
        return policy.rpartition(".")[2] == _IDENTITY

    def pattern(self, key: str) -> str | None:
        """`topicsPattern`, `topicsExcludePattern`, `groupsPattern` or `groupsExcludePattern`; None if not set."""
        for known in (key, _OLDER_NAMES.get(key, key)):
            if self.mirror.get(known) is not None:
                return str(self.mirror[known])
        return None


def flows(type_: str, props: Props) -> list[Flow]:
    """Every mirror of the resource, in its order."""
    spec = mapping(props.get("spec"))
    found = []
    for index, each in enumerate(sequence(spec.get("mirrors"))):
        mirror = mapping(each)
        if _is_v1(type_):
            source, target = mapping(mirror.get("source")), mapping(spec.get("target"))
        else:
            source = _by_alias(spec, mirror.get("sourceCluster"))
            target = _by_alias(spec, mirror.get("targetCluster", spec.get("connectCluster")))
        found.append(
            Flow(
                where=f"mirrors[{index}]",
                source=source,
                target=target,
                mirror=mirror,
                has_heartbeats=not _is_v1(type_),
            )
        )
    return found


def ends(type_: str, props: Props) -> Iterator[tuple[str, Props]]:
    """Every cluster to which the resource connects, with its place: `target`, `mirrors[0].source`, `clusters[x]`."""
    spec = mapping(props.get("spec"))
    if _is_v1(type_):
        yield "target", mapping(spec.get("target"))
        for flow in flows(type_, props):
            yield f"{flow.where}.source", flow.source
        return
    for index, each in enumerate(sequence(spec.get("clusters"))):
        yield f"clusters[{if_known(mapping(each), 'alias') or index}]", mapping(each)


def workers(type_: str, props: Props) -> tuple[str, Props]:
    """Place and configuration of Connect's workers: that of `target`, or of the cluster that `connectCluster` names."""
    spec = mapping(props.get("spec"))
    if _is_v1(type_):
        return "target", mapping(mapping(spec.get("target")).get("config"))
    alias = spec.get("connectCluster")
    return f"clusters[{alias}]", mapping(_by_alias(spec, alias).get("config"))


def _is_v1(type_: str) -> bool:
    return type_.startswith(f"kubernetes:{STRIMZI_V1}:")


def _by_alias(spec: Props, alias: object) -> Props:
    clusters = (mapping(each) for each in sequence(spec.get("clusters")))
    return next((each for each in clusters if alias is not None and each.get("alias") == alias), {})
