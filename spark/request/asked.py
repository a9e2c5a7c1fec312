"""Reads the positions that a request asks to translate to the other side."""

from typing import Literal, get_args

from spark.request.document import shown
from spark.request.model import AskedPosition
from spark.request.values import PARTITION_MAX, is_count

KEYS = ("topic", "partition", "offset")
POSITIONS_MAX = 20_000
Side = Literal["source", "target"]


def read(value: object, problems: list[str]) -> tuple[AskedPosition, ...]:
    """Return the positions in their order; adds a problem for each that is none."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > POSITIONS_MAX:
        got = f"{len(value)} positions" if isinstance(value, list) else shown(value)
        problems.append(f"mirror: positions must be a list of at most {POSITIONS_MAX} positions (got {got})")
        return ()
    found = []
    for number, item in enumerate(value):
        position = _position(item)
        if position is None:
            problems.append(
                f"mirror.positions[{number}]: must be an object of a topic, a partition, an offset and perhaps a side, "
                f"source or target (got {shown(item)})"
            )
        else:
            found.append(position)
    return tuple(found)


def _position(item: object) -> AskedPosition | None:
    if not isinstance(item, dict) or set(item) - {*KEYS, "side"} or not set(KEYS) <= set(item):
        return None
    topic, partition, offset = (item[key] for key in KEYS)
    side: Side = item.get("side", "source")
    if (
        side not in get_args(Side)
        or not isinstance(topic, str)
        or not is_count(partition, 0, PARTITION_MAX)
        or not is_count(offset)
    ):
        return None
    return AskedPosition(side=side, topic=topic, partition=int(partition), offset=int(offset))
