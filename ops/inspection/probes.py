"""Runs probes of a mirror at the same time, under one deadline; what several of them need is read once.

Owns the deadlines of connections, and what is reported of a probe that fails. Does not own what a command asks for.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from contract.fields import VerificationError
from kafka import connectivity
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.connectivity import Broker
from kafka.connector_status import NO_ANSWER, ConnectorState, ResourceStatus, read_connectors, resource_status
from kafka.lag import Measure
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery.mirror_context import MirrorContext

BROKERS_MAX = 50
ANSWER_WITHIN_S = 8.0
CONNECTED_WITHIN_S = 20.0
"""For a connection, or the diagnosis of why there is none."""
T = TypeVar("T")
FORESEEN = (VerificationError, KafkaException, OpsError, OSError)


@dataclass(frozen=True, kw_only=True)
class ProbeResults:
    """Results of probes by name; `problems` has the reason of each probe that failed or did not end in time."""

    found: Mapping[str, Any]
    problems: Mapping[str, str]


def run_probes(
    probes: Mapping[str, Callable[[], Any]],
    within_s: float,
    *,
    debug: bool = False,
    at_once: int | None = None,
    longer: Mapping[str, float] = MappingProxyType({}),
) -> ProbeResults:
    """Return the results of the probes that end within the time, in their order; a probe that hangs is left behind.

    Args:
        probes: functions by the names under which their results are returned.
        within_s: deadline in seconds of all of them together.
        debug: whether an unforeseen error is raised; else only its type is reported, for its message may contain a
            secret.
        at_once: how many may run at the same time; None for all.
        longer: deadlines in seconds of probes that take longer where there is more to read, and end by themselves if
            nothing comes.
    """
    found: dict[str, Any] = {}
    failed: dict[str, Exception] = {}
    slots = threading.Semaphore(at_once or len(probes))
    began = time.monotonic()
    within = {name: max(within_s, longer.get(name, within_s)) for name in probes}

    def run(name: str, probe: Callable[[], Any]) -> None:
        try:
            with slots:
                if time.monotonic() < began + within[name]:
                    found[name] = probe()
        except Exception as error:
            failed[name] = error

    threads = {name: threading.Thread(target=run, args=(name, probe), daemon=True) for name, probe in probes.items()}
    for thread in threads.values():
        thread.start()
    for name in sorted(threads, key=within.__getitem__):
        threads[name].join(max(0.0, began + within[name] - time.monotonic()))
    ended, raised = dict(found), dict(failed)  # what comes later is not taken
    done = {name: ended[name] for name in probes if name in ended}
    broken = {name: raised[name] for name in probes if name in raised}
    for error in broken.values():
        if debug and not isinstance(error, FORESEEN):
            raise error
    left = [name for name in probes if name not in done and name not in broken]
    late = {name: f"no answer within {within[name]:.0f} s" for name in left}
    return ProbeResults(found=done, problems={name: error_text(error) for name, error in broken.items()} | late)


def error_text(error: Exception) -> str:
    """Return what may be reported of an error: of an unforeseen one its type alone, its message may hold a secret."""
    if not isinstance(error, FORESEEN):
        return f"unforeseen {type(error).__name__} (--debug shows where)"
    first = error.args[0] if error.args else error
    return str(first.str()) if isinstance(error, KafkaException) and hasattr(first, "str") else str(error)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What a certificate is for, and its last moment."""

    what: str
    ends: datetime


def servers(listed: str) -> frozenset[str]:
    """Return the addresses of a list of bootstrap servers."""
    return frozenset(one.strip() for one in listed.split(",") if one.strip())


def once(read: Callable[[], T]) -> Callable[[], T]:
    """Return a function that reads at its first call; all callers get that result, or the error that was raised."""
    lock = threading.Lock()
    results: list[T] = []
    errors: list[Exception] = []

    def result() -> T:
        with lock:
            if not results and not errors:
                try:
                    results.append(read())
                except Exception as error:
                    errors.append(error)
        if errors:
            raise errors[0]
        return results[0]

    return result


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The brokers with the addresses that they advertise, and the topics with their numbers of partitions.

    `leaderless` are the partitions without a leader, each with the brokers of its replicas.
    """

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    topics: Mapping[str, int]
    leaderless: Mapping[TopicPartition, tuple[int, ...]]


class ClusterReadings:
    """Readings of one cluster. All but `cluster` are functions, which raise if the cluster cannot be used."""

    def __init__(self, cluster: Cluster, *, debug: bool, within_s: float = ANSWER_WITHIN_S) -> None:
        self.cluster = cluster
        self.connected: Callable[[], Cluster] = once(partial(_connected, cluster, within_s, debug=debug))
        self.layout: Callable[[], Layout] = once(lambda: _layout(self.connected()))
        self.group_states: Callable[[], dict[str, str]] = once(lambda: self.connected().group_states())


class MirrorReadings:
    """Readings of a mirror: both its clusters, its custom resource, and its connectors.

    With `debug` an unforeseen error of a connection is raised as it is. The source has `source_within_s` to answer.
    """

    def __init__(
        self,
        pair: MirrorContext,
        environment: Mapping[str, str],
        *,
        debug: bool,
        source_within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        self.pair = pair
        self.source = ClusterReadings(pair.source(), debug=debug, within_s=source_within_s)
        self.target = ClusterReadings(pair.target(), debug=debug)
        self.resource: Callable[[], ResourceStatus | None] = once(partial(_resource, pair, environment))
        self.connectors: Callable[[], list[ConnectorState] | None] = once(partial(_connectors, pair))
        self.lag: Callable[[], Measure | None] = lambda: None
        """What is not copied, by the mirror's position; None if that is not known. A snapshot sets it."""


def _connected(cluster: Cluster, within_s: float, *, debug: bool) -> Cluster:
    """Return the cluster once it answers its user; raises OpsError with the reason why it does not."""
    connect = {"connection": partial(cluster.connect, within_s)}
    problems = run_probes(connect, CONNECTED_WITHIN_S, debug=debug).problems
    if problems:
        raise OpsError(problems["connection"])
    return cluster


def _layout(cluster: Cluster) -> Layout:
    seen = cluster.admin.list_topics(timeout=CALL_DEADLINE_S)
    topics = {name: topic.partitions for name, topic in seen.topics.items() if topic.error is None}
    return Layout(
        cluster_id=str(seen.cluster_id) if seen.cluster_id else None,
        brokers=tuple(Broker(one.id, str(one.host), int(one.port or 0)) for one in seen.brokers.values()),
        topics={name: len(partitions) for name, partitions in topics.items()},
        leaderless={
            tp: tuple(topics[tp.topic][tp.partition].replicas)
            for tp, leader in connectivity.leaders(seen, topics).items()
            if leader is None
        },
    )


def _resource(pair: MirrorContext, environment: Mapping[str, str]) -> ResourceStatus | None:
    """Return the status of the mirror's custom resource; None if it has none."""
    mirror = pair.request.mirror
    return resource_status(mirror.resource, mirror.connector_names, environment) if mirror.resource else None


def _connectors(pair: MirrorContext) -> list[ConnectorState] | None:
    """Return what Connect reports; None without an address of Connect. Raises OpsError if it does not answer."""
    mirror = pair.request.mirror
    if mirror.connect_url is None:
        return None
    try:
        return read_connectors(mirror.connect_url, mirror.connector_names)
    except NO_ANSWER as error:
        raise OpsError(f"Connect at {mirror.connect_url} does not answer ({type(error).__name__})") from None


def certificates_of(readings: ClusterReadings) -> list[Certificate]:
    """Return the certificates that the client has, and those that brokers show at the addresses that they advertise.

    If the cluster is unreachable, those that the client has, and what its bootstrap addresses show.
    """
    config = readings.cluster.side.client_config
    if "SSL" not in config.get("security.protocol", "").upper():
        return []
    addresses = set(servers(config.get("bootstrap.servers", "")))
    with suppress(*FORESEEN):  # what the client has is known all the same
        addresses |= {f"{one.host}:{one.port}" for one in readings.layout().brokers}
    with ThreadPoolExecutor(16) as pool:
        tried = pool.map(connectivity.broker_certificate, sorted(addresses)[:BROKERS_MAX])
        shown = [one for one in tried if one is not None]
    return [Certificate(what=what, ends=ends) for what, ends in dict.fromkeys([*connectivity.trusted(config), *shown])]
