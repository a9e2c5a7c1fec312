"""Stretches of offsets that are read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Offsets [start, end) of one partition of one cluster's topic."""

    topic: str
    partition: int
    start: int
    end: int
