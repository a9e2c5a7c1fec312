"""The JSON document of a request: what no reader of it could use is found here, with its place in the document."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spark.errors import RequestError

DEEPEST = 30  # the request itself needs five
_TOO_DEEP = "nested too deep"


class _Object(dict[str, Any]):
    """A JSON object that remembers which keys it was given more than once."""

    def __init__(self, pairs: Iterable[tuple[str, Any]]) -> None:
        self.twice: list[str] = []
        super().__init__()
        for key, value in pairs:
            if key in self and key not in self.twice:
                self.twice.append(key)
            self[key] = value


def read(path: Path) -> object:
    """Return the document that a file holds; raises RequestError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_Object)
    except OSError as error:
        raise RequestError([f"request: file must be readable (got {path}: {error.strerror})"]) from None
    except RecursionError:
        raise RequestError([f"request: {path} must hold JSON ({_TOO_DEEP})"]) from None
    except ValueError as error:
        raise RequestError([f"request: {path} must hold JSON ({error})"]) from None


def usable(document: object) -> tuple[Any, list[str]]:
    """Return the document without what cannot be used, and a problem for each: numbers, text, keys that stand twice.

    Values are not shown: they may be secrets. Raises RequestError for a document that is nested too deep.
    """
    problems: list[str] = []
    return _usable(document, "", problems, 0), problems


def _usable(value: object, where: str, problems: list[str], depth: int) -> Any:
    if depth > DEEPEST:
        raise RequestError([f"request: must be an object of a request ({_TOO_DEEP})"])
    if isinstance(value, str):
        return _text(value, where, problems)
    if isinstance(value, list):
        items = ((f"{where}[{number}]", item) for number, item in enumerate(value))
        return [_usable(item, at, problems, depth + 1) for at, item in items if _is_number(item, at, problems)]
    if not isinstance(value, dict):
        return value
    problems += [
        f"{where or 'request'}: {shown(key)} must be given once (got it several times)"
        for key in getattr(value, "twice", [])
    ]
    found = {}
    for key, item in value.items():
        place = f"{where}.{key}" if where else str(key)
        if not _is_number(item, place, problems):
            continue
        kept = _text(key, f"a key of {where or 'request'}", problems) if isinstance(key, str) else key
        found[kept] = _usable(item, place, problems, depth + 1)
    return found


def _is_number(value: object, where: str, problems: list[str]) -> bool:
    """Whether a value is not one of the numbers that JSON does not know; adds a problem if it is one."""
    known = not isinstance(value, float) or math.isfinite(value)
    if not known:
        problems.append(f"{shown(where, quoted=False)}: must be a finite number (got {value})")
    return known


def _text(value: str, where: str, problems: list[str]) -> str:
    fault = text_fault(value)
    if fault is None:
        return value
    problems.append(
        f"{shown(where, quoted=False)}: must be text without {fault} (got it there, the value is not shown)"
    )
    return "".join(each for each in value if text_fault(each) is None)


def text_fault(value: str) -> str | None:
    """Return which character of a text neither Kafka nor a file's name can carry, None if all are sound."""
    if "\0" in value:
        return "a NUL character"
    if any("\ud800" <= each <= "\udfff" for each in value):
        return "half of a character (a lone surrogate)"
    return None


def shown(value: object, *, quoted: bool = True) -> str:
    """Return a value as a message shows it: on one line, in visible characters, and short."""
    text = ascii(value) if quoted and not isinstance(value, str) else repr(value)
    text = text if quoted else text[1:-1]
    return text if len(text) <= 200 else f"{text[:200]}... of {len(text)} characters"
