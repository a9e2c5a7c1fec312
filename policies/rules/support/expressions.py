"""Options that hold regular expressions: one, or a list of them. A value matches as a whole, in any case.

One that cannot be read matches nothing.
"""

import re
from collections.abc import Iterator

from .declaring import Config
from .values import sequence


def matches(config: Config, option: str, value: str) -> bool:
    """Whether one of the option's expressions matches the value."""
    return any_matches(config[option], value)


def any_matches(given: object, value: str) -> bool:
    """Whether one of these expressions matches the value."""
    return any(not isinstance(each, re.error) and each.fullmatch(value) for _, each in _compiled(given))


def unreadable(described: str, config: Config, *options: str) -> Iterator[str]:
    """A message for each expression of these options that cannot be read."""
    for option in options:
        for pattern, each in _compiled(config[option]):
            if isinstance(each, re.error):
                yield (
                    f"{described}: option {option} must hold regular expressions (got {pattern}: {each}). "
                    "It matches nothing."
                )


def _compiled(given: object) -> Iterator[tuple[str, re.Pattern[str] | re.error]]:
    for pattern in [given] if isinstance(given, str) else map(str, sequence(given)):
        try:
            yield pattern, re.compile(pattern, re.IGNORECASE)
        except re.error as reason:
            yield pattern, reason
