"""KafkaMirrorMaker2: topics that the mirror or its workers create must have enough replicas to outlive a broker.

They lie on the target, except for the offset syncs, which lie on the source unless `offset-syncs.topic.location` is
`target`.
"""

from collections.abc import Iterator, Mapping

from pulumi_policy import Severity

from policies.support.clusters import BROKERS_DECIDE, setting
from policies.support.mirror_makers import CHECKPOINT, HEARTBEAT, SOURCE, ReplicationFlow, replication_flows, workers
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import MIRROR, Props, each, name, whole

# Per part of the resource: the settings that decide a factor, with the value Kafka takes if one is not set
# (MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig, DistributedConfig).
_FACTORS = {
    SOURCE: {"replication.factor": 2, "offset-syncs.topic.replication.factor": 3},
    CHECKPOINT: {"checkpoints.topic.replication.factor": 3},
    HEARTBEAT: {"heartbeats.topic.replication.factor": 3},
}
_STORAGE_FACTORS = {
    "config.storage.replication.factor": 3,
    "offset.storage.replication.factor": 3,
    "status.storage.replication.factor": 3,
}


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each factor that is too low. Factors that are left to the brokers are judged at the cluster."""
    minimum = count(config, "minimum")

    def too_low(where: str, settings: Props, factors: Mapping[str, int]) -> Iterator[str]:
        def check(factor: tuple[str, int]) -> Iterator[str]:
            key, default = factor
            value, got = setting(settings, key, default)
            number = whole(value)
            if number is None or (number != BROKERS_DECIDE and number < minimum):
                yield (
                    f"mirror {name(props)}: {where} {key} must be >= {minimum} (got {got}). "
                    "With fewer, the loss of one broker can lose the records of such a topic."
                )

        return each(factors.items(), check)

    def of_workers(_props: Props) -> Iterator[str]:
        where, settings = workers(type_, props)
        return too_low(where, settings, _STORAGE_FACTORS)

    def of_connector(declared: tuple[ReplicationFlow, str]) -> Iterator[str]:
        flow, connector = declared
        return too_low(f"{flow.where}.{connector}", flow.config(connector), _FACTORS[connector])

    yield from each([props], of_workers)
    yield from each(
        [(flow, connector) for flow in replication_flows(type_, props) for connector in flow.connectors], of_connector
    )


POLICY = resource_policy(
    name="mirror-replication",
    description="Mirrored topics, offset syncs, checkpoints and Connect's storage have at least `minimum` replicas.",
    types=MIRROR,
    violations=violations,
    options={"minimum": count_option(3, "fewest replicas of what a mirror creates")},
    severity=Severity.CRITICAL,
    remediation_steps="Set the named factor in the mirror, or lower `minimum` for a target that may lose records.",
)
