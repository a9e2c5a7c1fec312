r"""One regular expression of Java, read from left to right and written as Python's where that is possible.

Names are ASCII, so classes such as `\p{Lu}` are judged among ASCII characters only. What only Java can decide (sets
within sets, `\R`, flags in the middle) is `None` in Python's terms and never called a mistake.
"""

import re
import string
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

_ASCII = [chr(code) for code in range(128)]
_POSIX = {
    "Lower": string.ascii_lowercase,
    "Upper": string.ascii_uppercase,
    "Alpha": string.ascii_letters,
    "Digit": string.digits,
    "Alnum": string.ascii_letters + string.digits,
    "Punct": string.punctuation,
    "XDigit": string.hexdigits,
    "Space": " \t\n\x0b\f\r",
    "Blank": " \t",
    "ASCII": "".join(_ASCII),
    "IsLowercase": string.ascii_lowercase,
    "IsUppercase": string.ascii_uppercase,
    "IsAlphabetic": string.ascii_letters,
    "IsDigit": string.digits,
}
_SAME_EVERYWHERE = {
    *("Lower", "Upper", "ASCII", "Alpha", "Digit", "Alnum", "Punct", "Graph", "Print", "Blank", "Cntrl", "XDigit"),
    "Space",
}
_GENERAL = {
    part for kind in re.findall("..", "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZp") for part in (kind, kind[0])
}
_CATEGORIES = {unicodedata.category(character) for character in _ASCII}
_SIMPLE_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_SETS = {"d": r"\d", "D": r"\D", "s": r"\s", "S": r"\S", "w": r"\w", "W": r"\W", "h": r"[ \t]", "H": r"[^ \t]"}
_SETS |= {"v": r"[\n\x0b\f\r]", "V": r"[^\n\x0b\f\r]"}
_LINE_END = r"(?:\Z|(?=\r\n\Z|\r\Z)|(?<!\r)(?=\n\Z))"
_ANCHORS = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\Z", "Z": _LINE_END}
_ONLY_JAVA = re.compile(r"\\(?:[RXG]|N\{[^}]*\})")
_OCTAL_OR_CONTROL = re.compile(r"\\(?:0(?P<octal>[0-3][0-7]{2}|[0-7]{1,2})|c(?P<control>[\x01-\x5b\x5d-\x7f]))")
_REPEAT = re.compile(r"(?:[*+?]|\{(?P<least>\d+)(?:,(?P<most>\d*))?\})[?+]?")
_GROUP = re.compile(
    r"\(\?(?:(?P<plain>:|=|!|<=|<!|>)|<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>|(?P<flags>[cidmsuxU]*(?:-[cidmsuxU]*)?)(?P<end>[:)]))"
)
_NUMBER = re.compile(r"\\(?:x\{(?P<long>[0-9a-fA-F]+)\}|x(?P<two>[0-9a-fA-F]{2})|u(?P<four>[0-9a-fA-F]{4}))")
# Beyond these Java fails too, or this module would: it reads groups within groups by recursion.
_MOST_REPEATED = 2**31 - 1
_DEEPEST = 50
_CLASS = re.compile(r"\\[pP](?:\{(?P<long>[^}]*)\}|(?P<short>[A-Za-z]))")


class Kind(Enum):
    """What a token does. `FLAGS` is a bare `(?i)`, which counts until its group ends."""

    LITERAL = auto()
    SET = auto()
    OPEN = auto()
    CLOSE = auto()
    OR = auto()
    REPEAT = auto()
    ANCHOR = auto()
    FLAGS = auto()


@dataclass(frozen=True)
class Token:
    """A part of an expression as Java has it, and as Python has it; `python` is None where only Java can judge it."""

    kind: Kind
    java: str
    python: str | None
    literal: str = ""
    doubt: str = ""  # why names cannot be held against it outside of Java, as far as the token alone shows

    @property
    def has_flags(self) -> bool:
        """Whether it sets flags such as `(?i)`, bare or for its group."""
        return re.match(r"\(\?[a-zA-Z-]", self.java) is not None

    @property
    def least(self) -> int:
        """How often at least a `REPEAT` wants what is before it."""
        found = re.match(r"\{(\d+)", self.java)
        return int(found[1]) if found else int(self.java[0] == "+")


class MistakeError(ValueError):
    """Java refuses the expression; the message has the reason."""


@lru_cache(maxsize=1024)
def tokens(expression: str) -> tuple[Token, ...]:
    """The expression's parts. `MistakeError` if Java would refuse it."""
    found = tuple(_read(without_quotations(expression)))
    _check_groups(found)
    _check_repeats(found)
    return found


@lru_cache(maxsize=1024)
def compiled(expression: str) -> re.Pattern[str] | None:
    """Python's expression for Java's; None if it has none. `MistakeError` if Java would refuse it."""
    found = tokens(expression)
    python = [token.python for token in found]
    if any(part is None for part in python) or any(token.kind is Kind.FLAGS for token in found[1:]):
        return None
    written = "".join(part for part in python if part is not None)
    if found and found[0].kind is Kind.FLAGS:
        written += ")"
    try:
        return re.compile(written, re.ASCII)
    except re.error:
        # Java has look-behinds of varying width and references to groups that come later; Python does not.
        return None


def _read(expression: str) -> Iterator[Token]:
    at = 0
    while at < len(expression):
        token = _token(expression, at)
        yield token
        at += len(token.java)


def without_quotations(expression: str) -> str:
    r"""The expression without \Q and \E, as Java rewrites it before it reads it: `\Qa.b\E` is `a\.b`."""
    written, at, quoted, begins = list[str](), 0, False, False
    while at < len(expression):
        character = expression[at]
        if quoted and expression.startswith(r"\E", at):
            quoted, at = False, at + 2
        elif quoted:
            digit = character.isascii() and character.isdigit()
            plain = not character.isascii() or character.isalnum()
            written.append(f"\\x3{character}" if digit and begins else character if plain else f"\\{character}")
            begins, at = False, at + 1
        elif expression.startswith(r"\Q", at):
            quoted, begins, at = True, True, at + 2
        else:
            pair = expression[at : at + 2] if character == "\\" else character
            written.append(pair)
            at += len(pair)
    return "".join(written)


def _token(expression: str, at: int) -> Token:
    """The token that begins here."""
    character = expression[at]
    if character == "\\":
        return _escape(expression, at)
    if character == "[":
        return _set(expression, at)
    if character == "(":
        return _open(expression, at)
    if character in "*+?{":
        return _repeat(expression, at)
    if character in "^$":
        return Token(Kind.ANCHOR, character, _LINE_END if character == "$" else r"\A")
    kind = {")": Kind.CLOSE, "|": Kind.OR, ".": Kind.SET}.get(character)
    if kind is None:
        return _literal(character, character)
    return Token(kind, character, "(?:(?s:.)(?<![\n\r]))" if kind is Kind.SET else character)


def _escape(expression: str, at: int) -> Token:
    """What a backslash begins, outside of a set."""
    character = expression[at + 1 : at + 2]
    text = f"\\{character}"
    if not character:
        raise MistakeError("it ends in a backslash")
    if character in _ANCHORS:
        braced = expression.startswith(r"\b{g}", at)
        doubt = f"{text} means other things in Java 17 and Java 19" if character in "bB" else ""
        if braced:
            return Token(Kind.ANCHOR, r"\b{g}", None, doubt=doubt)
        return Token(Kind.ANCHOR, text, _ANCHORS[character], doubt=doubt)
    if character == "k":
        named = re.compile(r"\\k<([a-zA-Z][a-zA-Z0-9]*)>").match(expression, at)
        if not named:
            raise MistakeError(r"\k needs the name of a group: \k<name>")
        return Token(Kind.SET, named[0], f"(?P={named[1]})")
    if character in "123456789":
        return Token(Kind.SET, text, text)
    return _character_or_set(expression, at)


def _character_or_set(expression: str, at: int) -> Token:
    """What a backslash means within a set and outside: one character, or a set of them."""
    character = expression[at + 1 : at + 2]
    text = f"\\{character}"
    if character and character in "pP":
        return _named_class(expression, at)
    if character and character in "xu":
        number = _NUMBER.match(expression, at)
        if not number:
            raise MistakeError(f"{text} needs a hexadecimal number")
        code = int(number["long"] or number["two"] or number["four"], 16)
        if code > 0x10FFFF:
            raise MistakeError(f"{number[0]} is no character")
        return _literal(number[0], chr(code))
    if character in _SETS:
        return Token(Kind.SET, text, _SETS[character])
    if character in _SIMPLE_ESCAPES:
        return _literal(text, _SIMPLE_ESCAPES[character])
    if number := _OCTAL_OR_CONTROL.match(expression, at):
        code = int(number["octal"], 8) if number["octal"] else ord(number["control"]) ^ 64
        return _literal(number[0], chr(code))
    if text == r"\c" and expression[at + 2 : at + 3]:
        return Token(Kind.SET, expression[at : at + 3], None, doubt=r"\c stands before what is no plain character")
    if only_java := _ONLY_JAVA.match(expression, at):
        return Token(Kind.SET, only_java[0], None, doubt=f"only Java defines what {only_java[0]} matches")
    if character.isascii() and character.isalnum():
        raise MistakeError(f"Java does not know {text}")
    return _literal(text, character)


def _literal(java: str, character: str) -> Token:
    doubt = f"{java!r} is half of a character" if "\ud800" <= character <= "\udfff" else ""
    return Token(Kind.LITERAL, java, re.escape(character), character, doubt)


def _named_class(expression: str, at: int) -> Token:
    found = _CLASS.match(expression, at)
    if not found:
        raise MistakeError(f"{expression[at : at + 2]} needs the name of a class: {expression[at : at + 2]}{{Alpha}}")
    name = found["long"] or found["short"] or ""
    members = _members(name)
    sure = name in _SAME_EVERYWHERE or name.removeprefix("Is") in _GENERAL
    doubt = "" if sure else f"only Java defines what {found[0]} matches"
    if members is None:
        return Token(Kind.SET, found[0], None, doubt=doubt)
    negated = "^" if found[0][1] == "P" else ""
    return Token(Kind.SET, found[0], f"[{negated}{''.join(map(_in_set, members))}]", doubt=doubt)


def _members(name: str) -> str | None:
    """ASCII characters of a class; None if there are none or this module does not know the class."""
    if name in _POSIX:
        return _POSIX[name]
    category = name.removeprefix("Is")
    if any(known.startswith(category) for known in _CATEGORIES) and category:
        return "".join(each for each in _ASCII if unicodedata.category(each).startswith(category))
    return None


def _set(expression: str, at: int, depth: int = 1) -> Token:
    """`[...]`: None in Python's terms if it contains other sets or intersects two."""
    _check_depth(depth)
    start, simple, written = at, True, list[str]()
    at += 1
    if expression.startswith("^", at):
        at += 1
    # Between two && there are sets first, and characters behind them; the first part may mix both.
    doubts, sets_first, characters, first_part, empty = list[str](), False, False, True, True
    while True:
        if at >= len(expression):
            raise MistakeError("a [ has no ]")
        if expression[at] == "]" and not empty:
            break
        if expression.startswith("&&", at):
            simple, at = False, at + 2
            if empty or expression[at : at + 1] in ("^", "&", "]"):
                doubts.append("a part of && is empty, or begins with ^ or &")
            if sets_first and characters and not first_part:
                doubts.append("a part between two && has a set, and then characters")
            sets_first, characters, first_part, empty = False, False, False, expression[at : at + 1] != "]"
            continue
        if expression[at] == "[":
            simple, sets_first = False, sets_first or empty
            inner = _set(expression, at, depth + 1)
            doubts.append(inner.doubt)
            at += len(inner.java)
        else:
            if expression[at] in "^&":
                doubts.append(f"a {expression[at]} that means itself within a set is written \\{expression[at]}")
            element, at, doubt = _element(expression, at)
            doubts.append(doubt)
            simple, characters = simple and element is not None, True
            written.append(element or "")
        empty = False
    java = expression[start : at + 1]
    negated = "^" if java.startswith("[^") else ""
    python = f"[{negated}{''.join(written)}]" if simple and any(written) else None
    return Token(Kind.SET, java, python, doubt=next(filter(None, doubts), ""))


def _element(expression: str, at: int) -> tuple[str | None, int, str]:
    """A character, a range or a class within a set, where it ends, and what is doubtful about it."""
    low = _member(expression, at)
    at += len(low.java)
    ranged = expression.startswith("-", at) and expression[at + 1 : at + 2] not in ("", "]", "[")
    if low.kind is Kind.SET:
        inner = low.python if low.python is None or low.python[0] == "\\" else low.python[1:-1]
        doubt = (
            r"Java reads \v- in a set in a way of its own"
            if low.java == r"\v" and expression.startswith("-", at)
            else low.doubt
        )
        return (None if inner is None or inner.startswith("^") else inner), at, doubt
    if ranged:
        high = _member(expression, at + 1)
        at += 1 + len(high.java)
        if high.kind is Kind.SET:
            raise MistakeError(f"the range {low.literal}-{high.java} has no end")
        if high.literal < low.literal:
            raise MistakeError(f"the range {low.literal}-{high.literal} runs backwards")
        return f"{_in_set(low.literal)}-{_in_set(high.literal)}", at, low.doubt or high.doubt
    return _in_set(low.literal), at, low.doubt


def _member(expression: str, at: int) -> Token:
    if expression[at] == "\\":
        return _character_or_set(expression, at)
    return _literal(expression[at], expression[at])


def _in_set(character: str) -> str:
    """A character as Python wants it in a set."""
    return character if character.isalnum() else "".join(f"\\{each}" for each in character)


def _open(expression: str, at: int) -> Token:
    if not expression.startswith("(?", at):
        return Token(Kind.OPEN, "(", "(")
    found = _GROUP.match(expression, at)
    if not found:
        raise MistakeError(f"Java does not know the group {expression[at : at + 4]}")
    if found["name"]:
        return Token(Kind.OPEN, found[0], f"(?P<{found['name']}>")
    if found["plain"]:
        return Token(Kind.OPEN, found[0], found[0])
    # Flags on Unicode change nothing among ASCII names; those on line ends, to turn off or to allow blanks do.
    kept = "i" if "i" in found["flags"] else ""
    python = None if set(found["flags"]) & set("-xsmd") else f"(?{kept}:"
    return Token(Kind.OPEN if found["end"] == ":" else Kind.FLAGS, found[0], python)


def _repeat(expression: str, at: int) -> Token:
    found = _REPEAT.match(expression, at)
    if not found:
        raise MistakeError(r"a { begins a repetition such as {3}; one that means itself is written \{")
    # As text first: Python refuses to read numbers of thousands of digits.
    for number in (found["least"], found["most"]):
        if number and (len(number) > len(str(_MOST_REPEATED)) or int(number) > _MOST_REPEATED):
            raise MistakeError(f"a repetition has at most {_MOST_REPEATED}")
    if found["most"] and int(found["most"]) < int(found["least"]):
        raise MistakeError(f"the repetition {found[0]} runs backwards")
    return Token(Kind.REPEAT, found[0], found[0])


def _check_groups(found: tuple[Token, ...]) -> None:
    depth, names = 0, set[str]()
    for token in found:
        name = re.fullmatch(r"(?:\\k|\(\?)<(\w+)>", token.java)
        if name and token.kind is Kind.OPEN and name[1] in names:
            raise MistakeError(f"two groups are called {name[1]}")
        if name and token.kind is Kind.SET and name[1] not in names:
            raise MistakeError(f"no group before it is called {name[1]}")
        names |= {name[1]} if name else set()
        depth += (token.kind is Kind.OPEN) - (token.kind is Kind.CLOSE)
        if depth < 0:
            raise MistakeError("a ) has no (")
        _check_depth(depth)
    if depth:
        raise MistakeError("a ( has no )")


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise MistakeError(f"more than {_DEEPEST} groups or sets are nested")


def _check_repeats(found: tuple[Token, ...]) -> None:
    for before, token in zip((None, *found), found, strict=False):
        repeated = before is not None and before.kind not in (Kind.OPEN, Kind.OR, Kind.REPEAT, Kind.FLAGS)
        # Java lets {2} repeat nothing, but not the three others.
        if token.kind is Kind.REPEAT and token.java[0] != "{" and not repeated:
            raise MistakeError(f"{token.java} repeats nothing")
