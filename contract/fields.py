"""Types of the request's fields. Each refuses a value in words that complete a sentence about its key."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
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

from contract.client_config import kind_of, resolved, url_problem
from contract.java_patterns.patterns import list_problems

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


def shown(value: object, *, quoted: bool = True) -> str:
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
    refuse(((), f"{rule} (got {shown(patterns[at])}: {reason})") for at, reason in list_problems(patterns))
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
        refuse_value(f"must be an object by topic (got {shown(value)})")
    found = {topic: _time(where) or _offsets(where) for topic, where in value.items()}
    rule = "must be a time with its zone, as 2026-01-31T12:00:00Z, or an object of offsets by partition"
    refuse(((topic,), f"{rule} (got {shown(value[topic])})") for topic, where in found.items() if where is None)
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
