"""What values of the request's JSON document are."""

import math
import re

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


def is_name(value: object) -> bool:
    """Whether a value is a text that is not empty."""
    return isinstance(value, str) and bool(value)


def is_grouped(value: object) -> bool:
    """Whether a value is a group and a version of an API, as in group/v1."""
    return isinstance(value, str) and re.fullmatch(r"[^/]+/[^/]+", value) is not None


def kind_of(value: object) -> str:
    """Return what a value is where it must not be shown, for it may be a secret."""
    return "nothing" if value is None else type(value).__name__
