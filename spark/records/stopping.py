"""Ends a Spark session: every part of it, whatever became of the JVM.

A JVM that was killed refuses, one that hangs never answers. Neither may hide the error that ended the run.
"""

import contextlib
import logging
import signal
import subprocess
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from threading import Thread
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

STOP_S = 10
DEAD_S = 2  # from a lost connection to the end of its process


def stop(spark: SparkSession, within_s: float = STOP_S) -> None:
    """Stop a session and its context; the JVM stays."""
    # Without a JVM the session's stop leaves its context half stopped: the second call ends the rest.
    _within(within_s, spark.stop, spark.sparkContext.stop)


def leave(gateway: Any, within_s: float = STOP_S) -> None:
    """End the JVM behind a gateway, which leaves when its standard input closes; it is killed if it does not."""
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    with ExitStack() as parts:
        if process is not None:
            parts.callback(_end, process, within_s)
        parts.callback(_forget, gateway)
        parts.callback(_within, within_s, gateway.shutdown)


def death(spark: SparkSession) -> str | None:
    """Return how the JVM of a session ended, None if it lives or is not ours to know."""
    process: subprocess.Popen[bytes] | None = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        code = process.wait(DEAD_S)
    except subprocess.TimeoutExpired:
        return None
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def quiet(spark: SparkSession) -> None:
    """Let the loss of the JVM leave no trace on standard error: who called it gets the error, and tells it."""
    logging.getLogger().addFilter(_not_of_py4j)
    server: Any = spark.sparkContext._accumulatorServer
    server.handle_error = lambda request, address: None


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """py4j logs a lost connection with its trace, by the root logger itself."""
    return record.module != "java_gateway"


def _within(seconds: float, *parts: Callable[[], object]) -> None:
    def do() -> None:
        for part in parts:
            with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
                part()

    thread = Thread(target=do, name="stop Spark", daemon=True)
    thread.start()
    thread.join(seconds)


def _forget(gateway: Any) -> None:
    """PySpark keeps a gateway for the next session of its process, which then would find no JVM behind it."""
    if SparkContext._gateway is gateway:
        SparkContext._gateway = SparkContext._jvm = None


def _end(process: "subprocess.Popen[bytes]", within_s: float) -> None:
    try:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        process.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
