r"""Lists of a mirror: which names they copy, by what java.util.regex matches against a whole name.

What cannot be read is refused with the settings that hold it. Here it matches everything and excludes nothing, so
that no other message comes of it.
"""

import re
from collections.abc import Iterable

from contract.java_character_sets import PatternError
from contract.java_patterns import compiled, problem

_PLAIN = re.compile(r"(?:[A-Za-z0-9_-]|\\?\.(?![*+?{]))+")


def wrong(pattern: str) -> str | None:
    """Why the expression cannot be used, or None."""
    found = problem(pattern)
    return None if found is None else str(found)


def matches(pattern: str, name: str) -> bool:
    """Whether the expression matches the whole name; True where it cannot be read."""
    try:
        return compiled(pattern).fullmatch(name) is not None
    except PatternError:
        return True


def copied(name: str, patterns: Iterable[str], exclude: Iterable[str] = ()) -> bool:
    """Whether a mirror with these lists copies the name."""
    return any(matches(each, name) for each in patterns) and not any(
        problem(each) is None and matches(each, name) for each in exclude
    )


def literal(pattern: str) -> str | None:
    r"""The name that a plain expression stands for (`items\.eu` and `items.eu` for items.eu), or None."""
    return pattern.replace("\\", "") if _PLAIN.fullmatch(pattern) else None


def has_bare_dot(pattern: str) -> bool:
    """Whether a plain expression holds a dot that is not escaped and so stands for any character."""
    return literal(pattern) is not None and re.search(r"(?<!\\)\.", pattern) is not None


def may_overlap(ours: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """Names and expressions that both lists may match: plain ones by name, two others if nothing tells them apart."""
    first, second = list(ours), list(theirs)
    found = []
    for one in first:
        for other in second:
            name, by = (literal(one), other) if literal(one) is not None else (literal(other), one)
            if name is not None:
                found += [name] if matches(by, name) else []
            elif one == other or ".*" in (one, other):
                found.append(one)
    return list(dict.fromkeys(found))
