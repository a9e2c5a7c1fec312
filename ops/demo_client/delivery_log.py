"""What a client produced or consumed: counts and offsets per partition. Keeps no record, however long a client runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Is called with each record: partition, offset, id or None.
Each = Callable[[int, int, str | None], None]


def nobody(_partition: int, _offset: int, _record_id: str | None) -> None:
    """Do nothing with a record."""


@dataclass
class PartitionDeliveries:
    """Counts of one partition. Offsets are those of the first and the last record that was counted."""

    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None


@dataclass
class DeliveryLog:
    """Counts of the records that were produced or consumed, per partition; `each` is called with every record."""

    each: Each = field(default=nobody, repr=False)
    partitions: dict[int, PartitionDeliveries] = field(default_factory=dict)
    total: int = 0

    def add(self, partition: int, offset: int, record_id: str | None) -> None:
        """Count one record."""
        account = self.partitions.setdefault(partition, PartitionDeliveries())
        account.records += 1
        account.first_offset = offset if account.first_offset is None else min(account.first_offset, offset)
        account.last_offset = offset if account.last_offset is None else max(account.last_offset, offset)
        self.total += 1
        self.each(partition, offset, record_id)

    def as_json(self) -> list[dict[str, Any]]:
        """Return one object per partition, ordered by partition."""
        return [
            {
                "partition": partition,
                "records": account.records,
                "firstOffset": account.first_offset,
                "lastOffset": account.last_offset,
            }
            for partition, account in sorted(self.partitions.items())
        ]


@contextmanager
def keys_file(path: Path | None) -> Iterator[Each]:
    """Open a file of one line per record: partition, offset and id, separated by tabs; without a path write nothing.

    A record without an id has an empty one.
    """
    if path is None:
        yield nobody
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as lines:
        yield lambda partition, offset, record_id: _write(lines.write, partition, offset, record_id)


def _write(write: Callable[[str], int], partition: int, offset: int, record_id: str | None) -> None:
    write(f"{partition}\t{offset}\t{record_id or ''}\n")
