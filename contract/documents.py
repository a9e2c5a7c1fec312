"""The request of a verification: read from its JSON document with all its problems together, its secrets resolved.

No cluster is contacted. Does not own the rows of a report, see report_rows.py.
"""

import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from contract.fields import MUST, PROBLEM, Must, RequestError, format_value, kind_of, text_fault
from contract.verification_request import Request

STANDARD_INPUT = "/dev/stdin"
"""The path of a request that a process gets as its standard input, see `unnamed_file`."""
DEEPEST = 30  # the request itself needs five
_TOO_DEEP = "nested too deep"
_ROLES = ("source", "target")
Location = tuple[str | int, ...]


class _Object(dict[str, Any]):
    """A JSON object that remembers which keys it was given more than once."""

    def __init__(self, pairs: Iterable[tuple[str, Any]]) -> None:
        self.repeated: list[str] = []
        super().__init__()
        for key, value in pairs:
            if key in self and key not in self.repeated:
                self.repeated.append(key)
            self[key] = value


@contextmanager
def unnamed_file(request: Mapping[str, Any]) -> Iterator[IO[str]]:
    """Yield a file without a name that holds a request's document: nothing is left of it however a process ends."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        json.dump(request, file)
        file.seek(0)
        yield file


def load(path: Path, environment: Mapping[str, str]) -> Request:
    """Return the request that a file holds; raises RequestError with every problem."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_Object)
    except OSError as error:
        raise RequestError([f"request: file must be readable (got {path}: {error.strerror})"]) from None
    except RecursionError:
        raise RequestError([f"request: {path} must hold JSON ({_TOO_DEEP})"]) from None
    except ValueError as error:
        raise RequestError([f"request: {path} must hold JSON ({error})"]) from None
    return parse(document, environment)


def parse(document: object, environment: Mapping[str, str]) -> Request:
    """Return the request of a JSON document.

    Args:
        document: the decoded JSON.
        environment: the variables that the document's references to secrets name.

    Raises:
        RequestError: with every problem; no secret is in it.
    """
    problems: list[str] = []
    completed = _completed(_usable(document, "", problems, 0), problems)
    try:
        request = Request.model_validate(completed, context={"environment": environment})
    except ValidationError as error:
        problems += [_message(one) for one in error.errors(include_url=False)]
    if problems:
        raise RequestError(problems)
    return request


def _usable(value: object, where: str, problems: list[str], depth: int) -> Any:
    """Return a value without what no field can hold, and add a problem for each: numbers, text, repeated keys.

    Values are not shown, because they may be secrets. Raises RequestError for a document that is nested too deep.
    """
    if depth > DEEPEST:
        raise RequestError([f"request: must be an object of a request ({_TOO_DEEP})"])
    if isinstance(value, str):
        return _sound(value, where, problems)
    if isinstance(value, list):
        items = ((f"{where}[{number}]", item) for number, item in enumerate(value))
        return [_usable(item, at, problems, depth + 1) for at, item in items if _is_number(item, at, problems)]
    if not isinstance(value, dict):
        return value
    problems += [
        f"{where or 'request'}: {format_value(key)} must be given once (got it several times)"
        for key in getattr(value, "repeated", [])
    ]
    found = {}
    for key, item in value.items():
        path = f"{where}.{key}" if where else str(key)
        if not _is_number(item, path, problems):
            continue
        kept = _sound(key, f"a key of {where or 'request'}", problems) if isinstance(key, str) else key
        found[kept] = _usable(item, path, problems, depth + 1)
    return found


def _is_number(value: object, where: str, problems: list[str]) -> bool:
    """Whether a value is not one of the numbers that JSON does not know; adds a problem if it is one."""
    known = not isinstance(value, float) or math.isfinite(value)
    if not known:
        problems.append(f"{format_value(where, quoted=False)}: must be a finite number (got {value})")
    return known


def _sound(value: str, where: str, problems: list[str]) -> str:
    fault = text_fault(value)
    if fault is None:
        return value
    problems.append(
        f"{format_value(where, quoted=False)}: must be text without {fault} (got it there, the value is not shown)"
    )
    return "".join(each for each in value if text_fault(each) is None)


def _completed(document: Any, problems: list[str]) -> Any:
    """Return the document with what follows from its other parts: the clusters' roles, and the mirror's aliases."""
    if not isinstance(document, dict):
        return document
    mirror, found = document.get("mirror"), dict(document)
    for role in _ROLES:
        section = document.get(role)
        if isinstance(section, dict):
            problems += [_unknown_key((role, "role"))] if "role" in section else []
            found[role] = {**section, "role": role}
    if isinstance(mirror, dict):
        aliases = {role: found[role].get("alias") if isinstance(found.get(role), dict) else "" for role in _ROLES}
        given = {f"{role}_alias": alias if isinstance(alias, str) else "" for role, alias in aliases.items()}
        found["mirror"] = {**given, **mirror}
    return found


def _message(error: ErrorDetails) -> str:
    """Return an error of the models in our words: object, field, rule, and the value unless it may be a secret."""
    path, kind = error["loc"], error["type"]
    if kind == "extra_forbidden":
        return _unknown_key(path)
    is_missing = kind == "missing"
    rule, model = _field(path)
    if kind == "model_type" or (is_missing and model is not None):
        return f"{_text(path)}: must be an object (got {'nothing' if is_missing else kind_of(error['input'])})"
    if kind == PROBLEM:
        return f"{_subject(path)} {error['msg']}"
    if kind == MUST:
        return f"{_subject(path)} {error['msg']} (got {format_value(error['input'])})"
    return f"{_subject(path)} must {rule or 'be given'} (got {'nothing' if is_missing else kind_of(error['input'])})"


def _unknown_key(path: Location) -> str:
    model, key = _field(path[:-1])[1] or Request, format_value(path[-1], quoted=False)
    allowed = ", ".join(sorted(name for name, field in model.model_fields.items() if not field.exclude))
    return f"{_text(path[:-1])}: {key} must be a known key (got {key}, allowed {allowed})"


def _field(path: Location) -> tuple[str | None, type[BaseModel] | None]:
    """Return the rule of the field at a path, and the model that the field holds."""
    rule: str | None = None
    model: type[BaseModel] | None = Request
    for part in path:
        field = model.model_fields.get(part) if model is not None and isinstance(part, str) else None
        if field is not None:
            rule = next((one.rule for one in reversed(field.metadata) if isinstance(one, Must)), None)
            model = next(_models(field.annotation), None)
    return rule, model


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _subject(path: Location) -> str:
    """Return `mirror.canary: topic`; an item of a list is `mirror.positions[0]:`, and an empty key is left out."""
    if isinstance(path[-1], int):
        return f"{_text(path)}:"
    return f"{_text(path[:-1])}: {format_value(path[-1], quoted=False)}".rstrip()


def _text(path: Location) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{format_value(part, quoted=False)}" for part in path)
    return "".join(parts).removeprefix(".") or "request"
