"""What scales something else: KEDA's ScaledObject and Kubernetes' HorizontalPodAutoscaler, read alike.

KEDA makes a HorizontalPodAutoscaler of a ScaledObject, with defaults of its own for the bounds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policies.support.policy_builder import Resource
from policies.support.resource_types import API_VERSIONS, AUTOSCALER, SCALED_OBJECT, kind_of
from policies.support.traversal import Props, each, mapping, name, namespace, whole, within

# Of Kubernetes, in autoscaling/v2.
STABILIZATION_S = 300
_GROUPS = frozenset(version.partition("/")[0] for version in API_VERSIONS)
_BEHAVIOR = ("behavior", "scaleDown")
_OF_KEDA = ("advanced", "horizontalPodAutoscalerConfig", *_BEHAVIOR)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The fewest or the most of what is scaled: its path, its value, and the text of it in messages."""

    where: str
    value: int
    text: str


def target_kind(props: Props) -> str | None:
    """Kind of what is scaled if it is one of Kafka's custom resources, else None."""
    reference = mapping(within(props, "spec", "scaleTargetRef"))
    group = str(reference.get("apiVersion") or "").partition("/")[0]
    return str(reference.get("kind")) if group in _GROUPS else None


def target_name(props: Props) -> str:
    """Name of what is scaled."""
    return str(within(props, "spec", "scaleTargetRef", "name") or "(unnamed)")


def fewest(type_: str, props: Props) -> Bound:
    """The lower bound; a ScaledObject that sets none scales to nothing."""
    return _bound(props, *(("minReplicaCount", 0) if type_ in SCALED_OBJECT else ("minReplicas", 1)))


def most(type_: str, props: Props) -> Bound:
    """The upper bound; a HorizontalPodAutoscaler must set one."""
    return _bound(props, *(("maxReplicaCount", 100) if type_ in SCALED_OBJECT else ("maxReplicas", 0)))


def stabilization(type_: str, props: Props) -> tuple[str, int] | None:
    """Place and seconds of the window in which the highest wish counts, before less is left; None if less never is."""
    path = _OF_KEDA if type_ in SCALED_OBJECT else _BEHAVIOR
    down = mapping(within(props, "spec", *path))
    if down.get("selectPolicy") == "Disabled":
        return None
    seconds = whole(down.get("stabilizationWindowSeconds"))
    where = ".".join(("spec", *path, "stabilizationWindowSeconds"))
    return where, STABILIZATION_S if seconds is None else seconds


def describe(type_: str, props: Props) -> str:
    """How messages name it."""
    return f"{kind_of(type_)} {name(props)}"


def pairs(resources: Sequence[Resource], targets: frozenset[str]) -> Iterator[tuple[Resource, Resource]]:
    """Every autoscaler of the stack with the resource of these types that it scales, if that is in the stack too."""

    def of(scaler: Resource) -> Iterator[tuple[Resource, Resource]]:
        kind, scaled = target_kind(scaler.props), target_name(scaler.props)
        for target in resources:
            beside = namespace(target.props) == namespace(scaler.props)
            if target.type_ in targets and kind_of(target.type_) == kind and beside and name(target.props) == scaled:
                yield scaler, target

    return each((resource for resource in resources if resource.type_ in AUTOSCALER), of)


def _bound(props: Props, key: str, default: int) -> Bound:
    value = whole(within(props, "spec", key))
    text = f"nothing, which means {default}" if value is None else str(value)
    return Bound(where=f"spec.{key}", value=default if value is None else value, text=text)
