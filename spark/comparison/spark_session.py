"""The Spark session of a run: its configuration, its JVM's life, and its start in the background.

Owns temporary folders, log level and jars of the JVM that it starts. Reads the environment through its arguments only.
If `spark-submit` started the job, the master, memory, jars and other configuration that it was given hold: this module
adds what the job needs, and sends the job's packages to executors on other machines.

A session starts while the run still waits for the mirror, and warms up by a comparison on made-up rows: the JVM has
loaded its classes, and Spark its workers, when the real records come.
"""

import os
import pwd
import shutil
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession

from kafka.topic_partition import TopicPartition
from spark.comparison import session_end
from spark.comparison.chunks import mask_bits
from spark.comparison.reading import SessionError
from spark.comparison.record_rows import hashed, window_sums
from spark.progress import Progress

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
NAMELESS = "verification"  # the name of a user whom the system does not know
REDACTED = "(?i)secret|password|token|credential|jaas|certificate|keystore|access[.]?key"
# What holds wherever the job runs.
REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    # The second version of the Kafka source gives rows as it reads them; the first converts each to Java and back.
    "spark.sql.sources.useV1SourceList": "",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),  # rows are four numbers: no need to measure each
    # Rows of this process beyond some thousands stay bytes until a task takes them. The optimizer would make objects of
    # them in the driver, 400 bytes for 70, several times: half a million records of both sides filled its heap.
    "spark.sql.execution.arrow.localRelationThreshold": "1m",
    # A consumer that is kept for later holds what it fetched ahead: keep few, and what they fetched not for long.
    "spark.kafka.consumer.cache.capacity": "8",
    "spark.kafka.consumer.fetchedData.cache.timeout": "5s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "2s",
    "kafka.errors.regex": REDACTED,
    "spark.sql.redaction.options.regex": REDACTED,
}
# What an endless job needs beside that: it reads the same partitions of both sides again and again, a little each time.
ENDLESS = {
    # A new consumer for a partition costs more than the records of some seconds.
    "spark.kafka.consumer.cache.capacity": "64",
    "spark.sql.shuffle.partitions": "1",  # sums of few rows
    # What Spark remembers of ended jobs grows for hours otherwise; nobody looks at it.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
}
ENDLESS_JAVA = (
    # Left alone, this collector takes all of the heap in the first half hour, where a third of it is enough.
    "-XX:NewSize=64m",
    "-XX:MaxNewSize=128m",
    "-XX:MinHeapFreeRatio=20",
    "-XX:MaxHeapFreeRatio=50",
    # The optimising compiler is for what runs for each record. By the JVM's own thresholds it optimises the planner
    # too, which runs a few times a minute, and takes more of a processor for it in the first hour than all records do.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
LOG4J = """rootLogger.level = off
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
logger.kafka.name = org.apache.kafka
logger.kafka.level = off
"""


def connector_jars(folder: Path) -> list[Path]:
    """Return the jars of a folder that PySpark does not bring itself; raises SessionError when the source is absent."""
    own = {_artifact(jar.name) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    jars = sorted(jar for jar in folder.glob("*.jar") if _artifact(jar.name) not in own)
    if not any(jar.name.startswith("spark-sql-kafka") for jar in jars):
        message = f"RT_INVENTORY_SPARK_JARS: must be a folder with {CONNECTOR} (got {folder}). Run make setup."
        raise SessionError(message)
    return jars


def _artifact(name: str) -> str:
    pieces = name.removesuffix(".jar").split("-")
    cut = next((n for n, piece in enumerate(pieces) if n and piece[:1].isdigit() and "." in piece), len(pieces))
    return "-".join(pieces[:cut])


@contextmanager
def session(
    environment: Mapping[str, str],
    *,
    small: bool = False,
    endless: bool = False,
    options: Sequence[str] = (),
    stop_s: float = session_end.STOP_S,
) -> Iterator[SparkSession]:
    """Yield a Spark session on this machine's cores; its JVM and all its folders are gone afterwards.

    A small job is over before an optimising compiler pays: it runs with the quick one only. An endless one reads little
    at a time. `options` are more options of its JVM, which must end within `stop_s`. Under `spark-submit` the session
    has the configuration that was submitted, with what the job needs; no option of the JVM counts.
    """
    needed = REQUIRED | (ENDLESS if endless else {})
    if is_submitted(environment):
        with _submitted_session(needed) as given:
            yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="rt-inventory-spark-"))
    spark: SparkSession | None = None
    try:
        log4j = folder / "log4j2.properties"
        log4j.write_text(LOG4J, encoding="utf-8")
        java = [f"-Dlog4j2.configurationFile={log4j.as_uri()}", f"-Djava.io.tmpdir={folder}", "-XX:-UsePerfData"]
        # A heap that is full ends the run: by default a JVM may collect for 98 % of its time, and hardly ever ends.
        java += ["-XX:+UseParallelGC", "-XX:GCTimeLimit=80", "-XX:GCHeapFreeLimit=10", *options]
        java.append("-XX:MetaspaceSize=256m")  # or the classes of a first job cost a collection of the whole heap
        if not _has_name():
            java.append(f"-Duser.home={folder}")  # nor a home, without which Spark's search for packages ends it
        if small:
            java.append("-XX:TieredStopAtLevel=1")
        if endless:
            java += ENDLESS_JAVA
        classes = environment.get("RT_INVENTORY_SPARK_CLASSES", "")
        if Path(classes).is_file():
            java.append(f'"-XX:SharedArchiveFile={classes}"')  # one that does not fit is passed over
        settings = {
            "spark.driver.memory": environment.get("RT_INVENTORY_SPARK_MEMORY", "1g"),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": " ".join(java),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.eventLog.enabled": "false",
            "spark.local.dir": str(folder),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.adaptive.enabled": "false",
            **needed,
        }
        if (jars := environment.get("RT_INVENTORY_SPARK_JARS")) is not None:  # empty too: a pipeline that found none
            settings["spark.driver.extraClassPath"] = ":".join(str(jar) for jar in connector_jars(Path(jars)))
        else:
            settings["spark.jars.packages"] = CONNECTOR
        cores = environment.get("RT_INVENTORY_SPARK_CORES", "*")
        settings |= {"spark.master": f"local[{cores}]", "spark.app.name": "verification"}
        try:
            spark = _started(settings, folder / "jvm.log")
        except Exception as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            message = f"Spark: must start (got {text}). Check JAVA_HOME (Java 17 or later) and the free memory."
            raise SessionError(message) from None
        yield spark
    finally:
        with ExitStack() as parts:
            parts.callback(shutil.rmtree, folder, ignore_errors=True)
            if spark is not None:
                parts.callback(session_end.end_jvm, spark.sparkContext._gateway, stop_s)
                parts.callback(session_end.stop, spark, stop_s)
                if not options:  # which may be for the end of the JVM
                    parts.callback(session_end.kill_jvm, spark.sparkContext._gateway)


def _started(settings: Mapping[str, str], log: Path) -> SparkSession:
    """Start the JVM with its output in a file: it is of no use to the reader of the verdict."""
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with log.open("wb") as file:
        gateway = launch_gateway(conf, {"stdout": file, "stderr": file})  # type: ignore[no-untyped-call]
    try:
        if not _has_name():
            users = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
            users.setLoginUser(users.createRemoteUser(NAMELESS))
        spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
        session_end.silence_py4j(spark)
        spark.sparkContext.setLogLevel("OFF")
        spark.sparkContext.pythonExec = sys.executable
    except BaseException:
        session_end.end_jvm(gateway)
        raise
    return spark


def _has_name() -> bool:
    """Return whether the system has a name for this user id. Containers run as any id; Hadoop's login needs a name."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return True


PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("contract", "kafka", "spark")  # what functions on executors may import
SOURCE = "org.apache.spark.sql.kafka010.KafkaSourceProvider"  # of the Kafka connector
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
SUBMITTED_DEFAULTS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "false",
}


def is_submitted(environment: Mapping[str, str]) -> bool:
    """Whether `spark-submit` started this process: its JVM then waits for the job at a port."""
    return "PYSPARK_GATEWAY_PORT" in environment


@contextmanager
def _submitted_session(needed: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a session with the configuration that was submitted, and with what is needed whatever that says.

    The JVM is there before the job and ends after it. Raises SessionError if Spark does not start or has no connector.
    """
    folder = Path(tempfile.mkdtemp(prefix="rt-inventory-spark-"))
    spark: SparkSession | None = None
    try:
        try:
            spark = SparkSession.Builder().config(conf=_configuration(folder, needed)).getOrCreate()
        except Exception as error:
            message = f"Spark: must start as submitted (got {_reason(error)}). Check --master and the --conf options."
            raise SessionError(message) from None
        context = spark.sparkContext
        context.setLogLevel("ERROR")
        _require_connector(context)
        if SHUFFLE_PARTITIONS not in dict(context.getConf().getAll()):
            spark.conf.set(SHUFFLE_PARTITIONS, max(4, context.defaultParallelism))
        if not str(context.master).startswith("local"):
            _send_package(context, folder)
        yield spark
    finally:
        with ExitStack() as parts:
            parts.callback(shutil.rmtree, folder, ignore_errors=True)
            if spark is not None:
                parts.callback(session_end.stop, spark)


def _configuration(folder: Path, needed: Mapping[str, str]) -> SparkConf:
    SparkContext._ensure_initialized()
    found = SparkConf()  # with everything that was submitted, since the JVM is known
    for name, value in {**SUBMITTED_DEFAULTS, "spark.sql.warehouse.dir": str(folder / "warehouse")}.items():
        found.setIfMissing(name, value)
    for name, value in needed.items():
        found.set(name, value)
    return found


def _reason(error: Exception) -> str:
    """The Java exception, which py4j has on its second line, else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


def _require_connector(context: SparkContext) -> None:
    loader = context._jvm.org.apache.spark.util.Utils  # type: ignore[union-attr]  # there once a context is
    if not loader.classIsLoadable(SOURCE):
        raise SessionError(
            f"spark-submit: must be given the Kafka connector (got a class path without {SOURCE}). "
            f"Add --packages {CONNECTOR}, or its jars by --jars."
        )


def _send_package(context: SparkContext, folder: Path) -> None:
    """Executors on other machines run functions of these packages. Those that came as --py-files are there already."""
    if (PROJECT / PACKAGES[-1]).is_dir():
        context.addPyFile(str(archive(folder)))


def archive(folder: Path) -> Path:
    """Write the packages of the job into a zip file in `folder`, as `--py-files` takes it; return its path."""
    path = folder / "verification.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for package in PACKAGES:
            for file in sorted((PROJECT / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    written.write(file, file.relative_to(PROJECT))
    return path


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
