"""What values of the request's JSON document are."""

import math

OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1
REPLICAS_MAX = 2**15 - 1
SECONDS_MAX = 366 * 86_400


def is_count(value: object, least: int = 0, most: int = OFFSET_MAX) -> bool:
    """Whether a value is a whole number from `least` to `most`. JSON may write it as 3.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    whole = isinstance(value, int) or (math.isfinite(value) and value.is_integer())
    return whole and least <= value <= most
