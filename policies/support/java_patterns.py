r"""Which names a mirror selects: MirrorMaker's patterns, lists of Java's expressions held against whole names.

MirrorMaker reads a pattern as a list: it cuts the value at every comma, joins the entries by `|` and has Java compile
the result. `items,orders\..*` and `items|orders\..*` are the same; `a{1,2}` is cut within its repetition. An empty
value selects nothing.

Some expressions that Java compiles cannot be held against names outside of Java (`doubt`). The verification and the
settings refuse them too, by a reader of their own: what a mirror selects by one could not be verified.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from policies.support.java_expressions import Kind, MistakeError, Token, compiled, tokens, without_quotations

# What MirrorMaker takes where the resource sets nothing (DefaultTopicFilter, DefaultGroupFilter).
EVERYTHING = ".*"
TOPICS_EXCLUDE = r"mm2.*\.internal,.*\.replica,__.*"
GROUPS_EXCLUDE = "console-consumer-.*,connect-.*,__.*"
_MOST = 500
_ENDINGS = ("", "x", "1")


@dataclass(frozen=True)
class Beginning:
    """What an alternative of a pattern spells out: every name that it matches begins so, or is so if it is `whole`."""

    text: str
    whole: bool


_ANYTHING = Beginning("", whole=False)


@dataclass(frozen=True)
class Selection:
    """The names that a mirror takes: those that `include` matches and `exclude` does not."""

    include: str
    exclude: str

    def selects(self, name: str) -> bool | None:
        """Whether it takes the name; None if that cannot be decided."""
        return selects(self.include, self.exclude, name)


def parts(pattern: str) -> list[str]:
    """Entries of the list, as Kafka cuts them."""
    entries = pattern.strip()
    return re.split(r"\s*,\s*", entries) if entries else []


def mistake(pattern: str) -> str | None:
    """Why MirrorMaker would refuse the pattern, or None."""
    entries = parts(pattern)
    if "" in entries:
        return "an entry of the list is empty"
    try:
        tokens("|".join(entries))
    except MistakeError as error:
        if re.search(r"\{\d+\s*,", pattern):
            return f"{error}; MirrorMaker cuts the value at every comma, also within {{1,2}}"
        return str(error)
    return None


def unverifiable(pattern: str) -> str | None:
    """Why only Java can decide what the pattern selects, or None. `MistakeError` if MirrorMaker would refuse it."""
    entries = parts(pattern)
    for entry in entries if len(entries) > 1 else []:
        try:
            found = doubt(entry)
        except MistakeError as error:
            return f"a comma cuts {entry} off, which is no expression by itself: {error}"
        if found:
            return found
        if reaches_beyond(entry) and entry is not entries[-1]:
            return f"{entry} has a flag or a \\Q that counts for the entries behind it too"
    return doubt("|".join(entries))


def matches(pattern: str, name: str) -> bool | None:
    """Whether the pattern matches the whole name; None if undecidable, as for a pattern that Java refuses."""
    entries = parts(pattern)
    if not entries:
        return False
    try:
        expression = compiled("|".join(entries))
    except MistakeError:
        return None
    return None if expression is None or not name.isascii() else expression.fullmatch(name) is not None


def selects(include: str, exclude: str, name: str) -> bool | None:
    """Whether a mirror with these patterns takes the name; None if that cannot be decided."""
    taken, left_out = matches(include, name), matches(exclude, name)
    if taken is False or left_out is True:
        return False
    return None if taken is None or left_out is None else True


def beginnings(pattern: str) -> list[Beginning]:
    r"""What each alternative spells out: `items|(a|b)\..*` is the whole `items`, and `a.` and `b.` to begin with.

    A beginning of nothing stands for any name. A pattern that Java refuses, or that ignores case, has only that one.
    """
    entries = parts(pattern)
    try:
        found = tokens("|".join(entries))
    except MistakeError:
        return [_ANYTHING]
    if any(token.has_flags for token in found):
        return [_ANYTHING]
    return _alternatives(found) if entries else []


def alternatives(pattern: str) -> list[str]:
    """The pattern's alternatives, as they are written; none for a pattern that Java refuses.

    Where a quotation cannot be cut, they are what Java reads: one may begin within an escape.
    """
    rest = "|".join(parts(pattern))
    try:
        found = tokens(rest)
    except MistakeError:
        return []
    written, reads = [], ["".join(token.java for token in alternative) for alternative in _split(found)]
    for read in reads:
        ends = [*(each.start() for each in re.finditer(r"\|", rest)), len(rest)]
        end = next((each for each in ends if without_quotations(rest[:each]) == read), None)
        if end is None:
            return [each for each in reads if each]
        written.append(rest[:end])
        rest = rest[end + 1 :]
    return [each for each in written if each]


def with_dots_escaped(expression: str) -> str:
    r"""The expression with a backslash before every dot that is neither escaped nor repeated: `a\.b.*` for `a.b.*`."""
    found = tokens(expression)
    followed = zip(found, (*found, None)[1:], strict=True)
    return "".join(
        rf"\{token.java}" if token.java == "." and (after is None or after.kind is not Kind.REPEAT) else token.java
        for token, after in followed
    )


def overlap(first: str, second: str, candidates: Iterable[str], excludes: Sequence[str] = ()) -> str | None:
    r"""A name that both patterns match and none of `excludes` does; None if none was found.

    Whether two expressions share a name is not decided in general. Tried are the candidates, and then `samples` of
    both.
    """
    for name in [*candidates, *samples([first, second])]:
        taken = matches(first, name) and matches(second, name)
        if taken and all(matches(exclude, name) is False for exclude in excludes):
            return name
    return None


def samples(patterns: Iterable[str]) -> list[str]:
    r"""Names to try patterns with: those that they spell out, and some made of what their alternatives begin with.

    `items|orders\..*` gives `items`, `orders.`, `orders.x` and `orders.1`.
    """
    spelled = [each for pattern in patterns for each in beginnings(pattern)]
    made = [each.text + ending for each in spelled for ending in ([""] if each.whole else _ENDINGS)]
    return [*dict.fromkeys(filter(None, made))]


def _alternatives(found: Sequence[Token]) -> list[Beginning]:
    """What the alternatives of an expression, or of a group, spell out."""
    return [each for sequence in _split(found) for each in _sequence(sequence)]


def _split(found: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The expression's alternatives: what lies between `|` outside of every group."""
    depth, start = 0, 0
    for index, token in enumerate(found):
        depth += (token.kind is Kind.OPEN) - (token.kind is Kind.CLOSE)
        if token.kind is Kind.OR and depth == 0:
            yield found[start:index]
            start = index + 1
    yield found[start:]


def _sequence(found: Sequence[Token]) -> list[Beginning]:
    """What one alternative spells out: several beginnings if it has groups with alternatives of their own."""
    known = [Beginning("", whole=True)]
    at = 0
    while at < len(found) and any(each.whole for each in known):
        end = _end(found, at)
        repeat = found[end] if end < len(found) and found[end].kind is Kind.REPEAT else None
        item = _item(found[at:end])
        if repeat is not None:
            item = [Beginning(each.text, whole=False) for each in item] if repeat.least else [_ANYTHING]
        if len(known) * len(item) > _MOST:
            item = [_ANYTHING]
        known = [
            *(each for each in known if not each.whole),
            *(Beginning(each.text + more.text, more.whole) for each in known if each.whole for more in item),
        ]
        at = end + (repeat is not None)
    return known


def _end(found: Sequence[Token], at: int) -> int:
    """Where the item ends that begins here: a group at its parenthesis, everything else at once."""
    depth = 0
    for index in range(at, len(found)):
        depth += (found[index].kind is Kind.OPEN) - (found[index].kind is Kind.CLOSE)
        if depth == 0:
            return index + 1
    return len(found)


def _item(found: Sequence[Token]) -> list[Beginning]:
    """What a single item of an alternative spells out."""
    first = found[0]
    if first.kind is Kind.LITERAL:
        return [Beginning(first.literal, whole=True)]
    if first.kind is Kind.ANCHOR and first.java in ("^", "$"):
        return [Beginning("", whole=True)]
    if first.kind is Kind.OPEN and (first.java in ("(", "(?:") or re.fullmatch(r"\(\?<\w+>", first.java)):
        return _alternatives(found[1:-1])
    return [_ANYTHING]


# Why names cannot be held against an expression outside of Java.
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
    """Return why no name can be held against it outside of Java, or None. `MistakeError` if Java would refuse it."""
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
