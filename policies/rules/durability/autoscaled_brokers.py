"""ScaledObject, HorizontalPodAutoscaler: brokers store records, so no autoscaler may remove them.

Kafka moves no partition to a broker that is added, and none from one that goes. KafkaNodePool has a scale subresource
all the same, for people who do that first.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import describe_autoscaler, scaled_kind, scaled_name
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import AUTOSCALER, CLUSTER, NODE_POOL, Props, kind_of

_WITH_RECORDS = frozenset(map(kind_of, CLUSTER | NODE_POOL))


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """At most one message."""
    kind = scaled_kind(props)
    if kind in _WITH_RECORDS:
        yield (
            f"{describe_autoscaler(type_, props)}: spec.scaleTargetRef must not be a {kind} "
            f"(got {scaled_name(props)}). Brokers that are added get no partition by themselves, and those that are "
            "removed take their replicas along."
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
