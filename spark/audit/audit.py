"""One audit of a mirror: reads both sides again and again, adds up what is new, and says what it shows.

The target is read first, the source after it: what the target holds the source has been asked for, so a copy is never
taken for a record that the source does not have.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from contract.audit import AuditDocument, Found
from contract.fields import VerificationError
from contract.verification_request import Request
from kafka.cluster import Cluster
from kafka.topic_metadata import topic_ids
from kafka.topic_partition import TopicPartition
from spark.audit.buckets import FAULTS, Judged, Place, ReadThrough, Rule, State, Sums, judge, opened_ms
from spark.audit.drill_down import DrillDownError, records_of
from spark.audit.starts import first_offsets
from spark.audit.store import AuditStore, Role, Unread
from spark.audit.stream import Reading, has_begun, read
from spark.audit.summary import About, summarized

READ_WITHIN_S = 600.0
RECREATED = "the topic was created again; what the audit had not read of the old one is gone"
DELETED = "retention deleted records before the audit read them"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Seconds: how long a bucket is, within which its records must arrive, between two readings, and what is kept."""

    bucket_s: int = 60
    within_s: int = 60
    every_s: int = 20
    keep_s: int = 7 * 86_400


class Audit:
    """An audit of one mirror, whose state is in `store`. `round` reads once; `document` says what is known."""

    def __init__(self, request: Request, store: AuditStore, options: Options) -> None:
        self._request = request
        self._store = store
        self._options = options
        self._rule = Rule(bucket_ms=options.bucket_s * 1000, within_ms=options.within_s * 1000)
        self._clusters: Mapping[Role, Cluster] = {"source": Cluster(request.source), "target": Cluster(request.target)}
        self._connected: set[Role] = set()
        self._problems: dict[Role, str] = {}
        self._judged: dict[Place, Judged] = {}
        self._unread: set[Unread] | None = None

    def round(self, spark: SparkSession) -> None:
        """Read what is new on both sides. A side that cannot be read is a problem of this round, and ends nothing.

        It has a new client in the next one: librdkafka's may go on failing where another one is answered.
        """
        roles: tuple[Role, ...] = ("target", "source")
        for role in roles:
            self._problems.pop(role, None)
            began_ms = _now_ms()
            try:
                self._read(spark, role)
            except VerificationError as error:
                self._problems[role] = str(error)
                self._connected.discard(role)
            else:
                self._store.note_read(role, began_ms)
        self._judge()
        self._drill_down()
        self._forget(_now_ms() - self._options.keep_s * 1000)

    def _read(self, spark: SparkSession, role: Role) -> None:
        mirror, cluster = self._request.mirror, self._clusters[role]
        if role not in self._connected:
            cluster.connect()
            self._connected.add(role)
        prefix = "" if role == "source" else mirror.target_topic("")
        if role == "source":  # which names the rights that are missing
            names = list(cluster.topics(mirror.carries_topic, mirror.named_topics))
        else:
            names = cluster.names(
                lambda name: name.startswith(prefix) and mirror.carries_topic(name.removeprefix(prefix))
            )
        self._note_unread(role, names, prefix)
        reading = Reading(
            role=role,
            side=self._request.source if role == "source" else self._request.target,
            topics=tuple(sorted(names)),
            prefix=prefix,
            isolation=self._request.limits.isolation,
            bucket_ms=self._rule.bucket_ms,
            from_ms=self._store.from_ms,
            starts={} if has_begun(self._store, role) else first_offsets(cluster, names, self._store.from_ms),
        )
        read(spark, reading, self._store, READ_WITHIN_S)

    def _note_unread(self, role: Role, names: list[str], prefix: str) -> None:
        """Find out what can no longer be read: of topics that were created again, and in front of log starts."""
        cluster, now_ms = self._clusters[role], _now_ms()
        ids = {f"{role} {name}": one for name, one in topic_ids(cluster, names).items() if one}
        replaced = {one.removeprefix(f"{role} ") for one in self._store.replaced(ids)}
        here = {
            TopicPartition(f"{prefix}{tp.topic}", tp.partition): at for tp, at in self._store.positions(role).items()
        }
        here = {tp: at for tp, at in here.items() if tp.topic in names}
        starts = cluster.starts(here) if here else {}
        found = []
        for tp, at in here.items():
            reason = RECREATED if tp.topic in replaced else DELETED if starts[tp] > at else None
            if reason is not None:
                own = TopicPartition(tp.topic.removeprefix(prefix), tp.partition)
                found.append(Unread(own, now_ms, f"{role} {cluster.side.alias}: {reason}"))
        if found:
            self._store.note_unread(found)

    def judged(self) -> list[Judged]:
        """Return each bucket with what both sides hold of it and the verdict of the last round, in no order."""
        if self._unread is None:
            self._judge()
        return list(self._judged.values())

    def _forget(self, before_ms: int) -> None:
        self._store.forget(before_ms)
        self._judged = {place: one for place, one in self._judged.items() if place.start_ms >= before_ms}

    def _judge(self) -> None:
        """Judge what may have another verdict now, which is not what is closed, as long as nothing is added to it.

        There are ten thousand buckets of a partition in a week, and few of them change in a round.
        """
        known, noted, changed = self._unread, set(self._store.unread()), self._store.take_changed()
        self._unread = noted
        if known is None:
            self._judge_buckets(self._store.buckets(), noted)
            return
        doubted = {one.partition for one in noted ^ known}
        for place, judged in self._judged.items():
            if judged.verdict.state is State.OPEN or TopicPartition(place.topic, place.partition) in doubted:
                changed.add(place)
        self._judge_buckets(self._store.some_buckets(changed), noted)

    def _judge_buckets(self, buckets: Iterable[tuple[Place, Sums, Sums]], noted: Iterable[Unread]) -> None:
        unread: dict[TopicPartition, list[Unread]] = defaultdict(list)
        for one in noted:
            unread[one.partition].append(one)
        through = {role: self._store.read_through(role) or 0 for role in self._clusters}
        read_through = ReadThrough(source_ms=through["source"], target_ms=through["target"])
        for place, source, target in buckets:
            reasons = {
                one.reason
                for one in unread[TopicPartition(place.topic, place.partition)]
                if place.start_ms <= one.at_ms or opened_ms(place, source, target) < place.start_ms
            }
            verdict = judge(place, source, target, self._rule, read_through, sorted(reasons))
            self._judged[place] = Judged(place=place, source=source, target=target, verdict=verdict)

    def _drill_down(self) -> None:
        """Name the records of faults that were not looked into yet; after an interval both sides are read again."""
        ends = time.monotonic() + self._options.every_s
        faults = sorted(
            (one for one in self._judged.values() if one.verdict.state in FAULTS), key=lambda one: one.place
        )
        for one in faults:
            if time.monotonic() >= ends:
                return
            if self._store.found(one.place, one.key) is not None:
                continue
            tp = TopicPartition(one.place.topic, one.place.partition)
            logs: dict[Role, TopicPartition] = {
                "source": tp,
                "target": TopicPartition(self._request.mirror.target_topic(tp.topic), tp.partition),
            }
            isolation = self._request.limits.isolation
            try:
                records = records_of(self._clusters, logs, isolation, one, self._rule.bucket_ms)
                self._store.keep_found(one.place, one.key, Found(records=tuple(records)))
            except DrillDownError as error:
                self._store.keep_found(one.place, one.key, Found(not_found=str(error)))
            except VerificationError as error:  # the next round tries again
                self._problems["source"] = f"{one.place.topic} partition {one.place.partition}: {error}"

    def document(self) -> AuditDocument:
        """Return what is known now."""
        through = {role: self._store.read_through(role) for role in self._clusters}
        problems = [self._problems[role] for role in sorted(self._problems)]
        about = About(
            mirror=self._request.mirror.name,
            stack=self._request.stack,
            from_ms=self._store.from_ms,
            bucket_seconds=self._options.bucket_s,
            within_seconds=self._options.within_s,
            every_seconds=self._options.every_s,
            at_ms=_now_ms(),
            read_through=through,
            problems=tuple(problems),
        )
        return summarized(about, self.judged(), self._store.found)


def identity(request: Request, options: Options) -> str:
    """Return what tells an audit from another one: its mirror, both sides, and the length of its buckets."""
    mirror = request.mirror
    return f"mirror {mirror.name} from {request.source.alias} to {request.target.alias}, {options.bucket_s} s"


def begins_ms(options: Options) -> int:
    """Return where an audit that begins now has its first whole bucket, ms since 1970."""
    bucket_ms = options.bucket_s * 1000
    return (_now_ms() // bucket_ms + 1) * bucket_ms


def _now_ms() -> int:
    return int(time.time() * 1000)
