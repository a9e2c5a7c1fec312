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
            hold="10m",
            labels=_LABELS,
            mirrors=with_checkpoints,
            summary="Group {{ $labels.group }} goes on, its checkpoints do not",
            description="What it has read in the last {{ $value | humanizeDuration }} at the source of mirror "
            "{{ $labels.mirror }} of {{ $labels.stack }} is in no checkpoint: after a failover it reads that again.",
        ),
        Alert(
            name="GroupWithoutPosition",
            severity=Severity.WARNING,
            value="max by (stack, mirror, group) (rt_inventory_group_partitions_without_position{<mirror>})",
            comparison=">",
            threshold=0,
            hold="30m",
            labels=_LABELS,
            mirrors=with_checkpoints,
            summary="Group {{ $labels.group }} has no position in {{ $value | humanize }} partitions of the target",
            description="It has one at the source of mirror {{ $labels.mirror }} of {{ $labels.stack }}. After a "
            "failover without --exact its auto.offset.reset decides: everything again, or nothing of what is there.",
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
            "limit is <group_unsynced_records>.",
        ),
    ),
)
