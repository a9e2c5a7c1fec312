r"""Parts of a pattern that match one character: a class in brackets, an escape (`\d`, `\x41`), or the character."""

import re

from contract import java_character_sets as sets
from contract.java_character_sets import InvalidPatternError, UntranslatableError

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

    def one(self) -> sets.Ranges:
        """Return the set that the next character or escape matches."""
        code, found = self._member()
        return found if code is None else self._cased(((code, code),))

    def ranges(self, depth: int = 1) -> sets.Ranges:
        """Return the set of a class, from behind its opening bracket."""
        if depth > DEEPEST:
            raise UntranslatableError(f"more than {DEEPEST} groups or classes are nested")
        characters = self._characters
        negated = characters.take("^")
        found = self._operand(depth, first=True)
        while characters.take("&&"):
            found = sets.both(found, self._operand(depth, first=False))
        if not characters.take("]"):
            raise InvalidPatternError("unterminated character set, a [ has no ]")
        return sets.negated(found) if negated else found

    def _operand(self, depth: int, *, first: bool) -> sets.Ranges:
        """Return the union up to `&&` or the end of the class."""
        characters, members = self._characters, list[sets.Ranges]()
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
        return sets.union(*members)

    def _range(self) -> sets.Ranges:
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

    def _cased(self, found: sets.Ranges) -> sets.Ranges:
        return sets.in_any_case(found) if self._ignore_case else found

    def _member(self) -> tuple[int | None, sets.Ranges]:
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
        if letter in sets.PREDEFINED:
            return None, sets.PREDEFINED[letter]
        if letter in _UNSUITABLE:
            raise UntranslatableError(f"{escape} {_UNSUITABLE[letter]}")
        if letter in _SIMPLE:
            return ord(_SIMPLE[letter]), ()
        if letter.isascii() and letter.isalnum():
            raise InvalidPatternError(f"Java does not know {escape} here")
        return self._sound(ord(letter), escape), ()

    def _named(self) -> sets.Ranges:
        found = self._characters.match(_NAMED)
        if found is None:
            escape = self._characters.escape()
            raise InvalidPatternError(f"{escape} needs the name of a class: {escape}{{Alpha}}")
        name = found[2] or found[3] or ""
        if self._ignore_case and sets.is_of_one_case(name):
            raise UntranslatableError(f"{found[0]} under (?i) means other things from one version of Java to the next")
        if self._behind and not sets.is_ascii(name):
            raise UntranslatableError(f"{found[0]} is in a look-behind, and Java goes back by 16 bits")
        ranges = sets.named(name)
        if ranges is None:
            raise UntranslatableError(f"the class {found[0]} cannot be translated")
        return sets.negated(ranges) if found[1] == "P" else ranges

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
        if len(digits.lstrip("0")) > len(f"{sets.LAST:x}") or int(digits, base) > sets.LAST:
            raise InvalidPatternError(f"{found[0][:20]} is no character")
        return self._sound(int(digits, base), found[0])

    def _sound(self, code: int, escape: str) -> int:
        if code in sets.SURROGATES:
            raise UntranslatableError(f"{escape or 'it'} holds half of a character (a surrogate), which no name has")
        if self._behind and code > sets.SURROGATES[0]:
            raise UntranslatableError("a character beyond U+D7FF is in a look-behind, and Java goes back by 16 bits")
        return code
