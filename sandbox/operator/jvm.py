"""Command lines of the Java processes: small heaps, one log format, no secret among the arguments."""

from dataclasses import dataclass
from pathlib import Path

from .files import write_private

BROKER_HEAP_MIB = 256
CONNECT_HEAP_MIB = 384
TOOL_HEAP_MIB = 128

_LOGGING = """\
status = warn
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %X{connector.context}%m (%c:%L)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
logger.reflections.name = org.reflections
logger.reflections.level = error
# These print whole configurations at INFO, hundreds of lines at every start of a client.
logger.clients.name = org.apache.kafka.common.config.AbstractConfig
logger.clients.level = warn
"""


@dataclass(frozen=True)
class Jvm:
    """The Java binary, Kafka's jars and the logging configuration that all processes share."""

    java: Path
    kafka_libs: Path
    logging: Path

    def command(self, main: str, *arguments: str, heap_mib: int) -> list[str]:
        """Argument list that runs the class `main` with Kafka's class path."""
        return [
            str(self.java),
            f"-Xms{min(heap_mib, 128)}m",
            f"-Xmx{heap_mib}m",
            # Two cores are shared by five of these: one compiler tier and one collector thread start and idle cheapest.
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={self.logging}",
            "-cp",
            f"{self.kafka_libs}/*",
            main,
            *arguments,
        ]


def shared_jvm(java: Path, kafka_libs: Path, folder: Path) -> Jvm:
    """A `Jvm` whose logging configuration is written into `folder`."""
    logging = folder / "log4j2.properties"
    write_private(logging, _LOGGING)
    return Jvm(java=java, kafka_libs=kafka_libs, logging=logging)


def kafka_version(kafka_libs: Path) -> str:
    """Version of Kafka in the folder of jars, for example 4.3.1; raises FileNotFoundError if there is none."""
    for jar in sorted(kafka_libs.glob("kafka-clients-*.jar")):
        return jar.stem.removeprefix("kafka-clients-")
    raise FileNotFoundError(f"{kafka_libs}: holds no kafka-clients jar. Run make setup.")
