"""Jars from Maven Central, resolved by Maven itself.

`jars.sha256` has the SHA-256 of each jar: the checksums of a Maven repository come from the same server as its files.
"""

from collections.abc import Sequence
from html import escape  # xml.sax.saxutils loads an HTTP client
from pathlib import Path

from . import pins
from .commands import Commands, ToolchainError
from .paths import Entry, ToolchainPaths, key_of, sha256_of
from .steps import Step

LIBS = "libs"
PINNED = Path(__file__).with_name("jars.sha256")
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
# What runs a broker and a Connect worker, and no more.
KAFKA_BEFORE = (
    f"org.apache.kafka:kafka_{pins.SCALA}:{pins.KAFKA_BEFORE}",
    f"org.apache.kafka:connect-runtime:{pins.KAFKA_BEFORE}",
    f"org.apache.kafka:connect-mirror:{pins.KAFKA_BEFORE}",
    f"org.apache.kafka:connect-json:{pins.KAFKA_BEFORE}",
    f"org.apache.logging.log4j:log4j-slf4j-impl:{pins.LOG4J}",
)
# Broker, ZooKeeper and what both log with.
KAFKA_WITH_ZOOKEEPER = {
    version: (
        f"org.apache.kafka:kafka_{scala}:{version}",
        *(
            (f"org.apache.zookeeper:zookeeper:{pins.ZOOKEEPER}",)
            if scala == "2.12"
            else (f"org.slf4j:slf4j-reload4j:{pins.RELOAD4J}",)
        ),
        *(
            f"org.apache.kafka:{name}:{version}"
            for name in ("connect-runtime", "connect-mirror", "connect-json")
            if version == pins.KAFKA_3
        ),
    )
    for version, scala in pins.KAFKA_WITH_ZOOKEEPER.items()
}
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


def kafka(paths: ToolchainPaths) -> Entry:
    """Kafka, its tools, Connect and MirrorMaker 2."""
    return _entry(paths, "kafka", pins.KAFKA, KAFKA)


def kafka_before(paths: ToolchainPaths) -> Entry:
    """Broker, Connect and MirrorMaker 2 of the Kafka version before."""
    return _entry(paths, "kafka-before", pins.KAFKA_BEFORE, KAFKA_BEFORE)


def kafka_with_zookeeper(paths: ToolchainPaths, version: str) -> Entry:
    """Broker and ZooKeeper of an earlier Kafka version; of pins.KAFKA_3 Connect and MirrorMaker 2 too."""
    return _entry(paths, f"kafka-{version}", version, KAFKA_WITH_ZOOKEEPER[version])


def spark(paths: ToolchainPaths) -> Entry:
    """Spark's Kafka connector with what it needs."""
    return _entry(paths, "spark", pins.SPARK, SPARK)


def jmx_exporter(paths: ToolchainPaths) -> Entry:
    """The JMX exporter's Java agent."""
    return _entry(paths, "jmx-exporter", pins.JMX_EXPORTER, JMX_EXPORTER)


def metrics_reporter(paths: ToolchainPaths) -> Entry:
    """Strimzi's Metrics Reporter for Kafka's clients."""
    return _entry(paths, "metrics-reporter", pins.METRICS_REPORTER, METRICS_REPORTER)


def strimzi(paths: ToolchainPaths) -> Entry:
    """Strimzi's CRD generator and the API classes it reads."""
    return _entry(paths, "strimzi-generator", pins.STRIMZI, STRIMZI)


def strimzi_v1beta2(paths: ToolchainPaths) -> Entry:
    """The CRD generator and API classes of the last Strimzi that a v1beta2 stack is written for."""
    return _entry(paths, "strimzi-v1beta2-generator", pins.STRIMZI_V1BETA2, STRIMZI_V1BETA2)


def event_streams(paths: ToolchainPaths) -> Entry:
    """A CRD generator and the API classes of the Strimzi release below Event Streams."""
    return _entry(paths, "event-streams-generator", pins.EVENT_STREAMS_BASE, EVENT_STREAMS)


def class_path(generator: Entry) -> str:
    """Class path of a CRD generator's entry: its own jar, which carries classes of other libraries, comes last."""
    jars = sorted((generator.path / LIBS).glob("*.jar"), key=_carries_others)
    return ":".join(str(jar) for jar in jars)


def _carries_others(jar: Path) -> tuple[bool, str]:
    return jar.name.startswith("crd-generator-"), jar.name


def steps(paths: ToolchainPaths) -> list[Step]:
    """One step a set of jars, one after the other: Maven's local repository is not made for two at once."""
    return [
        _step(paths, kafka(paths), f"Kafka {pins.KAFKA}", KAFKA, disk_mib=60),
        _step(paths, kafka_before(paths), f"Kafka {pins.KAFKA_BEFORE}", KAFKA_BEFORE, disk_mib=60),
        _step(paths, strimzi(paths), f"Strimzi CRD generator {pins.STRIMZI}", STRIMZI, transitive=False, disk_mib=40),
        _step(
            paths,
            strimzi_v1beta2(paths),
            f"Strimzi CRD generator {pins.STRIMZI_V1BETA2}",
            STRIMZI_V1BETA2,
            transitive=False,
            disk_mib=16,
        ),
        _step(
            paths,
            event_streams(paths),
            f"Strimzi {pins.EVENT_STREAMS_BASE} classes and a CRD generator",
            EVENT_STREAMS,
            transitive=False,
            disk_mib=20,
        ),
        _step(paths, spark(paths), f"Spark Kafka connector {pins.SPARK}", SPARK, disk_mib=70),
        _step(paths, jmx_exporter(paths), f"JMX exporter {pins.JMX_EXPORTER}", JMX_EXPORTER, transitive=False),
        _step(paths, metrics_reporter(paths), f"Strimzi Metrics Reporter {pins.METRICS_REPORTER}", METRICS_REPORTER),
        *(
            _step(
                paths,
                kafka_with_zookeeper(paths, version),
                f"Kafka {version} with ZooKeeper",
                artifacts,
                disk_mib=60,
                is_deferred=True,
            )
            for version, artifacts in KAFKA_WITH_ZOOKEEPER.items()
        ),
    ]


def _entry(paths: ToolchainPaths, name: str, version: str, artifacts: Sequence[str]) -> Entry:
    return paths.entry(name, f"{version}-{key_of(*artifacts)}")


def _step(
    paths: ToolchainPaths,
    entry: Entry,
    title: str,
    artifacts: Sequence[str],
    *,
    transitive: bool = True,
    disk_mib: int = 5,
    is_deferred: bool = False,
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
            command = ["mvn", "--batch-mode", "--strict-checksums", "--no-transfer-progress", goal, *options]
            opts = f"{BRIEF_JVM} {paths.environ.get('MAVEN_OPTS', '')}".strip()
            commands.run(command, cwd=folder, env={"MAVEN_OPTS": opts})
            check(folder / LIBS)

    return Step(
        name=entry.name,
        title=title,
        is_done=entry.is_complete,
        run=run,
        lane="maven",
        tool="maven",
        disk_mib=disk_mib,
        is_deferred=is_deferred,
    )


def digests(folder: Path) -> dict[str, str]:
    """Name → SHA-256 of each jar in a folder."""
    return {jar.name: sha256_of(jar) for jar in sorted(folder.glob("*.jar"))}


def check(folder: Path) -> None:
    """Raise ToolchainError, with all jars of a folder that are not the pinned ones."""
    pinned = {name: digest for digest, name in map(str.split, PINNED.read_text(encoding="utf-8").splitlines())}
    wrong = [
        f"  {name}: SHA-256 must be {pinned.get(name, f'in {PINNED.name}')} (got {digest})."
        for name, digest in digests(folder).items()
        if pinned.get(name) != digest
    ]
    if wrong:
        end = "  The repository has another file than the pinned one; if a version is new, add it with `sha256sum`."
        raise ToolchainError("\n".join([*wrong, end]))


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
