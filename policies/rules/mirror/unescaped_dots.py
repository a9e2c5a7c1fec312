r"""KafkaMirrorMaker2: a dot of a topic's name must not make a pattern match another topic too.

`items.inventory` matches `items-inventory` as well, and `retail..*` takes `retailers`. Reported are dots that do so
among the topics which the pack knows: the stack's KafkaTopics and the option `sourceTopics`.
"""

from collections.abc import Iterator, Sequence

from pulumi_policy import EnforcementLevel, Severity

from policies.support.java_patterns import alternatives, matches, with_dots_escaped
from policies.support.mirror_makers import SOURCE_TOPICS, ReplicationFlow, known_topics, topic_flows
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import MIRROR, TOPIC, each, name


def violations(resources: Sequence[Resource], config: Config) -> Iterator[Finding]:
    """A finding for each alternative of a pattern that matches a second name by a dot."""
    names = known_topics(resources, config)

    def check(place: tuple[Resource, ReplicationFlow]) -> Iterator[Finding]:
        resource, flow = place
        selected = [topic for topic in names if flow.topics.selects(topic)]
        for alternative in alternatives(flow.topics.include):
            escaped = with_dots_escaped(alternative)
            meant = [topic for topic in selected if matches(escaped, topic)]
            others = [topic for topic in selected if matches(alternative, topic) and topic not in meant]
            if meant and others:
                yield Finding(
                    f"mirror {name(resource.props)}: {flow.where}.topicsPattern must escape dots that are part of a "
                    f"name (got {alternative}, which matches {meant[0]} and {others[0]}). "
                    f"Write {escaped}, or list {others[0]} too.",
                    resource,
                )

    return each(topic_flows(resources), check)


POLICY = stack_policy(
    name="unescaped-dots",
    description="No unescaped dot in `topicsPattern` makes one alternative match two known topics.",
    types=MIRROR | TOPIC,
    violations=violations,
    options=SOURCE_TOPICS,
    severity=Severity.LOW,
    enforcement_level=EnforcementLevel.ADVISORY,
    remediation_steps=r"Write `\.` for a dot, or list the other topic too if it is to be copied.",
)
