"""Metrics of the operator, of the project's own programs and of Prometheus itself."""

from monitoring.metrics.model import Exporter, Kind, Metric, Part, together

Definitions = dict[str, tuple[str, str, tuple[str, ...]]]


def _metrics(
    prefix: str,
    definitions: Definitions,
    part: Part,
    exporter: Exporter,
    kind: Kind = Kind.GAUGE,
    *,
    always: bool = True,
) -> list[Metric]:
    """Metrics of one program: unit, help and labels by the name without its prefix."""
    return [
        Metric(
            name=f"{prefix}{name}",
            kind=kind,
            unit=unit,
            help=text,
            labels=labels,
            part=part,
            origin=exporter.value,
            exporters=(exporter,),
            always=always,
        )
        for name, (unit, text, labels) in definitions.items()
    ]


_RECONCILED = ("kind", "resource_namespace")
OPERATOR = together(
    _metrics(
        "strimzi_",
        {
            "resource_state": (
                "",
                "1 while a resource is ready, 0 while it is not, with the reason.",
                ("kind", "name", "resource_namespace", "reason"),
            ),
            "resources": ("resources", "Resources of a kind that the operator watches.", _RECONCILED),
            "certificate_expiration_timestamp_ms": (
                "ms",
                "When an authority of a cluster expires, in milliseconds since 1970.",
                ("cluster", "type", "resource_namespace"),
            ),
        },
        Part.OPERATOR,
        Exporter.OPERATOR,
    ),
    _metrics(
        "strimzi_reconciliations_",
        {
            "successful_total": ("reconciliations", "Reconciliations that succeeded.", _RECONCILED),
            "failed_total": ("reconciliations", "Reconciliations that failed.", _RECONCILED),
        },
        Part.OPERATOR,
        Exporter.OPERATOR,
        Kind.COUNTER,
    ),
)
VERIFICATION = together(
    _metrics(
        "rt_inventory_verification_",
        {
            "verdict": ("", "1 for the verdict of the last run, 0 for the others.", ("verdict",)),
            "finished_timestamp_seconds": ("seconds", "When the last run ended, since 1970.", ()),
            "duration_seconds": ("seconds", "How long the last run took.", ()),
            "exit_code": ("", "Exit code of the last run.", ()),
            "check": ("", "1 where a check holds, 0 where it fails, -1 where it could not be judged.", ("check",)),
            "finding_records": ("records", "Records that were found, by kind of finding.", ("kind",)),
        },
        Part.VERIFICATION,
        Exporter.VERIFICATION,
    ),
    _metrics(
        "rt_inventory_verification_",
        {
            "records_compared": ("records", "Records of the source that have their image at the target.", ()),
            "group_skipped_records": ("records", "Records that a group would skip at its synced offsets.", ("group",)),
            "group_repeated_records": ("records", "Records that a group would read again there.", ("group",)),
            "lag_records": ("records", "Records that the mirror was behind when the run ended.", ()),
            "lag_seconds": ("seconds", "Age of the oldest record that was not copied when the run ended.", ()),
        },
        Part.VERIFICATION,
        Exporter.VERIFICATION,
        always=False,
    ),
)
OPS = together(
    _metrics(
        "rt_inventory_",
        {
            "mirror_up": ("", "1 if resource, connectors and tasks of a mirror that should run do so, else 0.", ()),
            "mirror_state": ("", "1 for the state that is declared of the mirror, 0 for the others.", ("state",)),
            "mirror_lag_records": ("records", "Records of the source that are not copied yet.", ()),
            "mirror_lag_seconds": ("seconds", "Age of the oldest record that is not copied yet.", ()),
            "cluster_reachable": ("", "1 if a side answers the user of the mirror, else 0.", ("side",)),
            "mirror_active": ("", "1 for the side that applications use, 0 for the other.", ("side",)),
            "connector_running": ("", "1 while a connector runs, else 0.", ("connector",)),
            "task_running": ("", "1 while a task runs, else 0.", ("connector", "task")),
            "group_unsynced_records": (
                "records",
                "Records that a group would read again if the mirror failed over now.",
                ("group",),
            ),
            "group_checkpoint_age_seconds": (
                "seconds",
                "For how long, at most, what a group has read is not in its position at the target.",
                ("group",),
            ),
            "certificate_expiry_timestamp_seconds": (
                "seconds",
                "When a certificate expires, since 1970.",
                ("certificate",),
            ),
            "failover_cost_records": ("records", "Records that all groups would read again at a failover now.", ()),
            "status_timestamp_seconds": ("seconds", "When the mirror was last inspected, since 1970.", ()),
        },
        Part.OPS,
        Exporter.OPS,
        always=False,
    ),
    _metrics(
        "rt_inventory_",
        {
            "mirror_problems": ("problems", "Things that `ops status` calls a problem of the mirror.", ()),
            "groups": ("groups", "Groups of the source that the mirror carries.", ()),
            "group_unread_records": ("records", "Records at the source that a group has not read.", ("group",)),
            "group_skipped_records": (
                "records",
                "Records that a group would never read if the mirror failed over now.",
                ("group",),
            ),
            "group_partitions_without_position": (
                "partitions",
                "Partitions in which a group has a position at the source and none at the target.",
                ("group",),
            ),
            "status_duration_seconds": ("seconds", "How long the last snapshot that succeeded took.", ()),
            "status_error": ("", "1 if the last snapshot failed, so that nothing else is known now, else 0.", ()),
        },
        Part.OPS,
        Exporter.OPS,
        always=False,
    ),
)
PROMETHEUS = together(
    _metrics(
        "",
        {
            "up": ("", "1 if the target could be scraped, else 0.", ("instance",)),
            "scrape_duration_seconds": ("seconds", "How long the last scrape took.", ("instance",)),
            "ALERTS": ("", "1 for an alert that is pending or firing.", ("alertname", "alertstate", "severity")),
        },
        Part.PROMETHEUS,
        Exporter.PROMETHEUS,
    )
)
