"""A mirror without Kubernetes: the rendered file runs in Kafka's own MirrorMaker, with no more rights than it needs.

Once it is a process of this machine, once a container of the image that this project builds for it.
"""

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import httpx
import psutil
import pytest
import yaml
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from monitoring.metrics import catalog
from ops.render.client_endpoints import FOLDER, End, Kind, Part, Secrets
from ops.render.dedicated import as_dedicated
from sandbox.operator.kafkas import process_environment
from sandbox.processes import free_ports, resident_bytes
from sandbox.state import PROJECT, write_private
from settings import acl_sets
from settings.files import load
from settings.users import Acl, AclSet
from tests.support.small_cluster import Kit, user_spec
from tests.support.waiting import wait_until

from ...support.images import Image, Mount
from ...support.ops_commands import run
from ...support.running_sandbox import Pair, Sandbox

PROCESS, MAIN = "dedicated.vm", "org.apache.kafka.connect.mirror.MirrorMaker"
TOPIC, COPY, GROUP = "vm.orders", "vm-src.vm.orders", "vm-readers"
PARTITIONS, RECORDS = 3, 200
LOGGED, QUICK = "log4j2.properties", ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
COPYING, CHECKPOINTING = "MirrorSourceConnector", "MirrorCheckpointConnector"
FIRST_TIMESTAMP_MS = 1_700_000_000_000
# Everything at INFO, configurations too: what Kafka would print of a secret must be seen here.
LOGGING = """\
status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %X{connector.context}%m (%c:%L)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""
MIRROR = {
    "name": "vm",
    "source": {"stack": "dev", "alias": "vm-src", "user": "vm-reader"},
    "target": {"alias": "vm-tgt", "user": "vm-writer"},
    "topics": [r"vm\.orders"],
    "groups": ["vm-.*"],
    "naming": "prefixed",
    "refreshTopicsSeconds": 5,
    "refreshGroupsSeconds": 2,
    "emitCheckpointsSeconds": 2,
    "syncGroupOffsetsSeconds": 2,
    "flushOffsetsSeconds": 5,
    "offsetLagMax": 0,
}
Record = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes], ...], int]


@dataclass(frozen=True)
class Way:
    """One way to run it: where its secrets are, and whether it copies exactly once from a container of the image."""

    kind: Kind
    exactly_once: bool


WAYS = {
    "a process, secrets in variables": Way(Kind.ENV, exactly_once=False),
    "the image, secrets in files, exactly once": Way(Kind.DIRECTORY, exactly_once=True),
}


@dataclass(frozen=True)
class Dedicated:
    """The mirror while it runs: its file, its log, its secrets by their place, and logins to look at either cluster."""

    file: Path
    log: Path
    notes: str
    provider: Secrets
    secrets: dict[str, str]
    metrics_url: str
    source: dict[str, Any]
    target: dict[str, Any]


def stack_files(folder: Path, way: Way) -> Path:
    """The project's two stack files with the users and the mirror of this test; returns the target's."""
    (folder / "Pulumi.yaml").write_text((PROJECT / "Pulumi.yaml").read_text("utf-8"), encoding="utf-8")
    more: dict[str, dict[str, Any]] = {
        "dev": {"users": [{"name": "vm-reader"}]},
        "stg": {"users": [{"name": "vm-writer"}], "mirrors": [{**MIRROR, "exactlyOnce": way.exactly_once}]},
    }
    for stack, keys in more.items():
        document = yaml.safe_load((PROJECT / f"Pulumi.{stack}.yaml").read_text("utf-8"))
        config = {**document["config"], **{f"rt-inventory:{key}": value for key, value in keys.items()}}
        (folder / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}), encoding="utf-8")
    return folder / "Pulumi.stg.yaml"


def rules(acls: list[Acl]) -> list[dict[str, Any]]:
    """Rights as a KafkaUser has them."""
    return [
        {"resource": {"type": acl.type, "name": name, "patternType": acl.match}, "operations": list(acl.operations)}
        for acl in acls
        for name in acl.names
    ]


def owner_rules() -> list[dict[str, Any]]:
    """All rights on what this test makes, for producing, reading and tidying up."""
    names = {"topic": ("vm", "mm2-offset-syncs.vm-src"), "group": ("vm",)}
    return [
        {"resource": {"type": type_, "name": name, "patternType": "prefix"}, "operations": ["All"]}
        for type_, found in names.items()
        for name in found
    ]


def make_user(kit: Kit, name: str, acls: list[dict[str, Any]]) -> str:
    password = secrets.token_urlsafe(24)
    kit.secret(f"{name}-credentials", {"password": password})
    kit.apply("KafkaUser", name, user_spec(f"{name}-credentials", acls))
    kit.ready("KafkaUser", name)
    return password


def wait_for_login(kit: Kit, user: str, password: str) -> dict[str, Any]:
    found = kit.client_config(user, password)
    wait_until(f"user {user} can log in", lambda: kit.admits(found), 60)
    return found


@pytest.fixture(scope="module")
def clusters(sandbox: Sandbox, pair: Pair) -> dict[str, Kit]:
    return {
        end: Kit(sandbox.state, outputs["cluster"]["namespace"], outputs["cluster"]["name"])
        for end, outputs in (("source", pair.dev), ("target", pair.stg))
    }


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if way.exactly_once else pytest.mark.nightly) for name, way in WAYS.items()],
)
def dedicated(
    request: pytest.FixtureRequest,
    sandbox: Sandbox,
    pair: Pair,
    clusters: dict[str, Kit],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Dedicated]:
    way, folder = WAYS[request.param], tmp_path_factory.mktemp("dedicated")
    provider = Secrets(kind=way.kind)
    image = None if way.kind is Kind.ENV else request.getfixturevalue("images").mirror
    stack_file, file = stack_files(folder, way), folder / "mm2.properties"
    source, target = clusters["source"], clusters["target"]
    settings = load(stack_file)
    mirrors = {"vm": as_dedicated(settings.mirrors[0])}
    sets = {
        "source": AclSet(set="mirror-source", topics=(TOPIC,), groups=("*",)),
        "target": AclSet(set="mirror-target", mirror="vm", describe_cluster=False),
    }
    rights = {
        end: rules(acl_sets.expand(entry, mirrors, settings.kafka_version, fenced=False)) for end, entry in sets.items()
    }
    values = {
        provider.place("source", "ca"): pair.dev["clusterCaCertificate"],
        provider.place("source", "password"): make_user(source, "vm-reader", rights["source"]),
        provider.place("target", "ca"): pair.stg["clusterCaCertificate"],
        provider.place("target", "password"): make_user(target, "vm-writer", rights["target"]),
    }
    owners = {end: make_user(kit, "vm-owner", owner_rules()) for end, kit in clusters.items()}
    # Its records are from long ago, and must not expire before a slow machine has copied them.
    source.apply("KafkaTopic", TOPIC, {"partitions": PARTITIONS, "replicas": 1, "config": {"retention.ms": -1}})
    source.ready("KafkaTopic", TOPIC)
    logins = {end: wait_for_login(kit, "vm-owner", owners[end]) for end, kit in clusters.items()}
    port, listening = free_ports(2)  # so late, because others may take them until they are used
    arguments = ["--as", "properties", "--stack-file", str(stack_file), "--mirror", "vm", "--out", str(file)]
    arguments += ["--secrets", way.kind, "--secrets-dir", str(provider.folder)]
    arguments += ["--listener", f"http://127.0.0.1:{listening}"] if way.exactly_once else []
    result = run(sandbox, "render", *arguments)
    assert result.returncode == 0, result.stderr
    log = sandbox.state.log(PROCESS)
    if image is None:
        command, environment = as_a_process(sandbox, file, port), process_environment() | values
    else:
        command, environment = as_a_container(image, file, values, port)
    try:
        log.unlink(missing_ok=True)
        sandbox.processes.start(PROCESS, command, environment, log)
        found = Dedicated(
            file=file,
            log=log,
            notes=result.stderr,
            provider=provider,
            secrets=values,
            metrics_url=f"http://127.0.0.1:{port}/metrics",
            source=logins["source"],
            target=logins["target"],
        )
        # A task that fails stays failed: MirrorMaker offers nothing to restart it by.
        with log_on_failure(log):
            wait_until("a task that copies runs", lambda: COPYING in running(found), 120)
        yield found
    finally:
        sandbox.processes.stop(PROCESS, 20)
        source.delete("KafkaTopic", TOPIC)
        drop_topics(logins["target"])
        for kit, names in ((source, ("vm-reader", "vm-owner")), (target, ("vm-writer", "vm-owner"))):
            for name in names:
                kit.delete("KafkaUser", name)


def as_a_process(sandbox: Sandbox, file: Path, port: int) -> list[str]:
    """The command of the mirror as Kafka's script starts it, with the exporter on that port."""
    write_private(file.with_name(LOGGED), LOGGING)
    rules = PROJECT / "monitoring" / "jmx" / catalog.JMX_WORKERS
    agent = f"-javaagent:{sandbox.tools.jmx_exporter}=127.0.0.1:{port}:{rules}"
    options = [agent, "-Xmx384m", *QUICK, f"-Dlog4j2.configurationFile={file.with_name(LOGGED)}"]
    return [str(sandbox.tools.java), *options, "-cp", f"{sandbox.tools.kafka_libs}/*", MAIN, str(file)]


def as_a_container(image: Image, file: Path, values: dict[str, str], port: int) -> tuple[list[str], dict[str, str]]:
    """Command and variables of a container that has its file and secrets as a pod would, readable and read-only."""
    secrets_folder, config = file.with_name("secrets"), PurePosixPath("/opt/mirror/config")
    secrets_folder.mkdir()
    for place, value in values.items():
        (secrets_folder / PurePosixPath(place).name).write_text(value)
    file.chmod(0o644)
    file.with_name(LOGGED).write_text(LOGGING)
    mounts = [Mount("/tmp"), Mount(str(FOLDER), secrets_folder)]  # noqa: S108  # of the container
    mounts += [Mount(str(config / name), file.with_name(name)) for name in (file.name, LOGGED)]
    variables = {
        "JMX_EXPORTER_PORT": f"127.0.0.1:{port}",
        "KAFKA_HEAP_OPTS": "-Xmx384m",
        "KAFKA_OPTS": " ".join(QUICK),
        "KAFKA_LOG4J_OPTS": f"-Dlog4j2.configurationFile={config / LOGGED}",
    }
    return image.command(mounts=mounts), image.environment(variables)


@contextmanager
def log_on_failure(log: Path) -> Iterator[None]:
    """Add the mirror's warnings and errors to what failed in the block."""
    try:
        yield
    except AssertionError as error:
        lines = log.read_text("utf-8", errors="replace").splitlines()
        grave = [
            line[:400] for line in lines if re.match(r"\[[^]]*\] (WARN|ERROR)|\S*(Exception|Error)\b|Caused by", line)
        ]
        error.add_note("\n".join(["the mirror's log:", *grave[-40:]]))
        raise


def states(dedicated: Dedicated) -> list[str]:
    """The samples of the mirror that say which of its connectors' tasks run."""
    lines = httpx.get(dedicated.metrics_url, timeout=20).text.splitlines()
    return [line for line in lines if line.startswith("kafka_connect_connector_task_metrics_status{")]


def running(dedicated: Dedicated) -> set[str]:
    """Connectors of which a task runs; none while the process does not answer."""
    try:
        return {line.split('"')[1] for line in states(dedicated) if 'status="running"' in line}
    except httpx.HTTPError:
        return set()


def drop_topics(login: dict[str, Any]) -> None:
    admin = AdminClient(login)
    names = [name for name in admin.list_topics(timeout=10).topics if name.startswith(("vm", "mm2-offset-syncs.vm-"))]
    for done in admin.delete_topics(names).values() if names else ():
        done.result(20)


def sent_records(login: dict[str, Any]) -> list[Record]:
    """Write the records and return them as they lie on the source; one has no value, one no headers."""
    producer, records, refused = Producer({**login, "acks": "all"}), list[Record](), list[str]()

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(str(error))

    for number in range(RECORDS):
        headers = () if number == 1 else (("number", str(number).encode()), ("ä", b"\x00\xff"), ("number", b"again"))
        value = None if number == 2 else f"value {number} \u20ac".encode()
        record = (number % PARTITIONS, f"key-{number}".encode(), value, headers, FIRST_TIMESTAMP_MS + number)
        partition, key, _, _, timestamp = record
        producer.produce(
            TOPIC, value, key, partition, headers=list(headers), timestamp=timestamp, on_delivery=delivered
        )
        records.append(record)
    assert (producer.flush(60), refused) == (0, [])
    return records


def copied_records(login: dict[str, Any], deadline_s: float) -> list[Record]:
    """What the copy holds: read until there are as many as were sent, or to the deadline, and then once more."""
    consumer, records = Consumer({**login, "group.id": "vm-test", "enable.auto.commit": False}), list[Record]()
    consumer.assign([TopicPartition(COPY, partition, 0) for partition in range(PARTITIONS)])
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        complete = len(records) >= RECORDS
        found = consumer.consume(RECORDS, timeout=2.0)
        records += [as_record(message) for message in found if message.error() is None]
        if complete:
            break
    consumer.close()
    return records


def as_record(message: Any) -> Record:
    place = message.partition(), message.key(), message.value()
    return (*place, tuple(message.headers() or ()), message.timestamp()[1])


def position(login: dict[str, Any], topic: str) -> int:
    """Sum of a group's offsets in a topic's partitions."""
    parts = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    admin = AdminClient(login)  # its answers end with it
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, parts)])
    return sum(max(part.offset, 0) for part in found[GROUP].result(10).topic_partitions)


def test_every_record_arrives_with_key_value_headers_and_timestamp(dedicated: Dedicated) -> None:
    sent = sent_records(dedicated.source)
    admin = AdminClient(dedicated.target)
    wait_until(f"topic {COPY} on the target", lambda: COPY in admin.list_topics(timeout=5).topics, 180)
    found = copied_records(dedicated.target, 120)
    with log_on_failure(dedicated.log):
        assert sorted(found, key=repr) == sorted(sent, key=repr), states(dedicated)


def test_a_group_that_has_read_everything_goes_on_at_the_end_of_the_copy(dedicated: Dedicated) -> None:
    ends = [len(range(partition, RECORDS, PARTITIONS)) for partition in range(PARTITIONS)]
    reader = Consumer({**dedicated.source, "group.id": GROUP, "enable.auto.commit": False})
    reader.commit(offsets=[TopicPartition(TOPIC, number, end) for number, end in enumerate(ends)], asynchronous=False)
    reader.close()
    wait_until("the group's offsets on the target", lambda: position(dedicated.target, COPY) == RECORDS, 120)


def test_the_environment_has_exactly_the_variables_that_the_file_reads(dedicated: Dedicated) -> None:
    text, parts = dedicated.file.read_text(encoding="ascii"), list[Part](("ca", "password"))
    ends = list[End](("source", "target"))
    references = {dedicated.provider.reference(end, part) for end in ends for part in parts}
    assert set(re.findall(r"\$\{[^}]*\}", text)) == references
    named = {line.split()[0] for line in dedicated.notes.splitlines() if line.startswith("  ")}
    assert named == set(dedicated.secrets)


def test_no_secret_stands_in_the_file_the_log_or_any_command_line(sandbox: Sandbox, dedicated: Dedicated) -> None:
    shown = [dedicated.file.read_bytes(), dedicated.log.read_bytes(), dedicated.notes.encode()]
    shown += [path.read_bytes() for path in sandbox.state.processes.glob("*.json")]
    for process in psutil.process_iter():
        try:
            shown.append("\0".join(process.cmdline()).encode())
        except psutil.Error:
            continue
    assert any(MAIN.encode() in text for text in shown), "the mirror's own command line must be among them"
    for name, value in dedicated.secrets.items():
        # of a certificate, the lines between BEGIN and END
        parts = [line for line in value.splitlines() if "-----" not in line] or [value]
        assert not any(part.encode() in text for text in shown for part in parts), name


def test_it_asks_for_no_right_that_it_does_not_have(dedicated: Dedicated) -> None:
    refused = [line for line in dedicated.log.read_text("utf-8").splitlines() if "AuthorizationException" in line]
    assert not refused


def test_nothing_of_it_is_written_to_the_source(dedicated: Dedicated) -> None:
    topics = AdminClient(dedicated.source).list_topics(timeout=10).topics
    assert {name for name in topics if name.startswith(("vm", "mm2-offset-syncs.vm"))} == {TOPIC}


def test_the_image_s_rules_expose_how_much_was_copied_and_which_tasks_run(
    sandbox: Sandbox, dedicated: Dedicated
) -> None:
    lines = httpx.get(dedicated.metrics_url, timeout=20).text.splitlines()
    counted = [line for line in lines if line.startswith("kafka_connect_mirror_mirrorsourceconnector_record_count{")]
    assert sum(float(line.rsplit(" ", 1)[1]) for line in counted) == RECORDS, lines
    labels = (f'topic="{COPY}"', 'source="vm-src"', 'target="vm-tgt"')
    assert all(label in line for line in counted for label in labels)
    assert running(dedicated) >= {COPYING, CHECKPOINTING}
    entry = next(entry for entry in sandbox.processes.entries() if entry.name == PROCESS)
    assert resident_bytes(entry) < 1200 * 1024**2
