r"""KafkaMirrorMaker2: an exclude pattern of one's own must still keep out what MirrorMaker's does.

A set `topicsExcludePattern` replaces MirrorMaker's `mm2.*\.internal,.*\.replica,__.*`; it does not add to it. Kafka's
replication policies refuse internal topics once more, so that none is copied under them: this rule asks for the first
of the two fences, and only where `topicsPattern` lets such topics in. Checkpoint topics are not among MirrorMaker's own
excludes, hence not asked for.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.java_patterns import TOPICS_EXCLUDE
from policies.support.mirror_makers import SOURCE, ReplicationFlow, replication_flows
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import MIRROR, Props, each, name

_INTERNAL = ("__consumer_offsets", "__transaction_state", "mm2-offset-syncs.x.internal")


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for each mirror whose patterns take internal topics."""

    def check(flow: ReplicationFlow) -> Iterator[str]:
        taken = [topic for topic in _INTERNAL if flow.topics.selects(topic)]
        if taken and SOURCE in flow.connectors:
            yield (
                f"mirror {name(props)}: {flow.where}.topicsExcludePattern must keep out internal topics "
                f"(got {flow.topics.exclude or 'an empty one'}, which lets in {', '.join(taken)}). "
                f"It replaces MirrorMaker's {TOPICS_EXCLUDE}; only the replication policy still refuses them."
            )

    return each(replication_flows(type_, props), check)


POLICY = resource_policy(
    name="internal-topics-mirrored",
    description="A `topicsExcludePattern` that is set still keeps out internal topics that `topicsPattern` lets in.",
    types=MIRROR,
    violations=violations,
    severity=Severity.MEDIUM,
    remediation_steps=rf"Add `{TOPICS_EXCLUDE}` to `topicsExcludePattern`, or select topics more narrowly.",
)
