"""A mirror and its target must take the largest record that the source takes.

A record that is larger than `max.request.size` of the mirror's producer, or than `max.message.bytes` of the remote
topic, fails its task: nothing behind it is copied until somebody has raised the limit. How large records may be is what
the stack's own topics declare (`max.message.bytes`), and the option `sourceMaxMessageBytes` for those of a source that
another stack declares. A remote topic takes the value that the source's topic sets, unless the mirror does not copy
configuration; where the source's brokers set it for all topics, the target's must too.
"""

from collections.abc import Iterator, Sequence

from pulumi_policy import Severity

from policies.support.clusters import config_of, setting, topic_name
from policies.support.mirror_makers import SOURCE, ReplicationFlow, is_running, topic_flows, workers
from policies.support.policy_builder import Config, Finding, Resource, count, count_option, stack_policy
from policies.support.resources import CLUSTER, MIRROR, TOPIC, each, name, whole, within

# Kafka's defaults: of a producer, and of brokers, whose limit counts what a batch has besides its records.
REQUEST_SIZE, MESSAGE_BYTES = 1_048_576, 1_048_588
_OF_CONNECTOR, _OF_WORKERS = "producer.override.max.request.size", "producer.max.request.size"
_SIZED = "the largest record of the source"


def violations(resources: Sequence[Resource], config: Config) -> Iterator[Finding]:
    """A finding for each running mirror whose producer takes too little, and for each cluster of such a stack."""
    elsewhere = count(config, "sourceMaxMessageBytes")
    topics = [*each((one for one in resources if one.type_ in TOPIC), _declared)]

    def of_flow(found: tuple[Resource, ReplicationFlow]) -> Iterator[Finding]:
        resource, flow = found
        if not is_running(resource.props, flow):
            return
        carried = [(size, f"topic {topic}") for topic, size in topics if flow.topics.selects(topic) is not False]
        needed, whose = max([*carried, (elsewhere, _SIZED)])
        default = whole(workers(resource.type_, resource.props)[1].get(_OF_WORKERS)) or REQUEST_SIZE
        value, got = setting(flow.config(SOURCE), _OF_CONNECTOR, default)
        number = whole(value)
        # A broker counts 12 bytes that a producer does not: both of Kafka's defaults go together.
        if number is None or (number < needed and needed > MESSAGE_BYTES):
            yield Finding(
                f"mirror {name(resource.props)}: {flow.where}.{SOURCE} {_OF_CONNECTOR} must be >= {needed} (got {got}; "
                f"{whose} may be so large). Its task would fail at such a record and copy nothing behind it.",
                resource,
            )

    def of_cluster(resource: Resource) -> Iterator[Finding]:
        value, got = setting(config_of(resource.type_, resource.props), "message.max.bytes", MESSAGE_BYTES)
        number = whole(value)
        if number is None or number < elsewhere:
            yield Finding(
                f"cluster {name(resource.props)}: message.max.bytes must be >= {elsewhere} (got {got}; {_SIZED} may be "
                "so large). A remote topic that sets no max.message.bytes would refuse it.",
                resource,
            )

    yield from each(topic_flows(resources), of_flow)
    if any(resource.type_ in MIRROR for resource in resources):
        yield from each((one for one in resources if one.type_ in CLUSTER), of_cluster)


def _declared(resource: Resource) -> Iterator[tuple[str, int]]:
    size = whole(within(resource.props, "spec", "config", "max.message.bytes"))
    if size is not None:
        yield topic_name(resource.props), size


POLICY = stack_policy(
    name="record-size",
    description="A mirror's producer, and the brokers of its stack, take the largest record that the source takes.",
    types=MIRROR | TOPIC | CLUSTER,
    violations=violations,
    options={
        "sourceMaxMessageBytes": count_option(
            MESSAGE_BYTES, "largest record that topics of a source in another stack take, in bytes"
        )
    },
    severity=Severity.HIGH,
    remediation_steps="Set `producer.override.max.request.size` in the mirror's `sourceConnectorConfig`, and "
    "`message.max.bytes` of the target's brokers.",
)
