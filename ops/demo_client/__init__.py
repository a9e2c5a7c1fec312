"""Demo clients: `ops produce` sends random records, `ops consume` reads them as a consumer group.

Here is what both share: the events, which are keyed JSON records as stores would send them, and the counts and offsets
of what a client produced or consumed, per partition. No record is kept, however long a client runs.
"""

import itertools
import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from contract.terminal import visible

STORES = tuple(f"STORE-{number:02d}" for number in range(1, 9))
SKUS = tuple(f"SKU-{number:04d}" for number in range(1, 51))
TYPES = ("sale", "restock", "return", "correction")
# Id and description, target temperature in degrees Celsius, target humidity level from 0 to 1, and the number of the
# kind of content, as in the reference data of IBM's Event Streams tutorials.
PRODUCTS: tuple[tuple[str, str, float, float, int], ...] = (
    ("P01", "Carrots", 4, 0.4, 1),
    ("P02", "Banana", 6, 0.6, 2),
    ("P03", "Salad", 4, 0.4, 1),
    ("P04", "Avocado", 6, 0.4, 1),
    ("P05", "Tomato", 4, 0.4, 2),
)
# With a seed everything is repeatable, the clock included: events start here and are one second apart.
SEEDED_START = datetime(2026, 1, 1, tzinfo=UTC)
EVENT_SPACING = timedelta(seconds=1)
Body = dict[str, Any]


class Kind(StrEnum):
    """What an event is about: goods that moved, or a product and how to store it."""

    ITEMS = "items"
    PRODUCTS = "products"


@dataclass(frozen=True, kw_only=True)
class Event:
    """One record to send. `record_id` is in the value too, so that the record can be counted where it arrives."""

    record_id: str
    key: bytes
    value: bytes


def events(kind: Kind, count: int | None, seed: int | None = None) -> Iterator[Event]:
    """Yield `count` events, or ever more; each value holds its id. The key is store and SKU, or the product's.

    The same seed gives the same events, byte by byte. Without a seed they are random and stamped with the present.
    """
    source = random.Random(seed)  # noqa: S311 - made-up data, not a secret
    run = f"{source.getrandbits(48):012x}"
    for number in itertools.count() if count is None else range(count):
        record_id = f"{run}-{number:07d}"
        moment = SEEDED_START + EVENT_SPACING * number if seed is not None else datetime.now(UTC)
        key, body = _MADE[kind](source, moment)
        yield Event(record_id=record_id, key=key.encode(), value=json.dumps({"id": record_id, **body}).encode())


def record_id(value: bytes | None) -> str | None:
    """Return the id inside a record's value; None if the value is not an event of this module's making."""
    if value is None:
        return None
    try:
        body = json.loads(value)
    except ValueError:
        return None
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str) else None


def _item(source: random.Random, moment: datetime) -> tuple[str, Body]:
    store, sku, kind = source.choice(STORES), source.choice(SKUS), source.choice(TYPES)
    quantity = source.randint(1, 60)
    return f"{store}/{sku}", {
        "store": store,
        "sku": sku,
        "quantity": -quantity if kind == "sale" else quantity,
        "price": round(source.uniform(1, 500), 2),
        "type": kind,
        "timestamp": moment.isoformat(timespec="milliseconds"),
    }


def _product(source: random.Random, _moment: datetime) -> tuple[str, Body]:
    product, description, temperature, humidity, content_type = source.choice(PRODUCTS)
    return product, {
        "product_id": product,
        "description": description,
        "target_temperature": temperature,
        "target_humidity_level": humidity,
        "content_type": content_type,
    }


_MADE: dict[Kind, Callable[[random.Random, datetime], tuple[str, Body]]] = {
    Kind.ITEMS: _item,
    Kind.PRODUCTS: _product,
}


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
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as lines:
        yield lambda partition, offset, record_id: _write(lines.write, partition, offset, record_id)


def _write(write: Callable[[str], int], partition: int, offset: int, record_id: str | None) -> None:
    write(f"{partition}\t{offset}\t{visible(record_id or '', lines=False)}\n")
