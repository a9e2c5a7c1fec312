"""Command lines of the Java processes: small heaps, one log format, no secret among the arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .class_archives import ClassArchives
from .errors import OperatorError
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


class UnknownVersionError(OperatorError):
    """No jars of that Kafka version are installed."""


@dataclass(frozen=True)
class Jvm:
    """The Java binary, Kafka's jars and the logging configuration that all processes share.

    Brokers and tools run from `kafka_libs`. `kafka_versions` (version → folder of jars) are the versions that a Connect
    worker can run. Without `archives` every process loads its classes from the jars.
    """

    java: Path
    kafka_libs: Path
    kafka_versions: Mapping[str, Path]
    logging: Path
    archives: ClassArchives | None = None

    def versions(self) -> list[str]:
        """The Kafka versions that a Connect worker can run, oldest first."""
        return sorted(self.kafka_versions, key=lambda version: [int(part) for part in version.split(".")])

    def class_path(self, version: str | None = None) -> str:
        """Class path of a Kafka version, by default of the brokers' one; raises UnknownVersionError."""
        if version is None:
            return f"{self.kafka_libs}/*"
        if version not in self.kafka_versions:
            raise UnknownVersionError(
                f"Kafka: version must be an installed one (got {version}, allowed {', '.join(self.versions())}). "
                "Choose one of these."
            )
        return f"{self.kafka_versions[version]}/*"

    def command(
        self, main: str, *arguments: str, heap_mib: int, version: str | None = None, more_libs: Path | None = None
    ) -> list[str]:
        """Argument list that runs the class `main` of a Kafka version, by default of the brokers' one.

        `more_libs` is a folder of jars that come after Kafka's.
        """
        class_path = self.class_path(version) + (f":{more_libs}/*" if more_libs else "")
        return [
            str(self.java),
            *(self.archives.options(main, class_path) if self.archives else []),
            f"-Xms{min(heap_mib, 128)}m",
            f"-Xmx{heap_mib}m",
            # Two cores are shared by five of these: one compiler tier and one collector thread start and idle cheapest.
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",  # is sampled twenty times a second, for tools that nobody uses here
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={self.logging}",
            "-cp",
            class_path,
            main,
            *arguments,
        ]


def shared_jvm(
    java: Path, kafka_libs: Path, kafka_versions: Mapping[str, Path], folder: Path, class_archives: Path
) -> Jvm:
    """A `Jvm` whose logging configuration is written into `folder`, and its class archives into `class_archives`."""
    logging = folder / "log4j2.properties"
    write_private(logging, _LOGGING)
    archives = ClassArchives(java, class_archives, lists=folder / "classes")
    return Jvm(java=java, kafka_libs=kafka_libs, kafka_versions=kafka_versions, logging=logging, archives=archives)


def kafka_version(kafka_libs: Path) -> str:
    """Version of Kafka in the folder of jars, for example 4.3.1; raises FileNotFoundError if there is none."""
    for jar in sorted(kafka_libs.glob("kafka-clients-*.jar")):
        return jar.stem.removeprefix("kafka-clients-")
    raise FileNotFoundError(f"{kafka_libs}: holds no kafka-clients jar. Run make setup.")
