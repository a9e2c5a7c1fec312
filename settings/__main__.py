"""`python -m settings check FILE...`: validates stack files without Pulumi. Exit 0, or 2 with every problem.

`python -m settings reference` writes docs/settings.md, which names every key and is made of the settings alone: types,
defaults and bounds come from the models, the meaning of a key from its field's docstring. `python -m settings timeouts`
writes docs/client-timeouts.md.
"""

import argparse
import ast
import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from settings import client_timeouts, hints, names
from settings.errors import NAMESPACE, SettingsError
from settings.files import check, read_values, stack_name
from settings.model import Model
from settings.parsing import KEYS, PATTERNS
from settings.stack import Stack
from settings.text import format_count, wrap_for_stream
from settings.verification import Cron, Image, TimeZone

REFERENCE = Path(__file__).parent.parent / "docs" / "settings.md"
_HEAD = f"""# Settings

Every key of a stack file, `Pulumi.<stack>.yaml`. This page is written by `python -m settings reference`: do not edit.
`python -m settings check Pulumi.<stack>.yaml` reports all problems of a file, and so does `pulumi preview`.

Keys are below `config:` with the prefix `{NAMESPACE}:`, for example `{NAMESPACE}:cluster`. Only `cluster` must be
given. No key holds a password: Pulumi generates them, or they lie in Secrets that are named here.
"""
_WORDS = {
    names.Label: "name in Kubernetes",
    names.SecretName: "name in Kubernetes",
    names.KafkaName: "name in Kafka",
    names.Pattern: "regular expression",
    names.HostName: "host name",
    names.HostPort: "host:port",
    Cron: "schedule as in cron",
    TimeZone: "IANA time zone",
    Image: "container image",
}
_VALIDATED = {typing.get_args(alias)[1]: words for alias, words in _WORDS.items()}


def reference() -> str:
    """Return docs/settings.md."""
    rows = [f"- [`{key}`](#{_title(_model_of(key)).lower()}): {_summary(key)}" for key in KEYS]
    parts = [_HEAD, "\n".join(rows)]
    parts += [_section(model, where) for model, where in models().items()]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def models() -> dict[type[BaseModel], list[str]]:
    """Every model below a stack file, in order, with the paths at which it is used."""
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


@cache
def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return what each field of a model means, in one line: the docstring below it.

    Pydantic could read them itself, when the models are made: every command would take a third longer to start.
    """
    found: dict[str, str] = {}
    for each in reversed([base for base in model.__mro__ if issubclass(base, Model) and base is not Model]):
        (definition,) = ast.parse(inspect.getsource(each)).body
        body = definition.body if isinstance(definition, ast.ClassDef) else []
        for field, below in pairwise(body):
            if not isinstance(field, ast.AnnAssign) or not isinstance(below, ast.Expr):
                continue
            if isinstance(field.target, ast.Name) and isinstance(below.value, ast.Constant):
                found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def _summary(key: str) -> str:
    """What a top-level key means, as part of a sentence."""
    words = meanings(Stack)[next(name for name, field in Stack.model_fields.items() if field.alias == key)]
    return words[:1].lower() + words[1:].removesuffix(".")


def _section(model: type[BaseModel], where: list[str]) -> str:
    places = ", ".join(f"`{path}`" for path in where)
    about = " ".join((model.__doc__ or "").split())
    rows = [
        f"| `{field.alias}` | {_kind(field.annotation, field.metadata)} | {_default(field)} | {meanings(model)[name]} |"
        for name, field in model.model_fields.items()
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return 0, or 2 if a file has problems."""
    parser = argparse.ArgumentParser(prog="python -m settings", description="Settings of the stacks.")
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="validate stack files: exit 0, or 2 with every problem and its key")
    checking.add_argument("files", nargs="+", type=Path, metavar="FILE", help="Pulumi.<stack>.yaml")
    pages = {"reference": (REFERENCE, reference), "timeouts": (client_timeouts.PATH, client_timeouts.text)}
    for name, (path, _) in pages.items():
        writing = commands.add_parser(name, help=f"write docs/{path.name}")
        writing.add_argument("--out", type=Path, default=path, metavar="FILE", help="default: %(default)s")
    given = parser.parse_args(arguments)
    if given.command in pages:
        given.out.write_text(pages[given.command][1](), encoding="utf-8")
        sys.stdout.write(f"{given.out}: written\n")
        return 0
    return max([_check(path) for path in given.files])


def _check(path: Path) -> int:
    """Judge one file beside its siblings."""
    try:
        stack, others = check(path)
    except SettingsError as error:
        count = len(error.problems)
        sys.stderr.write(f"{path}: {count} problem{'s' * (count > 1)}\n")
        sys.stderr.writelines(f"{wrap_for_stream(f'  {problem}', sys.stderr)}\n" for problem in error.problems)
        return 2
    parts = [
        format_count(len(of), noun)
        for of, noun in ((stack.users, "user"), (stack.topics, "topic"), (stack.mirrors, "mirror"))
    ]
    sys.stdout.write(f"{path}: good ({', '.join(parts)})\n")
    found = hints(read_values(path), stack_name(path), others)
    sys.stdout.writelines(f"{wrap_for_stream(f'  hint: {hint}', sys.stdout)}\n" for hint in found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
