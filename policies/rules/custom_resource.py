"""Reading custom resources whose shape differs between API versions."""

from collections.abc import Mapping, Sequence
from typing import Any

STRIMZI_V1 = "kafka.strimzi.io/v1"
STRIMZI_V1BETA2 = "kafka.strimzi.io/v1beta2"
EVENT_STREAMS_V1BETA2 = "eventstreams.ibm.com/v1beta2"
API_VERSIONS = (STRIMZI_V1, STRIMZI_V1BETA2, EVENT_STREAMS_V1BETA2)


def is_kind(type_: str, kind: str) -> bool:
    """Whether a Pulumi type is that custom resource, in any of the API versions."""
    return type_ in {f"kubernetes:{version}:{kind}" for version in API_VERSIONS}


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one; policy inputs are mappings, but not dicts."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> Sequence[Any]:
    """The value if it is a list, else an empty one; policy inputs are sequences, but not lists."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def name(props: Mapping[str, Any]) -> str:
    """The object's name, or where it comes from when it has none yet."""
    return str(mapping(props.get("metadata")).get("name") or "(unnamed)")


def whole(value: object) -> int | None:
    """A whole number: policy inputs carry numbers as floats, Kafka's configuration carries them as text too."""
    try:
        return int(float(str(value)))
    except ValueError:
        return None
