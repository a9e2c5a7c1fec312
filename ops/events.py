"""Random inventory events: keyed JSON records as stores would send them."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

STORES = tuple(f"STORE-{number:02d}" for number in range(1, 9))
SKUS = tuple(f"SKU-{number:04d}" for number in range(1, 51))
TYPES = ("sale", "restock", "return", "correction")
# With a seed everything is repeatable, the clock included: events start here and are one second apart.
SEEDED_START = datetime(2026, 1, 1, tzinfo=UTC)
EVENT_SPACING = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One record to send. `record_id` also stands in the value, so that it can be counted wherever it arrives."""

    record_id: str
    key: bytes
    value: bytes


def inventory_events(count: int, seed: int | None = None) -> Iterator[Event]:
    """Yield `count` inventory events, keyed by store and SKU: id, store, sku, quantity, price, type, timestamp.

    The same seed gives the same events, byte by byte. Without a seed they are random and stamped with the present.
    """
    source = random.Random(seed)  # noqa: S311 - made-up data, not a secret
    run = f"{source.getrandbits(48):012x}"
    start = SEEDED_START if seed is not None else datetime.now(UTC)
    for number in range(count):
        record_id = f"{run}-{number:07d}"
        store, sku, kind = source.choice(STORES), source.choice(SKUS), source.choice(TYPES)
        quantity = source.randint(1, 60)
        moment = start + EVENT_SPACING * number if seed is not None else datetime.now(UTC)
        body = {
            "id": record_id,
            "store": store,
            "sku": sku,
            "quantity": -quantity if kind == "sale" else quantity,
            "price": round(source.uniform(1, 500), 2),
            "type": kind,
            "timestamp": moment.isoformat(timespec="milliseconds"),
        }
        yield Event(record_id=record_id, key=f"{store}/{sku}".encode(), value=json.dumps(body).encode())


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
