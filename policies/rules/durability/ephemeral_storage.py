"""Kafka, EventStreams, KafkaNodePool: disks must outlive their pods."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import WITH_NODES, describe, disks
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import Props, each, flag


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each disk that is lost with its pod."""
    if flag(config["allowed"], default=False):
        return

    def check(disk: tuple[str, Props]) -> Iterator[str]:
        where, storage = disk
        if storage.get("type") == "ephemeral":
            yield (
                f"{describe(type_, props)}: {where}.type must be persistent-claim (got ephemeral). "
                "A pod that is restarted begins with an empty disk; if all are, every record is lost."
            )

    yield from each(disks(type_, props), check)


POLICY = resource_policy(
    name="ephemeral-storage",
    description="Brokers, controllers and ZooKeeper keep their data on persistent disks.",
    types=WITH_NODES,
    violations=violations,
    options={
        "allowed": {
            "type": "boolean",
            "default": False,
            "description": "whether disks may be lost with their pods, as in a demo",
        }
    },
    severity=Severity.CRITICAL,
    remediation_steps="Use storage of type `persistent-claim` with a `size`. "
    "An existing cluster does not change its type of storage: add a node pool and move the partitions.",
)
