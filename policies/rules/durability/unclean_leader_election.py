"""Kafka, EventStreams, KafkaTopic: only a replica that has every acknowledged record may become the leader.

Kafka's default is false, so only a value that is set can be wrong.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import config_of, describe, topic_name
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import CLUSTER, TOPIC, Props, flag, mapping, within

KEY = "unclean.leader.election.enable"


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """At most one message."""
    of_topic = type_ in TOPIC
    settings = mapping(within(props, "spec", "config")) if of_topic else config_of(type_, props)
    subject = f"topic {topic_name(props)}" if of_topic else describe(type_, props)
    if flag(settings.get(KEY), default=False):
        yield (
            f"{subject}: {KEY} must be false (got true). "
            "A replica that lags behind can become the leader, and acknowledged records are lost."
        )


POLICY = resource_policy(
    name="unclean-leader-election",
    description="No cluster or topic lets a replica lead that lacks acknowledged records.",
    types=CLUSTER | TOPIC,
    violations=violations,
    severity=Severity.HIGH,
    remediation_steps="Remove `unclean.leader.election.enable`. To bring a partition back that has lost its replicas, "
    "elect its leader by hand once.",
)
