"""KafkaTopic: how many partitions a topic may have. Kafka never takes partitions back."""

from collections.abc import Iterator

from pulumi_policy import Severity

from ..support.clusters import topic_name
from ..support.declaring import Config, amount, counted, resource_policy
from ..support.kinds import TOPIC
from ..support.values import Props, whole, within


def violations(_type: str, props: Props, config: Config) -> Iterator[str]:
    """At most one message."""
    partitions, maximum = whole(within(props, "spec", "partitions")), counted(config, "maximum")
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
        "maximum": amount(120, "most partitions of a topic"),
    },
    severity=Severity.MEDIUM,
    remediation_steps="Lower `partitions` before the topic is made, or raise `maximum` for a stack that needs as many.",
)
