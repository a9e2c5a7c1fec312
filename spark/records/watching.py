"""Tells how far the reading of records is, from the tasks that Spark has finished."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships no types
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark.progress import Progress

LOOK_S = 0.5
_numbers = count(1)


@contextmanager
def watched(spark: SparkSession, progress: Progress, stage: str, partitions: int, records: int) -> Iterator[None]:
    """Advance the progress while the jobs of this block run; they read this many partitions and records."""
    group = f"rt-inventory-{next(_numbers)}"
    context = spark.sparkContext
    context.setJobGroup(group, stage)
    progress.stage(stage)
    ended = Event()
    looker = Thread(target=_look, args=(context, group, progress, partitions, records, ended), daemon=True)
    looker.start()
    try:
        yield
    finally:
        ended.set()
        looker.join()


def _look(context: SparkContext, group: str, progress: Progress, partitions: int, records: int, ended: Event) -> None:
    while not ended.wait(LOOK_S):
        try:
            done = share(context, group)
        except (Py4JError, OSError):  # who runs the jobs gets the error too, and tells it
            return
        progress.advance(int(done * partitions), partitions, int(done * records), records)


def share(context: SparkContext, group: str) -> float:
    """Return which part of the tasks of a job group has finished, 0 while none is known."""
    tracker = context.statusTracker()
    tasks = finished = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            one = tracker.getStageInfo(stage)
            if one is not None:
                tasks, finished = tasks + one.numTasks, finished + one.numCompletedTasks
    return finished / tasks if tasks else 0.0
