"""From raw values to the models of a stack, each setting by itself, and from pydantic's errors to messages.

Does not compare settings with each other: that is the rules' part.
"""

import json
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from settings.cluster import Cluster
from settings.errors import Problem, Subject, redact_secrets, step
from settings.fence import Fence
from settings.mirrors import Mirror
from settings.model import Model
from settings.monitoring import CHANNEL, DATA_KEY, PAGE, Monitoring
from settings.platform import Operator, Platform
from settings.text import did_you_mean, format_value
from settings.topics import DemoClients, Topic
from settings.users import User
from settings.verification import Verification

B = TypeVar("B", bound=BaseModel)
_STACK = Subject("", "stack")
_KEYS_MAX = 8  # more are not listed in one line
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
# Patterns of the models in words.
PATTERNS = {
    r"^\d+\.\d+\.\d+$": "a version of three numbers in quotes, such as '4.1.0'",
    r"^\d+\.\d+(\.\d+)?$": "a version in quotes, such as '1.2.0' or '0.45'",
    r"^[a-z0-9]{1,11}$": "1 to 11 lower-case letters and digits",
    r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$": "a time in UTC in quotes, such as '2026-01-31T12:00:00Z'",
    r"^\d+$": "a number in quotes, such as '0'",
    r"^\d+[mMgG]$": "an amount of memory as Java writes it, such as 512m or 2g",
    r"^(\d+m|\d+(\.\d{1,3})?)$": "an amount of CPU in quotes as Kubernetes writes it, such as '2' or 500m",
    r"^[a-zA-Z_:][a-zA-Z0-9_:]*$": "the name of a metric, such as rt_inventory_mirror_lag_seconds",
    r"^[._-]?$": "'.', '_', '-' or empty",
    CHANNEL: "a channel such as '#kafka-alerts' in quotes, a person such as '@ana', or a channel's id",
    DATA_KEY: "a key of a Secret: letters, digits, '-', '_' and '.', at most 253",
    r"^https?://[^\s/?#@]+(/[^\s?#]*)?$": "an address such as http://push.example.com:9091",
    PAGE: "an address such as https://wiki.example.com/kafka, without braces",
}
_BOOLEANS = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
_BOUNDS = {
    "greater_than_equal": (">=", "ge"),
    "less_than_equal": ("<=", "le"),
    "less_than": ("<", "lt"),
}


def read(model: type[B], raw: object, key: str, subject: str) -> tuple[B | None, list[Problem]]:
    """Return the model of a raw value, or None with everything that is wrong with it."""
    if not isinstance(raw, Mapping):
        return None, [
            Problem(
                key, f"{subject}: must be a mapping (got {format_value(raw)}). Write its keys below it, one a line."
            )
        ]
    try:
        # JSON is the mode in which lists may become tuples and nothing else is converted.
        return model.model_validate_json(json.dumps(raw, default=str), by_alias=True, by_name=False), []
    except ValidationError as error:
        # A default that depends on another setting is no mistake of its own.
        details = [entry for entry in error.errors() if entry["type"] != "default_factory_not_called"]
        # A list is also called too short if its entries are wrong.
        inside = {entry["loc"][:-1] for entry in details}
        shown = [entry for entry in details if entry["type"] != "too_short" or entry["loc"] not in inside]
        return None, list(dict.fromkeys(_problem(model, entry, key, subject) for entry in shown))


def _problem(model: type[BaseModel], error: ErrorDetails, key: str, subject: str) -> Problem:
    location = tuple(part for part in error["loc"] if part not in ("str", "int", "float", "bool"))
    way = "".join(step(part) for part in location)
    return Problem(key + way, f"{subject}: {way.removeprefix('.')} {_rule(model, error, location)}")


def _rule(model: type[BaseModel], error: ErrorDetails, location: Location) -> str:
    kind, got, context = error["type"], format_value(error["input"]), error.get("ctx", {})
    if kind == "missing":
        return "must be given (got nothing). Add it."
    if kind == "extra_forbidden":
        keys, key = _keys(model, location[:-1]), str(location[-1])
        allowed = f"allowed {', '.join(keys)}" if len(keys) <= _KEYS_MAX else "docs/settings.md lists the allowed ones"
        return f"must be a known key (got {key}, {allowed}).{did_you_mean(key, keys) or ' Remove it.'}"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        meant = did_you_mean(str(error["input"]), choices)
        return f"must be one of the allowed values (got {got}, allowed {', '.join(choices)}).{meant}"
    if kind in _BOUNDS:
        sign, name = _BOUNDS[kind]
        return f"must be {sign} {context[name]} (got {got}{_range(model, location)})."
    if kind == "too_short":
        return f"must have at least {context['min_length']} entry (got {context['actual_length'] or 'none'}). Add one."
    if kind == "string_pattern_mismatch":
        return f"must be {PATTERNS[context['pattern']]} (got {got}). Correct it."
    if kind == "value_error":
        return str(context["error"])
    if len(error["loc"]) > len(location):  # one branch of a scalar
        return f"must be text, a number, true or false (got {got})."
    return f"must be {_KINDS.get(kind, error['msg'])} (got {got}).{_in_yaml(kind, error['input'])}"


def _in_yaml(kind: str, value: object) -> str:
    """How the value that is probably meant is written in YAML."""
    if kind == "string_type" and isinstance(value, int | float):
        return f" Put it in quotes: '{format_value(value)}'."
    if kind.startswith("int") and isinstance(value, str) and value.strip().isdigit():
        return f" Write it without quotes: {value.strip()}."
    if kind == "bool_type" and isinstance(value, str) and value.lower() in _BOOLEANS:
        return f" Write {_BOOLEANS[value.lower()]}."
    if kind == "tuple_type" and isinstance(value, str):
        return f" Write it as a list: [{value}]."
    if kind in ("dict_type", "model_type", "model_attributes_type"):
        return " Write its keys below it, one a line."
    return ""


def _range(model: type[BaseModel], location: Location) -> str:
    """`, allowed 1..10` for a field with two bounds."""
    for part in location[:-1]:
        model = _inner(model, part)
    field = next(entry for entry in model.model_fields.values() if entry.alias == location[-1])
    bounds = {key: value for found in _constraints(field) for key, value in found.items()}
    if "lt" in bounds:
        return f", allowed {bounds['ge']} to below {bounds['lt']}"
    return f", allowed {bounds['ge']}..{bounds['le']}" if len(bounds) > 1 else ""


def _constraints(field: Any) -> list[dict[str, int]]:
    """Bounds in an annotation, however deep."""
    metadata = [*getattr(field, "metadata", ()), *getattr(field, "__metadata__", ())]
    found = [{name: getattr(each, name)} for each in metadata for name in ("ge", "le", "lt") if hasattr(each, name)]
    inside = [each for each in metadata if hasattr(each, "metadata")]
    parts = typing.get_args(getattr(field, "annotation", field))
    return found + [each for part in (*inside, *parts) for each in _constraints(part)]


def _keys(model: type[BaseModel], location: Location) -> list[str]:
    """YAML keys of the model at a place inside `model`."""
    for part in location:
        model = _inner(model, part)
    return [entry.alias or name for name, entry in model.model_fields.items()]


def _inner(model: type[BaseModel], part: int | str) -> type[BaseModel]:
    """The model one step further: under a key; a position stays in the same one."""
    if isinstance(part, int):
        return model
    field = next(entry for entry in model.model_fields.values() if entry.alias == part)
    return _model_in(field.annotation) or model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation holds: itself, an item of a tuple, one side of a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _model_in(part))), None)


M = TypeVar("M", bound=Model)
KEYS = (
    "platform", "operator", "cluster", "users", "topics", "mirrors", "verification", "monitoring", "demoClients",
    "fence",
)  # fmt: skip
# Keys of a cluster that rules of topics, users and mirrors read.
_REFERENCE_KEYS = ("external", "brokers", "nodePools", "listener", "listenerPort", "listeners", "expose", "config")


@dataclass(frozen=True, kw_only=True)
class ParsedStack:
    """One stack file as far as it can be parsed; what cannot is None or missing, with its error in `problems`.

    Attributes:
        reference_cluster: The cluster that topics and mirrors are checked against, even if another of its settings is
            wrong.
        user_names: Names of all users, of those that cannot be parsed too.
        complete_lists: Keys of the lists of which every entry could be parsed.
        redacted: Keys of values that look like secrets; they are reported as such and never repeated.
    """

    platform: Platform | None
    operator: Operator | None
    cluster: Cluster | None
    reference_cluster: Cluster | None
    users: Mapping[int, User]
    topics: Mapping[int, Topic]
    mirrors: Mapping[int, Mirror]
    verification: Verification | None
    monitoring: Monitoring | None
    demo_clients: DemoClients | None
    fence: Fence | None
    user_names: frozenset[str]
    complete_lists: frozenset[str]
    redacted: frozenset[str]
    problems: tuple[Problem, ...]

    def users_by_name(self) -> dict[str, User | None]:
        """Every user by its name, the first of two; None for one that cannot be read."""
        return dict.fromkeys(self.user_names) | {user.name: user for user in reversed(tuple(self.users.values()))}


def parse_settings(raw_values: Mapping[str, Any]) -> ParsedStack:
    """Return the settings that can be parsed, each by itself, with the errors of the others; never raises."""
    values, secrets = redact_secrets(raw_values)
    problems = [
        _STACK.problem(key, "must be a known key", f"{key}, allowed {', '.join(KEYS)}", did_you_mean(key, KEYS))
        for key in values
        if key not in KEYS
    ]

    def one(key: str, model: type[M], default: M | None = None) -> M | None:
        if values.get(key) is None:
            if default is None:
                problems.append(_STACK.problem(key, "must be given", "nothing", "Add it."))
            return default
        result, wrong = read(model, values[key], key, _subject(key, values[key]))
        problems.extend(wrong)
        return result

    complete = set()

    def many(key: str, noun: str, model: type[M]) -> dict[int, M]:
        raw, result = values.get(key), dict[int, M]()
        if raw is None:
            complete.add(key)
            return result
        if not isinstance(raw, list | tuple):
            problems.append(
                _STACK.problem(key, "must be a list", format_value(raw), f"Begin every {noun} with '- name: ...'.")
            )
            return result
        for index, item in enumerate(raw):
            entry, wrong = read(model, item, f"{key}[{index}]", _subject(noun, item))
            problems.extend(wrong)
            if entry is not None:
                result[index] = entry
        if len(result) == len(raw):
            complete.add(key)
        return result

    platform, operator = one("platform", Platform, Platform()), one("operator", Operator, Operator())
    cluster, verification = one("cluster", Cluster), one("verification", Verification, Verification())
    users, topics, mirrors = (
        many("users", "user", User),
        many("topics", "topic", Topic),
        many("mirrors", "mirror", Mirror),
    )
    monitoring = one("monitoring", Monitoring) if values.get("monitoring") is not None else None
    demo_clients = one("demoClients", DemoClients) if values.get("demoClients") is not None else None
    fence = one("fence", Fence) if values.get("fence") is not None else None
    return ParsedStack(
        platform=platform,
        operator=operator,
        cluster=cluster,
        reference_cluster=cluster or _salvaged(values.get("cluster")),
        users=users,
        topics=topics,
        mirrors=mirrors,
        verification=verification,
        monitoring=monitoring,
        demo_clients=demo_clients,
        fence=fence,
        user_names=_names(values.get("users")),
        complete_lists=frozenset(complete),
        redacted=frozenset(problem.key for problem in secrets),
        problems=(*secrets, *(problem for problem in problems if problem.key not in {each.key for each in secrets})),
    )


def _names(raw: object) -> frozenset[str]:
    """Names in a list of mappings, readable or not."""
    items = raw if isinstance(raw, list | tuple) else []
    return frozenset(str(item.get("name")) for item in items if isinstance(item, Mapping))


def _salvaged(raw: object) -> Cluster | None:
    """The cluster that topics and mirrors are checked against when its own settings are wrong elsewhere."""
    if not isinstance(raw, Mapping):
        return None
    parts = {"name": "cluster", "namespace": "cluster", **{key: raw[key] for key in _REFERENCE_KEYS if key in raw}}
    found, _ = read(Cluster, parts, "cluster", "cluster")
    name = raw["name"] if isinstance(raw.get("name"), str) else "cluster"
    return found.model_copy(update={"name": name}) if found else None


def _subject(noun: str, raw: object) -> str:
    """What a message is about: the thing by its name if it has one."""
    name = raw.get("name") if isinstance(raw, Mapping) else None
    return f"{noun} {name}" if isinstance(name, str) and name else noun
