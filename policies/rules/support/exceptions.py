"""Exceptions: an annotation on a resource that lifts one rule from it, with a reason, until a day.

`exception.rt-inventory/<rule>: "until 2027-03-31: one broker until the new rack is there"`. It holds through that day,
in UTC. One that is expired or cannot be read lifts nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

from .values import Props, items, within

PREFIX = "exception.rt-inventory/"
FORM = '"until YYYY-MM-DD: reason"'
_VALUE = re.compile(r"until (\d{4}-\d{2}-\d{2}): *(\S.*)", re.DOTALL)


@dataclass(frozen=True)
class Exempt:
    """One exception; `until` is None where its value cannot be read, and `value` is what stands there."""

    rule: str
    value: str
    until: date | None
    reason: str

    def active(self, today: date) -> bool:
        """Whether it lifts its rule on that day."""
        return self.until is not None and today <= self.until


def today() -> date:
    """The current day in UTC."""
    return datetime.now(UTC).date()


def exceptions(props: Props) -> Iterator[Exempt]:
    """Every exception that the resource carries."""
    for key, value in items(within(props, "metadata", "annotations")):
        if key.startswith(PREFIX):
            yield _read(key.removeprefix(PREFIX), str(value))


def lifted(rule: str, props: Props, day: date) -> bool:
    """Whether an active exception lifts the rule from the resource."""
    return any(exempt.rule == rule and exempt.active(day) for exempt in exceptions(props))


def _read(rule: str, value: str) -> Exempt:
    match = _VALUE.fullmatch(value.strip())
    try:
        until = date.fromisoformat(match[1]) if match else None
    except ValueError:
        until = None
    return Exempt(rule, value, until, match[2].strip() if match else "")
