"""How big disks may be: a unit mistaken is paid for every month, and a volume cannot be made smaller again."""

from collections.abc import Iterator
from decimal import Decimal

from pulumi_policy import Severity

from ..support.clusters import WITH_NODES, described, disks_of, node_sets
from ..support.declaring import Config, amount, counted, resource_policy
from ..support.quantities import GIBIBYTE, in_bytes, in_gibibytes
from ..support.values import Props, each, shown, whole

_DISK, _TOTAL = "maximumGi", "maximumTotalGi"


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each disk that is too big or cannot be read, and for each node set whose disks are together."""
    cluster = described(type_, props)

    def check_disk(disk: tuple[str, Props]) -> Iterator[str]:
        where, storage = disk
        size = storage.get("size")
        if size is None:
            return
        size_bytes, maximum = in_bytes(size), counted(config, _DISK)
        if size_bytes is None:
            yield f"{cluster}: {where}.size must be a quantity (got {shown(size)}). Write it as 100Gi."
        elif size_bytes > maximum * GIBIBYTE:
            yield (
                f"{cluster}: {where}.size must be <= {maximum}Gi (got {shown(size)}). "
                f"Raise {_DISK} if it is meant: a volume cannot be made smaller again."
            )

    def check_total(node_set: tuple[str, Props]) -> Iterator[str]:
        where, nodes = node_set
        replicas, maximum = whole(nodes.get("replicas")) or 0, counted(config, _TOTAL)
        total = replicas * sum(each(disks_of(where, nodes), _bytes_of))
        if total > maximum * GIBIBYTE:
            yield (
                f"{cluster}: {where}.storage of {replicas} replicas must be <= {maximum}Gi together "
                f"(got {in_gibibytes(Decimal(total))}). Raise {_TOTAL} if it is meant."
            )

    for node_set in node_sets(type_, props):
        yield from each(each([node_set], lambda one: disks_of(*one)), check_disk)
        yield from each([node_set], check_total)


def _bytes_of(disk: tuple[str, Props]) -> Iterator[Decimal]:
    """Bytes of a disk that has a size which can be read."""
    size_bytes = in_bytes(disk[1].get("size", 0))
    if size_bytes is not None:
        yield size_bytes


POLICY = resource_policy(
    name="storage-limits",
    description="No disk is bigger than `maximumGi`, nor all disks of a node set than `maximumTotalGi`.",
    types=WITH_NODES,
    violations=violations,
    options={
        _DISK: amount(4096, "biggest size of a disk in Gi"),
        _TOTAL: amount(20480, "biggest size of all disks of a node set together in Gi"),
    },
    severity=Severity.MEDIUM,
    remediation_steps="Lower `size`, or raise the option that the message names for a stack that is meant so big.",
)
