"""Resources as Pulumi passes them to the pack: their types in every API version, and how values in them are read.

`kafka.strimzi.io/v1` and `v1beta2` are Strimzi's, `eventstreams.ibm.com/v1beta2` is IBM Event Streams' copy of the
latter. A Kafka cluster is a `Kafka` or an `EventStreams`, which wraps the same fields in `strimziOverrides`.

The engine passes mappings and sequences that are neither dicts nor lists, and numbers as floats. Reading a value that a
preview does not know yet raises `UnknownValueError`. Such a value is skipped in the preview and checked in the update:
read values late, inside the `check` of `each`, so that one unknown value hides no other.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pulumi_policy.proxy import UnknownValueError


@dataclass(frozen=True)
class Text:
    """One text: its path, its key, the key above that, and the text itself.

    The key of an entry of a list is that of the list. Where `name` and `value` are in one mapping, as with variables
    and system properties, the name is the key of the value.
    """

    place: str
    key: str
    above: str
    value: str


def texts(value: object, place: str, *, without: Collection[str] = ()) -> Iterator[Text]:
    """All known texts below the value, and numbers as texts; keys that are named in `without` are not followed."""
    return _texts(value, place, "", "", without)


def _texts(value: object, place: str, key: str, above: str, without: Collection[str]) -> Iterator[Text]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield Text(place, key, above, format_value(value))
        return
    for index, element in enumerate(sequence(value)):
        yield from _texts(element, f"{place}[{_named(element, index)}]", key, above, without)
    fields = dict(items(value))
    for each, field in fields.items():
        if each in without:
            continue
        named = fields.get("name") if each == "value" else None
        yield from _texts(field, _below(place, each), named if isinstance(named, str) else each, key, without)


def _below(place: str, key: str) -> str:
    """Keys with a dot or a slash of their own are written in brackets."""
    return f"{place}.{key}" if key.replace("_", "").replace("-", "").isalnum() else f"{place}[{key}]"


def _named(element: object, index: int) -> str:
    fields = dict(items(element))
    name = fields.get("name", fields.get("alias"))
    return name if isinstance(name, str) else str(index)


Item = TypeVar("Item")
Found = TypeVar("Found")
Props = Mapping[str, Any]


def each(items: Iterable[Item], check: Callable[[Item], Iterable[Found]]) -> Iterator[Found]:
    """Results of `check` for every item; an item with a value that is unknown in the preview is left to the update."""
    for item in items:
        try:
            found = [*check(item)]
        except UnknownValueError:
            continue
        yield from found


def mapping(value: object) -> Props:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def within(value: object, *path: str) -> Any:
    """Return the value at a path through nested mappings; None where a key is missing."""
    for key in path:
        value = mapping(value).get(key)
    return value


def if_known(value: Props, key: str, default: Any = None) -> Any:
    """Return the value of the key; the default if it is missing, None if it is not known yet."""
    try:
        return value.get(key, default)
    except UnknownValueError:
        return None


def sequence(value: object) -> list[Any]:
    """The known elements if it is a list, else an empty one."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [element for index in range(len(value)) for element in _known(value, index)]


def items(value: object) -> Iterator[tuple[str, Any]]:
    """Key and value of a mapping, those left out whose value is not known yet."""
    known = mapping(value)
    for key in known:
        try:
            yield key, known[key]
        except UnknownValueError:
            continue


def whole(value: object) -> int | None:
    """A whole number: the engine passes numbers as floats, and Kafka's configuration has them as text too."""
    try:
        return int(float(str(value)))
    except (ValueError, OverflowError):
        return None


def flag(value: object, default: bool) -> bool:
    """A switch as Kafka reads it: `true`, `"true"`, `"TRUE"`; the default if nothing is set."""
    return default if value is None else str(value).strip().lower() == "true"


def text(value: object) -> str | None:
    """The text without surrounding blanks; None if nothing is set."""
    return None if value is None else str(value).strip()


def format_value(value: object) -> str:
    """Return the text of a value in messages: whole numbers without a fraction, switches in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def name(props: Props) -> str:
    """The object's name, `(unnamed)` if it has none yet."""
    return str(within(props, "metadata", "name") or "(unnamed)")


def namespace(props: Props) -> str:
    """The object's namespace; `default` when it names none."""
    return str(within(props, "metadata", "namespace") or "default")


def label(props: Props, keys: Iterable[str]) -> str | None:
    """Value of the first of these labels that the object has."""
    labels = mapping(within(props, "metadata", "labels"))
    return next((str(labels[key]) for key in keys if key in labels), None)


def _known(values: Sequence[Any], index: int) -> Iterator[Any]:
    try:
        yield values[index]
    except UnknownValueError:
        return


STRIMZI_V1 = "kafka.strimzi.io/v1"
STRIMZI_V1BETA2 = "kafka.strimzi.io/v1beta2"
EVENT_STREAMS_V1BETA2 = "eventstreams.ibm.com/v1beta2"
API_VERSIONS = (STRIMZI_V1, STRIMZI_V1BETA2, EVENT_STREAMS_V1BETA2)
CLUSTER_LABELS = ("strimzi.io/cluster", "eventstreams.ibm.com/cluster")


def kafka(kind: str) -> frozenset[str]:
    """Types of a custom resource that every API version has."""
    return frozenset(f"kubernetes:{version}:{kind}" for version in API_VERSIONS)


EVENT_STREAMS = f"kubernetes:{EVENT_STREAMS_V1BETA2}:EventStreams"
CLUSTER = kafka("Kafka") | {EVENT_STREAMS}
NODE_POOL = kafka("KafkaNodePool")
TOPIC = kafka("KafkaTopic")
USER = kafka("KafkaUser")
MIRROR = kafka("KafkaMirrorMaker2")
CONNECT = kafka("KafkaConnect")
CONNECTOR = kafka("KafkaConnector")
BRIDGE = kafka("KafkaBridge")
NAMESPACE = frozenset({"kubernetes:core/v1:Namespace"})
SECRET = frozenset({"kubernetes:core/v1:Secret"})
CONFIG_MAP = frozenset({"kubernetes:core/v1:ConfigMap"})
VOLUME_CLAIM = frozenset({"kubernetes:core/v1:PersistentVolumeClaim"})
SUBSCRIPTION = frozenset({"kubernetes:operators.coreos.com/v1alpha1:Subscription"})
CATALOG_SOURCE = frozenset({"kubernetes:operators.coreos.com/v1alpha1:CatalogSource"})
SCALED_OBJECT = frozenset({"kubernetes:keda.sh/v1alpha1:ScaledObject"})
AUTOSCALER = SCALED_OBJECT | {
    f"kubernetes:autoscaling/{version}:HorizontalPodAutoscaler" for version in ("v1", "v2", "v2beta1", "v2beta2")
}
_SPARK_OPERATOR = "sparkoperator.k8s.io/v1beta2"
# Everything that runs containers beside the operators' own resources.
WORKLOADS = frozenset(
    {
        "kubernetes:apps/v1:Deployment",
        "kubernetes:apps/v1:ReplicaSet",
        "kubernetes:apps/v1:StatefulSet",
        "kubernetes:apps/v1:DaemonSet",
        "kubernetes:batch/v1:Job",
        "kubernetes:batch/v1:CronJob",
        "kubernetes:core/v1:Pod",
        f"kubernetes:{_SPARK_OPERATOR}:SparkApplication",
        f"kubernetes:{_SPARK_OPERATOR}:ScheduledSparkApplication",
    }
)
ANY_KAFKA = CLUSTER | NODE_POOL | TOPIC | USER | MIRROR | CONNECT | CONNECTOR | BRIDGE


def is_v1(type_: str) -> bool:
    """Whether the type is of Strimzi's v1, whose shape differs from that of both v1beta2."""
    return type_.startswith(f"kubernetes:{STRIMZI_V1}:")


def kind_of(type_: str) -> str:
    """Last part of a type: `KafkaTopic`."""
    return type_.rpartition(":")[2]


# Everything that some rule reads as it is declared.
JUDGED = (
    ANY_KAFKA | NAMESPACE | SECRET | CONFIG_MAP | VOLUME_CLAIM | SUBSCRIPTION | CATALOG_SOURCE | WORKLOADS | AUTOSCALER
)
PATCH = "Patch"
_OTHER_VERSIONS = {
    f"{version.partition('/')[0]}/v{number}{stability}"
    for version in API_VERSIONS
    for number in (1, 2)
    for stability in ("", "alpha1", "alpha2", "beta1", "beta2", "beta3")
}.difference(API_VERSIONS)
_OTHERS = {f"kubernetes:{version}:{kind_of(type_)}" for version in _OTHER_VERSIONS for type_ in ANY_KAFKA}
# What changes the same objects by a type that no rule reads: another API version, or Pulumi's patch of an object.
UNJUDGED = frozenset(_OTHERS | {f"{type_}{PATCH}" for type_ in JUDGED | _OTHERS})
# Everything that some rule finds, and that can therefore carry an exception.
EVERY = JUDGED | UNJUDGED
