"""KafkaTopic: how many partitions a topic may have. Kafka never takes partitions back."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import topic_name
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import TOPIC, Props, whole, within


def violations(_type: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message."""
    partitions, maximum = whole(within(props, "spec", "partitions")), count(config, "maximum")
    if partitions is not None and partitions > maximum:
        yield (
            f"topic {topic_name(props)}: partitions must be <= {maximum} (got {partitions}). "
            "Kafka never takes partitions back, and each one costs brokers memory and time."
        )


POLICY = resource_policy(
    name="partition-limits",
    description="No KafkaTopic has more than `maximum` partitions.",
    types=TOPIC,
    violations=violations,
    options={
        "maximum": count_option(120, "most partitions of a topic"),
    },
    severity=Severity.MEDIUM,
    remediation_steps="Lower `partitions` before the topic is made, or raise `maximum` for a stack that needs as many.",
)
