"""From raw values to one model, and from pydantic's errors to this project's messages."""

import json
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from settings.errors import Problem

M = TypeVar("M", bound=BaseModel)
Location = tuple[int | str, ...]
_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_BOUNDS = {
    "greater_than_equal": (">=", "ge"),
    "less_than_equal": ("<=", "le"),
}


def read(model: type[M], raw: object, key: str, subject: str) -> tuple[M | None, list[Problem]]:
    """Return the model of a raw value, or None with everything that is wrong with it."""
    if not isinstance(raw, Mapping):
        return None, [Problem(key, f"{subject}: must be a mapping (got {_shown(raw)}).")]
    try:
        # JSON is the mode in which lists may become tuples and nothing else is converted.
        return model.model_validate_json(json.dumps(raw, default=str), by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors()
        # A list is also called too short if its entries are wrong.
        inside = {entry["loc"][:-1] for entry in details}
        told = [entry for entry in details if entry["type"] != "too_short" or entry["loc"] not in inside]
        return None, list(dict.fromkeys(_problem(model, entry, key, subject) for entry in told))


def _problem(model: type[BaseModel], error: ErrorDetails, key: str, subject: str) -> Problem:
    location = tuple(part for part in error["loc"] if part not in ("str", "int", "float", "bool"))
    where = key + "".join(_step(part) for part in location)
    names = [str(part) for part in location if isinstance(part, str)]
    return Problem(where, f"{subject}: {names[-1] if names else 'value'} {_rule(model, error, location)}")


def _rule(model: type[BaseModel], error: ErrorDetails, location: Location) -> str:
    kind, got, context = error["type"], _shown(error["input"]), error.get("ctx", {})
    if kind == "missing":
        return "must be given (got nothing)."
    if kind == "extra_forbidden":
        return f"must be a known key (got {location[-1]}, allowed {', '.join(_keys(model, location[:-1]))})."
    if kind == "literal_error":
        return f"must be one of the allowed values (got {got}, allowed {context['expected']})."
    if kind in _BOUNDS:
        sign, name = _BOUNDS[kind]
        return f"must be {sign} {context[name]} (got {got})."
    if kind == "too_short":
        return f"must have at least {context['min_length']} entry (got {context['actual_length']})."
    if kind == "string_pattern_mismatch":
        return f"must match {context['pattern']} (got {got})."
    if kind == "value_error":
        return str(context["error"])
    if len(error["loc"]) > len(location):  # one branch of a scalar
        return f"must be text, a number, true or false (got {got})."
    return f"must be {_KINDS.get(kind, error['msg'])} (got {got})."


def _step(part: int | str) -> str:
    """One step of a key's path; positions and keys that hold dots stand in brackets."""
    return f"[{part}]" if isinstance(part, int) or "." in part else f".{part}"


def _keys(model: type[BaseModel], location: Location) -> list[str]:
    """YAML keys of the model at a place inside `model`."""
    for part in location:
        if isinstance(part, str):
            field = next(entry for entry in model.model_fields.values() if entry.alias == part)
            model = _model_in(field.annotation) or model
    return [entry.alias or name for name, entry in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation holds: itself, an item of a tuple, one side of a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _model_in(part))), None)


def _shown(value: object) -> str:
    """A value as it is told to the user: short, and a collection by what it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return "nothing" if value is None else repr(value)
