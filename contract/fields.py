"""Types of the request's fields, and the errors that end a verification.

An error's text completes a sentence about the key: `must be true or false`. A client's configuration is read with an
environment, which resolves its secrets.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from contract.java_patterns import list_problems

OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1
REPLICAS_MAX = 2**15 - 1
SECONDS_MAX = 366 * 86_400
MUST, PROBLEM = "must", "problem"  # types of errors: the rule alone, and a sentence that shows the value itself


class Document(BaseModel):
    """A frozen part of a JSON document that refuses unknown keys and converts no value to another type."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)


@dataclass(frozen=True)
class Must:
    """The rule of a field: every error inside the field becomes this one, `must {rule}`."""

    rule: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.custom_error_schema(
            handler(source), MUST, custom_error_message="must {rule}", custom_error_context={"rule": self.rule}
        )


def format_value(value: object, *, quoted: bool = True) -> str:
    """Return a value as a message shows it: on one line, in visible characters, and short."""
    text = ascii(value) if quoted and not isinstance(value, str) else repr(value)
    text = text if quoted else text[1:-1]
    return text if len(text) <= 200 else f"{text[:200]}... of {len(text)} characters"


def refuse(problems: Iterable[tuple[tuple[str | int, ...], str]]) -> None:
    """Raise one error with all problems if there are any.

    Args:
        problems: the path below the validated value and the end of a sentence about it, of each problem.
    """
    details: list[InitErrorDetails] = [
        {"type": PydanticCustomError(PROBLEM, "{sentence}", {"sentence": sentence}), "loc": path, "input": None}
        for path, sentence in problems
    ]
    if details:
        raise ValidationError.from_exception_data("request", details)


def refuse_value(sentence: str) -> NoReturn:
    """Raise the problem of the validated value itself: the end of a sentence about it."""
    raise PydanticCustomError(PROBLEM, "{sentence}", {"sentence": sentence})


def _whole(value: object) -> object:
    """A whole number, which JSON may write as 3.0."""
    return int(value) if isinstance(value, float) and math.isfinite(value) and value.is_integer() else value


def _items(value: object) -> object:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        refuse_value(f"must be a list (got {kind_of(value)})")
    return value


def _verifiable(patterns: tuple[str, ...]) -> tuple[str, ...]:
    rule = "must hold regular expressions of Java that can be verified"
    refuse(((), f"{rule} (got {format_value(patterns[at])}: {reason})") for at, reason in list_problems(patterns))
    return patterns


def _some(value: object) -> object:
    if value is None or value == []:
        refuse_value("must name at least one topic or regular expression (got none)")
    return value


def default_patterns(*default: str) -> BeforeValidator:
    """Put MirrorMaker's own patterns where a document has null or an empty list."""
    return BeforeValidator(lambda value: default if value is None or value == [] else value)


def _names(value: object) -> object:
    if not value:
        return ()
    names = tuple(value.values()) if isinstance(value, Mapping) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        refuse_value(f"must be a list or an object of names (got {kind_of(value)})")
    return value if isinstance(value, Mapping) else tuple(names)


def _url(value: str | None) -> str | None:
    if value and (problem := url_problem(value)):
        refuse_value(problem)
    return value or None


def client_config(value: Any, info: ValidationInfo) -> Any:
    """Return the configuration of a client; a document is read with an environment, which resolves its secrets."""
    if info.context is None:
        return value
    if not isinstance(value, dict) or not value.get("bootstrap.servers"):
        refuse_value("must hold bootstrap.servers")
    config, problems = resolved(value, info.context["environment"])
    refuse((("",), problem) for problem in problems)
    return config


def counts_from(value: Any, info: ValidationInfo) -> Any:
    """Return where a mirror counts from, by topic of the source; in a document each is checked and decoded."""
    if info.context is None:
        return value
    if value is None:
        return {}
    if not isinstance(value, dict):
        refuse_value(f"must be an object by topic (got {format_value(value)})")
    found = {topic: _time(where) or _offsets(where) for topic, where in value.items()}
    rule = "must be a time with its zone, as 2026-01-31T12:00:00Z, or an object of offsets by partition"
    refuse(((topic,), f"{rule} (got {format_value(value[topic])})") for topic, where in found.items() if where is None)
    return found


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _offsets(value: object) -> dict[int, int] | None:
    if not isinstance(value, dict) or not value:
        return None
    found = {}
    for partition, offset in value.items():
        whole = _whole(offset)
        is_offset = isinstance(whole, int) and not isinstance(whole, bool) and 0 <= whole <= OFFSET_MAX
        is_partition = re.fullmatch(r"\d{1,10}", partition) is not None and int(partition) <= PARTITION_MAX
        if not is_partition or not is_offset:
            return None
        found[int(partition)] = int(offset)
    return found


Whole = Annotated[int, BeforeValidator(_whole)]
Offset = Annotated[Whole, Field(ge=0, le=OFFSET_MAX)]
Partition = Annotated[Whole, Field(ge=0, le=PARTITION_MAX)]
Count = Annotated[Offset, Must(f"be a number from 0 to {OFFSET_MAX}")]
Bound = Annotated[Offset | None, Must(f"be a number from 0 to {OFFSET_MAX} or null")]
Seconds = Annotated[Whole, Field(ge=0, le=SECONDS_MAX), Must(f"be a number from 0 to {SECONDS_MAX}")]
SomeSeconds = Annotated[Whole, Field(ge=1, le=SECONDS_MAX), Must(f"be a number from 1 to {SECONDS_MAX}")]
Replicas = Annotated[Whole, Field(ge=1, le=REPLICAS_MAX)]
Flag = Annotated[bool, Must("be true or false")]
Text = Annotated[str, Must("be text")]
OptionalText = Annotated[str | None, AfterValidator(lambda text: text or None), Must("be text or null")]
OptionalURL = Annotated[str | None, Must("be text or null"), AfterValidator(_url)]
Name = Annotated[str, Field(min_length=1), Must("be a name")]
OptionalName = Annotated[str | None, Field(min_length=1), Must("be a name or null")]
Patterns = Annotated[
    tuple[str, ...], Field(strict=False), Must("be a list of regular expressions"), AfterValidator(_verifiable)
]
SomePatterns = Annotated[Patterns, BeforeValidator(_some)]
Names = Annotated[tuple[str, ...] | Mapping[str, str], BeforeValidator(_names)]
Items = BeforeValidator(_items)
NULL_IS_EMPTY = BeforeValidator(lambda value: {} if value is None else value)


class VerificationError(Exception):
    """Base of all errors that end a verification with exit code 2."""


class RequestError(VerificationError):
    """The request is wrong; carries every problem found, not only the first."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


PORT_MAX = 65_535
SECRET_KEYS = ("sasl.password", "ssl.key.pem", "ssl.key.password", "ssl.keystore.password")
REDACTED = "***"


def has_port(address: str) -> bool:
    """Whether the port of HOST:PORT is one, or is not given: the client then takes its own."""
    port = re.fullmatch(r"(?:[^:\[\]]*|.*\]|[A-Za-z_]+://.*):(-?\d+)", address.strip())
    return port is None or (len(port[1]) <= len(str(PORT_MAX)) and 1 <= int(port[1]) <= PORT_MAX)


def url_problem(text: str) -> str | None:
    """Return what is wrong with a URL, as the end of a sentence that begins with its name; None if nothing is.

    Credentials are refused, not hidden: reports and standard error show the URL.
    """
    rule = "must be a URL http://HOST:PORT or https://HOST:PORT"
    if "@" in text:
        return f"{rule} without user and password (got one with credentials, not shown). Take them out of the URL."
    import httpx  # loads slowly: processes that only read have no address to judge

    try:
        found = httpx.URL(text)
    except httpx.InvalidURL as error:
        return f"{rule} (got {text!r}: {error}). Correct the URL."
    if found.scheme not in ("http", "https") or not found.host:
        return f"{rule} (got {text!r}). Correct the URL."
    if found.port is not None and not 1 <= found.port <= PORT_MAX:
        return f"{rule} with a port of 1 to {PORT_MAX} (got {text!r}). Correct the URL."
    return None


def text_fault(value: str) -> str | None:
    """Return which character of a text neither Kafka nor the name of a file can carry, None if all are sound."""
    if "\0" in value:
        return "a NUL character"
    if any("\ud800" <= each <= "\udfff" for each in value):
        return "half of a character (a lone surrogate)"
    return None


def kind_of(value: object) -> str:
    """Return the type of a value that must not be shown, because it may be a secret."""
    return "nothing" if value is None else type(value).__name__


def resolved(document: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return a client configuration with its secrets, and its problems, each the end of a sentence about it.

    Args:
        document: values by librdkafka key; a secret is `{"env": NAME}` or `{"file": PATH}`, never plain text.
        environment: the variables that secrets are taken from.
    """
    problems = [
        f"bootstrap.servers must have ports of 1 to {PORT_MAX} (got {address})"
        for address in str(document["bootstrap.servers"]).split(",")
        if not has_port(address)
    ]
    config: dict[str, str] = {}
    for key, value in document.items():
        config[key], problem = _value(key, value, environment)
        problems += [] if problem is None else [f"{key} {problem}"]
    protocol = config.get("security.protocol", "")
    if protocol.upper().startswith("SASL"):
        login = ("sasl.username", "sasl.password")
        problems += [f"{key} must be set for {protocol}" for key in login if key not in config]
    return config, problems


def _value(key: str, value: object, environment: Mapping[str, str]) -> tuple[str, str | None]:
    if isinstance(value, bool):
        return str(value).lower(), None
    if isinstance(value, str | int | float):
        plain = 'must be {"env": NAME} or {"file": PATH} (got plain text)'
        return ("", plain) if key in SECRET_KEYS else (str(value), None)
    match value if isinstance(value, dict) and len(value) == 1 else None:
        case {"env": str(name)}:
            return _variable(name, environment)
        case {"file": str(name)}:
            return _file(name)
    return "", f'must be text, {{"env": NAME}} or {{"file": PATH}} (got {kind_of(value)})'


def _variable(name: str, environment: Mapping[str, str]) -> tuple[str, str | None]:
    needs = f"needs the environment variable {name}"
    value = environment.get(name)
    return _sound(value, needs) if value else ("", f"{needs} (got none)")


def _file(name: str) -> tuple[str, str | None]:
    needs = f"needs the file {name}"
    try:
        return _sound(Path(name).read_text(encoding="utf-8").rstrip("\n"), needs)
    except OSError as error:
        return "", f"{needs} ({error.strerror})"
    except UnicodeDecodeError as error:
        return "", f"{needs} as text (byte {error.start} of it is not UTF-8)"


def _sound(value: str, needs: str) -> tuple[str, str | None]:
    fault = text_fault(value)
    return (value, None) if fault is None else ("", f"{needs} as text without {fault}")
