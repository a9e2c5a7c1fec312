"""Every text of a resource, however deep it stands, with its place as a message tells it."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .values import items, sequence


@dataclass(frozen=True)
class Text:
    """One text: its place, the key under which it stands, the key above that, and the text itself.

    The key of an entry of a list is that of the list. Where `name` and `value` stand side by side, as with variables
    and system properties, the name is the key of the value.
    """

    place: str
    key: str
    above: str
    value: str


def texts(value: object, place: str, *, without: Collection[str] = ()) -> Iterator[Text]:
    """All known texts below the value; keys that are named in `without` are not followed."""
    return _texts(value, place, "", "", without)


def _texts(value: object, place: str, key: str, above: str, without: Collection[str]) -> Iterator[Text]:
    if isinstance(value, str):
        yield Text(place, key, above, value)
        return
    for index, element in enumerate(sequence(value)):
        yield from _texts(element, f"{place}[{_named(element, index)}]", key, above, without)
    fields = dict(items(value))
    for each, field in fields.items():
        if each in without:
            continue
        named = fields.get("name") if each == "value" else None
        yield from _texts(field, _below(place, each), named if isinstance(named, str) else each, key, without)


def _below(place: str, key: str) -> str:
    """Keys with a dot or a slash of their own stand in brackets."""
    return f"{place}.{key}" if key.replace("_", "").replace("-", "").isalnum() else f"{place}[{key}]"


def _named(element: object, index: int) -> str:
    fields = dict(items(element))
    name = fields.get("name", fields.get("alias"))
    return name if isinstance(name, str) else str(index)
