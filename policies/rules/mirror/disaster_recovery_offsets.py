"""KafkaMirrorMaker2 for disaster recovery: consumers must be able to go on at the target where they stopped.

That takes a checkpoint connector that writes checkpoints and commits the translated offsets, and a source connector
that writes the offset syncs which they are made of, where the other one reads them. A mirror is declared for disaster
recovery by the label or annotation `rt-inventory/disaster-recovery: "true"` or by its name. Where a follower sets the
groups, which the annotation `rt-inventory/exact-offsets: "true"` says, MirrorMaker need not commit.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from pulumi_policy import Severity

from policies.support.clusters import setting
from policies.support.mirror_makers import (
    CHECKPOINT,
    FOLLOWED,
    SOURCE,
    ReplicationFlow,
    is_followed,
    is_running,
    replication_flows,
)
from policies.support.policy_builder import Config, matches, resource_policy, unreadable
from policies.support.resources import MIRROR, Props, each, flag, name, text, within

DECLARED = "rt-inventory/disaster-recovery"
_SYNCED = "sync.group.offsets.enabled"
_LOCATION = "offset-syncs.topic.location"
_NO_CHECKPOINTS = "Without checkpoints, no offset is translated for the target."
_NO_SYNCS = "Without offset syncs, no offset is translated for the target."
_NOT_SYNCED = "Without it, consumers start at the target without their offsets."
_REQUIRED = (
    (CHECKPOINT, _NOT_SYNCED),
    (SOURCE, "Without it, no record is copied and no offset is translated for the target."),
)
_SWITCHES = (
    (CHECKPOINT, _SYNCED, False, _NOT_SYNCED),
    (CHECKPOINT, "emit.checkpoints.enabled", True, _NO_CHECKPOINTS),
    (CHECKPOINT, "enabled", True, _NO_CHECKPOINTS),
    (SOURCE, "emit.offset-syncs.enabled", True, _NO_SYNCS),
    (SOURCE, "enabled", True, _NO_SYNCS),
)


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each connector that a mirror lacks, and for whatever else keeps offsets back."""
    yield from unreadable(f"mirror {name(props)}", config, "mirrors")
    if not _is_declared(props, config):
        return
    checks: tuple[Callable[..., Iterator[str]], ...]
    undeclared = (partial(_undeclared, *required) for required in _REQUIRED)
    checks = (*undeclared, *(partial(_switched_off, *switch) for switch in _SWITCHES), _at_rest, _elsewhere)
    flows = replication_flows(type_, props)
    yield from each(product(flows, checks), lambda looked_at: looked_at[1](props=props, flow=looked_at[0]))


def _undeclared(connector: str, consequence: str, *, props: Props, flow: ReplicationFlow) -> Iterator[str]:
    if connector not in flow.connectors:
        yield (
            f"mirror {name(props)}: {flow.where}.{connector} must be declared for disaster recovery (got nothing). "
            f"{consequence}"
        )


def _switched_off(
    connector: str, key: str, default: bool, consequence: str, *, props: Props, flow: ReplicationFlow
) -> Iterator[str]:
    if key == _SYNCED and is_followed(props):
        return
    value, got = setting(flow.config(connector), key, str(default).lower())
    if connector in flow.connectors and not flag(value, default):
        yield (
            f"mirror {name(props)}: {flow.where}.{connector} {key} must be true for disaster recovery "
            f"(got {got}). {consequence}"
        )


def _at_rest(props: Props, flow: ReplicationFlow) -> Iterator[str]:
    """A mirror that rests as a whole copies no records either."""
    if CHECKPOINT in flow.connectors and is_running(props, flow) and not is_running(props, flow, CHECKPOINT):
        state = text(within(flow.mirror, CHECKPOINT, "state"))
        yield (
            f"mirror {name(props)}: {flow.where}.{CHECKPOINT} must run while {SOURCE} does, for disaster recovery "
            f"(got {f'state {state}' if state else 'pause true'}). {_NO_CHECKPOINTS}"
        )


def _elsewhere(props: Props, flow: ReplicationFlow) -> Iterator[str]:
    """Each connector finds the topic of the offset syncs by its own configuration."""
    if {SOURCE, CHECKPOINT} <= {*flow.connectors}:
        written, read = (text(flow.config(end).get(_LOCATION)) or "source" for end in (SOURCE, CHECKPOINT))
        if written != read:
            yield (
                f"mirror {name(props)}: {flow.where}.{CHECKPOINT} {_LOCATION} must be that of {SOURCE} for disaster "
                f"recovery (got {read}, allowed {written}). {_NO_SYNCS}"
            )


def _is_declared(props: Props, config: Config) -> bool:
    held = (within(props, "metadata", kind, DECLARED) for kind in ("labels", "annotations"))
    return any(flag(value, False) for value in held) or matches(config, "mirrors", name(props))


POLICY = resource_policy(
    name="disaster-recovery-offsets",
    description="A mirror for disaster recovery carries the offsets of consumer groups to the target.",
    types=MIRROR,
    violations=violations,
    options={
        "mirrors": {
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": f"patterns of whole names of mirrors for disaster recovery, beside those with {DECLARED}",
        }
    },
    severity=Severity.CRITICAL,
    remediation_steps="Declare `sourceConnector`, and `checkpointConnector` with `sync.group.offsets.enabled: true`, "
    "and leave checkpoints and offset syncs on, these at the same place in both connectors. "
    f"Where a follower commits them, annotate the mirror with {FOLLOWED}.",
)
