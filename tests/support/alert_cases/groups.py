"""Consumer groups' positions on the target."""

from tests.support.alert_cases.case import MIRROR, STACK, Case, Fired, of

_OF = {"stack": STACK, "mirror": MIRROR, "group": "stock"}
_AGE = of("rt_inventory_group_checkpoint_age_seconds", group="stock")
_UNSYNCED = of("rt_inventory_group_unsynced_records", group="stock")
_WITHOUT = of("rt_inventory_group_partitions_without_position", group="stock")
_UNTOLD = of("rt_inventory_group_unsynced_records", mirror="plainest", group="stock")

GROUP_CASES = (
    Case(
        alert="CheckpointTooOld",
        name="a group reads on without one",
        series={_AGE: "0+60x60"},
        at="40m",
        fires=(
            Fired(
                labels=_OF,
                severity="warning",
                summary="Group stock goes on, its checkpoints do not",
                said=("40m 0s",),
            ),
        ),
    ),
    Case(alert="CheckpointTooOld", name="a group at rest", series={_AGE: "0x60", _UNSYNCED: "70x60"}, at="40m"),
    Case(
        alert="CheckpointTooOld",
        name="a restart of the workers that takes long",
        series={_AGE: "5x5 300+60x14 5x30"},
        at="20m",
    ),
    Case(alert="CheckpointTooOld", name="within the limit", series={_AGE: "600x60"}, at="40m"),
    Case(
        alert="GroupWithoutPosition",
        name="one partition is not carried over",
        series={_WITHOUT: "1x60"},
        at="35m",
        fires=(
            Fired(
                labels=_OF,
                severity="warning",
                summary="Group stock has no position in 1 partitions of the target",
                said=("auto.offset.reset",),
            ),
        ),
    ),
    Case(alert="GroupWithoutPosition", name="a group that is new", series={_WITHOUT: "3x10 0x50"}, at="10m"),
    Case(
        alert="GroupOffsetNotSynced",
        name="far behind",
        series={_UNSYNCED: "60000x60"},
        at="35m",
        fires=(Fired(labels=_OF, severity="warning", summary="Group stock would read 60k records again"),),
    ),
    Case(alert="GroupOffsetNotSynced", name="a burst", series={_UNSYNCED: "60000x20 0x40"}, at="20m"),
    Case(alert="GroupOffsetNotSynced", name="within the limit", series={_UNSYNCED: "40000x60"}, at="35m"),
    Case(alert="GroupOffsetNotSynced", name="a mirror that translates none", series={_UNTOLD: "60000x60"}, at="35m"),
)
