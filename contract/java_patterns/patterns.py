r"""Lists of patterns as MirrorMaker reads them: cut at commas, joined by `|`, held against whole names by Java."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from contract.java_patterns.character_sets import InvalidPatternError, PatternError, UntranslatableError
from contract.java_patterns.reader import Flags, Reader


def compiled(pattern: str) -> re.Pattern[str]:
    """Return Python's expression, whose `fullmatch` is Java's `matches`; raises PatternError with the reason."""
    return _read(pattern)[0]


def problem(pattern: str) -> PatternError | None:
    """Return why a pattern cannot be used, None if it can."""
    try:
        compiled(pattern)
    except PatternError as error:
        return error
    return None


def list_problems(patterns: Sequence[str]) -> Iterator[tuple[int, PatternError]]:
    """Yield what is wrong with a list: the position of an entry, and the reason.

    Entries may not change each other, so that a name is matched by the list if one of them matches it.
    """
    found = {position: entry_problem(pattern) for position, pattern in enumerate(patterns)}
    for position in range(len(patterns) - 1):
        found[position] = found[position] or _reaches_beyond(patterns[position])
    if patterns and not any(found.values()) and (whole := problem("|".join(patterns))) is not None:
        found[len(patterns) - 1] = type(whole)(f"{whole}, for MirrorMaker joins the list by |")
    yield from ((position, error) for position, error in found.items() if error is not None)


def matches(patterns: Sequence[str], name: str) -> bool:
    """Whether a list matches the name; raises PatternError if it cannot be used."""
    return bool(patterns) and compiled("|".join(patterns)).fullmatch(name) is not None


def entry_problem(pattern: str) -> PatternError | None:
    """Return why a pattern cannot be an entry of a list, None if it can."""
    if not pattern:
        return InvalidPatternError("it is empty")
    if "," in pattern:
        return InvalidPatternError("MirrorMaker splits lists at commas, also within {1,2}")
    if pattern[0] <= " " or pattern[-1] <= " " or pattern != pattern.strip():
        return InvalidPatternError("MirrorMaker cuts off blanks at both ends")
    return problem(pattern)


def _reaches_beyond(pattern: str) -> PatternError | None:
    _, flags, open_quotation = _read(pattern)
    if open_quotation:
        return UntranslatableError(r"its \Q has no \E, and would quote the entries behind it too")
    if flags != Flags():
        return UntranslatableError("its flag counts for the entries behind it too. Write (?i:...)")
    return None


@lru_cache(maxsize=4096)
def _read(pattern: str) -> tuple[re.Pattern[str], Flags, bool]:
    """Return Python's expression, the flags that hold at the pattern's end, and whether a quotation is open there."""
    if "\0" in pattern:
        raise UntranslatableError("it holds a NUL, which no name does")
    reader = Reader(pattern)
    python = reader.python()
    try:
        return re.compile(python), reader.flags, reader.characters.open_quotation
    except re.error as error:
        if "look-behind" in str(error):
            raise UntranslatableError("Python knows look-behinds of one width only") from None
        raise UntranslatableError(f"it cannot be translated ({error})") from None
    except (OverflowError, RecursionError):
        raise UntranslatableError("it cannot be translated: it is too large") from None
