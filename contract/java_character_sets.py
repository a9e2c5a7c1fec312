"""Sets of characters as java.util.regex reads them in a pattern without the flags U and u.

A set is a tuple of ranges of code points, both ends included, in order, none of which touches the next one.
"""

import re
import string
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby

LAST = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)
Ranges = tuple[tuple[int, int], ...]

_LINE_ENDS = "\n\r\x85\u2028\u2029"
_HORIZONTAL = " \t\xa0\u1680\u180e\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_SPACE = " \t\n\x0b\f\r"
_PRINTED = "".join(map(chr, range(0x21, 0x7F)))
_POSIX = {
    "Lower": string.ascii_lowercase,
    "Upper": string.ascii_uppercase,
    "ASCII": "".join(map(chr, range(0x80))),
    "Alpha": string.ascii_letters,
    "Digit": string.digits,
    "Alnum": string.ascii_letters + string.digits,
    "Punct": string.punctuation,
    "Graph": _PRINTED,
    "Print": f" {_PRINTED}",
    "Blank": " \t",
    "Cntrl": "".join(map(chr, (*range(0x20), 0x7F))),
    "XDigit": string.hexdigits,
    "Space": _SPACE,
}
_CATEGORY = re.compile("(?:Is)?(L[ulmot]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?)")
_OF_ONE_CASE = {"Lower", "Upper", "Lu", "Ll", "Lt"}


def of(characters: Iterable[str]) -> Ranges:
    """Return the set of these characters."""
    return union(*(((ord(each), ord(each)),) for each in characters))


def union(*sets: Ranges) -> Ranges:
    """Return what any of the sets holds."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(each for one in sets for each in one):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def negated(one: Ranges) -> Ranges:
    """Return every character that the set does not hold."""
    found, begin = [], 0
    for low, high in one:
        if low > begin:
            found.append((begin, low - 1))
        begin = high + 1
    return (*found, (begin, LAST)) if begin <= LAST else tuple(found)


def both(one: Ranges, other: Ranges) -> Ranges:
    """Return what both sets hold."""
    return negated(union(negated(one), negated(other)))


def in_any_case(one: Ranges) -> Ranges:
    """Return the set with the other case of its ASCII letters: what the flag i adds to characters and ranges."""
    letters = both(one, of(string.ascii_letters))
    return union(one, of(chr(code).swapcase() for low, high in letters for code in range(low, high + 1)))


def written(one: Ranges) -> str:
    """Return the set as Python's expression of one character, in printable ASCII."""
    if not one:
        return "(?:(?!)(?s:.))"  # one character wide, as Java counts it
    if one == EVERYTHING:
        return "(?s:.)"
    # Python spreads a range up to the last character over a table when it compiles it.
    is_rest = one[-1][1] == LAST
    ranges = negated(one) if is_rest else one
    ends = (character(low) + (f"-{character(high)}" if high > low else "") for low, high in ranges)
    return f"[{'^' if is_rest else ''}{''.join(ends)}]"


def character(code: int) -> str:
    """Return a character as Python reads it within a set and outside."""
    if code < 0x80 and chr(code).isalnum():
        return chr(code)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


PREDEFINED = {
    "d": of(string.digits),
    "s": of(_SPACE),
    "w": of(string.ascii_letters + string.digits + "_"),
    "h": of(_HORIZONTAL),
    "v": of("\n\x0b\f\r\x85\u2028\u2029"),
}
PREDEFINED |= {name.upper(): negated(one) for name, one in PREDEFINED.items()}
NO_LINE_END = negated(of(_LINE_ENDS))
EVERYTHING: Ranges = ((0, LAST),)


def named(name: str) -> Ranges | None:
    r"""Return the set of \p{name}; None for a class of which Python does not know the same characters.

    General categories are those of Python's Unicode: what one version leaves unassigned may be a letter in the next.
    """
    if name in _POSIX:
        return of(_POSIX[name])
    category = _CATEGORY.fullmatch(name)
    return _category(category[1]) if category else None


def is_ascii(name: str) -> bool:
    r"""Whether \p{name} holds no character beyond ASCII."""
    return name in _POSIX


def is_of_one_case(name: str) -> bool:
    """Whether the flag i changes the class in some versions of Java, and not in others."""
    return name.removeprefix("Is") in _OF_ONE_CASE


@lru_cache(maxsize=64)
def _category(name: str) -> Ranges:
    return union(*(_categories()[each] for each in _categories() if each.startswith(name)))


@lru_cache(maxsize=1)
def _categories() -> dict[str, Ranges]:
    """Every general category with its characters."""
    found: dict[str, list[tuple[int, int]]] = {}
    begin = 0
    for name, run in groupby(map(unicodedata.category, map(chr, range(LAST + 1)))):
        end = begin + sum(1 for _ in run)
        found.setdefault(name, []).append((begin, end - 1))
        begin = end
    return {name: tuple(ranges) for name, ranges in found.items()}


class PatternError(ValueError):
    """The pattern cannot be used; the message says why."""


class InvalidPatternError(PatternError):
    """MirrorMaker refuses the pattern: Java does not compile it, or the list that holds it is not what it seems."""


class UntranslatableError(PatternError):
    """Java compiles the pattern, and Python has nothing that is known to match the same names."""
