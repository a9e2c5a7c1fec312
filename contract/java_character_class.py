"""Characters as java.util.regex reads them: sets of them, and the parts of a pattern that match one.

A set is a tuple of ranges of code points, both ends included, in order, none of which touches the next one, in a
pattern without the flags U and u. A part is a class in brackets, an escape (`\\d`, `\\x41`), or the character.
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


def set_of(characters: Iterable[str]) -> Ranges:
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


def complement(one: Ranges) -> Ranges:
    """Return every character that the set does not hold."""
    found, begin = [], 0
    for low, high in one:
        if low > begin:
            found.append((begin, low - 1))
        begin = high + 1
    return (*found, (begin, LAST)) if begin <= LAST else tuple(found)


def intersection(one: Ranges, other: Ranges) -> Ranges:
    """Return what both sets hold."""
    return complement(union(complement(one), complement(other)))


def in_any_case(one: Ranges) -> Ranges:
    """Return the set with the other case of its ASCII letters: what the flag i adds to characters and ranges."""
    letters = intersection(one, set_of(string.ascii_letters))
    return union(one, set_of(chr(code).swapcase() for low, high in letters for code in range(low, high + 1)))


def as_expression(one: Ranges) -> str:
    """Return the set as Python's expression of one character, in printable ASCII."""
    if not one:
        return "(?:(?!)(?s:.))"  # one character wide, as Java counts it
    if one == EVERYTHING:
        return "(?s:.)"
    # Python spreads a range up to the last character over a table when it compiles it.
    is_rest = one[-1][1] == LAST
    ranges = complement(one) if is_rest else one
    ends = (escaped(low) + (f"-{escaped(high)}" if high > low else "") for low, high in ranges)
    return f"[{'^' if is_rest else ''}{''.join(ends)}]"


def escaped(code: int) -> str:
    """Return a character as Python reads it within a set and outside."""
    if code < 0x80 and chr(code).isalnum():
        return chr(code)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


PREDEFINED = {
    "d": set_of(string.digits),
    "s": set_of(_SPACE),
    "w": set_of(string.ascii_letters + string.digits + "_"),
    "h": set_of(_HORIZONTAL),
    "v": set_of("\n\x0b\f\r\x85\u2028\u2029"),
}
PREDEFINED |= {name.upper(): complement(one) for name, one in PREDEFINED.items()}
NO_LINE_END = complement(set_of(_LINE_ENDS))
EVERYTHING: Ranges = ((0, LAST),)


def named_set(name: str) -> Ranges | None:
    r"""Return the set of \p{name}; None for a class of which Python does not know the same characters.

    General categories are those of Python's Unicode: what one version leaves unassigned may be a letter in the next.
    """
    if name in _POSIX:
        return set_of(_POSIX[name])
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


DEEPEST = 50
_SIMPLE = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CODE = re.compile(
    r"\\(?:x\{(?P<long>[0-9a-fA-F]+)\}|x(?P<two>[0-9a-fA-F]{2})|u(?P<four>[0-9a-fA-F]{4})"
    r"|0(?P<octal>[0-3][0-7]{2}|[0-7]{1,2})|c(?P<control>[\x01-\x5b\x5d-\x7f]))"
)
_NAMED = re.compile(r"\\([pP])(?:\{([^}\0]*)\}|([a-zA-Z]))")
_UNSUITABLE = {"N": "cannot be translated", "R": "cannot be translated", "X": "cannot be translated"}


class Characters:
    r"""Reads a pattern from left to right. `open_quotation`: a \Q has no \E, so that all behind it is quoted."""

    def __init__(self, pattern: str) -> None:
        self.open_quotation = False
        self._text: list[str] = []
        self._plain: list[str] = []  # of the same length, a NUL where a character is quoted
        at = 0
        while at < len(pattern):
            if pattern.startswith(r"\Q", at):
                end = pattern.find(r"\E", at + 2)
                self.open_quotation = end < 0
                end = len(pattern) if end < 0 else end
                self._text += pattern[at + 2 : end]
                self._plain += "\0" * (end - at - 2)
                at = end + 2
            else:
                step = 2 if pattern[at] == "\\" else 1  # a backslash that is escaped begins no quotation
                self._text += pattern[at : at + step]
                self._plain += pattern[at : at + step]
                at += step
        self._syntax = "".join(self._plain)
        self._at = 0

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self._at >= len(self._text)

    def next_is(self, *characters: str) -> bool:
        """Whether one of these comes next and is not quoted."""
        return not self.over and self._syntax[self._at] in characters

    def take(self, text: str) -> bool:
        """Whether this came next, not quoted; it is read then."""
        if not self._syntax.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def ahead(self, count: int) -> str:
        """Return the next characters, quoted or not."""
        return "".join(self._text[self._at : self._at + count])

    def follows(self, *texts: str) -> bool:
        """Whether one of these follows the next character and is not quoted."""
        return self._syntax.startswith(texts, self._at + 1)

    def escape(self) -> str:
        """Return the backslash that comes next with its character, if that is not quoted."""
        return self._syntax[self._at : self._at + 2].rstrip("\0")

    def skip(self, count: int) -> None:
        """Read so many characters."""
        self._at += count

    def read(self) -> str:
        """Return the next character, quoted or not, and read it; nothing at the end."""
        found = self.ahead(1)
        self._at += len(found)
        return found

    def match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        """Return what the expression matches here of characters that are not quoted, and read it."""
        found = expression.match(self._syntax, self._at)
        if found is not None:
            self._at = found.end()
        return found


class ClassReader:
    """Reads one character or class at the position of `characters`.

    Args:
        characters: the pattern, which is read up to here.
        ignore_case: the flag i.
        behind: whether the position is within a look-behind.
    """

    def __init__(self, characters: Characters, *, ignore_case: bool, behind: bool) -> None:
        self._characters = characters
        self._ignore_case = ignore_case
        self._behind = behind

    def one(self) -> Ranges:
        """Return the set that the next character or escape matches."""
        code, found = self._member()
        return found if code is None else self._cased(((code, code),))

    def ranges(self, depth: int = 1) -> Ranges:
        """Return the set of a class, from behind its opening bracket."""
        if depth > DEEPEST:
            raise UntranslatableError(f"more than {DEEPEST} groups or classes are nested")
        characters = self._characters
        negated = characters.take("^")
        found = self._operand(depth, first=True)
        while characters.take("&&"):
            found = intersection(found, self._operand(depth, first=False))
        if not characters.take("]"):
            raise InvalidPatternError("unterminated character set, a [ has no ]")
        return complement(found) if negated else found

    def _operand(self, depth: int, *, first: bool) -> Ranges:
        """Return the union up to `&&` or the end of the class."""
        characters, members = self._characters, list[Ranges]()
        nested_first = not first and characters.next_is("[")
        mixed = False
        if not first and characters.next_is("^", "&", "]"):
            raise UntranslatableError(f"&&{characters.ahead(1)} in a class is read by Java in a way of its own")
        while not characters.over:
            if characters.take("&&"):
                characters.skip(-2)
                if not members:
                    raise UntranslatableError("&& has nothing before it in a class")
                if mixed and nested_first:
                    raise UntranslatableError("in a class [..] and characters are together between two &&")
                break
            if characters.next_is("]") and members:
                break
            if characters.take("["):
                members.append(self.ranges(depth + 1))
                continue
            if characters.next_is("^", "&"):
                raise UntranslatableError(
                    f"within a class {characters.ahead(1)} must be written \\{characters.ahead(1)}"
                )
            mixed = True
            members.append(self._range())
        return union(*members)

    def _range(self) -> Ranges:
        characters = self._characters
        begin = characters.escape()
        low, found = self._member()
        if begin == r"\v" and characters.next_is("-"):
            raise UntranslatableError(r"\v- in a class is read by Java in a way of its own")
        if low is None:
            return found
        if characters.next_is("-") and not characters.follows("[", "]"):
            characters.skip(1)
            if characters.over:
                raise InvalidPatternError("unterminated character set, a [ has no ]")
            high, _ = self._member()
            if high is None:
                raise InvalidPatternError("a range has no end")
            if high < low:
                raise InvalidPatternError(f"bad character range: {chr(low)}-{chr(high)} runs backwards")
            return self._cased(((low, high),))
        return self._cased(((low, low),))

    def _cased(self, found: Ranges) -> Ranges:
        return in_any_case(found) if self._ignore_case else found

    def _member(self) -> tuple[int | None, Ranges]:
        """Return the code of a character, or None and the set that an escape matches."""
        characters = self._characters
        if not characters.next_is("\\"):
            return self._sound(ord(characters.read()), ""), ()
        escape = characters.escape()
        if len(escape) < 2:
            raise InvalidPatternError("it ends in a backslash")
        letter = escape[1]
        if letter in "pP":
            return None, self._named()
        if letter in "xu0c":
            return self._code(escape), ()
        characters.skip(2)
        if letter in PREDEFINED:
            return None, PREDEFINED[letter]
        if letter in _UNSUITABLE:
            raise UntranslatableError(f"{escape} {_UNSUITABLE[letter]}")
        if letter in _SIMPLE:
            return ord(_SIMPLE[letter]), ()
        if letter.isascii() and letter.isalnum():
            raise InvalidPatternError(f"Java does not know {escape} here")
        return self._sound(ord(letter), escape), ()

    def _named(self) -> Ranges:
        found = self._characters.match(_NAMED)
        if found is None:
            escape = self._characters.escape()
            raise InvalidPatternError(f"{escape} needs the name of a class: {escape}{{Alpha}}")
        name = found[2] or found[3] or ""
        if self._ignore_case and is_of_one_case(name):
            raise UntranslatableError(f"{found[0]} under (?i) means other things from one version of Java to the next")
        if self._behind and not is_ascii(name):
            raise UntranslatableError(f"{found[0]} is in a look-behind, and Java goes back by 16 bits")
        ranges = named_set(name)
        if ranges is None:
            raise UntranslatableError(f"the class {found[0]} cannot be translated")
        return complement(ranges) if found[1] == "P" else ranges

    def _code(self, escape: str) -> int:
        found = self._characters.match(_CODE)
        if found is None and escape == r"\c" and self._characters.ahead(3)[2:]:
            raise UntranslatableError(r"\c is followed by a character that is not ASCII")
        if found is None:
            raise InvalidPatternError(f"{escape} is followed by no number or character that Java reads there")
        if found["control"]:
            return ord(found["control"]) ^ 64
        digits = found["long"] or found["two"] or found["four"] or found["octal"]
        base = 8 if found["octal"] else 16
        if len(digits.lstrip("0")) > len(f"{LAST:x}") or int(digits, base) > LAST:
            raise InvalidPatternError(f"{found[0][:20]} is no character")
        return self._sound(int(digits, base), found[0])

    def _sound(self, code: int, escape: str) -> int:
        if code in SURROGATES:
            raise UntranslatableError(f"{escape or 'it'} holds half of a character (a surrogate), which no name has")
        if self._behind and code > SURROGATES[0]:
            raise UntranslatableError("a character beyond U+D7FF is in a look-behind, and Java goes back by 16 bits")
        return code
