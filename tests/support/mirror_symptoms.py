"""A mirror that is well, and the symptoms of each known issue; the texts are those of real workers of Kafka 4.3.1."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from contract.documents import parse
from contract.stack_outputs import ClusterOutputs, MirrorOutputs
from contract.verification_request import Mirror, Request, Resource
from kafka.connectivity import Broker
from kafka.retention import NotCopied, RetentionLimits, until_deletion
from kafka.topic_partition import TopicPartition
from ops import verify
from ops.doctor.command import collect
from ops.doctor.diagnosis import diagnose
from ops.doctor.known_issues import Finding
from ops.doctor.observations import (
    AssignedTasks,
    Certificate,
    ClusterObservation,
    Connector,
    DuplicateRecord,
    Log,
    Observations,
    OtherMirror,
    PulumiState,
    ReplacedLog,
    ResourceReadiness,
    StatePlace,
    TaskStatus,
)
from ops.recovery.fencing import LEFT_BEHIND, TAKES_WRITES
from ops.recovery.mirror_context import MirrorContext

NOW = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)
SOURCE, CHECKPOINT = "es-src->es-tgt.MirrorSourceConnector", "es-src->es-tgt.MirrorCheckpointConnector"
RESOURCE = "KafkaMirrorMaker2 rt-inventory-stg/mm2"
SEND_FAILED = """\
org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception from producer send callback
\tat org.apache.kafka.connect.runtime.WorkerSourceTask.maybeThrowProducerSendException(WorkerSourceTask.java:348)
\tat org.apache.kafka.connect.runtime.WorkerSourceTask.prepareToPollTask(WorkerSourceTask.java:127)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.kafka.common.errors."""
DENIED = f"{SEND_FAILED}TopicAuthorizationException: Not authorized to access topics: [items]\n"
EXPIRED = (
    f"{SEND_FAILED}TimeoutException: Expiring 144 record(s) for items-0:4000 ms has passed since batch creation. The "
    "request has not been sent, or no server response has been received yet.\n"
)
TOO_LARGE = (
    f"{SEND_FAILED}RecordTooLargeException: The message is 2097240 bytes when serialized which is larger than 1048576, "
    "which is the value of the max.request.size configuration.\n"
)
REFUSED_TIME = (
    f"{SEND_FAILED}InvalidTimestampException: One or more records have been rejected due to 1 record errors in total, "
    "and only showing the first three errors at most: [RecordError(batchIndex=0, message='Record 0: Timestamp ...')]\n"
)
NO_CLASS = (
    "ConnectRestException: PUT /connectors/es-src-%3Ees-tgt.MirrorSourceConnector/config: 400 Connector configuration "
    "is invalid and contains the following 1 error(s):\nInvalid value io.strimzi.kafka.connect.mirror."
    "IdentityReplicationPolicy for configuration replication.policy.class: Class io.strimzi.kafka.connect.mirror."
    "IdentityReplicationPolicy could not be found.\nYou can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)
LATE = (
    "[2026-11-22 08:01:01,402] WARN [es-src->es-tgt.MirrorSourceConnector|task-0] WorkerSourceTask{id=es-src->es-tgt."
    "MirrorSourceConnector-0} Timed out while waiting for previous offset flush to complete, cancelling "
    "(org.apache.kafka.connect.runtime.WorkerSourceTask:273)\n"
)
UNKNOWN_FOR_A_MOMENT = (
    "[2026-11-22 08:01:22,310] WARN [Producer clientId=connector-producer-es-src->es-tgt.MirrorSourceConnector-0] The "
    "metadata response from the cluster reported a recoverable issue with correlation id 61 : "
    "{items=UNKNOWN_TOPIC_OR_PARTITION} (org.apache.kafka.clients.NetworkClient:1295)\n"
)
REFUSED = (
    "[2026-11-22 08:02:10,551] ERROR [AdminClient clientId=es-src->es-tgt|es-src->es-tgt.MirrorSourceConnector-0|"
    "replication-source-admin] Connection to node -1 (dev/10.0.0.7:9093) failed authentication due to: Authentication "
    "failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512 "
    "(org.apache.kafka.clients.NetworkClient:894)\n"
)
NO_WAY = (
    "[2026-11-22 08:02:10,551] WARN [Consumer clientId=es-src->es-tgt|replication-consumer, groupId=null] Connection "
    "to node 2 (dev-2/10.0.0.9:9094) could not be established. Node may not be available. "
    "(org.apache.kafka.clients.NetworkClient:868)\n"
)
MIRROR = Mirror(
    name="mm2",
    source_alias="es-src",
    target_alias="es-tgt",
    topics=("items", r"items\.inventory"),
    connect_url="http://connect:8083",
    connectors=(SOURCE, CHECKPOINT),
    offset_storage_topic="mm2-offsets",
    resource=Resource(
        api_version="kafka.strimzi.io/v1", kind="KafkaMirrorMaker2", namespace="rt-inventory-stg", name="mm2"
    ),
)


def context(request: Request) -> MirrorContext:
    """The mirror of a request, whose stack has no other outputs."""
    return MirrorContext(
        stack="test",
        mirror=request.mirror.name,
        plan=verify.Plan(stack="test", mirror=request.mirror.name, request={}, secrets={}),
        request=request,
        outputs=MirrorOutputs(),
        cluster=ClusterOutputs(),
        proof=None,
    )


def side(role: str, **changes: Any) -> ClusterObservation:
    """A cluster that is well."""
    source = role == "source"
    well = ClusterObservation(
        role=role,
        alias="es-src" if source else "es-tgt",
        servers="dev:9093" if source else "stg:9093",
        user="rt-inv-dev-user" if source else "rt-inv-stg-user",
        cluster_id=role,
        addresses=frozenset({"dev:9093" if source else "stg:9093"}),
        topics={"items": 3, "items.inventory": 3} | ({} if source else {"mm2-offsets": 25}),
        certificates=(Certificate(what="the trusted authority CN=ca", ends=NOW + timedelta(days=15)),),
        groups={"shop": "STABLE" if source else "EMPTY"},
        policies={} if source else {"mm2-offsets": "compact"},
    )
    return replace(well, **changes)


def connector(name: str, *tasks: str, state: str = "RUNNING", trace: str = "") -> Connector:
    """A connector with its tasks' states; the trace is that of what failed."""
    parts = [(name, state), *((f"task {number}", one) for number, one in enumerate(tasks))]
    statuses = [TaskStatus(name=part, state=one, trace=trace if one == "FAILED" else "") for part, one in parts]
    return Connector(name=name, parts=tuple(statuses))


def with_partitions(one: Connector, *tasks: dict[str, int]) -> Connector:
    """The connector whose tasks are to read these partitions: topic, and how many of it from 0 on."""
    places = [frozenset((name, number) for name, count in task.items() for number in range(count)) for task in tasks]
    parts = [replace(part, partitions=held) for part, held in zip(one.parts[1:], places, strict=True)]
    return replace(one, parts=(one.parts[0], *parts))


def seen(**changes: Any) -> Observations:
    """A mirror that is well, but for the changes."""
    well = Observations(
        stack="stg",
        mirror=MIRROR,
        source=side("source"),
        target=side("target"),
        now=NOW,
        connectors=(connector(SOURCE, "RUNNING"), connector(CHECKPOINT, "RUNNING")),
        resource=ResourceReadiness(name=RESOURCE, ready=True),
    )
    return replace(well, **changes)


def failed(trace: str, *, ready: bool = True) -> Observations:
    """A mirror whose source task failed."""
    readiness = ResourceReadiness(name=RESOURCE, ready=ready, reason="" if ready else "ConnectorFailed: task 0 FAILED")
    return seen(connectors=(connector(SOURCE, "FAILED", trace=trace), connector(CHECKPOINT)), resource=readiness)


BROKER = Broker(2, "stg-2.example", 9094)
BACK = OtherMirror(
    name="KafkaMirrorMaker2 rt-inventory-dev/back",
    source=frozenset({"stg:9093"}),
    target=frozenset({"dev:9093"}),
    topics=("items.*",),
    keeps_names=True,
)
FIRST = OtherMirror(
    name="KafkaMirrorMaker old/one",
    source=frozenset({"dev:9093"}),
    target=frozenset({"stg:9093"}),
    topics=("items|other",),
    keeps_names=True,
    is_first=True,
)
BROKERS = "the broker's certificate CN=kafka at dev:9093"
TWICE = DuplicateRecord(topic="items", remote_topic="items", partition=1, source=0, first=0, second=147)
OVERTAKEN = until_deletion(
    NotCopied(topic="items", partition=1, records=120, first_ms=60_000),
    RetentionLimits(ms=100_000, size=None),
    now_ms=120_000,
)
WAITING = until_deletion(
    NotCopied(topic="items", partition=1, records=120, first_ms=0, copied_per_s=0.0),
    RetentionLimits(ms=7 * 86_400_000, size=None),
    now_ms=900_000,
)
CASES: dict[str, tuple[Observations, str, str, str]] = {
    # what was seen, where it must be reported, a part of what, a part of the remedy
    "pulumi-state-behind": (
        seen(active_now="target"),
        "stack stg", "source is active by Pulumi's outputs, target by the copy", "pulumi up --refresh -s stg",
    ),
    "groups-not-followed": (
        seen(not_followed="Deployment home/mm2-follower does not exist"),
        "mirror mm2", "Deployment home/mm2-follower does not exist", "deployment/mm2-follower has the reason",
    ),
    "fence-left-behind": (
        seen(source_stack="dev", fence_issue=(LEFT_BEHIND, "the source is active, and app may not write there")),
        "source es-src", "app may not write there", "pulumi up -s dev again: that gives",
    ),
    "target-fenced": (
        seen(target_fenced="the target is active, and app may not write there"),
        "target es-tgt", "app may not write there", "ops status --stack stg shows",
    ),
    "source-still-takes-writes": (
        seen(source_stack="dev", fence_issue=(TAKES_WRITES, "the target is active, and app may write there")),
        "source es-src", "app may write there", "python -m ops status --stack stg --watch",
    ),
    "pulumi-state-in-one-place": (
        seen(pulumi_state=PulumiState(places=(StatePlace(part="state", alone="bucket acme has no replication"),))),
        "stack stg", "state: bucket acme has no replication", "multi-Region key",
    ),
    "source-unreachable": (
        seen(source=side("source", refusal="nobody listens", topics=None, groups=None, cluster_id=None)),
        "source es-src", "nobody listens", "failover --to stg --unplanned.",
    ),
    "target-unreachable": (
        seen(target=side("target", refusal="nobody listens", topics=None, groups=None, cluster_id=None, policies={})),
        "target es-tgt", "nobody listens", "resumes by itself",
    ),
    "advertised-listener-unreachable": (
        seen(target=side("target", silent=((BROKER, "cannot be reached (Connection refused)"),))),
        "target es-tgt, broker 2", "stg:9093 answers, but broker 2 advertises stg-2.example:9094, which cannot",
        "on cluster es-tgt",
    ),
    "partition-without-leader": (
        seen(target=side("target", leaderless={TopicPartition("items", 0): (3, 2), TopicPartition("shop", 1): (2,)})),
        "target es-tgt", "items-0, shop-1 have no leader; replicas: brokers 2, 3", "its log and needs a larger volume",
    ),
    "certificate-near-expiry": (
        seen(source=side("source", certificates=(Certificate(what=BROKERS, ends=NOW + timedelta(days=14)),))),
        "source es-src", f"{BROKERS} ends on 2026-12-06 08:00 UTC, in 14 days", "of stack stg",
    ),
    "missing-acls": (
        seen(target=side("target", lacks=(("Write", "topic items"), ("Alter", "topic items"), ("Read", "group shop")))),
        "target es-tgt", "lacks Read on group shop, Write and Alter on topic items", "user rt-inv-stg-user",
    ),
    "connectors-failed-under-ready": (
        failed("java.lang.RuntimeException: out of luck\n\tat Luck.java"),
        f"task 0 of connector {SOURCE}", f"FAILED, although {RESOURCE} is Ready: java.lang.RuntimeException: out",
        "connectors/es-src-%3Ees-tgt.MirrorSourceConnector/restart",
    ),
    "connectors-failed": (
        failed("java.lang.RuntimeException: out of luck", ready=False),
        f"task 0 of connector {SOURCE}", "it is FAILED: java.lang.RuntimeException", "http://connect:8083/connectors",
    ),
    "connector-without-tasks": (
        seen(connectors=(connector(SOURCE), connector(CHECKPOINT))),
        SOURCE, "the source has 2 topics to mirror", "-n rt-inventory-stg -l strimzi.io/cluster=mm2",
    ),
    "partitions-without-task": (
        seen(
            connectors=(with_partitions(connector(SOURCE, "RUNNING", "RUNNING"), {"items": 3}, {"items.inventory": 3}),
                        connector(CHECKPOINT, "RUNNING")),
            assigned=AssignedTasks(tasks=frozenset({0}), delay_ms=30_000),
        ),
        f"task 1 of connector {SOURCE}", "nothing reads items.inventory-0, items.inventory-1, items.inv",
        "get pods -n rt-inventory-stg -l strimzi.io/cluster=mm2",
    ),
    "copies-nothing": (
        seen(until_deletion=(WAITING, replace(WAITING, partition=2, waited_s=1.0))),
        f"connector {SOURCE}", "records that wait: 120 of items-1; the first for 15 min, and none was copied",
        "restart?includeTasks=true&onlyFailed=false",
    ),
    "mirror-not-ready": (
        seen(resource=ResourceReadiness(name=RESOURCE, ready=False, reason="SecretNotFound: Secret x must exist")),
        RESOURCE, "SecretNotFound: Secret x must exist", "describe kafkamirrormaker2 mm2 -n rt-inventory-stg",
    ),
    "plugin-not-found": (
        seen(resource=ResourceReadiness(name=RESOURCE, ready=False, reason=NO_CLASS)),
        RESOURCE, "Class io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy could not be found", "naming",
    ),
    "unknown-topic-or-partition": (
        seen(target=side("target", topics={"items": 2, "items.inventory": 3})),
        "topic items of the target", "has 2 of its 3 partitions", "onlyFailed=false",
    ),
    "flush-time-out": (
        failed(EXPIRED),
        f"task 0 of connector {SOURCE}", "it says: Expiring 144 record(s) for items-0:4000 ms has passed since",
        "producer.override.delivery.timeout.ms",
    ),
    "offset-commit-time-out": (
        seen(logs=(Log(name="log of pod mm2-0", text="INFO well\n" + LATE * 3),)),
        "log of pod mm2-0", "Timed out while waiting for previous offset flush to complete, cancelling "
        "(org.apache.kafka.connect.runtime.WorkerSourceTask:273) (3 times)", "topic mm2-offsets",
    ),
    "authentication-refused": (
        seen(logs=(Log(name="log of pod mm2-0", text=REFUSED),)),
        "log of pod mm2-0", "Connection to node -1 (dev/10.0.0.7:9093) failed authentication due to: Authentication",
        "`pulumi up` of its stack and after it of stack stg",
    ),
    "broker-out-of-workers-reach": (
        seen(logs=(Log(name="log of pod mm2-0", text=NO_WAY * 10),)),
        "log of pod mm2-0", "Connection to node 2 (dev-2/10.0.0.9:9094) could not be established",
        "pods in namespace rt-inventory-stg",
    ),
    "mirror-maker-1-beside": (
        seen(others=(FIRST,)),
        "mirror mm2", "KafkaMirrorMaker old/one copies items to the same target",
        "kubectl delete kafkamirrormaker one -n old",
    ),
    "group-active-on-target": (
        seen(target=side("target", groups={"shop": "STABLE"})),
        "group shop", "it is STABLE on the target", "applications of group shop",
    ),
    "groups-not-carried": (
        seen(source=side("source", other_groups=("sharers",))),
        "source es-src", "the source has sharers, which are no consumer groups", "share.auto.offset.reset",
    ),
    "mirror-runs-behind-failover": (
        seen(active="target", state="stopped", runs_at_rest=f"the target is active, yet {SOURCE} is RUNNING"),
        "mirror mm2", f"yet {SOURCE} is RUNNING", "pulumi up --refresh -s stg with the stack file",
    ),
    "re-replicated-topic": (
        seen(duplicates=(TWICE,)),
        "topic items of the target, partition 1", "is at 0 and again at 147", "before offset 147 of items-1",
    ),
    "retention-overtakes-mirror": (
        seen(until_deletion=(OVERTAKEN,), source_stack="dev"),
        "topic items of the source", "120 records of partition 1 are not copied; the first, which has waited 1 min, "
        "may be deleted in 40 s, and the mirror copies nothing of them",
        "--bootstrap-server dev:9093 --entity-type topics --entity-name items --alter --add-config retention.ms=-1",
    ),
    "retention-overtook-mirror": (
        seen(until_deletion=(replace(OVERTAKEN, records=0, deleted=40), replace(OVERTAKEN, partition=0, records=0))),
        "topic items of the source", "deleted before it has passed them: 40 of partition 1. They were records, unless",
        "python -m ops verify",
    ),
    "source-topic-recreated": (
        seen(replaced_logs=(ReplacedLog(topic="items", partition=1, is_new=True, position=99, log_end=3),)),
        "topic items of the source, partition 1", "copied up to offset 99, and the log has begun anew and ends at 3",
        "docs/mirrors.md#copy-everything-again",
    ),
    "source-log-truncated": (
        seen(replaced_logs=(ReplacedLog(topic="items", partition=1, is_new=False, position=99, log_end=90),)),
        "topic items of the source, partition 1", "copied up to offset 99, and the log ends at 90",
        "unclean.leader.election.enable=false",
    ),
    "record-too-large": (
        failed(TOO_LARGE),
        f"task 0 of connector {SOURCE}", "it says: RecordTooLargeException: The message is 2097240 bytes when",
        "to at least 2097240: max.message.bytes of",
    ),
    "record-time-refused": (
        failed(REFUSED_TIME),
        f"task 0 of connector {SOURCE}", "it says: InvalidTimestampException: One or more records have been rejected",
        "log.message.timestamp.after.max.ms of the target's brokers",
    ),
    "orphan-remote-topic": (
        seen(orphans={"items.old": "es-src.items.old"}),
        "topic es-src.items.old of the target", "the mirror has copied items.old, which the source has no more",
        "--bootstrap-server stg:9093 --delete --topic es-src.items.old",
    ),
    "identity-loop": (
        seen(others=(BACK,)),
        "mirror mm2", "rt-inventory-dev/back mirrors items, items.inventory the other way", "state: stopped",
    ),
    "pattern-matches-nothing": (
        seen(mirror=MIRROR.model_copy(update={"topics": ("items", r"store\..*")})),
        "mirror mm2", r"topics matches no topic of the source: store\..*", "matched against the whole name",
    ),
    "internal-topic-not-compacted": (
        seen(target=side("target", policies={"mm2-offsets": "compact,delete"})),
        "topic mm2-offsets of the target", "cleanup.policy compact,delete", "--entity-name mm2-offsets --alter",
    ),
}  # fmt: skip


def inspected(
    document: Any, environment: dict[str, str], worker_logs: Sequence[Path] = ()
) -> tuple[Observations, list[Finding]]:
    """What the doctor sees of the mirror of a request, and what it finds."""
    request = parse(document, environment)
    seen = collect(context(request), environment, lambda _: None, worker_logs=worker_logs)
    return seen, diagnose(seen, request.secrets)


def issues_found(one: Observations) -> list[str]:
    return [finding.trouble for finding in diagnose(one)]
