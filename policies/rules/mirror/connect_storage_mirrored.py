"""KafkaMirrorMaker2: no mirror may copy the topics in which a Connect cluster of the stack keeps its state.

Neither MirrorMaker's excludes nor its replication policies leave out the usual names of these topics
(`mirrormaker2-cluster-configs`). A mirror of the other direction that takes every topic copies them: a Connect cluster
over there whose topics have the same names would read configurations and offsets that are not its own. Remote topics
with a prefix have other names and do no harm.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from pulumi_policy import Severity

from policies.support.connections import addresses
from policies.support.mirror_makers import (
    ReplicationFlow,
    connect_cluster,
    connect_storage,
    copies_internal_names,
    is_kafkas,
    is_mirror_makers,
    topic_flows,
)
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import CONNECT, MIRROR, each, mapping, name


def violations(resources: Sequence[Resource], _config: Config) -> Iterator[Finding]:
    """A finding for each mirror that takes such topics from its source."""

    def check(pair: tuple[tuple[Resource, ReplicationFlow], Resource]) -> Iterator[Finding]:
        (resource, flow), connect = pair
        if not flow.identity or not addresses(flow.source, resource.props) & _home(connect):
            return
        # Of a mirror whose release is not known, the newer one is taken: it copies more.
        newer = copies_internal_names(resource.props) is not False
        storage = [
            topic for topic in connect_storage(connect.type_, connect.props) if not _is_never_copied(topic, newer)
        ]
        taken = [topic for topic in storage if flow.topics.selects(topic)]
        if taken:
            yield Finding(
                f"mirror {name(resource.props)}: {flow.where}.topicsExcludePattern must keep out what Connect of "
                f"{name(connect.props)} keeps on the source (got {flow.topics.exclude or 'an empty one'}, which lets "
                f"in {', '.join(taken)}). A Connect cluster with such topics would read state that is not its own.",
                resource,
            )

    return each(product(topic_flows(resources), resources), check)


def _home(connect: Resource) -> frozenset[str]:
    """Addresses of the cluster on which the workers keep their state."""
    if connect.type_ in CONNECT:
        return addresses(mapping(connect.props.get("spec")), connect.props)
    return addresses(connect_cluster(connect.type_, connect.props)[1], connect.props)


def _is_never_copied(topic: str, newer: bool) -> bool:
    return is_kafkas(topic) or is_mirror_makers(topic, copies_internal_names=newer)


POLICY = stack_policy(
    name="connect-storage-mirrored",
    description="No mirror copies, under their own names, the topics in which a Connect cluster keeps its state.",
    types=MIRROR | CONNECT,
    violations=violations,
    severity=Severity.HIGH,
    remediation_steps="Add these topics to `topicsExcludePattern`, or select topics more narrowly.",
)
