"""The Spark session of a run: it starts and warms up in the background while the run still waits for the mirror.

The warm-up runs a comparison on made-up rows: the JVM has loaded its classes, and Spark its workers, when the real
records come.
"""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from types import TracebackType

from pyspark.sql import DataFrame, SparkSession

from kafka.topic_partition import TopicPartition
from spark.comparison.chunks import mask_bits
from spark.comparison.record_rows import hashed, window_sums
from spark.comparison.sources import session
from spark.progress import Progress

TOPIC, RECORDS = "made-up", 1000
ROWS = f"""
SELECT '{TOPIC}' AS topic, 0 AS partition, id AS offset, timestamp_millis(id) AS timestamp,
       CAST(NULL AS BINARY) AS key, CAST(CAST(id AS STRING) AS BINARY) AS value,
       array(struct('name' AS key, CAST('value' AS BINARY) AS value)) AS headers
FROM range({RECORDS})
"""  # noqa: S608 - made of this module's own words


def warm(spark: SparkSession) -> None:
    """Add up the windows of made-up rows."""
    rows = made_up(spark)
    window_sums({"before": (rows, 0), "target": (rows, 0)}, [TopicPartition(TOPIC, 0)], mask_bits(RECORDS))


def made_up(spark: SparkSession) -> DataFrame:
    """Records as a comparison gets them: with the digest and the hashes of their parts."""
    return hashed(spark.sql(ROWS))


LEFT_WITHIN_S = 60  # for a start that nobody waits for any more


class SessionStart:
    """A session that is begun once, by `begin` or the first `session`, and stopped by `end` or with the block."""

    def __init__(self, environment: Mapping[str, str], progress: Progress) -> None:
        self._environment = environment
        self._progress = progress
        self._stack = ExitStack()
        self._begun: Future[SparkSession] | None = None
        self._ended: Future[None] | None = None
        self._awaited = threading.Event()
        self._left = threading.Event()

    def __enter__(self) -> "SessionStart":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end().result()

    def begin(self, *, small: bool) -> "Future[SparkSession]":
        """Let the session start, unless it was begun before; returns at once what will hold it, or a SessionError."""
        if self._begun is None:
            self._begun = Future()
            threading.Thread(target=self._start, args=(self._begun, small), name="start Spark", daemon=True).start()
        return self._begun

    def session(self, *, small: bool) -> SparkSession:
        """Return the session once it has started; raises SessionError if it does not."""
        self._awaited.set()
        return self.begin(small=small).result()

    def end(self) -> "Future[None]":
        """Stop the session in the background, for nobody asks it any more; the end of the block waits until it is gone.

        The last parts of a run, which need no Spark, do not wait for the end of its JVM.
        """
        if self._ended is None:
            self._ended = Future()
            self._left.set()
            # No daemon: a process that ends early must not leave its JVM.
            threading.Thread(target=self._end, args=(self._ended,), name="end Spark").start()
        return self._ended

    def _end(self, ended: "Future[None]") -> None:
        try:
            if self._begun is not None:
                with suppress(TimeoutError):  # a start that hangs must not hide why the run ended
                    self._begun.exception(timeout=LEFT_WITHIN_S)
            self._stack.close()
            ended.set_result(None)
        except BaseException as error:
            ended.set_exception(error)

    def _start(self, begun: "Future[SparkSession]", small: bool) -> None:
        try:
            began = time.monotonic()
            spark = self._stack.enter_context(session(self._environment, small=small))
            self._progress.step("start Spark", began)
            if not self._awaited.is_set() and not self._left.is_set():
                began = time.monotonic()
                warm(spark)
                self._progress.step("warm Spark up", began)
            begun.set_result(spark)
        except BaseException as error:
            begun.set_exception(error)
