"""One mirror: what it copies, how late, in what state its connectors are, and each topic by partition."""

from grafana_foundation_sdk.builders import dashboard as build

from monitoring.dashboards import pages, panels, queries
from monitoring.dashboards.mirror_workers import commits, errors, workers
from monitoring.dashboards.panels import FieldConfig, Panel, Series
from monitoring.dashboards.queries import CONNECT, OPS, SOURCE, TOPIC, of_mirror

COPIED, BYTES = of_mirror(f"{SOURCE}record_count", TOPIC), of_mirror(f"{SOURCE}byte_count", TOPIC)
AGE, LATENCY = f"{SOURCE}record_age_ms", f"{SOURCE}replication_latency_ms"
UNREAD = of_mirror("kafka_consumer_consumer_fetch_manager_metrics_records_lag")
TASK_STATUS = f"{CONNECT}connector_task_metrics_status"
PARTITION = "partition {{partition}}"


def page(runbook: str) -> build.Dashboard:
    """Return the dashboard; its runbook is found at the address."""
    found = pages.blank(
        pages.MIRROR, "Kafka mirrors: one mirror", "What a mirror copies, how far it is behind, and how its tasks do."
    )
    pages.choose_mirror(found, runbook)
    topics = of_mirror(f"{SOURCE}record_count")
    found.with_variable(pages.choice("topic", "Topic", topics, many=True))
    pages.section(found, "Now", _now())
    pages.section(found, "What passes", _throughput())
    pages.section(found, "How late", _lateness())
    pages.section(found, "Sides, connectors and tasks", _states())
    pages.section(found, "Errors", errors())
    pages.section(found, "Offset commits and batches", commits(), folded=True)
    pages.section(found, "Workers", workers(), folded=True)
    pages.section(found, "Topic $topic", _topic(), folded=True, each="topic")
    return found


def _now() -> list[Panel]:
    failed = of_mirror(TASK_STATUS, 'status="failed"') + " == 1"
    return [
        panels.number(
            "State",
            "What the mirror is set to do. Paused and stopped are settings, not faults.",
            Series(queries.coded(f"{OPS}mirror_state", "state", panels.MIRROR_STATES), "state"),
            FieldConfig(unit=panels.NONE, mappings=panels.numbered(panels.MIRROR_STATES)),
            wide=3,
        ),
        panels.number(
            "Active side",
            "The side that applications use: the source, or after a failover the target.",
            Series(queries.coded(f"{OPS}mirror_active", "side", panels.SIDES), "side"),
            FieldConfig(unit=panels.NONE, mappings=panels.numbered(panels.SIDES)),
            wide=3,
        ),
        panels.number(
            "Lag",
            "Records of the source that are not copied yet.",
            Series(queries.lag_records(), "records"),
            FieldConfig(unit=panels.RECORDS, steps=panels.LAG_RECORDS),
            wide=3,
        ),
        panels.number(
            "Oldest waits",
            "Age of the oldest record that is not copied yet: what a failover without the source would lose.",
            Series(queries.largest(of_mirror(f"{OPS}mirror_lag_seconds")), "age"),
            FieldConfig(unit=panels.SECONDS, steps=panels.LAG_SECONDS),
            wide=3,
        ),
        panels.number(
            "Copied",
            "Records of the chosen topics that are copied in a second.",
            Series(queries.rate(COPIED), "records"),
            FieldConfig(unit=panels.RECORDS_PER_SECOND),
            wide=3,
        ),
        panels.number(
            "Latency",
            "Greatest time from a record's timestamp until it was written at the target.",
            Series(queries.largest(of_mirror(f"{LATENCY}_max", TOPIC)), "latency"),
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.LATENCY_MS),
            wide=3,
        ),
        panels.number(
            "Failed tasks",
            "Tasks that failed and stand still.",
            Series(queries.counted(failed, of_mirror(TASK_STATUS)), "tasks"),
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_ALLOWED),
            wide=3,
        ),
        panels.number(
            "Verdict",
            "Verdict of the last verification; more stands on its own dashboard.",
            Series(queries.verdict(), "verdict"),
            FieldConfig(unit=panels.NONE, mappings=panels.numbered(panels.VERDICTS)),
            wide=3,
        ),
    ]


def _throughput() -> list[Panel]:
    return [
        panels.graph(
            "Records copied, by topic",
            "Records that are copied in a second, of each chosen topic.",
            [Series(queries.rate(COPIED, "topic"), "{{topic}}")],
            FieldConfig(unit=panels.RECORDS_PER_SECOND),
            stacked=True,
        ),
        panels.graph(
            "Bytes copied, by topic",
            "Bytes of keys and values that are copied in a second, of each chosen topic, before compression.",
            [Series(queries.rate(BYTES, "topic"), "{{topic}}")],
            FieldConfig(unit=panels.BYTES_PER_SECOND),
            stacked=True,
        ),
    ]


def _lateness() -> list[Panel]:
    return [
        panels.graph(
            "Lag over time",
            "Records of the source that are not copied yet, and where the workers' consumers stand: the partition "
            "of all that has most records to read.",
            [
                Series(queries.lag_records(), "not copied, all topics"),
                Series(queries.largest(UNREAD), "not read, fullest partition"),
            ],
            FieldConfig(unit=panels.RECORDS, steps=panels.LAG_RECORDS),
        ),
        panels.graph(
            "How long the oldest record waits",
            "Age of the oldest record that is not copied yet. It grows while the mirror stands still.",
            [Series(queries.largest(of_mirror(f"{OPS}mirror_lag_seconds")), "oldest record")],
            FieldConfig(unit=panels.SECONDS, steps=panels.LAG_SECONDS),
        ),
        panels.graph(
            "Age of records when they are read",
            "Time from a record's timestamp until a task read it at the source. Large and falling: it catches up.",
            [
                Series(queries.mean(of_mirror(f"{AGE}_avg", TOPIC)), "average"),
                Series(queries.largest(of_mirror(f"{AGE}_max", TOPIC)), "greatest"),
            ],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.LATENCY_MS),
        ),
        panels.graph(
            "Replication latency",
            "Time from a record's timestamp until it was written at the target. What it has above the age is what "
            "copying itself takes.",
            [
                Series(queries.mean(of_mirror(f"{LATENCY}_avg", TOPIC)), "average"),
                Series(queries.largest(of_mirror(f"{LATENCY}_max", TOPIC)), "greatest"),
                Series(queries.largest(of_mirror("mirror:replication_latency_ms:p99_15m")), "99 %, all topics"),
            ],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.LATENCY_MS),
        ),
    ]


def _states() -> list[Panel]:
    connector = queries.coded(f"{CONNECT}connector_metrics_status", "status", panels.CONNECTOR_STATES, "connector")
    task = queries.coded(TASK_STATUS, "status", panels.CONNECTOR_STATES, "connector", "task")
    seen = queries.smallest(of_mirror(f"{OPS}task_running"), "connector", "task")
    return [
        panels.states(
            "Sides",
            "Whether source and target answer the mirror's user.",
            Series(queries.smallest(of_mirror(f"{OPS}cluster_reachable"), "side"), "{{side}}"),
            panels.REACHED,
        ),
        panels.graph(
            "Problems",
            "Problems of the mirror that `ops status` counts: the same command lists them.",
            [Series(queries.largest(of_mirror(f"{OPS}mirror_problems")), "problems")],
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
        ),
        panels.states(
            "Connectors",
            "State of each connector, as its worker reports it.",
            Series(connector, "{{connector}}"),
            panels.numbered(panels.CONNECTOR_STATES),
        ),
        panels.states(
            "Tasks",
            "State of each task, as its worker reports it; the gravest where two workers report one.",
            Series(task, "{{connector}} {{task}}"),
            panels.numbered(panels.CONNECTOR_STATES),
        ),
        panels.states(
            "Tasks, as Connect's REST interface reports them",
            "Whether each task runs, seen from outside: it is known too while no worker can be scraped.",
            Series(seen, "{{connector}} {{task}}"),
            panels.RUNNING,
        ),
        panels.graph(
            "Time that tasks run",
            "Share of time that each task is running and not paused.",
            [
                Series(
                    queries.mean(of_mirror(f"{CONNECT}connector_task_metrics_running_ratio"), "connector", "task"),
                    "{{connector}} {{task}}",
                )
            ],
            FieldConfig(unit=panels.FRACTION),
        ),
    ]


# Consumers name a topic with underscores for dots: a dot that is not escaped fits both.
_READ = 'topic=~"${topic:pipe}"'


def _topic() -> list[Panel]:
    by = ("topic", "partition")
    return [
        panels.graph(
            "Records copied, by partition",
            "Records of the topic that are copied in a second.",
            [Series(queries.rate(COPIED, *by), PARTITION)],
            FieldConfig(unit=panels.RECORDS_PER_SECOND),
            wide=8,
        ),
        panels.graph(
            "Bytes copied, by partition",
            "Bytes of the topic that are copied in a second.",
            [Series(queries.rate(BYTES, *by), PARTITION)],
            FieldConfig(unit=panels.BYTES_PER_SECOND),
            wide=8,
        ),
        panels.graph(
            "Not read yet, by partition",
            "Records of the topic at the source that the workers' consumers have yet to read. Empty "
            "where copies have another name than their source.",
            [
                Series(
                    queries.largest(of_mirror("kafka_consumer_consumer_fetch_manager_metrics_records_lag", _READ), *by),
                    PARTITION,
                )
            ],
            FieldConfig(unit=panels.RECORDS, steps=panels.LAG_RECORDS),
            wide=8,
        ),
        panels.graph(
            "Age of records when they are read, by partition",
            "Greatest time from a record's timestamp until a task read it.",
            [Series(queries.largest(of_mirror(f"{AGE}_max", TOPIC), *by), PARTITION)],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.LATENCY_MS),
            wide=12,
        ),
        panels.graph(
            "Replication latency, by partition",
            "Greatest time from a record's timestamp until it was written at the target.",
            [Series(queries.largest(of_mirror(f"{LATENCY}_max", TOPIC), *by), PARTITION)],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.LATENCY_MS),
            wide=12,
        ),
    ]
