"""The fleet: every mirror at a glance, with a way into each."""

from grafana_foundation_sdk.builders import dashboard as build

from monitoring.dashboards import pages, panels, queries
from monitoring.dashboards.panels import Column, FieldConfig, Key, Panel, Series
from monitoring.dashboards.queries import CONNECT, MIRROR, OPS, SOURCE, VERIFICATION, of_mirror, of_run

BY = ("stack", "mirror")
NAMED = "{{stack}} {{mirror}}"
# An alert about a whole stack has no mirror, one about Prometheus itself has no stack.
FIRING = queries.selector("ALERTS", 'alertstate="firing"', 'stack=~"($stack)|"', 'mirror=~"($mirror)|"')
KNOWN = f"group by (stack, mirror) ({{{pages.MIRRORS}, {MIRROR}}})"
UP = of_mirror(f"{OPS}mirror_up")
REACHED, PROBLEMS = of_mirror(f"{OPS}cluster_reachable"), of_mirror(f"{OPS}mirror_problems")
FAILED_TASKS = of_mirror(f"{CONNECT}connector_task_metrics_status", 'status="failed"') + " == 1"
TASKS = of_mirror(f"{CONNECT}connector_task_metrics_status")
AGE = of_mirror(f"{OPS}mirror_lag_seconds")
COPIED = of_mirror(f"{SOURCE}record_count")
LATENCY = of_mirror(f"{SOURCE}replication_latency_ms_max")
LOOKED_AT = of_mirror(f"{OPS}status_timestamp_seconds")
PASSED = queries.holding(of_run("verdict", 'verdict="pass"'), *BY)
VERIFIED = queries.seconds_since(of_mirror(f"{VERIFICATION}finished_timestamp_seconds"), *BY)
OLD_SECONDS = panels.VERIFIED_SECONDS[1][0]
NOT_PROVEN = f"{KNOWN} unless on (stack, mirror) ({PASSED} and on (stack, mirror) ({VERIFIED}) <= {OLD_SECONDS})"


def page(runbook: str) -> build.Dashboard:
    """Return the dashboard; its runbook is found at the address."""
    found = pages.blank(
        pages.FLEET,
        "Kafka mirrors: fleet",
        "Every mirror: its state, how far it is behind, whether it was proven.",
        of_one=False,
    )
    found.with_variable(pages.datasource()).with_variable(pages.runbook(runbook))
    found.with_variable(pages.choice("stack", "Stack", f"{{{pages.STACKS}}}", many=True))
    mirrors = f'{{{pages.MIRRORS}, stack=~"$stack"}}'
    found.with_variable(pages.choice("mirror", "Mirror", mirrors, many=True))
    found.annotation(pages.alerts_drawn('severity="critical"', 'stack=~"($stack)|"'))
    for panel in _numbers():
        found.with_panel(panel)
    found.with_panel(_mirrors()).with_panel(_alerts())
    pages.section(found, "Over time", _over_time())
    return found


def _numbers() -> list[Panel]:
    late = f"{queries.largest(AGE, *BY)} > {panels.LAG_SECONDS[1][0]}"
    return [
        panels.number(
            "Mirrors",
            "Mirrors that are known to their workers, to the command line's exporter or to a verification.",
            Series(f"count({KNOWN})", "mirrors"),
            FieldConfig(unit=panels.NUMBER),
            wide=3,
        ),
        panels.number(
            "Not running",
            "Mirrors that should run and do not: a connector, a task or the resource is not as it should be.",
            Series(queries.counted(f"max by (stack, mirror) ({UP}) == 0", UP), "mirrors"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            wide=3,
        ),
        panels.number(
            "Failed tasks",
            "Tasks of connectors that failed and do nothing, as their workers report them.",
            Series(queries.counted(FAILED_TASKS, TASKS), "tasks"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            wide=3,
        ),
        panels.number(
            "Behind",
            "Mirrors whose oldest record that is not copied yet has waited too long.",
            Series(queries.counted(late, AGE), "mirrors"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            wide=3,
        ),
        panels.number(
            "Largest lag",
            "Records of the source that are not copied yet, of the mirror that has most of them.",
            Series(queries.lag_records(), "records"),
            FieldConfig(unit=panels.RECORDS, steps=panels.LAG_RECORDS),
            wide=3,
        ),
        panels.number(
            "Unreachable",
            "Sides of mirrors, sources or targets, that do not answer the mirror's user.",
            Series(queries.counted(f"max by (stack, mirror, side) ({REACHED}) == 0", REACHED), "sides"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            wide=3,
        ),
        panels.number(
            "Not proven",
            "Mirrors whose last verification did not pass or is too old, and those that were never verified.",
            Series(queries.counted(NOT_PROVEN, KNOWN), "mirrors"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            wide=3,
        ),
        panels.number(
            "Alerts",
            "Alerts that fire now, of any severity.",
            Series(queries.counted(FIRING, "up"), "alerts"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            wide=3,
        ),
    ]


def _mirrors() -> Panel:
    of_one = of_mirror("ALERTS", 'alertstate="firing"')
    alerts = f"count by (stack, mirror) ({of_one}) or 0 * {KNOWN}"
    state = queries.holding(of_mirror(f"{OPS}mirror_state"), *BY, "state")
    active = queries.holding(of_mirror(f"{OPS}mirror_active"), *BY, "side")
    verdict = queries.holding(of_run("verdict"), *BY, "verdict")
    plain = FieldConfig(unit=panels.NONE)
    return panels.listing(
        "Every mirror",
        "One row a mirror. A cell without its metric stays empty: state, side and age need the exporter of `ops`, "
        "rates need scraped workers, a verdict needs a verification that exports its metrics.",
        [Key("stack", "Stack"), Key("mirror", "Mirror", pages.page_of_row(pages.MIRROR))],
        [
            Column("Up", queries.smallest(UP, *BY), FieldConfig(unit=panels.NONE, mappings=panels.UP)),
            Column("State", state, plain, "state", panels.MIRROR_STATES),
            Column("Active side", active, plain, "side", panels.SIDES),
            Column("Lag", queries.lag_records(*BY), FieldConfig(unit=panels.RECORDS, steps=panels.LAG_RECORDS)),
            Column(
                "Oldest waits",
                queries.largest(AGE, *BY),
                FieldConfig(unit=panels.SECONDS, steps=panels.LAG_SECONDS),
            ),
            Column("Copied", queries.rate(COPIED, *BY), FieldConfig(unit=panels.RECORDS_PER_SECOND)),
            Column(
                "Latency",
                queries.largest(LATENCY, *BY),
                FieldConfig(unit=panels.MILLISECONDS, steps=panels.LATENCY_MS),
            ),
            Column(
                "Failed tasks",
                queries.counted(FAILED_TASKS, TASKS, *BY),
                FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            ),
            Column("Verdict", verdict, plain, "verdict", panels.VERDICTS),
            Column(
                "Verified before",
                VERIFIED,
                FieldConfig(unit=panels.SECONDS, steps=panels.VERIFIED_SECONDS),
            ),
            Column(
                "Looked at before",
                queries.seconds_since(LOOKED_AT, *BY),
                FieldConfig(unit=panels.SECONDS, steps=panels.STATUS_SECONDS),
            ),
            Column(
                "Last snapshot",
                queries.largest(of_mirror(f"{OPS}status_error"), *BY),
                FieldConfig(unit=panels.NONE, mappings=panels.STATUS_RUN),
            ),
            Column(
                "Problems",
                queries.largest(PROBLEMS, *BY),
                FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
            ),
            Column("Alerts", alerts, FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED)),
        ],
    )


def _alerts() -> Panel:
    labels = ("severity", "alertname", "stage", "stack", "mirror")
    one = Column("Series", f"count by ({', '.join(labels)}) ({FIRING})", FieldConfig(unit=panels.NUMBER))
    keys = [
        Key("severity", "Severity"),
        Key("alertname", "Alert"),
        Key("stage", "Stage"),
        Key("stack", "Stack"),
        Key("mirror", "Mirror", pages.page_of_row(pages.MIRROR)),
    ]
    about = "Alerts that fire now and how many series each stands for. What to do stands in the runbook, see above."
    return panels.listing("Alerts that fire", about, keys, [one], high=7)


def _over_time() -> list[Panel]:
    return [
        panels.graph(
            "Lag",
            "Records of the source that are not copied yet. A mirror that is stopped on purpose falls behind too.",
            [Series(queries.lag_records(*BY), NAMED)],
            FieldConfig(unit=panels.RECORDS, steps=panels.LAG_RECORDS),
        ),
        panels.graph(
            "How long the oldest record waits",
            "Age of the oldest record that is not copied yet: what a failover without the source would lose.",
            [Series(queries.largest(AGE, *BY), NAMED)],
            FieldConfig(unit=panels.SECONDS, steps=panels.LAG_SECONDS),
        ),
        panels.graph(
            "Records copied",
            "Records that each mirror copies in a second.",
            [Series(queries.rate(COPIED, *BY), NAMED)],
            FieldConfig(unit=panels.RECORDS_PER_SECOND),
        ),
        panels.graph(
            "Replication latency",
            "Greatest time from a record's timestamp until it was written at the target.",
            [Series(queries.largest(LATENCY, *BY), NAMED)],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.LATENCY_MS),
        ),
        panels.states(
            "Up",
            "Whether a mirror that should run does so wholly: connectors, tasks, resource. Empty while it is stopped.",
            Series(queries.smallest(UP, *BY), NAMED),
            panels.UP,
        ),
        panels.states(
            "Sides",
            "Whether source and target answer the mirror's user.",
            Series(queries.smallest(REACHED, *BY, "side"), f"{NAMED} {{{{side}}}}"),
            panels.REACHED,
        ),
        panels.graph(
            "Problems",
            "Problems of mirrors that `ops status` counts: the same command lists them.",
            [Series(queries.largest(PROBLEMS, *BY), NAMED)],
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
        ),
        panels.states(
            "Verdict",
            "Verdict of the last verification, from when it was published until the next one.",
            Series(queries.verdict(*BY), NAMED),
            panels.numbered(panels.VERDICTS),
        ),
    ]
