"""KafkaMirrorMaker2: the intervals of polling, writing and committing must be neither too short nor too long.

Only what is set is judged: Kafka's own values lie within. What is switched off has no interval.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pulumi_policy import Severity

from policies.support.mirror_makers import CHECKPOINT, HEARTBEAT, SOURCE, ReplicationFlow, replication_flows, workers
from policies.support.policy_builder import Config, count, count_option, resource_policy
from policies.support.resources import MIRROR, Props, each, flag, format_value, name, whole


@dataclass(frozen=True)
class _Interval:
    """A setting, the switch of what it times, and whether that is on unless set."""

    key: str
    switch: str | None = None
    on: bool = True
    per_second: int = 1


_OF_CONNECTORS = {
    SOURCE: (
        _Interval("refresh.topics.interval.seconds", "refresh.topics.enabled"),
        _Interval("sync.topic.configs.interval.seconds", "sync.topic.configs.enabled"),
        _Interval("sync.topic.acls.interval.seconds", "sync.topic.acls.enabled"),
    ),
    CHECKPOINT: (
        _Interval("refresh.groups.interval.seconds", "refresh.groups.enabled"),
        _Interval("emit.checkpoints.interval.seconds", "emit.checkpoints.enabled"),
        _Interval("sync.group.offsets.interval.seconds", "sync.group.offsets.enabled", on=False),
    ),
    HEARTBEAT: (_Interval("emit.heartbeats.interval.seconds", "emit.heartbeats.enabled"),),
}
# How far the workers fall back in the source after a crash, and so how much they copy twice.
_OF_WORKERS = _Interval("offset.flush.interval.ms", per_second=1000)


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each interval that is set outside the bounds."""
    minimum, maximum = count(config, "minimumSeconds"), count(config, "maximumSeconds")

    def check(placed: tuple[str, Props, _Interval]) -> Iterator[str]:
        where, settings, interval = placed
        if interval.key not in settings:
            return
        if interval.switch is not None and not flag(settings.get(interval.switch), interval.on):
            return
        value = settings[interval.key]
        number, low, high = whole(value), minimum * interval.per_second, maximum * interval.per_second
        if number is None or not low <= number <= high:
            yield (
                f"mirror {name(props)}: {where} {interval.key} must be between {low} and {high} "
                f"(got {format_value(value)}). "
                "Too short burdens both clusters, too long leaves the target behind."
            )

    def check_connector(placed: tuple[ReplicationFlow, str]) -> Iterator[str]:
        flow, connector = placed
        where, settings = f"{flow.where}.{connector}", flow.config(connector)
        return each(((where, settings, interval) for interval in _OF_CONNECTORS[connector]), check)

    def check_workers(of: tuple[str, Props]) -> Iterator[str]:
        return each([(*workers(*of), _OF_WORKERS)], check)

    yield from each([(type_, props)], check_workers)
    yield from each(
        ((flow, connector) for flow in replication_flows(type_, props) for connector in flow.connectors),
        check_connector,
    )


POLICY = resource_policy(
    name="mirror-intervals",
    description="Intervals that a mirror sets lie between `minimumSeconds` and `maximumSeconds`.",
    types=MIRROR,
    violations=violations,
    options={
        "minimumSeconds": {"type": "integer", "minimum": 0, "default": 1, "description": "shortest interval"},
        "maximumSeconds": count_option(600, "longest interval"),
    },
    severity=Severity.MEDIUM,
    remediation_steps="Set the named interval within the bounds, or remove it to have Kafka's default.",
)
