"""Jars from Maven Central, resolved by Maven itself."""

from collections.abc import Sequence
from html import escape  # xml.sax.saxutils loads an HTTP client
from pathlib import Path

from . import pins
from .cache import Entry, key_of
from .commands import Commands
from .place import Place
from .steps import Step

LIBS = "libs"
# Maven is over before an optimising compiler pays: half the processor time. What the user has set comes after.
BRIEF_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
KAFKA = (
    f"org.apache.kafka:kafka_{pins.SCALA}:{pins.KAFKA}",
    f"org.apache.kafka:kafka-tools:{pins.KAFKA}",
    f"org.apache.kafka:connect-runtime:{pins.KAFKA}",
    f"org.apache.kafka:connect-mirror:{pins.KAFKA}",
    f"org.apache.kafka:connect-json:{pins.KAFKA}",
    f"org.apache.logging.log4j:log4j-slf4j-impl:{pins.LOG4J}",
)
# What runs a Connect worker, and no more.
KAFKA_BEFORE = (
    f"org.apache.kafka:connect-runtime:{pins.KAFKA_BEFORE}",
    f"org.apache.kafka:connect-mirror:{pins.KAFKA_BEFORE}",
    f"org.apache.kafka:connect-json:{pins.KAFKA_BEFORE}",
    f"org.apache.logging.log4j:log4j-slf4j-impl:{pins.LOG4J}",
)
SPARK = (f"org.apache.spark:spark-sql-kafka-0-10_{pins.SCALA}:{pins.SPARK}",)
JMX_EXPORTER = (f"io.prometheus.jmx:jmx_prometheus_javaagent:{pins.JMX_EXPORTER}",)
# What Connect workers and MirrorMaker's connectors export with; the part for brokers is not published there.
METRICS_REPORTER = (f"io.strimzi:client-metrics-reporter:{pins.METRICS_REPORTER}",)
# The generator's jar carries what it needs.
STRIMZI = (f"io.strimzi:crd-generator:{pins.STRIMZI}", f"io.strimzi:api:{pins.STRIMZI}")

STRIMZI_V1BETA2 = (f"io.strimzi:crd-generator:{pins.STRIMZI_V1BETA2}", f"io.strimzi:api:{pins.STRIMZI_V1BETA2}")
EVENT_STREAMS = (
    f"io.strimzi:crd-generator:{pins.EVENT_STREAMS_GENERATOR}",
    f"io.strimzi:api:{pins.EVENT_STREAMS_BASE}",
    # Schemas of Kubernetes' own types (affinity, tolerations) come from the classes that this API was compiled with.
    f"io.fabric8:kubernetes-model-core:{pins.KUBERNETES_MODEL}",
    f"io.fabric8:kubernetes-model-common:{pins.KUBERNETES_MODEL}",
)


def kafka(place: Place) -> Entry:
    """Kafka, its tools, Connect and MirrorMaker 2."""
    return _entry(place, "kafka", pins.KAFKA, KAFKA)


def kafka_before(place: Place) -> Entry:
    """Connect and MirrorMaker 2 of the Kafka version before."""
    return _entry(place, "kafka-before", pins.KAFKA_BEFORE, KAFKA_BEFORE)


def spark(place: Place) -> Entry:
    """Spark's Kafka connector with what it needs."""
    return _entry(place, "spark", pins.SPARK, SPARK)


def jmx_exporter(place: Place) -> Entry:
    """The JMX exporter's Java agent."""
    return _entry(place, "jmx-exporter", pins.JMX_EXPORTER, JMX_EXPORTER)


def metrics_reporter(place: Place) -> Entry:
    """Strimzi's Metrics Reporter for Kafka's clients."""
    return _entry(place, "metrics-reporter", pins.METRICS_REPORTER, METRICS_REPORTER)


def strimzi(place: Place) -> Entry:
    """Strimzi's CRD generator and the API classes it reads."""
    return _entry(place, "strimzi-generator", pins.STRIMZI, STRIMZI)


def strimzi_v1beta2(place: Place) -> Entry:
    """The CRD generator and API classes of the last Strimzi that a v1beta2 stack is written for."""
    return _entry(place, "strimzi-v1beta2-generator", pins.STRIMZI_V1BETA2, STRIMZI_V1BETA2)


def event_streams(place: Place) -> Entry:
    """A CRD generator and the API classes of the Strimzi release below Event Streams."""
    return _entry(place, "event-streams-generator", pins.EVENT_STREAMS_BASE, EVENT_STREAMS)


def class_path(generator: Entry) -> str:
    """Class path of a CRD generator's entry: its own jar, which carries classes of other libraries, comes last."""
    jars = sorted((generator.path / LIBS).glob("*.jar"), key=_carries_others)
    return ":".join(str(jar) for jar in jars)


def _carries_others(jar: Path) -> tuple[bool, str]:
    return jar.name.startswith("crd-generator-"), jar.name


def steps(place: Place) -> list[Step]:
    """One step a set of jars, one after the other: Maven's local repository is not made for two at once."""
    return [
        _step(place, kafka(place), f"Kafka {pins.KAFKA}", KAFKA, disk_mib=60),
        _step(place, kafka_before(place), f"Kafka {pins.KAFKA_BEFORE} for workers", KAFKA_BEFORE, disk_mib=40),
        _step(place, strimzi(place), f"Strimzi CRD generator {pins.STRIMZI}", STRIMZI, transitive=False, disk_mib=40),
        _step(
            place,
            strimzi_v1beta2(place),
            f"Strimzi CRD generator {pins.STRIMZI_V1BETA2}",
            STRIMZI_V1BETA2,
            transitive=False,
            disk_mib=16,
        ),
        _step(
            place,
            event_streams(place),
            f"Strimzi {pins.EVENT_STREAMS_BASE} classes and a CRD generator",
            EVENT_STREAMS,
            transitive=False,
            disk_mib=20,
        ),
        _step(place, spark(place), f"Spark Kafka connector {pins.SPARK}", SPARK, disk_mib=70),
        _step(place, jmx_exporter(place), f"JMX exporter {pins.JMX_EXPORTER}", JMX_EXPORTER, transitive=False),
        _step(place, metrics_reporter(place), f"Strimzi Metrics Reporter {pins.METRICS_REPORTER}", METRICS_REPORTER),
    ]


def _entry(place: Place, name: str, version: str, artifacts: Sequence[str]) -> Entry:
    return place.entry(name, f"{version}-{key_of(*artifacts)}")


def _step(
    place: Place, entry: Entry, title: str, artifacts: Sequence[str], *, transitive: bool = True, disk_mib: int = 5
) -> Step:
    def run(commands: Commands) -> None:
        with entry.build() as folder:
            (folder / "pom.xml").write_text(pom(entry.name, artifacts), encoding="utf-8")
            goal = f"org.apache.maven.plugins:maven-dependency-plugin:{pins.MAVEN_DEPENDENCY_PLUGIN}:copy-dependencies"
            options = [
                f"-DoutputDirectory={folder / LIBS}",
                "-DincludeScope=runtime",
                f"-DexcludeTransitive={str(not transitive).lower()}",
            ]
            command = ["mvn", "--batch-mode", "--no-transfer-progress", goal, *options]
            opts = f"{BRIEF_JVM} {place.environ.get('MAVEN_OPTS', '')}".strip()
            commands.run(command, cwd=folder, env={"MAVEN_OPTS": opts})

    return Step(
        name=entry.name,
        title=title,
        is_done=entry.is_complete,
        run=run,
        lane="maven",
        tool="maven",
        disk_mib=disk_mib,
    )


def pom(name: str, artifacts: Sequence[str]) -> str:
    """A project whose only content is the dependencies `group:artifact:version`."""
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>\n".format(
            *map(escape, artifact.split(":"))
        )
        for artifact in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        f"<groupId>rt-inventory</groupId><artifactId>{name}</artifactId><version>1</version>"
        f"<packaging>pom</packaging>\n<dependencies>\n{dependencies}</dependencies></project>\n"
    )
