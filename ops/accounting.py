"""What a client produced or consumed: counts and offsets per partition, and every record by its id."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class PartitionAccount:
    """Counts of one partition. Offsets are those of the first and the last record that was counted."""

    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None


@dataclass
class Account:
    """Everything that was handed over, in order, per partition."""

    partitions: dict[int, PartitionAccount] = field(default_factory=dict)
    records: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, partition: int, offset: int, record_id: str | None) -> None:
        """Count one record. A record without an id is listed with an empty one."""
        account = self.partitions.setdefault(partition, PartitionAccount())
        account.records += 1
        account.first_offset = offset if account.first_offset is None else min(account.first_offset, offset)
        account.last_offset = offset if account.last_offset is None else max(account.last_offset, offset)
        self.records.append((partition, offset, record_id or ""))

    @property
    def total(self) -> int:
        """Number of records counted."""
        return len(self.records)

    def next_offsets(self) -> dict[int, int]:
        """Return per partition the offset after the last record: what a consumer commits."""
        return {
            partition: account.last_offset + 1
            for partition, account in sorted(self.partitions.items())
            if account.last_offset is not None
        }

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


def write_keys(path: Path, records: Iterable[tuple[int, int, str]]) -> None:
    """Write one line per record: partition, offset and record id, separated by tabs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as lines:
        lines.writelines(f"{partition}\t{offset}\t{record_id}\n" for partition, offset, record_id in records)
