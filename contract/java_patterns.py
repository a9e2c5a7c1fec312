r"""Regular expressions of Java, written as Python's, and the lists of them that MirrorMaker reads.

The reader follows java.util.regex.Pattern of Java 17 without flags. It accepts what it can write so that Python's
`fullmatch` and Java's `matches` agree on every name, and refuses the rest: what Java refuses, and what Java reads
otherwise from version to version (\b), by rules of its own (a possessive repetition of a group) or by other tables.

The job and the settings use it; the policy pack has a reader of its own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NoReturn

from contract import java_character_class as sets
from contract.java_character_class import (
    DEEPEST,
    Characters,
    ClassReader,
    InvalidPatternError,
    PatternError,
    UntranslatableError,
)

# No name is longer, and each repetition within another multiplies what either engine has to try.
REPEATED_MAX = 32_767
_BEFORE_LAST_LINE_END = r"(?:\Z|(?=\r\n\Z|[\r\x85\u2028\u2029]\Z)|(?<!\r)(?=\n\Z))"
_ANCHORS = {"^": r"\A", "$": _BEFORE_LAST_LINE_END, r"\A": r"\A", r"\z": r"\Z", r"\Z": _BEFORE_LAST_LINE_END}
_VARYING = {
    r"\b": "means other things in Java 17 and Java 19",
    r"\B": "means other things in Java 17 and Java 19",
    r"\G": "is where an earlier match ended, and there is none",
    r"\R": "cannot be translated",
    r"\X": "cannot be translated",
}
_GROUP = re.compile(
    r"\?(?:(?P<plain>:|=|!|<=|<!|>)|<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>"
    r"|(?P<on>[cidmsuxU]*)(?P<off>-[cidmsuxU]*)?(?P<end>[:)]))"
)
_WRITTEN_BY_PYTHON = {
    "?P<": r"Java writes named groups as (?<name>...) and \k<name>",
    "?P=": r"Java writes named groups as (?<name>...) and \k<name>",
    "?P>": "Java calls no groups",
    "?#": "Java has no such comments",
    "?(": "Java has no conditions",
}
_REPETITION = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_NAME = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")


@dataclass(frozen=True)
class Flags:
    """Flags in force at the reader's position."""

    ignore_case: bool = False
    dot_all: bool = False


@dataclass(frozen=True)
class _Part:
    """A part in Python's terms. `repeats` is how often what is in it may be repeated; `one`: it is one character."""

    text: str
    repeats: int = 1
    one: bool = False
    repeatable: bool = True
    capturing: int = 0


class Reader:
    """Reads one expression; `flags` are then those that hold at its end."""

    def __init__(self, pattern: str) -> None:
        self.characters = Characters(pattern)
        self.flags = Flags()
        self._opened = 0
        self._named: dict[str, int] = {}
        self._visible: set[int] = set()
        self._referred: set[int] = set()
        self._behind = 0

    def python(self) -> str:
        """Return the expression as Python writes it; raises PatternError."""
        found = self._alternatives(0)
        if not self.characters.over:
            raise InvalidPatternError("unbalanced ), which ends no group")
        return re.sub("\0(\\d+)\0", lambda group: self._opening(int(group[1])), found.text)

    def _opening(self, group: int) -> str:
        return f"?P<g{group}>" if group in self._referred else "?:"

    def _alternatives(self, depth: int) -> _Part:
        """Read up to the end of a group or of the expression. References reach their own alternative only."""
        if depth > DEEPEST:
            raise UntranslatableError(f"more than {DEEPEST} groups or classes are nested")
        visible, found = self._visible, list[_Part]()
        while True:
            self._visible = set(visible)
            parts = list(self._sequence(depth))
            found.append(_Part("".join(each.text for each in parts), max((each.repeats for each in parts), default=1)))
            if not self.characters.take("|"):
                self._visible = visible
                return _Part("|".join(each.text for each in found), max(each.repeats for each in found))

    def _sequence(self, depth: int) -> Iterator[_Part]:
        while not self.characters.over and not self.characters.next_is("|", ")"):
            part = self._atom(depth)
            if part is not None:
                part = self._repeated(part)
                if part.capturing:
                    self._visible.add(part.capturing)
                yield part
            elif self.characters.next_is("*", "+", "?", "{"):
                self._repeats_nothing()

    def _atom(self, depth: int) -> _Part | None:
        """Return the part at the reader's position; None if it only sets flags."""
        characters = self.characters
        if characters.next_is("*", "+", "?", "{"):
            self._repeats_nothing()
        if characters.take("("):
            return self._group(depth)
        if characters.take("["):
            return self._set(self._class_reader().ranges())
        if characters.take("."):
            return self._set(sets.EVERYTHING if self.flags.dot_all else sets.NO_LINE_END)
        for anchor in ("^", "$"):
            if characters.take(anchor):
                return _Part(_ANCHORS[anchor], repeatable=False)
        if characters.next_is("\\"):
            return self._escape()
        return self._set(self._class_reader().one())

    def _class_reader(self) -> ClassReader:
        return ClassReader(self.characters, ignore_case=self.flags.ignore_case, behind=self._behind > 0)

    def _set(self, found: sets.Ranges) -> _Part:
        if len(found) == 1 and found[0][0] == found[0][1]:
            return _Part(sets.escaped(found[0][0]), one=True)
        return _Part(sets.as_expression(found), one=True)

    def _escape(self) -> _Part:
        characters = self.characters
        escape = characters.escape()
        if escape in _ANCHORS:
            characters.skip(2)
            return _Part(_ANCHORS[escape], repeatable=False)
        if escape in _VARYING:
            raise UntranslatableError(f"{escape} {_VARYING[escape]}")
        if escape == r"\k":
            characters.skip(2)
            named = characters.match(_NAME)
            if named is None:
                raise InvalidPatternError(r"\k needs the name of a group: \k<name>")
            if named[1] not in self._named:
                raise InvalidPatternError(f"no group before it is called {named[1]}")
            return self._reference(self._named[named[1]], rf"\k{named[0]}")
        if escape[1:] in tuple("123456789"):
            characters.skip(2)
            if characters.next_is(*"0123456789"):
                raise UntranslatableError(f"{escape} is followed by a digit that may belong to it")
            return self._reference(int(escape[1:]), escape)
        return self._set(self._class_reader().one())

    def _reference(self, group: int, name: str) -> _Part:
        if self.flags.ignore_case or group not in self._visible:
            raise UntranslatableError(
                f"{name} cannot be translated, but for a group before it in the same alternative that is not repeated, "
                "without (?i)"
            )
        self._referred.add(group)
        return _Part(f"(?P=g{group})")

    def _group(self, depth: int) -> _Part | None:
        """Read a group from behind its opening parenthesis."""
        characters, flags = self.characters, self.flags
        if not characters.next_is("?"):
            return self._capturing(depth)
        found = characters.match(_GROUP)
        if found is None:
            self._unknown_group()
        if found["name"]:
            if found["name"] in self._named:
                raise InvalidPatternError(f"two groups are called {found['name']}")
            return self._capturing(depth, found["name"])
        if found["plain"] is None:
            self._set_flags(found["on"], found["off"] or "")
            if found["end"] == ")":
                return None
        behind = found[0] in ("?<=", "?<!")
        self._behind += behind
        inside = self._alternatives(depth + 1)
        self._behind -= behind
        self._close()
        self.flags = flags
        opening = "?:" if found["plain"] is None else found[0]
        return _Part(f"({opening}{inside.text})", inside.repeats, repeatable=found[0] not in ("?=", "?!", "?<=", "?<!"))

    def _capturing(self, depth: int, name: str = "") -> _Part:
        self._opened += 1
        number, flags = self._opened, self.flags
        if name:
            self._named[name] = number
        inside = self._alternatives(depth + 1)
        self._close()
        self.flags = flags
        return _Part(f"(\0{number}\0{inside.text})", inside.repeats, capturing=number)

    def _close(self) -> None:
        if not self.characters.take(")"):
            raise InvalidPatternError("missing ), unterminated group")

    def _unknown_group(self) -> NoReturn:
        ahead = self.characters.ahead(4)
        for begin, reason in _WRITTEN_BY_PYTHON.items():
            if ahead.startswith(begin):
                raise InvalidPatternError(reason)
        if ahead.startswith("?<"):
            raise InvalidPatternError("Java names groups by letters and digits")
        if re.match(r"\?[a-zA-Z]*[aL]", ahead):
            raise InvalidPatternError("Java has no flags a and L")
        raise InvalidPatternError(f"Java does not know the group ({ahead}")

    def _set_flags(self, on: str, off: str) -> None:
        for flag in "cdmuxU":
            if flag in on + off:
                raise UntranslatableError(f"the flag {flag} cannot be translated, only i and s")
        for name, flag in {"ignore_case": "i", "dot_all": "s"}.items():
            if flag in on or flag in off:
                self.flags = replace(self.flags, **{name: flag in on and flag not in off})

    def _repeats_nothing(self) -> NoReturn:
        if self.characters.next_is("{"):
            found = self._counted()
            raise UntranslatableError(f"{found[0]} repeats nothing")
        raise InvalidPatternError(f"nothing to repeat before {self.characters.ahead(1)}")

    def _repeated(self, part: _Part) -> _Part:
        characters = self.characters
        if not characters.next_is("*", "+", "?", "{"):
            return part
        if characters.next_is("{"):
            found = self._counted()
            text, most = found[0], int(found[3] or found[1])
        else:
            text, most = characters.ahead(1), 1
            characters.skip(1)
        kind = characters.ahead(1) if characters.next_is("?", "+") else ""
        characters.skip(len(kind))
        if self._behind:
            raise UntranslatableError(f"{text} is in a look-behind; only those of one width can be translated")
        if not part.repeatable:
            raise UntranslatableError(f"{text} repeats an anchor or a look-around")
        if kind == "+" and not part.one:
            raise UntranslatableError(f"{text}+ is possessive of a group, which Java reads in a way of its own")
        repeats = part.repeats * max(most, 1)
        if repeats > REPEATED_MAX:
            raise UntranslatableError(f"a repetition has at most {REPEATED_MAX}, within others all together")
        return _Part(f"{part.text}{text}{kind}", repeats)

    def _counted(self) -> re.Match[str]:
        found = self.characters.match(_REPETITION)
        if found is None:
            raise InvalidPatternError("Java reads '{' as a repetition: {3}, {3,} or {3,5}; escape it as \\{")
        # As text first: Python refuses to read numbers of thousands of digits.
        for number in (found[1], found[3] or ""):
            if len(number) > len(str(REPEATED_MAX)) or int(number or 0) > REPEATED_MAX:
                raise UntranslatableError(f"a repetition has at most {REPEATED_MAX}, within others all together")
        if found[3] and int(found[3]) < int(found[1]):
            raise InvalidPatternError(f"the repetition {found[0]} runs backwards")
        return found


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
