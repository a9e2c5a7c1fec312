"""ScaledObject, HorizontalPodAutoscaler: brokers store records, so no autoscaler may remove them.

Kafka moves no partition to a broker that is added, and none from one that goes. KafkaNodePool has a scale subresource
all the same, for people who do that first.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.autoscalers import describe, target_kind, target_name
from policies.support.policy_builder import Config, resource_policy
from policies.support.resource_types import AUTOSCALER, CLUSTER, NODE_POOL, kind_of
from policies.support.traversal import Props

_WITH_RECORDS = frozenset(map(kind_of, CLUSTER | NODE_POOL))


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """At most one message."""
    kind = target_kind(props)
    if kind in _WITH_RECORDS:
        yield (
            f"{describe(type_, props)}: spec.scaleTargetRef must not be a {kind} (got {target_name(props)}). Brokers "
            "that are added get no partition by themselves, and those that are removed take their replicas along."
        )


POLICY = resource_policy(
    name="autoscaled-brokers",
    description="Nothing scales brokers or controllers.",
    types=AUTOSCALER,
    violations=violations,
    severity=Severity.CRITICAL,
    remediation_steps="Remove the autoscaler; change `replicas` of a node pool by hand, with a reassignment of its "
    "partitions before or after.",
)
