"""KafkaTopic: a partition must have enough replicas to outlive a broker.

Three let producers go on without one broker while every acknowledged record is on two: see `topic-min-insync`.
"""

from collections.abc import Iterator
from typing import Any

from pulumi_policy import Severity

from policies.support.clusters import BROKERS_DECIDE, topic_name
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import TOPIC, Props, whole, within


def violations(_type: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message. Replicas that are left to the brokers are judged at the cluster."""
    replicas = whole(within(props, "spec", "replicas"))
    minimum = count(config, "minimum")
    if replicas is not None and replicas != BROKERS_DECIDE and replicas < minimum:
        yield (
            f"topic {topic_name(props)}: replicas must be >= {minimum} (got {replicas}). "
            "With fewer, the loss of one broker can stop producers or lose records."
        )


def remedy(props: Any, config: Config) -> bool:
    """Raise the replicas to the minimum. The cluster must have as many brokers; a topic does not show that."""
    if not [*violations("", props, config)]:
        return False
    props["spec"]["replicas"] = count(config, "minimum")
    return True


POLICY = resource_policy(
    name="topic-replication",
    description="A KafkaTopic that sets `replicas` has at least `minimum`.",
    types=TOPIC,
    violations=violations,
    remedy=remedy,
    options={"minimum": count_option(3, "fewest replicas of a topic's partitions")},
    severity=Severity.HIGH,
    remediation_steps="Set `replicas` of the topic, or lower `minimum` for a stack that may lose records. "
    "Strimzi adds replicas to a topic that exists with Cruise Control only: else reassign its partitions first.",
)
