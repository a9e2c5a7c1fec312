"""Names, patterns and annotations: what Kubernetes and Kafka accept, and regular expressions as MirrorMaker reads them.

MirrorMaker splits its lists at commas and matches every expression against a whole name (Java's `matches`). An
expression that cannot be read is refused with the setting that has it; until then it matches everything and excludes
nothing, so that no other message comes of it. Annotations are texts that this project writes and does not read;
exceptions of the policy pack are the usual ones: `exception.rt-inventory/<rule>: "until <day>: <reason>"`.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from contract.java_character_class import PatternError, UntranslatableError
from contract.java_patterns import compiled, entry_problem, list_problems, problem
from settings.model import frozen

SEPARATOR = "."  # of MirrorMaker, if none is set
LABEL_LENGTH_MAX, SUBDOMAIN_LENGTH_MAX, TOPIC_LENGTH_MAX = 63, 253, 249
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_KAFKA = re.compile(r"[A-Za-z0-9._-]+")
_PLAIN = re.compile(r"(?:[A-Za-z0-9_-]|\\?\.(?![*+?{]))+")
_HOST_PORT = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?):(?P<port>\d{1,5})")
_HOST = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_PORT_MAX = 65_535


def _label(value: str) -> str:
    if len(value) > LABEL_LENGTH_MAX or not _LABEL.fullmatch(value):
        raise ValueError(
            f"must be a name for Kubernetes: lower-case letters, digits and '-', at most {LABEL_LENGTH_MAX} "
            f"characters, a letter or digit at both ends (got {value!r}). Rename it."
        )
    return value


def _topic(value: str) -> str:
    if len(value) > TOPIC_LENGTH_MAX or not _KAFKA.fullmatch(value) or value in (".", ".."):
        raise ValueError(
            f"must be a name for Kafka: letters, digits, '.', '_' and '-', at most {TOPIC_LENGTH_MAX} characters "
            f"(got {value!r}). Rename it."
        )
    return value


def _pattern(value: str) -> str:
    if not value:
        raise ValueError("must be a regular expression (got nothing). Remove the entry.")
    if "," in value:
        raise ValueError(
            f"must hold no comma (got '{value}'). MirrorMaker splits lists at commas: write two entries instead."
        )
    found = entry_problem(value)
    if isinstance(found, UntranslatableError):
        raise ValueError(
            f"must be a regular expression that can be verified (got '{value}': {found}). Write it another way."
        )
    if found is not None:
        raise ValueError(f"must be a regular expression of Java (got '{value}': {found}). Correct it.")
    return value


def _patterns(values: tuple[str, ...]) -> tuple[str, ...]:
    """MirrorMaker joins the entries to one expression: none may change what the others match."""
    for position, reason in list_problems(values):
        raise ValueError(f"must be expressions of which each stands alone (got '{values[position]}': {reason}).")
    return values


def resource_name(topic: str) -> str:
    """Return the Kubernetes name of a topic's resource: lower case, '_' becomes '-'."""
    return topic.lower().replace("_", "-")


def is_resource_name(value: str) -> bool:
    """Whether Kubernetes accepts the name for a custom resource."""
    return len(value) <= SUBDOMAIN_LENGTH_MAX and _SUBDOMAIN.fullmatch(value) is not None


def _secret(value: str) -> str:
    if not is_resource_name(value):
        raise ValueError(
            f"must be a name for Kubernetes: lower-case letters, digits, '-' and '.', at most {SUBDOMAIN_LENGTH_MAX} "
            f"characters (got {value!r}). Correct it."
        )
    return value


def _host(value: str) -> str:
    if len(value) > SUBDOMAIN_LENGTH_MAX or not _HOST.fullmatch(value):
        raise ValueError(f"must be a host name: lower-case labels joined by '.' (got {value!r}). Correct it.")
    return value


def _host_port(value: str) -> str:
    found = _HOST_PORT.fullmatch(value)
    if found is None or not 1 <= int(found["port"]) <= _PORT_MAX:
        raise ValueError(f"must be host:port with a port of 1..{_PORT_MAX} (got {value!r}). Correct it.")
    return value


def invalid(value: str, kind: Any) -> list[str]:
    """Return why a value is none of a kind, such as `Label` or `Pattern`; nothing if it is one."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        return [str(each["msg"]).removeprefix("Value error, ") for each in error.errors()]
    return []


Separator = Annotated[str, Field(pattern=r"^[._-]?$")]
Label = Annotated[str, AfterValidator(_label)]
KafkaName = Annotated[str, AfterValidator(_topic)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Patterns = Annotated[tuple[Pattern, ...], AfterValidator(_patterns)]
SecretName = Annotated[str, AfterValidator(_secret)]
HostName = Annotated[str, AfterValidator(_host)]
HostPort = Annotated[str, AfterValidator(_host_port)]


EXCEPTION = "exception.rt-inventory/"


def none() -> Mapping[str, str]:
    """Return no annotations; the default."""
    return MappingProxyType({})


Annotations = Annotated[Mapping[str, str], AfterValidator(frozen)]


def matches(pattern: str, name: str) -> bool:
    """Whether the expression matches the whole name; True where it cannot be read."""
    try:
        return compiled(pattern).fullmatch(name) is not None
    except PatternError:
        return True


def copied(name: str, patterns: Iterable[str], exclude: Iterable[str] = ()) -> bool:
    """Whether a mirror with these lists copies the name."""
    return any(matches(each, name) for each in patterns) and not any(
        problem(each) is None and matches(each, name) for each in exclude
    )


def literal(pattern: str) -> str | None:
    r"""Return the name that a plain expression matches (`items\.eu` and `items.eu` for items.eu), or None."""
    return pattern.replace("\\", "") if _PLAIN.fullmatch(pattern) else None


def has_bare_dot(pattern: str) -> bool:
    """Whether a plain expression has a dot that is not escaped and so matches any character."""
    return literal(pattern) is not None and re.search(r"(?<!\\)\.", pattern) is not None


def may_overlap(ours: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """Return names and expressions that both lists may match: plain ones by name, two others if they may overlap."""
    first, second = list(ours), list(theirs)
    found = []
    for one in first:
        for other in second:
            name, by = (literal(one), other) if literal(one) is not None else (literal(other), one)
            if name is not None:
                found += [name] if matches(by, name) else []
            elif one == other or ".*" in (one, other):
                found.append(one)
    return list(dict.fromkeys(found))
