"""KafkaMirrorMaker2: what the mirror creates on the target must have enough replicas to outlive a broker."""

from collections.abc import Iterator

from pulumi_policy import Severity

from ..support.clusters import setting
from ..support.declaring import Config, resource_policy
from ..support.kinds import MIRROR
from ..support.mirror_makers import CHECKPOINT, HEARTBEAT, SOURCE, flows, workers
from ..support.values import Props, each, name, whole

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
_BROKERS_DECIDE = -1


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each factor that is too low. Factors that are left to the brokers are judged at the cluster."""
    minimum = whole(config["minimum"]) or 1

    def check(factor: tuple[str, Props, str, int]) -> Iterator[str]:
        where, settings, key, default = factor
        value, got = setting(settings, key, default)
        number = whole(value)
        if number is None or (number != _BROKERS_DECIDE and number < minimum):
            yield (
                f"mirror {name(props)}: {where} {key} must be >= {minimum} (got {got}). "
                "With fewer, the loss of one target broker can lose what was mirrored."
            )

    return each(_factors(type_, props), check)


def _factors(type_: str, props: Props) -> Iterator[tuple[str, Props, str, int]]:
    """Place, configuration, key and Kafka's default of every factor that the resource decides."""
    where, settings = workers(type_, props)
    yield from ((where, settings, key, default) for key, default in _STORAGE_FACTORS.items())
    for flow in flows(type_, props):
        for connector in flow.connectors:
            for key, default in _FACTORS[connector].items():
                yield f"{flow.where}.{connector}", flow.config(connector), key, default


POLICY = resource_policy(
    name="mirror-replication",
    description="Mirrored topics, offset syncs, checkpoints and Connect's storage have at least `minimum` replicas.",
    types=MIRROR,
    violations=violations,
    options={
        "minimum": {
            "type": "integer",
            "minimum": 1,
            "default": 3,
            "description": "fewest replicas of what a mirror creates",
        }
    },
    severity=Severity.CRITICAL,
    remediation_steps="Set the named factor in the mirror, or lower `minimum` for a target that may lose records.",
)
