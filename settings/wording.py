"""How values and choices are told in messages: short, and with the nearest choice where a name is misspelt."""

import difflib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

_LISTED_MAX, _SHOWN_MAX = 8, 80
_ALIKE_ENOUGH = 0.75
_WORD = re.compile(r"(?:`[^`]*`|\S)+")


def shown(value: object) -> str:
    """A value as it is told to the user: short, and a collection by what it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}... of {len(text)} characters"


def listed(names: Iterable[str]) -> str:
    """Names in order, the first few of many; `none` if there are none."""
    ordered = sorted(set(names))
    more = len(ordered) - _LISTED_MAX
    text = ", ".join(ordered[:_LISTED_MAX])
    return f"{text} and {more} more" if more > 0 else text or "none"


def alike(name: str, names: Iterable[str]) -> str:
    """` Did you mean X?` if one of the names is nearly the given one, else nothing."""
    by_lower = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), by_lower, 1, _ALIKE_ENOUGH)
    return f" Did you mean {by_lower[found[0]]}?" if found else ""


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 user`, `2 users`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def wrapped(text: str, width: int) -> str:
    """The text with every line broken between words to fit `width`; a command in backticks stays whole."""
    return "\n".join(part for line in text.split("\n") for part in _lines(line, width))


def for_stream(text: str, stream: TextIO) -> str:
    """The text as it is, so that programs get each message in one line; wrapped if the stream is a terminal."""
    return wrapped(text, shutil.get_terminal_size().columns) if stream.isatty() else text


def _lines(line: str, width: int) -> Iterator[str]:
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= width or width <= len(indent):
        yield line
        return
    current = indent
    for word in _WORD.findall(line):
        if current != indent and len(current) + 1 + len(word) > width:
            yield current
            current = indent
        current += word if current == indent else f" {word}"
    yield current
