"""The reference of all keys of a stack file, as Markdown: docs/settings.md is made of it and of nothing else.

Types, defaults and bounds come from the models, what a key means from meanings.yaml.
"""

import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from settings import names, verification_run
from settings.draft import KEYS
from settings.errors import NAMESPACE
from settings.reading import PATTERNS
from settings.stack import Stack

PATH = Path(__file__).parent.parent / "docs" / "settings.md"
_MEANINGS = Path(__file__).with_name("meanings.yaml")
_HEAD = f"""# Settings

Every key of a stack file, `Pulumi.<stack>.yaml`. This page is written by `python -m settings reference`: do not edit.
`python -m settings check Pulumi.<stack>.yaml` tells everything that is wrong with a file, and so does `pulumi preview`.

Keys stand below `config:` with the prefix `{NAMESPACE}:`, for example `{NAMESPACE}:cluster`. Only `cluster` must be
given. No key holds a password: Pulumi generates them, or they lie in Secrets that are named here.
"""
_ANCHORS = {
    "platform": "which operator's resources are written",
    "operator": "how the operator gets there",
    "cluster": "the Kafka cluster",
    "users": "a list of users",
    "topics": "a list of topics",
    "mirrors": "a list of mirrors into this stack's cluster",
    "verification": "the proof that a mirror is complete",
    "monitoring": "what watches the stack, and whom it tells",
    "demoClients": "pods that produce and consume for a trial",
}
_WORDS = {
    names.Label: "name in Kubernetes",
    names.SecretName: "name in Kubernetes",
    names.KafkaName: "name in Kafka",
    names.Pattern: "regular expression",
    names.HostName: "host name",
    names.HostPort: "host:port",
    verification_run.Cron: "schedule as in cron",
    verification_run.TimeZone: "IANA time zone",
    verification_run.Image: "container image",
}
_VALIDATED = {typing.get_args(alias)[1]: words for alias, words in _WORDS.items()}


def text() -> str:
    """Return the whole document."""
    meanings = meaning_of_keys()
    rows = [f"- [`{key}`](#{_title(_model_of(key)).lower()}): {_ANCHORS[key]}" for key in KEYS]
    parts = [_HEAD, "\n".join(rows)]
    parts += [_section(model, where, meanings[model.__name__]) for model, where in models().items()]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def models() -> dict[type[BaseModel], list[str]]:
    """Every model below a stack file, in order, with the paths at which it stands."""
    found: dict[type[BaseModel], list[str]] = {}

    def visit(model: type[BaseModel], path: str) -> None:
        found.setdefault(model, []).append(path)
        for name, field in model.model_fields.items():
            many = "[]" if typing.get_origin(field.annotation) is tuple else ""
            for inner in _models(field.annotation):
                visit(inner, f"{path}.{field.alias or name}{many}")

    for key in KEYS:
        many = "[]" if typing.get_origin(_settings()[key].annotation) is tuple else ""
        visit(_model_of(key), key + many)
    return found


def meaning_of_keys() -> dict[str, dict[str, str]]:
    """What each key means, by the model's name and the key."""
    loaded: dict[str, dict[str, str]] = yaml.safe_load(_MEANINGS.read_text(encoding="utf-8"))
    return loaded


def _section(model: type[BaseModel], where: list[str], meanings: Mapping[str, str]) -> str:
    places = ", ".join(f"`{path}`" for path in where)
    about = " ".join((model.__doc__ or "").split())
    rows = [
        f"| `{key}` | {_kind(field.annotation, field.metadata)} | {_default(field)} | {meanings.get(key, '')} |"
        for field in model.model_fields.values()
        if (key := str(field.alias))
    ]
    table = "\n".join(["| Key | Value | Default | Meaning |", "|---|---|---|---|", *rows])
    return f"## {_title(model)}\n\n{places}. {about}\n\n{table}"


def _kind(annotation: Any, metadata: typing.Iterable[Any] = ()) -> str:
    """What a value may be, in words."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _kind(arguments[0], [*_flat(arguments[1:]), *metadata])
    if origin in (types.UnionType, typing.Union):
        kinds = [_kind(each, metadata) for each in arguments if each is not type(None)]
        return " or ".join(dict.fromkeys(kinds))
    if origin is typing.Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin is tuple:
        return f"list of: {_kind(arguments[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "texts by key" if arguments[1] is str else "options"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{_title(annotation)}](#{_title(annotation).lower()})"
    return _scalar(annotation, list(_flat(metadata)))


def _scalar(kind: Any, metadata: list[Any]) -> str:
    if kind is bool:
        return "true or false"
    bounds = {name: getattr(each, name) for each in metadata for name in ("ge", "le", "lt") if hasattr(each, name)}
    if kind in (int, float):
        number = "whole number" if kind is int else "number"
        if "lt" in bounds:
            return f"{number}, {bounds['ge']} to below {bounds['lt']}"
        if len(bounds) > 1:
            return f"{number}, {bounds['ge']} to {bounds['le']}"
        return f"{number}, {bounds['ge']} or more" if bounds else number
    patterns = [each.pattern for each in metadata if getattr(each, "pattern", None)]
    words = [_VALIDATED[each] for each in metadata if each in _VALIDATED]
    return PATTERNS[patterns[0]] if patterns else (words or ["text"])[0]


def _flat(metadata: typing.Iterable[Any]) -> Iterator[Any]:
    """Constraints, those inside of a field's own included."""
    for each in metadata:
        if isinstance(each, FieldInfo):
            yield from _flat(each.metadata)
        else:
            yield each


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined or isinstance(value, BaseModel) or value in ((), {}):
        return ""
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value)
    return f"`{value}`" if not isinstance(value, Mapping) else ""


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Models that an annotation holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in typing.get_args(annotation) for found in _models(part)]


def _settings() -> dict[str, FieldInfo]:
    """The fields of a stack file by their keys."""
    return {str(field.alias): field for field in Stack.model_fields.values()}


def _model_of(key: str) -> type[BaseModel]:
    return _models(_settings()[key].annotation)[0]


def _title(model: type[BaseModel]) -> str:
    return model.__name__
