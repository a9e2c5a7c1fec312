"""KafkaMirrorMaker2: every topic that the configuration lists must be copied by some mirror of the stack.

The source's topics are resources of another stack: the option `sourceTopics` lists those that must outlive the source.
A pattern that cannot be judged is taken to match.
"""

from collections.abc import Iterator, Sequence

from pulumi_policy import Severity

from policies.support.mirror_makers import SOURCE, SOURCE_TOPICS, replication_flows, source_topics
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import MIRROR


def violations(resources: Sequence[Resource], config: Config) -> Iterator[Finding]:
    """A finding for each topic that no mirror copies, at the first mirror, where an exception can lift it.

    A pattern that is not known yet leaves all to the update.
    """
    selections = [
        flow.topics
        for resource in resources
        for flow in replication_flows(resource.type_, resource.props)
        if SOURCE in flow.connectors
    ]
    for topic in source_topics(config) if resources else []:
        if all(selection.selects(topic) is False for selection in selections):
            patterns = (
                ", ".join(selection.include or "an empty one" for selection in selections) or "no sourceConnector"
            )
            yield Finding(
                f"topic {topic}: topicsPattern of some mirror must match it and no topicsExcludePattern take it out "
                f"(got {patterns}). It would be missing on the target after a failover.",
                resources[0],
            )


POLICY = stack_policy(
    name="topics-mirrored",
    description="Every topic of `sourceTopics` is copied by some mirror of the stack, if it has any.",
    types=MIRROR,
    violations=violations,
    options=SOURCE_TOPICS,
    severity=Severity.HIGH,
    remediation_steps="Add the topic to a mirror's `topicsPattern`, or take it out of `sourceTopics`.",
)
