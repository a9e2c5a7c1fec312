"""How the workers of one mirror do: errors, offset commits, rebalances, and the processes themselves."""

from monitoring.dashboards import panels, queries
from monitoring.dashboards.panels import FieldConfig, Panel, Series
from monitoring.dashboards.queries import CONNECT, of_mirror

TASK, TASKS, POD = "{{connector}} {{task}}", ("connector", "task"), "{{pod}}"
ERRORS, OF_TASK = f"{CONNECT}task_error_metrics_", f"{CONNECT}connector_task_metrics_"
OF_SOURCE, WORKER = f"{CONNECT}source_task_metrics_", f"{CONNECT}connect_worker_metrics_"
REBALANCE = f"{CONNECT}connect_worker_rebalance_metrics_"


def errors() -> list[Panel]:
    """Return panels of errors with records, and of connectors and tasks that did not start."""
    kinds = {
        "total_record_errors": "failed attempts",
        "total_record_failures": "failed for good",
        "total_records_skipped": "left out",
        "total_retries": "tried again",
    }
    when = of_mirror(f"{ERRORS}last_error_timestamp")
    return [
        panels.graph(
            "Errors with records",
            "Records whose copying failed, around each point. One that failed for good stops its task; one that is "
            "left out is lost.",
            [Series(queries.growth(of_mirror(ERRORS + name)), legend) for name, legend in kinds.items()],
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
            wide=10,
        ),
        panels.graph(
            "Starts that failed",
            "Connectors and tasks that a worker could not start, around each point.",
            [
                Series(queries.growth(of_mirror(f"{WORKER}connector_startup_failure")), "connectors"),
                Series(queries.growth(of_mirror(f"{WORKER}task_startup_failure")), "tasks"),
            ],
            FieldConfig(unit=panels.NUMBER, steps=panels.NONE_WISHED),
            wide=8,
        ),
        panels.number(
            "Since the last error",
            "Time since a record last failed in any task; never, if none did since the tasks started.",
            Series(f"time() - max({when} > 0) / 1000 or max({when}) * 0 - 1", "last error"),
            FieldConfig(unit=panels.SECONDS, mappings=panels.NEVER),
            wide=6,
            high=8,
        ),
    ]


def commits() -> list[Panel]:
    """Return panels of the tasks' offset commits and of the size of their batches."""
    return [
        panels.graph(
            "Offset commits that failed",
            "Share of a task's commits that failed. What is not committed is copied again after a restart.",
            [Series(queries.largest(of_mirror(f"{OF_TASK}offset_commit_failure_percentage"), *TASKS), TASK)],
            FieldConfig(unit=panels.FRACTION, steps=panels.COMMIT_FAILURES),
            wide=8,
        ),
        panels.graph(
            "Offset commits that succeeded",
            "Share of a task's commits that succeeded.",
            [Series(queries.smallest(of_mirror(f"{OF_TASK}offset_commit_success_percentage"), *TASKS), TASK)],
            FieldConfig(unit=panels.FRACTION),
            wide=8,
        ),
        panels.graph(
            "Time of an offset commit",
            "How long a task needs to commit its offsets.",
            [
                Series(queries.mean(of_mirror(f"{OF_TASK}offset_commit_avg_time_ms")), "average"),
                Series(queries.largest(of_mirror(f"{OF_TASK}offset_commit_max_time_ms")), "greatest"),
            ],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.COMMIT_MS),
            wide=8,
        ),
        panels.graph(
            "Read and not written yet",
            "Records that a task has read and whose write is not confirmed yet. It grows when the target is slow.",
            [Series(queries.largest(of_mirror(f"{OF_SOURCE}source_record_active_count"), *TASKS), TASK)],
            FieldConfig(unit=panels.RECORDS),
            wide=8,
        ),
        panels.graph(
            "Records in a batch",
            "Average number of records that a task gets at once.",
            [Series(queries.mean(of_mirror(f"{OF_TASK}batch_size_avg"), *TASKS), TASK)],
            FieldConfig(unit=panels.RECORDS),
            wide=8,
        ),
        panels.graph(
            "Time to read a batch",
            "Average time that a task waits for records of the source.",
            [Series(queries.mean(of_mirror(f"{OF_SOURCE}poll_batch_avg_time_ms"), *TASKS), TASK)],
            FieldConfig(unit=panels.MILLISECONDS),
            wide=8,
        ),
    ]


def workers() -> list[Panel]:
    """Return panels of rebalances, of the tasks of each worker, and of the resources that it uses."""
    heap = (of_mirror(f"jvm_memory_{what}_bytes", 'area="heap"') for what in ("used", "max"))
    return [
        panels.states(
            "Rebalancing",
            "While workers rebalance they hand tasks over, and those copy nothing.",
            Series(queries.largest(of_mirror(f"{REBALANCE}rebalancing"), "pod"), POD),
            panels.REBALANCING,
            wide=8,
        ),
        panels.graph(
            "Rebalances",
            "Rebalances that were completed around each point.",
            [Series(queries.growth(of_mirror(f"{REBALANCE}completed_rebalances"), "pod"), POD)],
            FieldConfig(unit=panels.NUMBER),
            wide=8,
        ),
        panels.graph(
            "Time of a rebalance",
            "Average time that a rebalance takes.",
            [Series(queries.mean(of_mirror(f"{REBALANCE}rebalance_avg_time_ms"), "pod"), POD)],
            FieldConfig(unit=panels.MILLISECONDS, steps=panels.REBALANCE_MS),
            wide=8,
        ),
        panels.graph(
            "Since the last rebalance",
            "Time since the workers last shared their tasks anew.",
            [Series(queries.smallest(of_mirror(f"{REBALANCE}time_since_last_rebalance_ms"), "pod"), POD)],
            FieldConfig(unit=panels.MILLISECONDS),
            wide=8,
        ),
        panels.graph(
            "Tasks, by worker",
            "Tasks that run on each worker. They are shared evenly unless a worker has just come.",
            [Series(queries.largest(of_mirror(f"{WORKER}task_count"), "pod"), POD)],
            FieldConfig(unit=panels.NUMBER),
            wide=8,
            stacked=True,
        ),
        panels.graph(
            "Connectors, by worker",
            "Connectors that run on each worker.",
            [Series(queries.largest(of_mirror(f"{WORKER}connector_count"), "pod"), POD)],
            FieldConfig(unit=panels.NUMBER),
            wide=8,
            stacked=True,
        ),
        panels.graph(
            "Heap in use",
            "Share of the heap that is in use. Steadily near its end: give the workers more, see `ops size`.",
            [Series(f"max by (pod) ({' / '.join(heap)})", POD)],
            FieldConfig(unit=panels.FRACTION, steps=panels.MEMORY),
            wide=8,
        ),
        panels.graph(
            "Collecting garbage",
            "Share of time that the collector takes.",
            [Series(queries.rate(of_mirror("jvm_gc_collection_seconds_sum"), "pod"), POD)],
            FieldConfig(unit=panels.FRACTION, steps=panels.GARBAGE),
            wide=8,
        ),
        panels.graph(
            "Processors",
            "Processors that each worker uses.",
            [Series(queries.rate(of_mirror("process_cpu_seconds_total"), "pod"), POD)],
            FieldConfig(unit=panels.NUMBER, decimals=2),
            wide=8,
        ),
    ]
