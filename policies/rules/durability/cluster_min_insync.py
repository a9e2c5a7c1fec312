"""Kafka, EventStreams: a record must be on more than one broker when it is acknowledged, yet not on all that have it.

As `topic-min-insync`, for topics that leave it to the brokers and for the logs of transactions and share groups (if
set: brokers before Kafka 4.1 have none of these). The minimum is asked for
whatever the default factor is: `min.insync.replicas` also counts for topics that set more replicas than that.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pulumi_policy import Severity

from policies.support.clusters import config_of, describe, setting
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import CLUSTER, Props, each, whole


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """A number of replicas that must be in sync, and how many there are; Kafka's value for one that is not set."""

    key: str
    default: int
    factor: str
    factor_default: int
    if_set: bool = False


_PAIRS = (
    _Pair(key="min.insync.replicas", default=1, factor="default.replication.factor", factor_default=1),
    _Pair(
        key="transaction.state.log.min.isr",
        default=2,
        factor="transaction.state.log.replication.factor",
        factor_default=3,
    ),
    _Pair(
        key="share.coordinator.state.topic.min.isr",
        default=2,
        factor="share.coordinator.state.topic.replication.factor",
        factor_default=3,
        if_set=True,
    ),
)


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each number that is below the minimum, and for each that leaves no replica to be lost."""
    minimum = count(config, "minimum")

    def too_few(pair: _Pair) -> Iterator[str]:
        value, got = setting(config_of(type_, props), pair.key, pair.default)
        number = whole(value)
        if number is None or number < minimum:
            yield (
                f"{describe(type_, props)}: {pair.key} must be >= {minimum} (got {got}). "
                "With fewer, the loss of one broker can lose acknowledged records."
            )

    def too_many(pair: _Pair) -> Iterator[str]:
        value, got = setting(config_of(type_, props), pair.key, pair.default)
        of, of_got = setting(config_of(type_, props), pair.factor, pair.factor_default)
        number, factor = whole(value), whole(of)
        if number is not None and factor is not None and number > max(factor - 1, 1):
            yield (
                f"{describe(type_, props)}: {pair.key} must be below {pair.factor} (got {got}, factor {of_got}). "
                "Without a replica to spare, the loss of one broker stops producers."
            )

    config = config_of(type_, props)
    pairs = [pair for pair in _PAIRS if not pair.if_set or config.get(pair.key) is not None]
    yield from each(pairs, too_few)
    yield from each(pairs, too_many)


POLICY = resource_policy(
    name="cluster-min-insync",
    description="Brokers acknowledge a record when at least `minimum` of them have it, and can do so without one.",
    types=CLUSTER,
    violations=violations,
    options={"minimum": count_option(2, "fewest brokers that have a record when it is acknowledged")},
    severity=Severity.HIGH,
    remediation_steps="Set the named key in the cluster's `config`, or its replication factor one higher. "
    "Lower `minimum` for a cluster of one broker.",
)
