"""Consumer groups: whether their offsets are carried to the target, and what a failover would cost them."""

from grafana_foundation_sdk.builders import dashboard as build

from monitoring.dashboards import pages, panels, queries
from monitoring.dashboards.panels import Column, FieldConfig, Key, Panel, Series
from monitoring.dashboards.queries import CHECKPOINT, GROUP, OPS, VERIFICATION, of_mirror, of_run

LATENCY = f"{CHECKPOINT}checkpoint_latency_ms"
UNSYNCED = of_mirror(f"{OPS}group_unsynced_records", GROUP)
AGE = of_mirror(f"{OPS}group_checkpoint_age_seconds", GROUP)
UNREAD = of_mirror(f"{OPS}group_unread_records", GROUP)
WOULD_SKIP = of_mirror(f"{OPS}group_skipped_records", GROUP)
UNPLACED = of_mirror(f"{OPS}group_partitions_without_position", GROUP)
SKIPPED, REPEATED = of_run("group_skipped_records", GROUP), of_run("group_repeated_records", GROUP)
COST = of_mirror(f"{OPS}failover_cost_records")
# Groups that are known to `ops`, to the mirror's checkpoints or to a verification.
_WITH_GROUPS = (f"{OPS}group_unread_records", f"{LATENCY}", f"{VERIFICATION}group_skipped_records")
NAMED = "{{group}}"


def page(runbook: str) -> build.Dashboard:
    """Return the dashboard; its runbook is found at the address."""
    found = pages.blank(
        pages.GROUPS, "Kafka mirrors: groups and checkpoints", "Whether consumer groups can go on at the target."
    )
    pages.choose_mirror(found, runbook)
    known = f'{{__name__=~"{"|".join(_WITH_GROUPS)}", {queries.MIRROR}}}'
    found.with_variable(pages.choice("group", "Group", known, many=True))
    pages.section(found, "Now", [*_now(), _table()])
    pages.section(found, "Over time", _over_time())
    pages.section(found, "Group $group", _group(), folded=True, each="group")
    return found


def _now() -> list[Panel]:
    return [
        panels.number(
            "Groups",
            "Groups of the source that the mirror carries.",
            Series(queries.largest(of_mirror(f"{OPS}groups")), "groups"),
            FieldConfig(unit=panels.NUMBER),
            wide=5,
        ),
        panels.number(
            "Cost of a failover",
            "Records that all groups of the mirror together would read again at a failover now. It is not known while "
            "a group has no position at the target for a partition: see the column Without position.",
            Series(queries.largest(COST), "records"),
            FieldConfig(unit=panels.RECORDS, steps=panels.UNSYNCED_RECORDS),
            wide=5,
        ),
        panels.number(
            "Most unsynced",
            "Records that one group would read again, of the group that has most of them.",
            Series(queries.largest(UNSYNCED), "records"),
            FieldConfig(unit=panels.RECORDS, steps=panels.UNSYNCED_RECORDS),
            wide=5,
        ),
        panels.number(
            "Not carried for",
            "For how long, at most, what a group has read is not in its position at the target, of the group that "
            "waits longest.",
            Series(queries.largest(AGE), "age"),
            FieldConfig(unit=panels.SECONDS, steps=panels.CHECKPOINT_AGE_SECONDS),
            wide=5,
        ),
        panels.number(
            "Records skipped",
            "Records that groups would never read after a failover now, by offsets; a verification counts exactly.",
            Series(queries.total(WOULD_SKIP), "records"),
            FieldConfig(unit=panels.RECORDS, steps=panels.NONE_ALLOWED),
            wide=4,
        ),
    ]


def _table() -> Panel:
    records = FieldConfig(unit=panels.RECORDS, steps=panels.UNSYNCED_RECORDS)
    lost = FieldConfig(unit=panels.RECORDS, steps=panels.NONE_ALLOWED)
    return panels.listing(
        "Every group",
        "One row a group: what it would read again now, when it was last carried, what the last verification found.",
        [Key("group", "Group")],
        [
            Column("Unread at the source", queries.largest(UNREAD, "group"), FieldConfig(unit=panels.RECORDS)),
            Column("Would read again", queries.largest(UNSYNCED, "group"), records),
            Column("Would skip", queries.largest(WOULD_SKIP, "group"), lost),
            Column(
                "Without position",
                queries.largest(UNPLACED, "group"),
                FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
            ),
            Column(
                "Not carried for",
                queries.largest(AGE, "group"),
                FieldConfig(unit=panels.SECONDS, steps=panels.CHECKPOINT_AGE_SECONDS),
            ),
            Column(
                "Checkpoint latency",
                queries.largest(of_mirror(f"{LATENCY}_max", GROUP), "group"),
                FieldConfig(unit=panels.MILLISECONDS, steps=panels.CHECKPOINT_LATENCY_MS),
            ),
            Column("Skipped, verified", queries.found_by_runs(SKIPPED, "group", "group"), lost),
            Column("Repeated, verified", queries.found_by_runs(REPEATED, "group", "group"), records),
        ],
    )


def _over_time() -> list[Panel]:
    return [
        panels.graph(
            "Unsynced records",
            "Records that a group would read again at a failover now. It follows the group's own pace: offsets of a "
            "group that is behind are carried more coarsely.",
            [Series(queries.largest(UNSYNCED, "group"), NAMED)],
            FieldConfig(unit=panels.RECORDS, steps=panels.UNSYNCED_RECORDS),
        ),
        panels.graph(
            "Not carried for, by group",
            "For how long, at most, what a group has read is not in its position at the target.",
            [Series(queries.largest(AGE, "group"), NAMED)],
            FieldConfig(unit=panels.SECONDS, steps=panels.CHECKPOINT_AGE_SECONDS),
        ),
        panels.graph(
            "Unread at the source",
            "Records that a group has not read at the source: its own lag, whatever the mirror does.",
            [Series(queries.largest(UNREAD, "group"), NAMED)],
            FieldConfig(unit=panels.RECORDS),
        ),
        panels.graph(
            "Partitions without a position",
            "Partitions in which a group has a position at the source and none at the target. There it would begin "
            "by its `auto.offset.reset`.",
            [Series(queries.largest(UNPLACED, "group"), NAMED)],
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
        ),
        panels.graph(
            "Checkpoint latency, average",
            "Average time from a checkpoint's making until it was written at the target.",
            [Series(queries.mean(of_mirror(f"{LATENCY}_avg", GROUP), "group"), NAMED)],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.CHECKPOINT_LATENCY_MS),
        ),
        panels.graph(
            "Checkpoint latency, greatest",
            "Greatest time from a checkpoint's making until it was written at the target.",
            [Series(queries.largest(of_mirror(f"{LATENCY}_max", GROUP), "group"), NAMED)],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.CHECKPOINT_LATENCY_MS),
        ),
        panels.graph(
            "Cost of a failover over time",
            "Records that all groups of the mirror together would read again at a failover. It is not known while a "
            "group has no position at the target for a partition.",
            [Series(queries.largest(COST), "records")],
            FieldConfig(unit=panels.RECORDS, steps=panels.UNSYNCED_RECORDS),
        ),
        panels.graph(
            "Skipped and repeated, by a verification",
            "Records that groups would skip, or read again, at their synced offsets: exact, at the time of each run.",
            [
                Series(queries.found_by_runs(SKIPPED, "group", "group"), "{{group}} skipped"),
                Series(queries.found_by_runs(REPEATED, "group", "group"), "{{group}} repeated"),
            ],
            FieldConfig(unit=panels.RECORDS),
        ),
    ]


def _group() -> list[Panel]:
    by = ("topic", "partition")
    return [
        panels.graph(
            "Checkpoint latency, by partition",
            "Greatest time from a checkpoint's making until it was written at the target, of each partition that the "
            "group reads.",
            [Series(queries.largest(of_mirror(f"{LATENCY}_max", GROUP), *by), "{{topic}} {{partition}}")],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.CHECKPOINT_LATENCY_MS),
        ),
        panels.graph(
            "Would read again, not carried for",
            "What the group would read again at a failover now, and on the right for how long it was not carried.",
            [Series(queries.largest(UNSYNCED), "would read again"), Series(queries.largest(AGE), "not carried for")],
            FieldConfig(unit=panels.RECORDS),
            right={"not carried for": panels.SECONDS},
        ),
    ]
