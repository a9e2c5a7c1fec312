"""Kafka, EventStreams, KafkaNodePool: the disks must stay when the resource that asked for them is deleted.

Strimzi's default is to keep the claims, so only a value that is set can be wrong.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import WITH_NODES, describe, disks
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import Props, each, flag


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for each disk whose claim is deleted with the resource."""

    def check(disk: tuple[str, Props]) -> Iterator[str]:
        where, storage = disk
        if storage.get("type") == "persistent-claim" and flag(storage.get("deleteClaim"), default=False):
            yield (
                f"{describe(type_, props)}: {where}.deleteClaim must be false (got true). "
                "Whoever deletes the resource deletes its PersistentVolumeClaims and their records too."
            )

    return each(disks(type_, props), check)


POLICY = resource_policy(
    name="delete-claim",
    description="Persistent disks stay when the cluster or node pool is deleted.",
    types=WITH_NODES,
    violations=violations,
    severity=Severity.HIGH,
    remediation_steps="Remove `deleteClaim`, or set it to false, and delete the claims of a retired cluster by hand.",
)
