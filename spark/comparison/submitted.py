"""The session of a job that `spark-submit` started: its master, memory, jars and other configuration hold.

Owns what the job adds to them, and how its package reaches executors on other machines. Does not own the JVM: it is
there before the job and ends after it.
"""

import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark.comparison import session_end
from spark.errors import SessionError

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("contract", "kafka", "spark")  # what functions on executors may import
SOURCE = "org.apache.spark.sql.kafka010.KafkaSourceProvider"  # of the Kafka connector
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
DEFAULTS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "false",
}


def is_submitted(environment: Mapping[str, str]) -> bool:
    """Whether `spark-submit` started this process: its JVM then waits for the job at a port."""
    return "PYSPARK_GATEWAY_PORT" in environment


@contextmanager
def session(required: Mapping[str, str], connector: str) -> Iterator[SparkSession]:
    """Yield a session with the configuration that was submitted, and with `required` whatever that says.

    Raises SessionError if Spark does not start or has no Kafka connector; `connector` is what to submit it with.
    """
    folder = Path(tempfile.mkdtemp(prefix="rt-inventory-spark-"))
    spark: SparkSession | None = None
    try:
        try:
            spark = SparkSession.Builder().config(conf=_configuration(required, folder)).getOrCreate()
        except Exception as error:
            message = f"Spark: must start as submitted (got {_reason(error)}). Check --master and the --conf options."
            raise SessionError(message) from None
        context = spark.sparkContext
        context.setLogLevel("ERROR")
        _require_connector(context, connector)
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


def _configuration(required: Mapping[str, str], folder: Path) -> SparkConf:
    SparkContext._ensure_initialized()
    found = SparkConf()  # with everything that was submitted, since the JVM is known
    for name, value in {**DEFAULTS, "spark.sql.warehouse.dir": str(folder / "warehouse")}.items():
        found.setIfMissing(name, value)
    for name, value in required.items():
        found.set(name, value)
    return found


def _reason(error: Exception) -> str:
    """The Java exception, which py4j has on its second line, else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


def _require_connector(context: SparkContext, connector: str) -> None:
    loader = context._jvm.org.apache.spark.util.Utils  # type: ignore[union-attr]  # there once a context is
    if not loader.classIsLoadable(SOURCE):
        raise SessionError(
            f"spark-submit: must be given the Kafka connector (got a class path without {SOURCE}). "
            f"Add --packages {connector}, or its jars by --jars."
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
