"""ScaledObject, HorizontalPodAutoscaler: a mirror has work for as many workers as it has tasks, and for no more."""

from collections.abc import Iterator, Sequence

from pulumi_policy import Severity

from policies.support.clusters import describe_autoscaler, scaled_pairs, upper_bound
from policies.support.mirror_makers import replication_flows
from policies.support.policy_builder import Config, Finding, Resource, stack_policy
from policies.support.resources import AUTOSCALER, MIRROR, each, mapping, name, whole

_DEFAULT = 1  # of Connect: `tasks.max`


def violations(resources: Sequence[Resource], _config: Config) -> Iterator[Finding]:
    """A finding for each autoscaler whose upper bound is above the number of its mirror's tasks."""

    def check(pair: tuple[Resource, Resource]) -> Iterator[Finding]:
        scaler, mirror = pair
        bound, tasks = upper_bound(scaler.type_, scaler.props), _tasks(mirror)
        if bound.value > tasks:
            yield Finding(
                f"{describe_autoscaler(scaler.type_, scaler.props)}: {bound.where} must be <= {tasks}, the tasks of "
                f"mirror {name(mirror.props)} (got {bound.text}). More workers are idle: lower it, or raise "
                "tasksMax.",
                scaler,
            )

    return each(scaled_pairs(resources, MIRROR), check)


def _tasks(mirror: Resource) -> int:
    """Tasks that all connectors of the mirror may have together."""
    return sum(
        whole(mapping(flow.mirror[connector]).get("tasksMax")) or _DEFAULT
        for flow in replication_flows(mirror.type_, mirror.props)
        for connector in flow.connectors
    )


POLICY = stack_policy(
    name="autoscaler-tasks",
    description="No mirror is scaled to more workers than its connectors have tasks.",
    types=AUTOSCALER | MIRROR,
    violations=violations,
    severity=Severity.LOW,
    remediation_steps="Lower the upper bound, or raise `tasksMax` of the mirror's source connector.",
)
