"""Where consumer groups would go on if the target became active now."""

from monitoring.alerts.model import Alert, AlertGroup, Severity, with_checkpoints

_LABELS = ("stack", "mirror", "group")
_UNSYNCED = "max by (stack, mirror, group) (rt_inventory_group_unsynced_records{<mirror>})"

GROUPS = AlertGroup(
    name="groups",
    dashboard="rt-inventory-groups",
    alerts=(
        Alert(
            name="CheckpointTooOld",
            severity=Severity.WARNING,
            value="max by (stack, mirror, group) (rt_inventory_group_checkpoint_age_seconds{<mirror>})",
            comparison=">",
            threshold="checkpoint_age_seconds",
            # A group at rest gets no new checkpoint, and needs none: only while it moves the old one is worth less.
            guard=f"and on (stack, mirror, group) delta(({_UNSYNCED})[15m:30s]) > 0",
            hold="10m",
            labels=_LABELS,
            mirrors=with_checkpoints,
            summary="Group {{ $labels.group }} goes on, its checkpoints do not",
            description="The last checkpoint of the group in mirror {{ $labels.mirror }} of {{ $labels.stack }} is "
            "{{ $value | humanizeDuration }} old, and the group has read on: after a failover it reads that again.",
        ),
        Alert(
            name="GroupOffsetNotSynced",
            severity=Severity.WARNING,
            value=_UNSYNCED,
            comparison=">",
            threshold="group_unsynced_records",
            hold="30m",
            labels=_LABELS,
            mirrors=with_checkpoints,
            summary="Group {{ $labels.group }} would read {{ $value | humanize }} records again",
            description="If mirror {{ $labels.mirror }} of {{ $labels.stack }} failed over now without --exact. The "
            "limit is <group_unsynced_records>. Nothing would be skipped.",
        ),
    ),
)
