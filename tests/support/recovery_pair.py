"""The default pair: its stack outputs, snapshots of it, and stand-ins for what commands change."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Resource
from kafka.cluster import CALL_DEADLINE_S, Topic
from kafka.connector_status import ConnectorState, ResourceStatus
from kafka.errors import ClusterError
from kafka.lag import Measure, PartitionLag
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.inspection.group_status import GroupStatus
from ops.inspection.snapshot import ClusterStatus, MirrorSnapshot
from ops.recovery import mirror_context
from ops.recovery.failover import UNPLANNED
from ops.recovery.journal import Journal
from ops.recovery.journal_store import JournalStore
from ops.recovery.lease import Holder, Lease
from ops.recovery.mirror_context import MirrorContext

SECRETS = {"SOURCE_PASSWORD": "source-secret-4711", "TARGET_PASSWORD": "target-secret-4712"}
API = "kafka.strimzi.io/v1"
SOURCE, CHECKPOINT = "es-src->es-tgt.MirrorSourceConnector", "es-src->es-tgt.MirrorCheckpointConnector"
NOW = 1_790_000_000.0


def side(role: str, alias: str, user: str) -> dict[str, Any]:
    return {
        "alias": alias,
        "client_config": {
            "bootstrap.servers": f"{alias}:9094",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": {"env": f"{role}_PASSWORD"},
        },
    }


def request(name: str = "mm2", **mirror: Any) -> dict[str, Any]:
    """The verification's request of the default mirror, as the stack exports it."""
    return {
        "source": side("SOURCE", "es-src", "rt-inv-dev-user"),
        "target": side("TARGET", "es-tgt", "rt-inv-stg-user"),
        "mirror": {
            "name": name,
            "topics": ["items", "items.inventory", "store.inventory"],
            "topics_exclude": [],
            "groups": [".*"],
            "groups_exclude": ["__.*"],
            "naming": "identity",
            "source_alias": "es-src",
            "target_alias": "es-tgt",
            "connect_url": None,
            "connectors": [SOURCE, CHECKPOINT],
            "offset_storage_topic": "mm2-offsets",
            "resource": {
                "api_version": API,
                "kind": "KafkaMirrorMaker2",
                "namespace": "rt-inventory-stg",
                "name": name,
            },
            **mirror,
        },
        "limits": {"mirror_wait_seconds": 120, "deadline_seconds": 900},
    }


def mirror_outputs(**changed: Any) -> dict[str, Any]:
    return {
        "state": "running",
        "active": "source",
        "clientsSecret": "mm2-clients",
        "failback": None,
        "namespace": "rt-inventory-stg",
        "sourceStack": "dev",
        "sourceCluster": "rt-inventory-dev",
        "targetCluster": "rt-inventory-stg",
        **changed,
    }


def outputs(mirror: Mapping[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """The outputs of stack stg: `changed` are outputs of the mirror, `mirror` parts of its request."""
    return {
        "cluster": {"name": "rt-inventory-stg", "namespace": "rt-inventory-stg"},
        "mirrors": {"mm2": mirror_outputs(**changed)},
        "verificationRequests": {"mm2": request(**(mirror or {}))},
        "verificationEnvironment": {"mm2": dict(SECRETS)},
        "verifications": {"mm2": proof()},
    }


def proof(verdict: str = "pass", age_s: float | None = 60.0, failed: Iterable[str] = ()) -> dict[str, Any]:
    finished = None if age_s is None else datetime.fromtimestamp(NOW - age_s, UTC).isoformat()
    checks = [{"name": "lag", "ok": True}, *({"name": name, "ok": False} for name in failed)]
    return {"verdict": verdict, "finishedAt": finished, "recordsCompared": 10_000, "checks": checks, "report": "r.html"}


def known(
    mirror: Mapping[str, Any] | None = None, proven: Mapping[str, Any] | None = None, **changed: Any
) -> MirrorContext:
    """The default pair; `proven` replaces what its verification has found, {} by nothing."""
    found = outputs(mirror, **changed)
    if proven is not None:
        found["verifications"]["mm2"] = proven or None
    return mirror_context.of_outputs("stg", found, None, {})


def resource(kind: str = "KafkaMirrorMaker2", **changed: Any) -> ResourceStatus:
    reference = Resource(api_version=API, kind=kind, namespace="rt-inventory-stg", name="mm2")
    return ResourceStatus(resource=reference, **{"ready": True, "operator": "1.2.0", **changed})


def connectors(state: str = "RUNNING", task: str = "RUNNING") -> tuple[ConnectorState, ...]:
    return ConnectorState(SOURCE, state, (task, task)), ConnectorState(CHECKPOINT, "RUNNING", ("RUNNING",))


def at_rest(state: str = "STOPPED") -> tuple[ConnectorState, ...]:
    """The connectors of a mirror that is stopped, or paused, which keeps its tasks."""
    tasks = () if state == "STOPPED" else (state,)
    return ConnectorState(SOURCE, state, tasks), ConnectorState(CHECKPOINT, state, tasks)


def lag(records: int = 0, seconds: float | None = 0.0) -> Measure:
    one = PartitionLag(topic="items", partition=0, position=9, source_end=10, records=records, seconds=seconds)
    return Measure(at_s=0.0, partitions=(one,))


def group(name: str = "orders", **changed: Any) -> GroupStatus:
    fields = {"source_state": "STABLE", "target_state": "EMPTY", "unread": 4, "again": 2, "skipped": 0, **changed}
    return GroupStatus(group=name, **fields)


def finished_failover(groups: Mapping[str, Mapping[str, Any]], **changed: Any) -> dict[str, Any]:
    """The result of an unplanned failover. A group has 7 records left to read and needs nothing, unless it says so."""
    settled = {"withoutPosition": [], "setBack": {}, "mayBeSkipped": {}, "translated": True}
    settled |= {"repeated": None, "skipped": None, "left": 7}
    return {
        "mirror": "mm2",
        "stack": "stg",
        "switchedAt": "now",
        "path": UNPLANNED,
        "recordsLost": None,
        "stranded": None,
        "newestMirrored": None,
        "groups": {name: {**settled, **group} for name, group in groups.items()},
        "activeOnTarget": [],
        "translationUnknown": None,
        "clientsSecret": None,
        **changed,
    }


def observe(
    of: MirrorContext | None = None, source: str | None = None, target: str | None = None, **changed: Any
) -> MirrorSnapshot:
    """A healthy snapshot, with `source` and `target` as the errors of these clusters."""
    of = of or known()
    seen: dict[str, Any] = {
        "pair": of,
        "source": ClusterStatus(role="source", name="rt-inventory-dev", alias="es-src", problem=source),
        "target": ClusterStatus(
            role="target", name="rt-inventory-stg", alias="es-tgt", problem=target, resource=resource("Kafka")
        ),
        "mirror": resource(),
        "connectors": connectors() if of.state == "running" else at_rest(of.state.upper()),
        "lag": lag(),
        "groups": (group(),),
        "at": NOW,
    }
    return MirrorSnapshot(**{**seen, **changed})


class FreeLease(Lease):
    """A Lease that nobody else wants. `held_by` is somebody who is at work, `lost`: it is held no longer."""

    held_by: Holder | None = None
    lost = False

    def holder(self) -> Holder | None:
        return self.held_by

    def wait_until_free(self) -> bool:
        if self.held_by is not None:
            raise OpsError(
                f"a failover or failback must be carried out by one command at a time (held by {self.held_by})"
            )
        return False

    def acquire(self) -> None:
        self.wait_until_free()

    def require(self) -> None:
        if self.lost:
            raise self._lost(None)

    @contextmanager
    def kept(self) -> Iterator[None]:
        yield

    def release(self) -> None:
        pass


def at_work() -> Holder:
    """This process as one that carries out an operation."""
    now, identity = datetime.now(UTC), Lease("", "", {}).identity
    return Holder(identity=identity, since="2026-11-22T07:59:00+00:00", renewed_at=now, seen_at=now)


class Kept(Journal):
    """A journal that is written to memory; `written` are its entries in their order."""

    def __init__(self, entry: dict[str, Any] | None = None, held_by: Holder | None = None) -> None:
        place = "rt-inventory-stg", "mm2-failover", dict[str, str]()
        self.lease = FreeLease(*place)
        self.lease.held_by = held_by
        super().__init__(JournalStore(*place), self.lease, entry, None)
        self.written: list[Any] = []
        self.room: int | None = None
        """How many offsets it may hold, None for any number."""

    def _write(self) -> None:
        self.written.append(self.entry)

    def require_room(self, positions: int) -> None:
        if self.room is not None and positions > self.room:
            raise OpsError(f"the journal must fit (got {positions} offsets of groups)")


def entry(
    command: str = "failover", finished: str | None = "2026-11-22T08:00:00+00:00", **steps: Any
) -> dict[str, Any]:
    return {
        "version": 1,
        "command": command,
        "options": {},
        "startedAt": "2026-11-22T07:59:00+00:00",
        "finishedAt": finished,
        "steps": {name: {"finishedAt": "2026-11-22T07:59:30+00:00", **result} for name, result in steps.items()},
        "before": None,
    }


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Side:
    """A cluster of which only offsets and groups are asked.

    `at` acts before each answer about the logs' ends, `at_connect` before each connection.

    `open` are offsets by partition that belong to open transactions, `compacted` the topics that are, `metadata` what
    was committed with an offset of a group.
    """

    def __init__(self, alias: str, ends: Mapping[TopicPartition, int], groups: Mapping[str, Any] | None = None) -> None:
        self.side = SimpleNamespace(alias=alias, role=alias, user=f"{alias}-user")
        self.log = dict(ends)
        self.held: dict[str, dict[TopicPartition, int]] = {name: dict(at) for name, at in (groups or {}).items()}
        self.states: dict[str, str] = dict.fromkeys(self.held, "EMPTY")
        self.begin: dict[TopicPartition, int] = {}
        self.open: dict[TopicPartition, int] = {}
        self.metadata: dict[tuple[str, TopicPartition], str] = {}
        self.compacted: set[str] = set()
        self.at: Callable[[], None] = lambda: None
        self.at_connect: Callable[[], None] = lambda: None
        self.call_within_s = CALL_DEADLINE_S
        self.admin = Admin(self)

    def connect(self, within_s: float = 0.0) -> None:
        self.at_connect()

    def names(self, wanted: Callable[[str], bool]) -> list[str]:
        return sorted({topic for topic, _ in self.log if wanted(topic)})

    def topics(self, wanted: Callable[[str], bool], named: Iterable[str] = ()) -> dict[str, Topic]:
        return {
            name: Topic(name, {number: 1 for topic, number in self.log if topic == name}, name in self.compacted)
            for name in self.names(wanted)
        }

    def ends(self, topic_partitions: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        self.at()
        unsettled = self.open if isolation == "read_committed" else {}
        return {tp: self.log[tp] - unsettled.get(tp, 0) for tp in topic_partitions}

    def starts(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.begin.get(tp, 0) for tp in topic_partitions}

    def has_records(self, tp: TopicPartition, start: int, end: int, isolation: str) -> bool:
        return start < end

    def group_states(self, *_: object, **__: object) -> dict[str, str]:
        return dict(self.states)

    def group_offsets(
        self, groups: Iterable[str], unread: dict[str, ClusterError] | None = None
    ) -> dict[str, dict[TopicPartition, int]]:
        return {name: dict(self.held.get(name, {})) for name in groups}


class Admin:
    """What commands change in a cluster. `refused` is the answer to every change instead of carrying it out."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.refused: KafkaError | None = None
        self.changes: list[tuple[Any, ...]] = []

    def alter_consumer_group_offsets(self, asked: Any, request_timeout: float) -> dict[str, Any]:
        (one,) = asked
        for part in one.topic_partitions if self.refused is None else ():
            tp = TopicPartition(part.topic, part.partition)
            self.side.held.setdefault(one.group_id, {})[tp] = part.offset
            self.side.metadata[one.group_id, tp] = part.metadata or ""
            self.changes.append((one.group_id, part.topic, part.partition, part.offset))
        return {one.group_id: self._answer(one)}

    def list_consumer_group_offsets(
        self, asked: Any, *, require_stable: bool, request_timeout: float
    ) -> dict[str, Any]:
        (one,) = asked
        parts = [
            ClientTopicPartition(*tp, offset, metadata=self.side.metadata.get((one.group_id, tp), ""))
            for tp, offset in self.side.held.get(one.group_id, {}).items()
        ]
        return {one.group_id: self._read(SimpleNamespace(topic_partitions=parts))}

    @staticmethod
    def _read(value: Any) -> Any:
        future: Future[Any] = Future()
        future.set_result(value)
        return future

    def delete_records(
        self, asked: list[ClientTopicPartition], request_timeout: float
    ) -> dict[ClientTopicPartition, Any]:
        self.changes += [(part.topic, part.partition, part.offset) for part in asked if self.refused is None]
        return {part: self._answer(part) for part in asked}

    def list_offsets(self, asked: Any, request_timeout: float) -> dict[ClientTopicPartition, Any]:
        return {part: self._answer(SimpleNamespace(timestamp=int(NOW) * 1000, offset=0)) for part in asked}

    def _answer(self, value: Any) -> Any:
        future: Future[Any] = Future()
        if self.refused is None:
            future.set_result(value)
        else:
            future.set_exception(KafkaException(self.refused))
        return future
