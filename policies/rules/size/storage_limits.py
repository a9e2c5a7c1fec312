"""How big disks may be: a unit mistaken is paid for every month, and a volume cannot be made smaller again."""

import re
from collections.abc import Iterator
from decimal import Decimal

from pulumi_policy import Severity

from policies.support.clusters import WITH_NODES, describe, disks_of, node_sets
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import Props, each, format_value, whole

_DISK, _TOTAL = "maximumGi", "maximumTotalGi"
_GIBIBYTE = 2**30
# Two digits of an exponent are more than any disk has, and keep a mistyped one from filling the memory.
_QUANTITY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,2})|([kKMGTPE]?i?))")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each disk that is too big or cannot be read, and for each node set whose disks are together."""
    cluster = describe(type_, props)

    def check_disk(disk: tuple[str, Props]) -> Iterator[str]:
        where, storage = disk
        size = storage.get("size")
        if size is None:
            return
        size_bytes, maximum = _in_bytes(size), count(config, _DISK)
        if size_bytes is None:
            yield f"{cluster}: {where}.size must be a quantity (got {format_value(size)}). Write it as 100Gi."
        elif size_bytes > maximum * _GIBIBYTE:
            yield (
                f"{cluster}: {where}.size must be <= {maximum}Gi (got {format_value(size)}). "
                f"Raise {_DISK} if it is meant: a volume cannot be made smaller again."
            )

    def check_total(node_set: tuple[str, Props]) -> Iterator[str]:
        where, nodes = node_set
        replicas, maximum = whole(nodes.get("replicas")) or 0, count(config, _TOTAL)
        total = replicas * sum(each(disks_of(where, nodes), _bytes_of))
        if total > maximum * _GIBIBYTE:
            yield (
                f"{cluster}: {where}.storage of {replicas} replicas must be <= {maximum}Gi together "
                f"(got {_in_gibibytes(Decimal(total))}). Raise {_TOTAL} if it is meant."
            )

    for node_set in node_sets(type_, props):
        yield from each(each([node_set], lambda one: disks_of(*one)), check_disk)
        yield from each([node_set], check_total)


def _bytes_of(disk: tuple[str, Props]) -> Iterator[Decimal]:
    """Bytes of a disk that has a size which can be read."""
    size_bytes = _in_bytes(disk[1].get("size", 0))
    if size_bytes is not None:
        yield size_bytes


def _in_bytes(value: object) -> Decimal | None:
    """Return the bytes of a Kubernetes quantity (`100Gi`, `1.5T`, `1e12`, `1073741824`); None if it is none."""
    match = _QUANTITY.fullmatch(format_value(value).strip())
    if match is None or match[3] == "i":
        return None
    if match[2] is not None:
        return Decimal(match[1]).scaleb(int(match[2]))
    base = Decimal(1024 if match[3].endswith("i") else 1000)
    return Decimal(match[1]) * base ** _POWERS[match[3].removesuffix("i")]


def _in_gibibytes(size_bytes: Decimal) -> str:
    """Return the text of an amount of bytes in a message, with at most one digit after the point: `20480Gi`."""
    rounded = f"{size_bytes / _GIBIBYTE:.1f}"
    return f"{rounded.removesuffix('.0')}Gi"


POLICY = resource_policy(
    name="storage-limits",
    description="No disk is bigger than `maximumGi`, nor all disks of a node set than `maximumTotalGi`.",
    types=WITH_NODES,
    violations=violations,
    options={
        _DISK: count_option(4096, "biggest size of a disk in Gi"),
        _TOTAL: count_option(20480, "biggest size of all disks of a node set together in Gi"),
    },
    severity=Severity.MEDIUM,
    remediation_steps="Lower `size`, or raise the option that the message names for a stack that is meant so big.",
)
