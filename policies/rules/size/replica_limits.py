"""How many brokers, workers and tasks there may be: a digit too many makes machines and disks that nobody wanted."""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import WITH_NODES, node_sets
from policies.support.connections import describe
from policies.support.mirror_makers import replication_flows
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import CONNECT, CONNECTOR, MIRROR, Props, each, mapping, whole

_BROKERS, _WORKERS, _TASKS = "maximumBrokers", "maximumWorkers", "maximumTasks"


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each number that is too high."""

    def check(number: tuple[str, Props, str, str]) -> Iterator[str]:
        where, holder, key, option = number
        value, maximum = whole(holder.get(key)), count(config, option)
        if value is not None and value > maximum:
            yield (
                f"{describe(type_, props)}: {where}.{key} must be <= {maximum} (got {value}). "
                f"Raise {option} if that many are wanted."
            )

    return each(_numbers(type_, props), check)


def _numbers(type_: str, props: Props) -> Iterator[tuple[str, Props, str, str]]:
    """Place, holder, key and option of every number that is limited."""
    spec = mapping(props.get("spec"))
    if type_ in WITH_NODES:
        yield from ((where, nodes, "replicas", _BROKERS) for where, nodes in node_sets(type_, props))
    if type_ in MIRROR | CONNECT:
        yield "spec", spec, "replicas", _WORKERS
    if type_ in CONNECTOR:
        yield "spec", spec, "tasksMax", _TASKS
    if type_ in MIRROR:
        for flow in replication_flows(type_, props):
            for connector in flow.connectors:
                yield f"{flow.where}.{connector}", mapping(flow.mirror[connector]), "tasksMax", _TASKS


POLICY = resource_policy(
    name="replica-limits",
    description="No node set has more than `maximumBrokers` nodes, no mirror or Connect cluster more than "
    "`maximumWorkers` workers, and no connector more than `maximumTasks` tasks.",
    types=WITH_NODES | MIRROR | CONNECT | CONNECTOR,
    violations=violations,
    options={
        _BROKERS: count_option(9, "most nodes of a node set: brokers, controllers or ZooKeeper"),
        _WORKERS: count_option(10, "most workers of a mirror or a Connect cluster"),
        _TASKS: count_option(32, "most tasks of a connector"),
    },
    severity=Severity.MEDIUM,
    remediation_steps="Lower the number, or raise the option that the message names for a stack that is meant so big.",
)
