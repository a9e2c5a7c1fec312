"""Kafka, EventStreams: topics that leave their replicas to the brokers, and Kafka's own, must outlive a broker.

`default.replication.factor` counts for every topic that sets none, among them those that Kafka creates on first use.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import config_of, describe, setting
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import CLUSTER, Props, each, whole

# With the value that Kafka takes if one is not set.
_FACTORS = {
    "default.replication.factor": 1,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "share.coordinator.state.topic.replication.factor": 3,
}
_IF_SET = {"share.coordinator.state.topic.replication.factor"}  # brokers before Kafka 4.1 have no share groups


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each factor that is too low."""
    minimum = count(config, "minimum")

    def check(factor: tuple[str, int]) -> Iterator[str]:
        key, default = factor
        if key in _IF_SET and config_of(type_, props).get(key) is None:
            return
        value, got = setting(config_of(type_, props), key, default)
        number = whole(value)
        if number is None or number < minimum:
            yield (
                f"{describe(type_, props)}: {key} must be >= {minimum} (got {got}). "
                "With fewer, the loss of one broker can stop clients or lose the records of such a topic."
            )

    return each(_FACTORS.items(), check)


POLICY = resource_policy(
    name="cluster-replication",
    description="Topics get at least `minimum` replicas by default, and so do the logs of groups and transactions.",
    types=CLUSTER,
    violations=violations,
    options={"minimum": count_option(3, "fewest replicas that a cluster's configuration may ask for")},
    severity=Severity.HIGH,
    remediation_steps="Set the named factor in the cluster's `config`, or lower `minimum` for one with fewer brokers. "
    "Topics that exist keep their replicas.",
)
