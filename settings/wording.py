"""How values and choices are told in messages: short, and with the nearest choice where a name is misspelt."""

import difflib
from collections.abc import Iterable, Mapping

_LISTED_MAX, _SHOWN_MAX = 8, 80
_ALIKE_ENOUGH = 0.75


def shown(value: object) -> str:
    """A value as it is told to the user: short, and a collection by what it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}... of {len(text)} characters"


def listed(names: Iterable[str]) -> str:
    """Names in order, the first few of many; `none` if there are none."""
    ordered = sorted(set(names))
    more = len(ordered) - _LISTED_MAX
    text = ", ".join(ordered[:_LISTED_MAX])
    return f"{text} and {more} more" if more > 0 else text or "none"


def alike(name: str, names: Iterable[str]) -> str:
    """` Did you mean X?` if one of the names is nearly the given one, else nothing."""
    by_lower = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), by_lower, 1, _ALIKE_ENOUGH)
    return f" Did you mean {by_lower[found[0]]}?" if found else ""
