r"""Which names a mirror selects: MirrorMaker's patterns, lists of Java's expressions held against whole names.

MirrorMaker reads a pattern as a list: it cuts the value at every comma, joins the entries by `|` and has Java compile
the result. `items,orders\..*` and `items|orders\..*` are the same; `a{1,2}` is cut within its repetition. An empty
value selects nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from policies.support.java_doubts import doubt, reaches_beyond
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
    """The pattern's alternatives, as they are written; none for a pattern that Java refuses."""
    rest = "|".join(parts(pattern))
    try:
        found = tokens(rest)
    except MistakeError:
        return []
    written = []
    for alternative in _split(found):
        read = "".join(token.java for token in alternative)
        ends = [*(each.start() for each in re.finditer(r"\|", rest)), len(rest)]
        end = next(each for each in ends if without_quotations(rest[:each]) == read)
        written.append(rest[:end])
        rest = rest[end + 1 :]
    return [each for each in written if each]


def with_dots_escaped(expression: str) -> str:
    r"""The expression with a backslash before every dot that is neither escaped nor repeated: `a\.b.*` for `a.b.*`."""
    found = tokens(expression)
    followed = zip(found, (*found[1:], None), strict=True)
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
