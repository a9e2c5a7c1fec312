"""Plain data as YAML text, for a set-up that has only the standard library. It writes; it does not read."""

import json
import re
from collections.abc import Iterator
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NOT_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def yaml_text(value: dict[str, Any]) -> str:
    """The YAML document of a mapping: a line a value, texts quoted as in JSON, lists and mappings by indentation."""
    return "".join(f"{line}\n" for line in _mapping(value))


def _mapping(value: dict[str, Any]) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield f"{_key(key)}:"
            yield from (f"  {line}" for line in _mapping(inner))
        elif isinstance(inner, list) and inner:
            yield f"{_key(key)}:"
            yield from _items(inner)
        else:
            yield f"{_key(key)}: {json.dumps(inner)}"


def _items(values: list[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, dict) and value:
            first, *others = _mapping(value)
            yield f"- {first}"
            yield from (f"  {line}" for line in others)
        else:
            yield f"- {json.dumps(value)}"


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) and key.lower() not in _NOT_TEXT else json.dumps(key)
