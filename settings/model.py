"""Base of all settings models: strict, closed to unknown keys, immutable to the last leaf, camelCase in YAML."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Scalar = str | int | float | bool
V = TypeVar("V")


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


class Resources(Model):
    """CPU and memory of a container, as Kubernetes quantities; empty means: whatever the cluster gives."""

    requests: Config = Field(default_factory=empty)
    limits: Config = Field(default_factory=empty)

    def rendered(self) -> dict[str, dict[str, Scalar]]:
        """Return the value of a Kubernetes `resources` field; empty if nothing is set."""
        parts = {"requests": dict(self.requests), "limits": dict(self.limits)}
        return {name: part for name, part in parts.items() if part}
