"""The verification: what the last run of each mirror found and how old it is, findings over time, and the audit."""

from grafana_foundation_sdk.builders import dashboard as build

from monitoring.dashboards import pages, panels, queries
from monitoring.dashboards.panels import Column, FieldConfig, Key, Panel, Series
from monitoring.dashboards.queries import AUDIT, VERIFICATION, of_mirror, of_run

BY = ("stack", "mirror")
CHECK = queries.smallest(of_run("check"), *BY, "check")
FINISHED = of_mirror(f"{VERIFICATION}finished_timestamp_seconds")
COMPARED, DURATION = of_run("records_compared"), of_run("duration_seconds")
FINDINGS = of_run("finding_records")
LOST = of_run("finding_records", 'kind=~"lost|no_overlap"')
SKIPPED, REPEATED = of_run("group_skipped_records"), of_run("group_repeated_records")
LAG, AGE = of_run("lag_records"), of_run("lag_seconds")


def page(runbook: str) -> build.Dashboard:
    """Return the dashboard; its runbook is found at the address."""
    found = pages.blank(
        pages.VERIFICATION,
        "Kafka mirrors: verification",
        "What the last verification of each mirror found, and when.",
        since="now-7d",
        refresh="1m",
        of_one=False,
    )
    pages.choose_mirror(found, runbook, many=True)
    pages.section(found, "All mirrors", [_table()])
    pages.section(found, "Mirror $mirror: the last run", _last_run(), each="mirror")
    pages.section(found, "Mirror $mirror: over time", _over_time(), folded=True, each="mirror")
    pages.section(found, "Mirror $mirror: the audit", _audit(), folded=True, each="mirror")
    return found


def _table() -> Panel:
    verdict = queries.holding(of_run("verdict"), *BY, "verdict")
    none = panels.NONE_ALLOWED
    return panels.listing(
        "Last verification of each mirror",
        "One row a mirror that was ever verified. Metrics of a run stay until the next one: check their age.",
        [Key("stack", "Stack"), Key("mirror", "Mirror", pages.page_of_row(pages.MIRROR))],
        [
            Column("Verdict", verdict, FieldConfig(unit=panels.NONE), "verdict", panels.VERDICTS),
            Column(
                "Age",
                queries.seconds_since(FINISHED, *BY),
                FieldConfig(unit=panels.SECONDS, steps=panels.VERIFIED_SECONDS),
            ),
            Column("Took", queries.largest(DURATION, *BY), FieldConfig(unit=panels.SECONDS)),
            Column(
                "Checks that fail",
                queries.counted(f"{CHECK} == 0", CHECK, *BY),
                FieldConfig(unit=panels.NUMBER, steps=none),
            ),
            Column(
                "Not judged",
                queries.counted(f"{CHECK} == -1", CHECK, *BY),
                FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
            ),
            Column("Compared", queries.largest(COMPARED, *BY), FieldConfig(unit=panels.RECORDS)),
            Column(
                "Lost",
                f"{queries.found_by_runs(LOST, 'kind', *BY)} or 0 * {queries.largest(FINISHED, *BY)}",
                FieldConfig(unit=panels.RECORDS, steps=none),
            ),
            Column(
                "Skipped by groups",
                queries.found_by_runs(SKIPPED, "group", *BY),
                FieldConfig(unit=panels.RECORDS, steps=none),
            ),
            Column(
                "Lag at the end",
                queries.largest(LAG, *BY),
                FieldConfig(unit=panels.RECORDS),
            ),
        ],
        high=7,
    )


def _last_run() -> list[Panel]:
    return [
        panels.number(
            "Verdict",
            "Verdict of the last run.",
            Series(queries.verdict(*BY), "{{stack}}"),
            FieldConfig(unit=panels.NONE, mappings=panels.numbered(panels.VERDICTS)),
        ),
        panels.number(
            "Age",
            "Time since the last run ended. A run that no longer happens has no failing metric, only an old one.",
            Series(queries.seconds_since(FINISHED, *BY), "{{stack}}"),
            FieldConfig(unit=panels.SECONDS, steps=panels.VERIFIED_SECONDS),
        ),
        panels.number(
            "Took",
            "How long the last run took.",
            Series(queries.largest(DURATION, *BY), "{{stack}}"),
            FieldConfig(unit=panels.SECONDS),
        ),
        panels.number(
            "Compared",
            "Records of the source whose image was found and compared in the last run.",
            Series(queries.largest(COMPARED, *BY), "{{stack}}"),
            FieldConfig(unit=panels.RECORDS),
        ),
        panels.number(
            "Checks that fail",
            "Checks of the last run that do not hold.",
            Series(queries.counted(f"{CHECK} == 0", CHECK, *BY), "{{stack}}"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
        ),
        panels.number(
            "Exit code",
            "0 the limits hold, 1 a check failed, 2 the run could not judge, 130 somebody stopped it.",
            Series(queries.largest(of_run("exit_code"), *BY), "{{stack}}"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
        ),
        panels.states(
            "Checks",
            "What each check found, from one run to the next. A run's report has what was observed and what to do.",
            Series(CHECK, "{{stack}} {{check}}"),
            panels.CHECK,
            high=14,
        ),
        panels.graph(
            "Findings, by kind",
            "Records of each kind that a run found. Lost, doubled, altered and out of order count against the mirror; "
            "others are ordinary, such as records that a topic's retention has removed.",
            [Series(queries.largest(FINDINGS, *BY, "kind"), "{{stack}} {{kind}}")],
            FieldConfig(unit=panels.RECORDS),
            high=14,
        ),
    ]


def _over_time() -> list[Panel]:
    return [
        panels.graph(
            "Records compared",
            "Records whose image was compared, of each run. With a state a run compares only what came since the last.",
            [Series(queries.largest(COMPARED, *BY), "{{stack}}")],
            FieldConfig(unit=panels.RECORDS),
            wide=8,
        ),
        panels.graph(
            "Duration",
            "How long each run took.",
            [Series(queries.largest(DURATION, *BY), "{{stack}}")],
            FieldConfig(unit=panels.SECONDS),
            wide=8,
        ),
        panels.graph(
            "Age of the last run",
            "Time since the last run ended: a saw, as long as it runs by its schedule.",
            [Series(queries.seconds_since(FINISHED, *BY), "{{stack}}")],
            FieldConfig(unit=panels.SECONDS, steps=panels.VERIFIED_SECONDS),
            wide=8,
        ),
        panels.graph(
            "Lag at the end of a run",
            "Records that the mirror was behind when a run ended.",
            [Series(queries.largest(LAG, *BY), "{{stack}}")],
            FieldConfig(unit=panels.RECORDS, steps=panels.LAG_RECORDS),
            wide=8,
        ),
        panels.graph(
            "Oldest record not copied at the end of a run",
            "Age of the oldest record that was not copied when a run ended.",
            [Series(queries.largest(AGE, *BY), "{{stack}}")],
            FieldConfig(unit=panels.SECONDS, steps=panels.LAG_SECONDS),
            wide=8,
        ),
        panels.graph(
            "Skipped and repeated by groups",
            "Records that groups would skip, or read again, at their synced offsets.",
            [
                Series(queries.largest(SKIPPED, *BY, "group"), "{{stack}} {{group}} skipped"),
                Series(queries.largest(REPEATED, *BY, "group"), "{{stack}} {{group}} repeated"),
            ],
            FieldConfig(unit=panels.RECORDS),
            wide=8,
        ),
    ]


def _audit() -> list[Panel]:
    missed, through = of_mirror(f"{AUDIT}missed_ratio"), of_mirror(f"{AUDIT}read_through_timestamp_seconds")
    buckets, missing = of_mirror(f"{AUDIT}buckets"), of_mirror(f"{AUDIT}missing_records")
    extra, latency = of_mirror(f"{AUDIT}extra_records"), of_mirror(f"{AUDIT}latency_seconds")
    faults = of_mirror(f"{AUDIT}buckets", 'state=~"missing|altered|extra"')
    share = FieldConfig(unit=panels.FRACTION, steps=panels.MISSED, decimals=2)
    return [
        panels.number(
            "Not complete in time, 1 h",
            "Share of the last hour's records in buckets that were not complete in time, while an audit runs.",
            Series(queries.largest(of_mirror(f"{AUDIT}missed_ratio", 'window="1h"'), *BY), "{{stack}}"),
            share,
            wide=6,
        ),
        panels.number(
            "Buckets at fault",
            "Buckets of the last seven days that miss records, hold more of them, or others.",
            Series(f"{queries.total(faults, *BY)} or 0 * {queries.largest(through, *BY)}", "{{stack}}"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            wide=6,
        ),
        panels.number(
            "Read",
            "Time since the side that is furthest behind was read.",
            Series(f"time() - {queries.smallest(through, *BY)}", "{{stack}}"),
            FieldConfig(unit=panels.SECONDS, steps=panels.LAG_SECONDS),
            wide=6,
        ),
        panels.number(
            "Sides that cannot be read",
            "Sides that the last reading could not read.",
            Series(queries.largest(of_mirror(f"{AUDIT}problems"), *BY), "{{stack}}"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            wide=6,
        ),
        panels.graph(
            "Not complete in time, by window",
            "Share of the records in buckets not complete in time; alerts compare 1h with 5m, and 6h with 30m.",
            [Series(queries.largest(missed, *BY, "window"), "{{stack}} {{window}}")],
            share,
        ),
        panels.graph(
            "Buckets, by state",
            "Buckets of the last seven days. Those that are open have time left for their records to arrive.",
            [Series(queries.total(buckets, *BY, "state"), "{{stack}} {{state}}")],
            FieldConfig(unit=panels.NUMBER),
        ),
        panels.graph(
            "Records missing and extra, by topic",
            "Records that buckets of the last seven days miss at the target, or hold beyond those of the source.",
            [
                Series(f"{queries.largest(missing, *BY, 'topic')} > 0", "{{stack}} {{topic}} missing"),
                Series(f"{queries.largest(extra, *BY, 'topic')} > 0", "{{stack}} {{topic}} extra"),
            ],
            FieldConfig(unit=panels.RECORDS),
        ),
        panels.graph(
            "Replication latency, by the audit",
            "Replication latency of buckets that arrived. It is no finer than the audit reads.",
            [Series(queries.largest(latency, *BY, "quantile"), "{{stack}} {{quantile}}")],
            FieldConfig(unit=panels.SECONDS, steps=panels.LAG_SECONDS),
        ),
    ]
