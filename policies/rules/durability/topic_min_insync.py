"""KafkaTopic: a record must be on more than one broker when it is acknowledged, yet not on all that could have it.

`min.insync.replicas` is how many brokers must have a record before a producer with acks=all is answered. One is too
few, for it may be the next that is lost. As many as there are replicas are too many: producers stop when one is away.

A topic that sets nothing takes the brokers' value, which is judged at the cluster. Where the brokers decide on the
replicas, only the minimum counts here. With one replica nothing is below it: 1 is the only value that works, and
`topic-replication` reports such a topic; a higher value is reported here.
"""

from collections.abc import Iterator
from typing import Any

from pulumi_policy import Severity

from policies.support.clusters import BROKERS_DECIDE, topic_name
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import TOPIC, Props, format_value, whole, within

KEY = "min.insync.replicas"


def violations(_type: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message."""
    value, replicas, minimum = within(props, "spec", "config", KEY), _replicas(props), count(config, "minimum")
    if value is None:
        return
    number = whole(value)
    if number is None or (number < minimum and replicas != 1):
        yield (
            f"topic {topic_name(props)}: {KEY} must be >= {minimum} (got {format_value(value)}). "
            "With fewer, the loss of one broker can lose acknowledged records."
        )
    elif replicas is not None and number > max(replicas - 1, 1):
        yield (
            f"topic {topic_name(props)}: {KEY} must be <= {max(replicas - 1, 1)} (got {number}, replicas {replicas}). "
            "With more, the loss of one broker stops producers with acks=all."
        )


def remedy(props: Any, config: Config) -> bool:
    """Set the minimum, if that leaves a replica to be lost; a value that cannot be read is left alone."""
    value, replicas, minimum = within(props, "spec", "config", KEY), _replicas(props), count(config, "minimum")
    if whole(value) is None or replicas is None or minimum >= replicas or not [*violations("", props, config)]:
        return False
    props["spec"]["config"][KEY] = minimum
    return True


def _replicas(props: Props) -> int | None:
    """How many the topic asks for; None if the brokers decide."""
    replicas = whole(within(props, "spec", "replicas"))
    return None if replicas == BROKERS_DECIDE else replicas


# After topic-replication: the remedy stays below the replicas.
ORDER = 1
POLICY = resource_policy(
    name="topic-min-insync",
    description="A KafkaTopic that sets `min.insync.replicas` sets at least `minimum` and less than its replicas.",
    types=TOPIC,
    violations=violations,
    remedy=remedy,
    options={"minimum": count_option(2, "fewest brokers that have a record when it is acknowledged")},
    severity=Severity.HIGH,
    remediation_steps="Set `min.insync.replicas` of the topic, or remove it so that the brokers' value counts. "
    "A minimum of 2 takes 3 replicas.",
)
