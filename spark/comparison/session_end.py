"""Ends a Spark session, every part of it whatever became of the JVM, and explains why one failed.

The message of a failed job names the cluster, the user and the remedy, as the same error of a cluster does. A JVM that
was killed refuses, one that hangs never answers. Neither may hide the error that ended the run.
"""

import contextlib
import logging
import re
import signal
import subprocess
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from threading import Thread
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from contract.verification_request import ClusterConfig, Request
from kafka.errors import redact

STOP_S = 10
DEAD_S = 2  # from a lost connection to the end of its process


def stop(spark: SparkSession, within_s: float = STOP_S) -> None:
    """Stop a session and its context; the JVM stays."""
    # Without a JVM the session's stop leaves its context half stopped: the second call ends the rest.
    _within(within_s, spark.stop, spark.sparkContext.stop)


def end_jvm(gateway: Any, within_s: float = STOP_S) -> None:
    """End the JVM behind a gateway, which leaves when its standard input closes; it is killed if it does not."""
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    with ExitStack() as parts:
        if process is not None:
            parts.callback(_end, process, within_s)
        parts.callback(_forget, gateway)
        parts.callback(_within, within_s, gateway.shutdown)


def kill_jvm(gateway: Any) -> None:
    """Kill the JVM behind a gateway: it holds nothing that outlives it, and its own way to end takes a second."""
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()


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


def silence_py4j(spark: SparkSession) -> None:
    """Keep the loss of the JVM off standard error: the caller gets the error and reports it."""
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


TEXT_MAX = 400
_TRUST = "Check ssl.ca.pem (the cluster CA certificate) and the certificates' dates."
_UP = "Check that its brokers stay up and that their advertised listeners can be reached from where Spark runs."
_MEMORY = (
    "SIGKILL usually means that the machine or the container ran out of memory: give it more, "
    "or lower RT_INVENTORY_SPARK_MEMORY or RT_INVENTORY_SPARK_CORES."
)
_TOO_OLD = (
    "Set RT_INVENTORY_SPARK_ABOVE to more records than both sides hold, so that the run needs no Spark to read them."
)
_POSITION = r"(?:position for partition|last committed offset for partitions) \[?([\w.,\- ]+?)\]?"
Explanation = tuple[str, str]  # what is wrong, what to do


def message(error: Exception, request: Request, death: str | None = None) -> str:
    """Return one line that says which cluster kept Spark from reading, why, and what to do; holds no secret.

    `death` is how the JVM ended, if it did: then no cluster is to blame.
    """
    if death is not None:
        return f"Spark: its JVM must live until the end (got {death}). {_MEMORY}"
    text = str(error)
    what, fix = _explanation(text, request) or (f"cannot read the records: {_cause(text, error)}", _UP)
    line = f"{_cluster_of(text, request)}: {what}. {fix}"
    return " ".join(redact(line, request.secrets).split())


def _explanation(text: str, request: Request) -> Explanation | None:
    """Return what is wrong and what to do, for those exceptions of Kafka's Java client that a user can act on."""
    user = _users(text, request)
    if found := re.search(r"TopicAuthorizationException.*?\[([^\]]*)\]", text):
        topics = found.group(1)
        return f"user {user} may not Read topic {topics}", f"Grant Read on topic {topics}."
    if found := re.search(r"GroupAuthorizationException.*?group: (\S+)", text):
        return f"user {user} may not Read group {found.group(1)}", f"Grant Read on group {found.group(1)}."
    if "SaslAuthenticationException" in text:
        return f"user {user}: authentication failed", "Check sasl.username, sasl.password and sasl.mechanism."
    if "SslAuthenticationException" in text or "SSLHandshakeException" in text:
        return "the TLS handshake failed", _TRUST
    if found := re.search(r"Cannot fetch record for offset (\d+) in (\d+) milliseconds", text):
        seconds = int(found.group(2)) // 1000
        return f"no record came from offset {found.group(1)} on within {seconds} s", _UP
    if found := re.search(rf"Timeout of (\d+)ms expired before the {_POSITION} could be determined", text):
        return f"no broker returned the position of {found.group(2)} within {int(found.group(1)) // 1000} s", _UP
    if "OffsetOutOfRange" in text:
        return (
            "records were deleted while they were read",
            "Verify again; if it repeats, raise the topic's retention above the time that a run takes.",
        )
    if re.search(r"TimeoutException|DisconnectException|TimeoutError", text):
        return f"does not answer any more ({_cause(text, None)})", _UP
    if "ArithmeticException: long overflow" in text:
        return "the timestamp of a record lies too far in the past for Spark", _TOO_OLD
    if "OutOfMemoryError" in text:
        return "Spark ran out of memory", "Raise RT_INVENTORY_SPARK_MEMORY."
    return None


def _cause(text: str, error: Exception | None) -> str:
    """Return the innermost cause that a Java trace names, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    named = [
        line for line in lines if re.match(r"^[\w.$]*(?:org\.apache\.kafka|java)\.[\w.$]+(?:Exception|Error)", line)
    ]
    found = (causes[-1:] or named[-1:] or lines[:1] or [type(error).__name__ if error is not None else "no reason"])[0]
    return found.removeprefix("Caused by:").strip()[:TEXT_MAX]


def _side(text: str, request: Request) -> ClusterConfig | None:
    """Return the side that a trace is about, None if it names the bootstrap servers of neither or of both."""
    sides = [side for side in (request.source, request.target) if _names(text, side)]
    return sides[0] if len(sides) == 1 else None


def _names(text: str, side: ClusterConfig) -> bool:
    servers = (server.strip() for server in side.client_config.get("bootstrap.servers", "").split(","))
    return any(server and server in text for server in servers)


def _cluster_of(text: str, request: Request) -> str:
    side = _side(text, request)
    shown = [side] if side is not None else [request.source, request.target]
    return " or ".join(
        f"{one.role} {one.alias} ({one.client_config.get('bootstrap.servers', '')}, user {one.user})" for one in shown
    )


def _users(text: str, request: Request) -> str:
    side = _side(text, request)
    users = [side.user] if side is not None else [request.source.user, request.target.user]
    return " or ".join(dict.fromkeys(users))
