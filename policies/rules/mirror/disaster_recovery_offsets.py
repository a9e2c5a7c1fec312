"""KafkaMirrorMaker2 for disaster recovery: consumers must be able to go on at the target where they stopped.

That takes a checkpoint connector that writes checkpoints and commits the translated offsets, and a source connector
that writes the offset syncs which they are made of. A mirror is declared for disaster recovery by
the label or annotation `rt-inventory/disaster-recovery: "true"` or by its name. Where a follower sets the groups, which
the annotation `rt-inventory/exact-offsets: "true"` says, MirrorMaker need not commit.
"""

from collections.abc import Iterator

from pulumi_policy import Severity

from policies.support.clusters import setting
from policies.support.mirror_makers import CHECKPOINT, FOLLOWED, SOURCE, ReplicationFlow, is_followed, replication_flows
from policies.support.policy_builder import Config, matches, resource_policy, unreadable
from policies.support.resources import MIRROR, Props, each, flag, name, within

DECLARED = "rt-inventory/disaster-recovery"
_SYNCED = "sync.group.offsets.enabled"
_SWITCHES = {
    _SYNCED: (
        CHECKPOINT,
        False,
        "Without it, consumers start at the target without their offsets.",
    ),
    "emit.checkpoints.enabled": (CHECKPOINT, True, "Without checkpoints, no offset is translated for the target."),
    "emit.offset-syncs.enabled": (SOURCE, True, "Without offset syncs, no offset is translated for the target."),
}


def violations(type_: str, props: Props, config: Config) -> Iterator[str]:
    """A message for each mirror without a checkpoint connector, and for each switch that keeps offsets back."""
    yield from unreadable(f"mirror {name(props)}", config, "mirrors")
    if not _is_declared(props, config):
        return

    def check(looked_at: tuple[ReplicationFlow, str | None]) -> Iterator[str]:
        flow, key = looked_at
        if key is None:
            if CHECKPOINT not in flow.connectors:
                yield (
                    f"mirror {name(props)}: {flow.where}.{CHECKPOINT} must be declared for disaster recovery "
                    "(got nothing). Without it, consumers start at the target without their offsets."
                )
            return
        if key == _SYNCED and is_followed(props):
            return
        connector, default, consequence = _SWITCHES[key]
        value, got = setting(flow.config(connector), key, str(default).lower())
        if connector in flow.connectors and not flag(value, default):
            yield (
                f"mirror {name(props)}: {flow.where}.{connector} {key} must be true for disaster recovery "
                f"(got {got}). {consequence}"
            )

    yield from each(((flow, key) for flow in replication_flows(type_, props) for key in (None, *_SWITCHES)), check)


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
    remediation_steps="Declare `checkpointConnector` with `sync.group.offsets.enabled: true`, and leave checkpoints "
    f"and offset syncs on. Where a follower commits them, annotate the mirror with {FOLLOWED}.",
)
