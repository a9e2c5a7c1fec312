"""Runs the probes of both clusters, Connect, Kubernetes and logs, each step of them at the same time with a deadline.

Owns the order of the probes and the report of those that fail. Does not judge what they find.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contract.verification_request import Mirror, Request
from kafka.cluster import Cluster
from ops.doctor import cluster_probes, connect_probes
from ops.doctor.cluster_probes import assigned_tasks
from ops.doctor.duplicate_records import DuplicateScan, find_duplicate_records
from ops.doctor.observations import ClusterObservation, Log, Observations
from ops.inspection.probes import BROKERS_MAX, ProbeResults, certificates, run_probes, servers

FIRST_S = 30.0
SECOND_S = 60.0
THIRD_S = 45.0
CERTIFICATE_DAYS = 14
ASSIGNED = "target: tasks of the workers' group"


def collect(
    stack: str,
    request: Request,
    environment: Mapping[str, str],
    log: Callable[[str], None],
    *,
    active: str = "source",
    state: str = "running",
    connect_group: str | None = None,
    worker_logs: Sequence[Path] = (),
    certificate_days: int = CERTIFICATE_DAYS,
    debug: bool = False,
) -> Observations:
    """Return what the probes find. One that fails or hangs affects no other; `unseen` names it with the reason.

    `connect_group` is the group of the mirror's workers. With `debug` an unforeseen error of a probe is raised.
    """
    logs = connect_probes.from_files(worker_logs)
    clusters = {"source": Cluster(request.source), "target": Cluster(request.target)}
    log("reading both clusters, Connect and the mirror's resource")
    first = run_probes(_first(request, clusters, environment), FIRST_S, debug=debug)
    usable = {role: cluster for role, cluster in clusters.items() if f"{role}: connection" not in first.problems}
    log(f"reading brokers, topics and groups of {' and '.join(usable) or 'no cluster'}")
    second = run_probes(_second(request.mirror, usable, connect_group), SECOND_S, debug=debug)
    third = run_probes(_third(request.mirror, clusters, second), THIRD_S, debug=debug)
    sides = {role: _side(clusters[role], first, second, third) for role in clusters}
    resources = first.found.get("resource")
    connectors = first.found.get("connect")
    if connectors is None and resources is not None:
        connectors = resources.connectors
    copies = third.found.get("copies")
    known: list[Log] = [*(resources.logs if resources is not None else ()), *logs]
    notes = [note for note in (resources.notes if resources is not None else ()) if not (logs and "logs" in note)]
    return Observations(
        stack=stack,
        mirror=request.mirror,
        source=sides["source"],
        target=sides["target"],
        now=datetime.now(UTC),
        active=active,
        state=state,
        certificate_days=certificate_days,
        connectors=connectors,
        assigned=second.found.get(ASSIGNED),
        resource=resources.readiness if resources is not None else None,
        logs=tuple(known),
        others=resources.others if resources is not None else (),
        duplicates=copies.duplicates if copies is not None else (),
        unseen=_unseen(first, second, third, known=connectors is not None),
        notes=(
            *notes,
            *_silent_connect(first, known=connectors is not None),
            *(f"{ASSIGNED}: {why}" for name, why in second.problems.items() if name == ASSIGNED),
            *left_out(request.mirror, sides.values(), copies),
        ),
    )


def _first(request: Request, clusters: Mapping[str, Cluster], environment: Mapping[str, str]) -> dict[str, Any]:
    """Probes that need no result of another one."""
    mirror = request.mirror
    names = mirror.connector_names
    probes: dict[str, Any] = {f"{role}: connection": cluster.connect for role, cluster in clusters.items()}
    for role, cluster in clusters.items():
        config = cluster.side.client_config
        addresses = servers(config.get("bootstrap.servers", ""))
        probes[f"{role}: certificates"] = _bound(certificates, config, addresses)
    if mirror.connect_url is not None:
        probes["connect"] = _bound(connect_probes.from_rest, mirror.connect_url, names)
    if mirror.resource is not None:
        probes["resource"] = _bound(connect_probes.resources, mirror.resource, names, environment)
    return probes


def _second(mirror: Mirror, usable: Mapping[str, Cluster], connect_group: str | None) -> dict[str, Any]:
    """Probes of a cluster that answers."""
    probes: dict[str, Any] = {}
    for role, cluster in usable.items():
        probes[f"{role}: brokers and topics"] = _bound(cluster_probes.layout, cluster)
        probes[f"{role}: groups"] = _bound(cluster_probes.groups, cluster, mirror)
        probes[f"{role}: the mirror's own topics"] = _bound(cluster_probes.policies, cluster, mirror)
    if connect_group is not None and "target" in usable:
        probes[ASSIGNED] = _bound(assigned_tasks, usable["target"], connect_group, mirror.source_connector)
    return probes


def _third(mirror: Mirror, clusters: Mapping[str, Cluster], second: ProbeResults) -> dict[str, Any]:
    """Probes that need the topics."""
    layouts = {role: second.found.get(f"{role}: brokers and topics") for role in clusters}
    source, target = layouts["source"], layouts["target"]
    if source is None:
        return {}
    carried = {name: parts for name, parts in source.topics.items() if mirror.carries_topic(name)}
    wanted = sorted({*carried, *mirror.named_topics})
    probes: dict[str, Any] = {
        f"{role}: rights": _bound(cluster_probes.rights, clusters[role], mirror, wanted)
        for role, known in layouts.items()
        if known is not None
    }
    for role, known in layouts.items():
        if known is not None:
            silent = {broker for broker, _ in known.silent}
            addresses = [f"{one.host}:{one.port}" for one in known.brokers if one not in silent]
            config = clusters[role].side.client_config
            probes[f"{role}: brokers' certificates"] = _bound(certificates, config, addresses)
    if target is not None and not source.silent and not target.silent:
        both = {name: parts for name, parts in carried.items() if target.topics.get(mirror.target_topic(name)) == parts}
        probes["copies"] = _bound(find_duplicate_records, clusters["source"], clusters["target"], mirror, both)
    return probes


def _side(cluster: Cluster, first: ProbeResults, second: ProbeResults, third: ProbeResults) -> ClusterObservation:
    side, role = cluster.side, cluster.side.role
    bootstrap = side.client_config.get("bootstrap.servers", "")
    layout = second.found.get(f"{role}: brokers and topics")
    states, lacks = second.found.get(f"{role}: groups", (None, ()))
    resource = first.found.get("resource")
    own = servers(bootstrap) | (resource.addresses.get(role, frozenset()) if resource else frozenset())
    shown = [
        *first.found.get(f"{role}: certificates", ()),
        *third.found.get(f"{role}: brokers' certificates", ()),
    ]
    return ClusterObservation(
        role=role,
        alias=side.alias,
        servers=bootstrap,
        user=str(cluster.refusals.user),
        refusal=first.problems.get(f"{role}: connection"),
        cluster_id=layout.cluster_id if layout is not None else None,
        addresses=own | {f"{one.host}:{one.port}" for one in (layout.brokers if layout is not None else ())},
        brokers=len(layout.brokers) if layout is not None else 0,
        silent=layout.silent if layout is not None else (),
        topics=layout.topics if layout is not None else None,
        lacks=(*third.found.get(f"{role}: rights", ()), *lacks),
        certificates=tuple(dict.fromkeys(shown)),
        groups=states,
        policies=second.found.get(f"{role}: the mirror's own topics", {}),
    )


def _unseen(*answers: ProbeResults, known: bool) -> tuple[str, ...]:
    """What could not be inspected. An unusable cluster is a finding; the resource may report Connect's state."""
    problems = {name: why for one in answers for name, why in one.problems.items()}
    return tuple(
        f"{name}: {why}"
        for name, why in problems.items()
        if not name.endswith(": connection") and name != ASSIGNED and not (name == "connect" and known)
    )


def _silent_connect(first: ProbeResults, *, known: bool) -> tuple[str, ...]:
    why = first.problems.get("connect")
    return (f"connect: {why}; the resource's status reports its connectors",) if why and known else ()


def left_out(mirror: Mirror, sides: Iterable[ClusterObservation], copies: DuplicateScan | None) -> tuple[str, ...]:
    """Return what the limits of the probes left out: what was not inspected must not pass for healthy."""
    notes = []
    for side in sides:
        limit = BROKERS_MAX
        if side.brokers > limit:
            notes.append(f"{side.role}: {limit} of {side.brokers} brokers tried at their advertised addresses")
        carried = sum(1 for group in side.groups or {} if mirror.carries_group(group))
        limit = cluster_probes.GROUPS_MAX
        if side.role == "target" and mirror.sync_group_offsets and carried > limit:
            notes.append(f"target: rights on {limit} of {carried} groups")
    if copies is not None and copies.compared < copies.partitions:
        notes.append(f"copies: {copies.compared} of {copies.partitions} partitions")
    return tuple(notes)


def _bound(collect: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: collect(*arguments)
