"""Kubernetes quantities of storage and memory: `100Gi`, `1.5T`, `1e12`, `1073741824`."""

import re
from decimal import Decimal

from .values import shown

GIBIBYTE = 2**30
# Two digits of an exponent are more than any disk has, and keep a mistyped one from filling the memory.
_FORM = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,2})|([kKMGTPE]?i?))")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def in_bytes(value: object) -> Decimal | None:
    """The quantity in bytes; None if it cannot be read."""
    match = _FORM.fullmatch(shown(value).strip())
    if match is None or match[3] == "i":
        return None
    if match[2] is not None:
        return Decimal(match[1]).scaleb(int(match[2]))
    base = Decimal(1024 if match[3].endswith("i") else 1000)
    return Decimal(match[1]) * base ** _POWERS[match[3].removesuffix("i")]


def in_gibibytes(amount: Decimal) -> str:
    """An amount of bytes as a message tells it, with at most one digit after the point: `20480Gi`."""
    rounded = f"{amount / GIBIBYTE:.1f}"
    return f"{rounded.removesuffix('.0')}Gi"
