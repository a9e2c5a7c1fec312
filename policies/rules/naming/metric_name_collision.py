"""Two topics of a cluster must not differ by `.` and `_` alone: metrics make both one, so Kafka refuses the second."""

from collections.abc import Iterator, Sequence

from pulumi_policy import Severity

from policies.support.clusters import cluster_name, topic_name
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import TOPIC, each, namespace


def violations(resources: Sequence[Resource], _config: Config) -> Iterator[Finding]:
    """A finding for each topic that collides with one before it. The same name twice is no collision."""
    first: dict[tuple[str | None, str, str], str] = {}

    def check(resource: Resource) -> Iterator[Finding]:
        topic = topic_name(resource.props)
        key = cluster_name(resource.props), namespace(resource.props), topic.replace(".", "_")
        other = first.setdefault(key, topic)
        if other != topic:
            yield Finding(
                f"topic {topic}: name must differ from topic {other} by more than . and _ (got {topic}). "
                "Metrics make both one, so Kafka refuses the second.",
                resource,
            )

    return each(resources, check)


POLICY = stack_policy(
    name="metric-name-collision",
    description="No two topics of a cluster have names that differ by `.` and `_` alone.",
    types=TOPIC,
    violations=violations,
    severity=Severity.HIGH,
    remediation_steps="Rename the topic that does not exist yet.",
)
