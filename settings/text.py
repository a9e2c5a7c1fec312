"""Text of messages: values in short form, lists of names, the nearest name for a misspelt one, and line breaks.

It imports the standard library only: the image of the demo clients copies this file.
"""

import difflib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

_NAMES_MAX, _VALUE_MAX = 8, 80
_SIMILARITY_MIN = 0.75
_WORD = re.compile(r"(?:`[^`]*`|\S)+")


def format_value(value: object) -> str:
    """Return a value in short form; a collection by its type and length."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _VALUE_MAX else f"{text[:_VALUE_MAX]}... of {len(text)} characters"


def format_names(names: Iterable[str]) -> str:
    """Return the names in order, the first eight of many; `none` if there are none."""
    ordered = sorted(set(names))
    more = len(ordered) - _NAMES_MAX
    text = ", ".join(ordered[:_NAMES_MAX])
    return f"{text} and {more} more" if more > 0 else text or "none"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ` Did you mean X?` if one of the names is similar to the given one, else an empty text."""
    by_lower = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), by_lower, 1, _SIMILARITY_MIN)
    return f" Did you mean {by_lower[found[0]]}?" if found else ""


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 user`, `2 users`, `2 batches`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def format_duration(seconds: float) -> str:
    """Return whole days, hours, minutes or seconds, whichever is the largest unit that fits; never more than it is."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def wrap(text: str, width: int) -> str:
    """Return the text with every line broken between words to fit `width`; a command in backticks stays whole."""
    return "\n".join(part for line in text.split("\n") for part in _lines(line, width))


def wrap_for_stream(text: str, stream: TextIO) -> str:
    """Return the text wrapped for a terminal; unchanged for any other stream, so that a message stays one line."""
    return wrap(text, shutil.get_terminal_size().columns) if stream.isatty() else text


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
