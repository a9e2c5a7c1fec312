"""Base of all settings models: strict, closed to unknown keys, immutable to the last leaf, camelCase in YAML.

Everything about a setting is at its field: its meaning as docstring, and in its `Annotated` what a promotion does
with it (`Promotion`) and the Kafka properties that it becomes or reserves (`Property`, `Reserved`). The reference,
the connectors' configuration, the rules of free maps, the adoption and the promotion are made from these.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Scalar = str | int | float | bool
V = TypeVar("V")


class Promotion(StrEnum):
    """What a promotion to the next stage does with a setting."""

    TRAVELS = "travels"
    """The same in every stage: the target gets the source's value, and none if the source has none."""
    PINS = "travels where it is given"
    """A version: the target gets it if the source pins one, and keeps its own otherwise."""
    WITHIN = "by its own keys"
    """A mapping, or a list of things with a name: each key of it is decided by itself."""
    STAYS = "stays"
    """Belongs to a stage and never travels."""


TRAVELS, PINS, WITHIN, STAYS = Promotion


@dataclass(frozen=True, init=False)
class Reserved:
    """Beginnings of Kafka properties that a setting decides: nobody may set them in these free maps.

    Args:
        maps: Fields of the free maps, such as `worker_config`.
        names: Beginnings of the properties.
        by: What a refusal names in place of the setting's own key.
    """

    maps: tuple[str, ...]
    names: tuple[str, ...]
    by: str | None

    def __init__(self, maps: tuple[str, ...], *names: str, by: str | None = None) -> None:
        for key, value in (("maps", maps), ("names", names), ("by", by)):
            object.__setattr__(self, key, value)


@dataclass(frozen=True, init=False)
class Property(Reserved):
    """Kafka properties that a setting becomes, and reserves, beside these free maps; none while it is None or empty.

    Args:
        maps: Fields of the free maps beside which it is written.
        names: The properties.
        by: What a refusal names in place of the setting's own key.
        omit: The value that is not written, because it is Kafka's default.
        times: Factor from the setting's unit to the property's.
        when_true: What is written for true; nothing is for false.
        kafka_default: Kafka's default, of a property that an adoption reads back into the setting.
    """

    omit: Scalar | None
    times: int
    when_true: str | None
    kafka_default: Scalar | None

    def __init__(
        self,
        maps: tuple[str, ...],
        *names: str,
        by: str | None = None,
        omit: Scalar | None = None,
        times: int = 1,
        when_true: str | None = None,
        kafka_default: Scalar | None = None,
    ) -> None:
        super().__init__(maps, *names, by=by)
        own = (("omit", omit), ("times", times), ("when_true", when_true), ("kafka_default", kafka_default))
        for key, value in own:
            object.__setattr__(self, key, value)

    def value(self, setting: Any) -> Scalar | None:
        """Return the property's value for a setting's; None if it is not written."""
        if setting is None or setting == () or (self.omit is not None and setting == self.omit):
            return None
        if self.when_true is not None:
            return self.when_true if setting else None
        if isinstance(setting, tuple):
            return ",".join(setting)
        found: Scalar = setting if self.times == 1 else setting * self.times
        return found


class Model(BaseModel):
    """A frozen settings value. Python code constructs it by field names, stack files by camelCase keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


def promotion_of(model: type[BaseModel], key: str) -> Promotion:
    """Return what a promotion does with a key of a model; raises KeyError for a key whose field has none."""
    for field in model.model_fields.values():
        for each in field.metadata:
            if field.alias == key and isinstance(each, Promotion):
                return each
    raise KeyError(key)


def properties(model: type[BaseModel], free_map: str) -> Iterator[tuple[str, str, Reserved]]:
    """Yield the fields of a model that become or reserve properties beside a free map: field name, key and property."""
    for name, field in model.model_fields.items():
        for each in field.metadata:
            if isinstance(each, Reserved) and free_map in each.maps:
                yield name, str(field.alias), each


def rendered(settings: BaseModel, free_map: str) -> dict[str, Scalar]:
    """Return the properties that settings become beside a free map."""
    return {
        name: value
        for field, _, each in properties(type(settings), free_map)
        if isinstance(each, Property) and (value := each.value(getattr(settings, field))) is not None
        for name in each.names
    }


def reserved(model: type[BaseModel], free_map: str) -> dict[str, str]:
    """Return beginnings of properties that a free map must not hold, each with the setting that decides it."""
    return {name: each.by or key for _, key, each in properties(model, free_map) for name in each.names}


def frozen(value: Mapping[str, V]) -> Mapping[str, V]:
    """Return a mapping that nobody can change."""
    return MappingProxyType(dict(value))


def empty() -> Mapping[str, Scalar]:
    """Return configuration without any key; the default of every `Config`."""
    return MappingProxyType({})


# Free Kafka configuration: dotted keys to scalars.
Config = Annotated[Mapping[str, Scalar], AfterValidator(frozen)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[int, Field(ge=1, le=86_400)]


def no_overrides() -> Mapping[str, Any]:
    """Return no overrides; the default."""
    return MappingProxyType({})


def _deeply_frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType({str(key): _deeply_frozen(each) for key, each in value.items()})
    return tuple(_deeply_frozen(each) for each in value) if isinstance(value, list | tuple) else value


def plain(value: Any) -> Any:
    """Return a value as dicts and lists, as it is rendered."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


# Fields of a resource's spec that no setting stands for; `settings/rules/common.py` checks that.
SpecOverrides = Annotated[Mapping[str, Any], AfterValidator(_deeply_frozen)]


class Resources(Model):
    """CPU and memory of a container, as Kubernetes quantities; empty means: whatever the cluster gives."""

    requests: Config = Field(default_factory=empty)
    """What is reserved, as Kubernetes quantities."""
    limits: Config = Field(default_factory=empty)
    """What is never exceeded, as Kubernetes quantities."""

    def rendered(self) -> dict[str, dict[str, Scalar]]:
        """Return the value of a Kubernetes `resources` field; empty if nothing is set."""
        parts = {"requests": dict(self.requests), "limits": dict(self.limits)}
        return {name: part for name, part in parts.items() if part}
