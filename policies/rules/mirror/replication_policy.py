"""KafkaMirrorMaker2: the connectors of a mirror must agree on how topics are named on the target.

The source connector names remote topics and offset syncs by its replication policy; the checkpoint connector finds both
by its own. If they differ, no offset is translated, and no error is logged. The separator is part of the names of
internal topics too, so that it counts with identity naming as well, except before Kafka 3.1. The heartbeats' topic is
called the same under every policy: its connector is judged only on what it sets itself.

Strimzi's identity class and Kafka's give every topic the same name (the former became an empty subclass of the latter),
so that one beside the other is no violation.
"""

import re
from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import setting
from policies.support.mirror_makers import DEFAULT_POLICY, HEARTBEAT, ReplicationFlow, replication_flows
from policies.support.policy_builder import Config, resource_policy
from policies.support.resources import MIRROR, Props, each, name, text, within

_CLASS, _SEPARATOR = "replication.policy.class", "replication.policy.separator"
_DEFAULTS = {_CLASS: DEFAULT_POLICY, _SEPARATOR: "."}
_STRIMZIS_IDENTITY = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
_KAFKAS_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_SEPARATES_INTERNAL_TOPICS_SINCE = (3, 1)


def violations(type_: str, props: Props, _config: Config) -> Iterator[str]:
    """A message for each setting of a connector that differs from that of the mirror's first connector."""

    def check(compared: tuple[ReplicationFlow, str, str, str]) -> Iterator[str]:
        flow, first, connector, key = compared
        if key == _SEPARATOR and flow.identity and _is_before_separated_internal_topics(props):
            return
        if connector == HEARTBEAT and key not in flow.config(connector):
            return
        allowed, expected = setting(flow.config(first), key, _DEFAULTS[key])
        value, got = setting(flow.config(connector), key, _DEFAULTS[key])
        equal = _class(value) == _class(allowed) if key == _CLASS else str(value) == str(allowed)
        if not equal:
            yield (
                f"mirror {name(props)}: {flow.where}.{connector} {key} must be that of {first} "
                f"(got {_quoted(got)}, allowed {_quoted(expected)}). "
                "The connectors would search for each other's topics under the wrong names."
            )

    return each(
        (
            (flow, flow.connectors[0], connector, key)
            for flow in replication_flows(type_, props)
            for connector in flow.connectors[1:]
            for key in _DEFAULTS
        ),
        check,
    )


def _class(value: object) -> str | None:
    return _KAFKAS_IDENTITY if text(value) == _STRIMZIS_IDENTITY else text(value)


def _quoted(separator: str) -> str:
    return separator or "an empty one"


def _is_before_separated_internal_topics(props: Props) -> bool:
    version = re.match(r"(\d+)\.(\d+)", str(within(props, "spec", "version") or ""))
    return version is not None and (int(version[1]), int(version[2])) < _SEPARATES_INTERNAL_TOPICS_SINCE


POLICY = resource_policy(
    name="replication-policy",
    description="All connectors of a mirror have the same replication policy and separator.",
    types=MIRROR,
    violations=violations,
    severity=Severity.CRITICAL,
    remediation_steps="Set the named key to the same value in every connector of the mirror.",
)
