"""Takes a snapshot of a mirror with the doctor's own probes: rights, certificates, traces, other mirrors, logs.

Owns which probes are added to the snapshot, and the report of those that fail. Does not judge what they find.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from contract.verification_request import Mirror
from kafka.errors import Refusals
from ops import verify
from ops.doctor import cluster_probes, connect_probes
from ops.doctor.duplicate_records import DuplicateScan, find_duplicate_records
from ops.doctor.observations import ClusterObservation, Connector, KubernetesObservations, Observations, PulumiState
from ops.doctor.pulumi_state import state_notes
from ops.inspection import snapshot
from ops.inspection.probes import BROKERS_MAX, MirrorReadings, certificates_of, once, servers
from ops.inspection.snapshot import MirrorSnapshot
from ops.recovery.mirror_context import MirrorContext

CERTIFICATE_DAYS = 14
SNAPSHOT_PARTS = (
    snapshot.SOURCE,
    snapshot.TARGET,
    snapshot.RESOURCE,
    snapshot.CONNECTORS,
    snapshot.RECOVERY,
    snapshot.FENCE,
)
ASSIGNED = "target: tasks of the workers' group"
STATE = "Pulumi's state"
_NOTED = {ASSIGNED, STATE}
_PARTITIONS = "connect: partitions of the tasks"
_SilentBrokers = Callable[[], cluster_probes.SilentBrokers]


def collect(
    pair: MirrorContext,
    environment: Mapping[str, str],
    log: Callable[[str], None],
    *,
    worker_logs: Sequence[Path] = (),
    certificate_days: int = CERTIFICATE_DAYS,
    pulumi_state: Callable[[], PulumiState] | None = None,
    debug: bool = False,
) -> Observations:
    """Return what the probes find. One that fails or hangs affects no other; `unseen` has its name and the reason.

    Args:
        pair: the mirror.
        environment: for the kubeconfig.
        log: gets a line of progress.
        worker_logs: files with logs of workers, besides those of the pods.
        certificate_days: days before its end that a certificate is reported.
        pulumi_state: the probe of Pulumi's state, if it is of interest.
        debug: whether an unforeseen error of a probe is raised; else only its type is reported.

    Raises:
        OpsError: a file of `worker_logs` cannot be read.
    """
    files = connect_probes.from_files(worker_logs)
    log("reading both clusters, Connect and the mirror's resource")
    state = {STATE: pulumi_state} if pulumi_state is not None else {}
    more = partial(_probes, environment, state)
    seen = snapshot.collect(pair, environment, log, parts=SNAPSHOT_PARTS, more=more, debug=debug)
    found, mirror = seen.more.found, pair.request.mirror
    source, target = _cluster(seen, "source"), _cluster(seen, "target")
    kubernetes = found.get("resource") or KubernetesObservations()
    copies = found.get("copies")
    return Observations(
        stack=pair.stack,
        mirror=mirror,
        source=source,
        target=target,
        now=datetime.fromtimestamp(seen.at, UTC),
        active=pair.active,
        state=pair.state,
        certificate_days=certificate_days,
        connectors=_connectors(seen),
        assigned=found.get(ASSIGNED),
        resource=connect_probes.readiness(seen.mirror) if seen.mirror and seen.mirror.silent is None else None,
        logs=(*kubernetes.logs, *files),
        others=kubernetes.others,
        duplicates=copies.duplicates if copies is not None else (),
        pulumi_state=found.get(STATE),
        source_stack=pair.source_stack and verify.label_of(pair.source_stack),
        fence_issue=seen.fence_issue,
        unseen=_unseen(seen),
        notes=(
            *(note for note in kubernetes.notes if not (files and "logs" in note)),
            *_silent_connect(seen),
            *(f"{name}: {why}" for name, why in seen.more.problems.items() if name in _NOTED),
            *state_notes(found.get(STATE)),
            *left_out(mirror, (source, target), copies),
        ),
    )


def _probes(environment: Mapping[str, str], others: snapshot.Probes, readings: MirrorReadings) -> snapshot.Probes:
    """Return the doctor's own probes, and others, by the names under which it reports those that fail."""
    pair, source, target = readings.pair, readings.source, readings.target
    mirror = pair.request.mirror
    probes: dict[str, Callable[[], Any]] = {**others}
    silent: list[_SilentBrokers] = []
    for one in (source, target):
        role, cluster = one.cluster.side.role, one.cluster
        silent.append(once(partial(cluster_probes.silent_brokers, one)))
        probes |= {
            f"{role}: certificates": partial(certificates_of, one),
            f"{role}: brokers and topics": _after(one.layout, one.connected),
            f"{role}: advertised addresses": _after(silent[-1], one.layout),
            f"{role}: groups": _after(partial(cluster_probes.groups, one, mirror), one.connected),
            f"{role}: the mirror's own topics": _after(
                partial(cluster_probes.policies, cluster, mirror), one.connected
            ),
            f"{role}: rights": _after(
                partial(cluster_probes.rights, cluster, mirror, source.layout), source.layout, one.layout
            ),
        }
    if pair.connect_group is not None:
        workers = target.cluster, pair.connect_group, mirror.source_connector
        probes[ASSIGNED] = _after(partial(cluster_probes.assigned_tasks, *workers), target.connected)
    if mirror.connect_url is not None:
        tasks = partial(connect_probes.task_partitions, mirror.connect_url, mirror.source_connector)
        probes[_PARTITIONS] = _after(tasks, readings.connectors)
    if mirror.resource is not None:
        others_and_logs = partial(connect_probes.others_and_logs, readings.resource, environment)
        probes["resource"] = _after(others_and_logs, readings.resource)
    probes["copies"] = _after(partial(_duplicates, readings, silent), source.layout, target.layout)
    return probes


def _after(probe: Callable[[], Any], *readings: Callable[[], Any]) -> Callable[[], Any]:
    """Return a probe that finds nothing where one of these readings fails: that is reported by itself."""

    def run() -> Any:
        try:
            for read in readings:
                read()
        except Exception:
            return None
        return probe()

    return run


def _duplicates(readings: MirrorReadings, silent: Iterable[_SilentBrokers]) -> DuplicateScan | None:
    """Return the duplicates in topics that both sides have; None if a broker takes no connection."""
    if any(brokers() for brokers in silent):
        return None
    mirror, there = readings.pair.request.mirror, readings.target.layout().topics
    both = {
        name: parts
        for name, parts in readings.source.layout().topics.items()
        if mirror.carries_topic(name) and there.get(mirror.target_topic(name)) == parts
    }
    return find_duplicate_records(readings.source.cluster, readings.target.cluster, mirror, both)


def _cluster(seen: MirrorSnapshot, role: str) -> ClusterObservation:
    found, request = seen.more.found, seen.pair.request
    side, status = (request.source, seen.source) if role == "source" else (request.target, seen.target)
    bootstrap = side.client_config.get("bootstrap.servers", "")
    layout = found.get(f"{role}: brokers and topics")
    states, lacks = found.get(f"{role}: groups") or (None, ())
    by_workers = connect_probes.addresses(seen.mirror.document if seen.mirror else {})[role]
    return ClusterObservation(
        role=role,
        alias=side.alias,
        servers=bootstrap,
        user=str(Refusals(side).user),
        refusal=status.problem,
        cluster_id=layout.cluster_id if layout is not None else None,
        addresses=servers(bootstrap)
        | by_workers
        | {f"{one.host}:{one.port}" for one in (layout.brokers if layout is not None else ())},
        brokers=len(layout.brokers) if layout is not None else 0,
        silent=found.get(f"{role}: advertised addresses") or (),
        topics=layout.topics if layout is not None else None,
        lacks=(*(found.get(f"{role}: rights") or ()), *lacks),
        certificates=tuple(found.get(f"{role}: certificates", ())),
        groups=states,
        policies=found.get(f"{role}: the mirror's own topics") or {},
    )


def _connectors(seen: MirrorSnapshot) -> tuple[Connector, ...] | None:
    """Return the connectors with their traces, and with what each task of the source connector is to read."""
    if seen.connectors is None:
        return None
    partitions = seen.more.found.get(_PARTITIONS) or {}
    return tuple(
        connect_probes.connector(
            one.name, one.reported, partitions if one.name == seen.pair.request.mirror.source_connector else {}
        )
        for one in seen.connectors
    )


def _unseen(seen: MirrorSnapshot) -> tuple[str, ...]:
    """What could not be inspected. An unusable cluster is a finding; the resource may report Connect's state."""
    problems: dict[str, str | None] = {}
    if seen.connectors is None:
        problems["connect"] = seen.connect_problem or seen.unknown.get(snapshot.CONNECTORS)
    problems["resource"] = seen.unknown.get(snapshot.RESOURCE)
    if seen.mirror is not None and seen.mirror.silent is not None:
        problems["resource"] = f"{seen.mirror.resource}: {seen.mirror.silent}"
    problems |= {name: why for name, why in seen.more.problems.items() if name not in _NOTED}
    return tuple(f"{name}: {why}" for name, why in problems.items() if why is not None)


def _silent_connect(seen: MirrorSnapshot) -> tuple[str, ...]:
    why = seen.connect_problem
    return (f"connect: {why}; the resource's status reports its connectors",) if why and seen.connectors else ()


def left_out(mirror: Mirror, clusters: Iterable[ClusterObservation], copies: DuplicateScan | None) -> tuple[str, ...]:
    """Return what the limits of the probes left out: what was not inspected must not pass for healthy.

    Args:
        mirror: which groups it carries.
        clusters: the source and the target.
        copies: the scan for duplicate records; None if there was none.
    """
    notes = []
    for one in clusters:
        limit = BROKERS_MAX
        if one.brokers > limit:
            notes.append(f"{one.role}: {limit} of {one.brokers} brokers tried at their advertised addresses")
        carried = sum(1 for group in one.groups or {} if mirror.carries_group(group))
        limit = cluster_probes.GROUPS_MAX
        if one.role == "target" and mirror.sync_group_offsets and carried > limit:
            notes.append(f"target: rights on {limit} of {carried} groups")
    if copies is not None and copies.compared < copies.partitions:
        notes.append(f"copies: {copies.compared} of {copies.partitions} partitions")
    return tuple(notes)
