"""Why names cannot be held against an expression outside of Java, although Java compiles it.

The verification and the settings refuse such an expression too, by a reader of their own: what a mirror selects by it
could not be verified.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from policies.support.java_expressions import Kind, Token, tokens

LONGEST_NAME = 32_767  # of a group; a name that repeats more often does not exist
_BEHIND = ("(?<=", "(?<!")
_AROUND = (*_BEHIND, "(?=", "(?!")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)-?([a-zA-Z]*)[:)]")
_OF_ONE_CASE = re.compile(r"\\[pP]\{?(?:Lower|Upper|(?:Is)?L[ult])\}")
_BEYOND_ASCII = re.compile(r"\\[pP](?:[A-Z]|\{(?:Is)?[A-Z][a-z]?\})")
_NUMBER = re.compile(r"\\(?:x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4}))")


@dataclass
class _Group:
    """A group that is open, or the expression as a whole (`opening` is empty)."""

    opening: str = ""
    number: int = 0
    ignore_case: bool = False
    repeated: int = 1
    reachable: set[int] = field(default_factory=set)  # groups that may be referred to when it begins


@dataclass
class _Item:
    """What a repetition would repeat."""

    repeated: int
    single: bool = False
    fixed: bool = False
    number: int = 0


def doubt(expression: str) -> str | None:
    """The first reason, or None. `MistakeError` if Java would refuse the expression."""
    found = tokens(expression)
    if "\0" in expression:
        return "it contains a NUL, which no name does"
    reason = next(_Walk().doubts(found), None)
    if reason is None and any(token.java in _BEHIND for token in found) and not _fixed_width(found):
        reason = "a look-behind has more than one width"
    return reason


def reaches_beyond(expression: str) -> bool:
    """Whether it changes the entries behind it in a list: by a flag that is on at its end, or an open quotation."""
    if r"\Q" in re.sub(r"\\Q.*?\\E|\\[^Q]", "", expression, flags=re.DOTALL):
        return True
    depth, on = 0, set[str]()
    for token in tokens(expression):
        depth += (token.kind is Kind.OPEN) - (token.kind is Kind.CLOSE)
        flags = _FLAGS.fullmatch(token.java) if token.kind is Kind.FLAGS and depth == 0 else None
        if flags:
            on = (on | set(flags[1])) - set(flags[2])
    return bool(on)


def _fixed_width(found: tuple[Token, ...]) -> bool:
    """Whether Python reads the look-behinds: a set that only Java has counts as one character."""
    written = [token.python if token.python is not None and token.kind is not Kind.FLAGS else None for token in found]
    text = "".join(
        part if part is not None else "(?:" if token.kind is Kind.OPEN else "" if token.kind is Kind.FLAGS else "."
        for part, token in zip(written, found, strict=True)
    )
    try:
        re.compile(text, re.ASCII)
    except re.error as error:
        return "look-behind" not in str(error)
    return True


class _Walk:
    """Goes through an expression's tokens once."""

    def __init__(self) -> None:
        self.groups = [_Group()]
        self.reachable: set[int] = set()
        self.names: dict[str, int] = {}
        self.opened = 0
        self.ignore_case = False
        self.item: _Item | None = None

    def doubts(self, found: tuple[Token, ...]) -> Iterator[str]:
        """Every reason, in order."""
        for token, after in zip(found, (*found[1:], None), strict=False):
            if token.doubt:
                yield token.doubt
            yield from self._token(token, after)
            if self.item is not None and (after is None or after.kind is not Kind.REPEAT):
                self._settle(self.item)

    def _token(self, token: Token, after: Token | None) -> Iterator[str]:
        if token.kind in (Kind.OPEN, Kind.FLAGS):
            yield from self._opening(token)
        elif token.kind is Kind.CLOSE:
            self._close()
        elif token.kind is Kind.OR:
            self.item, self.reachable = None, set(self.groups[-1].reachable)
        elif token.kind is Kind.REPEAT:
            yield from self._repeat(token)
        else:
            yield from self._one(token, after)

    def _settle(self, item: _Item) -> None:
        """An item is complete: the group that it is may be referred to from now on."""
        self.groups[-1].repeated = max(self.groups[-1].repeated, item.repeated)
        if item.number:
            self.reachable.add(item.number)

    def _opening(self, token: Token) -> Iterator[str]:
        self.item = None
        flags = _FLAGS.fullmatch(token.java)
        before = self.ignore_case
        if flags:
            unknown = set(flags[1] + flags[2]) & set("cdmuxU")
            if unknown:
                yield f"the flag {min(unknown)} is not among i and s, the only ones that are known here"
            self.ignore_case = ("i" in flags[1] or before) and "i" not in flags[2]
        if token.kind is Kind.FLAGS:
            return
        number = 0
        if token.java == "(" or (token.java.endswith(">") and token.java != "(?>"):
            self.opened += 1
            number = self.opened
            if token.java != "(":
                self.names[token.java[3:-1]] = number
        self.groups.append(_Group(token.java, number, before, 1, set(self.reachable)))

    def _close(self) -> None:
        group = self.groups.pop()
        self.reachable, self.ignore_case = group.reachable, group.ignore_case
        self.item = _Item(group.repeated, fixed=group.opening in _AROUND, number=group.number)

    def _one(self, token: Token, after: Token | None) -> Iterator[str]:
        reference = token.java[1:2] in tuple("k123456789") and token.java[0] == "\\"
        self.item = _Item(1, single=not reference and token.kind is not Kind.ANCHOR, fixed=token.kind is Kind.ANCHOR)
        if reference:
            number = self.names[token.java[3:-1]] if token.java[1] == "k" else int(token.java[1:])
            digit = after is not None and token.java[1] != "k" and after.java in tuple("0123456789")
            if digit or self.ignore_case or number not in self.reachable:
                yield f"{token.java} must refer to an unrepeated group before it in its alternative, without (?i)"
        if self.ignore_case and _OF_ONE_CASE.search(token.java):
            yield f"{token.java} with (?i) matches other characters in other versions of Java"
        if any(group.opening in _BEHIND for group in self.groups):
            codes = [int(one or other, 16) for one, other in _NUMBER.findall(token.java)]
            if _BEYOND_ASCII.search(token.java) or max([*codes, *map(ord, token.java)]) > 0xD7FF:
                yield f"{token.java} is in a look-behind, where Java counts by 16 bits"

    def _repeat(self, token: Token) -> Iterator[str]:
        if self.item is None:
            yield f"{token.java} repeats nothing"
            return
        if any(group.opening in _BEHIND for group in self.groups):
            yield f"{token.java} is in a look-behind, of which one width is known only"
        if self.item.fixed:
            yield f"{token.java} repeats no character"
        if token.java[1:].endswith("+") and not self.item.single:
            yield f"{token.java} repeats a group possessively, which Java does in a way of its own"
        counts = [int(number) for number in re.findall(r"\d+", token.java)]
        times = self.item.repeated * max([1, *counts])
        if times > LONGEST_NAME or max(counts, default=0) > LONGEST_NAME:
            yield f"names are not longer than {LONGEST_NAME}, so nothing can repeat more often"
        self._settle(_Item(times))
        self.item = None
