"""ScaledObject, HorizontalPodAutoscaler: how far and how fast one may change the number of a mirror's workers."""

from collections.abc import Callable, Iterator

from pulumi_policy import Severity

from policies.support.clusters import describe_autoscaler, lower_bound, scaled_kind, stabilization_window, upper_bound
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import AUTOSCALER, MIRROR, SCALED_OBJECT, Props, each, format_value, kind_of, within

_FEWEST, _MOST, _WINDOW = "minimumWorkers", "maximumWorkers", "minimumStabilizationSeconds"
_MIRRORS = frozenset(map(kind_of, MIRROR))
_CHANGES = "Each change of their number makes Connect hand out all tasks anew."


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each bound that is missing or wrong, and for a pace that is too fast."""
    checks = (_at_least, _idle, _at_most, _pace)

    def check(one: Callable[[str, Props, Config], Iterator[str]]) -> Iterator[str]:
        if scaled_kind(props) in _MIRRORS:
            yield from (f"{describe_autoscaler(type_, props)}: {message}" for message in one(type_, props, config))

    return each(checks, check)


def _at_least(type_: str, props: Props, config: Config) -> Iterator[str]:
    bound, minimum = lower_bound(type_, props), count(config, _FEWEST)
    if bound.value < minimum:
        yield f"{bound.where} must be >= {minimum} (got {bound.text}). A mirror without a worker copies nothing."


def _idle(type_: str, props: Props, _config: Config) -> Iterator[str]:
    idle = within(props, "spec", "idleReplicaCount") if type_ in SCALED_OBJECT else None
    if idle is not None:
        yield (
            f"spec.idleReplicaCount must not be set (got {format_value(idle)}). Below the lower bound a mirror that "
            "seems to have caught up copies nothing."
        )


def _at_most(type_: str, props: Props, config: Config) -> Iterator[str]:
    bound, maximum, low = upper_bound(type_, props), count(config, _MOST), lower_bound(type_, props)
    if bound.value > maximum or bound.value == 0:
        yield (f"{bound.where} must be set and <= {maximum} (got {bound.text}). Raise {_MOST} if that many are wanted.")
    elif bound.value < low.value:
        yield f"{bound.where} must be >= {low.where} (got {bound.text}, {low.where} {low.value}). Exchange them."


def _pace(type_: str, props: Props, config: Config) -> Iterator[str]:
    found, minimum = stabilization_window(type_, props), count(config, _WINDOW)
    if found is not None and found[1] < minimum:
        yield f"{found[0]} must be >= {minimum} (got {found[1]}). {_CHANGES}"


POLICY = resource_policy(
    name="autoscaler-bounds",
    description="What scales a mirror's workers keeps `minimumWorkers` to `maximumWorkers` of them, and takes none "
    "away before fewer were enough for `minimumStabilizationSeconds`.",
    types=AUTOSCALER,
    violations=violations,
    options={
        _FEWEST: count_option(1, "fewest workers to which a mirror may be scaled; 2 survive the loss of a node"),
        _MOST: count_option(10, "most workers to which a mirror may be scaled"),
        _WINDOW: count_option(60, "shortest time for which fewer workers must be enough"),
    },
    severity=Severity.MEDIUM,
    remediation_steps="Set both bounds and `behavior.scaleDown.stabilizationWindowSeconds`, or the option that the "
    "message names.",
)
