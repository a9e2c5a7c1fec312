"""`python -m ops doctor`: inspects a mirror once, recognises known issues and prints the remedies.

The inspection is a snapshot with the doctor's own probes: rights, certificates, traces, other mirrors, logs. Owns which
probes are added, and the report of those that fail. Does not own how an issue is recognised.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from contract.verification_request import Mirror
from kafka.errors import Refusals
from ops import verify
from ops.connection import PROJECT
from ops.console import (
    EXIT_FAILED,
    EXIT_UNUSABLE,
    AdaptiveTable,
    AsJson,
    Column,
    Debug,
    ProjectFolder,
    Text,
    escape,
    guard,
    log,
    show,
)
from ops.doctor import cluster_probes, connect_probes, log_probes, pulumi_state
from ops.doctor.cluster_probes import DuplicateScan, find_duplicate_records
from ops.doctor.diagnosis import diagnose, redacted
from ops.doctor.known_issues import KNOWN_ISSUES, Finding
from ops.doctor.log_probes import LargeRecordScan
from ops.doctor.observations import ClusterObservation, Connector, KubernetesObservations, Observations, PulumiState
from ops.doctor.pulumi_state import state_notes
from ops.inspection import snapshot
from ops.inspection.probes import BROKERS_MAX, MirrorReadings, certificates_of, once, servers
from ops.inspection.snapshot import MirrorSnapshot
from ops.recovery import break_glass
from ops.recovery.break_glass import BreakGlass
from ops.recovery.mirror_context import MirrorContext
from settings.text import format_names

CERTIFICATE_DAYS = 14
SNAPSHOT_PARTS = (
    snapshot.SOURCE,
    snapshot.TARGET,
    snapshot.RESOURCE,
    snapshot.CONNECTORS,
    snapshot.ACTIVE_SIDE,
    snapshot.RECOVERY,
    snapshot.FENCE,
    snapshot.RETENTION,
    snapshot.TARGET_FENCE,
)
ASSIGNED = "target: tasks of the workers' group"
STATE = "Pulumi's state"
_OTHER_GROUPS = "source: groups of other kinds"
_NOTED = {ASSIGNED, STATE, _OTHER_GROUPS}
_PARTITIONS = "connect: partitions of the tasks"
_REPLACED, _LARGE, _ORPHANS = "source: logs", "source: first records that are not copied", "target: topics without one"
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
    copies, large = found.get("copies"), found.get(_LARGE) or LargeRecordScan()
    return Observations(
        stack=pair.stack,
        mirror=mirror,
        source=source,
        target=target,
        now=datetime.fromtimestamp(seen.at, UTC),
        active=pair.active,
        active_now=seen.active_now,
        state=pair.state,
        certificate_days=certificate_days,
        connectors=_connectors(seen),
        assigned=found.get(ASSIGNED),
        resource=connect_probes.readiness(seen.mirror) if seen.mirror and seen.mirror.silent is None else None,
        logs=(*kubernetes.logs, *files),
        others=kubernetes.others,
        duplicates=copies.duplicates if copies is not None else (),
        until_deletion=seen.until_deletion or (),
        replaced_logs=found.get(_REPLACED) or (),
        large_records=large.records,
        orphans=found.get(_ORPHANS) or {},
        pulumi_state=found.get(STATE),
        source_stack=pair.source_stack and verify.label_of(pair.source_stack),
        fence_issue=seen.fence_issue,
        target_fenced=seen.target_fenced,
        not_followed=seen.not_followed,
        runs_at_rest=seen.runs_at_rest,
        unseen=_unseen(seen),
        notes=(
            *(note for note in kubernetes.notes if not (files and "logs" in note)),
            *_silent_connect(seen),
            *(f"{name}: {why}" for name, why in seen.more.problems.items() if name in _NOTED),
            *_split(pair),
            *state_notes(found.get(STATE)),
            *left_out(mirror, (source, target), copies, large),
        ),
    )


def _probes(environment: Mapping[str, str], others: snapshot.Probes, readings: MirrorReadings) -> snapshot.Probes:
    """Return the doctor's own probes, and others, by the names under which it reports those that fail."""
    pair, source, target = readings.pair, readings.source, readings.target
    mirror = pair.request.mirror
    probes: dict[str, Callable[[], Any]] = {**others}
    probes[_OTHER_GROUPS] = _after(partial(cluster_probes.other_groups, source, mirror), source.connected)
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
    for name, probe in (
        (_REPLACED, log_probes.replaced_logs),
        (_LARGE, log_probes.large_records),
        (_ORPHANS, log_probes.orphans),
    ):
        probes[name] = _after(partial(probe, readings), source.layout, target.layout, readings.lag)
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
    """Return the duplicates in topics that both sides have; None if a broker does not answer for its partitions."""
    if any(brokers() for brokers in silent) or any(
        one.layout().leaderless for one in (readings.source, readings.target)
    ):
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
        leaderless=layout.leaderless if layout is not None else {},
        lacks=(*(found.get(f"{role}: rights") or ()), *lacks),
        reports_rights=found.get(f"{role}: rights", ()) is not None,
        certificates=tuple(found.get(f"{role}: certificates", ())),
        groups=states,
        policies=found.get(f"{role}: the mirror's own topics") or {},
        other_groups=(found.get(_OTHER_GROUPS) or ()) if role == "source" else (),
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
    problems["fence"] = seen.fence_unknown
    problems["target fence"] = seen.target_fence_unknown
    for part in (snapshot.ACTIVE_SIDE, snapshot.RECOVERY, snapshot.RETENTION, snapshot.FOLLOWER):
        problems[part] = seen.unknown.get(part)
    if seen.mirror is not None and seen.mirror.silent is not None:
        problems["resource"] = f"{seen.mirror.resource}: {seen.mirror.silent}"
    problems |= {name: why for name, why in seen.more.problems.items() if name not in _NOTED}
    return tuple(f"{name}: {why}" for name, why in problems.items() if why is not None)


def _silent_connect(seen: MirrorSnapshot) -> tuple[str, ...]:
    why = seen.connect_problem
    return (f"connect: {why}; the resource's status reports its connectors",) if why and seen.connectors else ()


def _split(pair: MirrorContext) -> tuple[str, ...]:
    split = pair.failed_over
    return (f"{format_names(split.topics)}: failed over alone, so not looked at but for the fence",) if split else ()


def left_out(
    mirror: Mirror, clusters: Iterable[ClusterObservation], copies: DuplicateScan | None, large: LargeRecordScan
) -> tuple[str, ...]:
    """Return what the limits of the probes left out: what was not inspected must not pass for healthy.

    Args:
        mirror: which groups it carries.
        clusters: the source and the target.
        copies: the scan for duplicate records; None if there was none.
        large: the scan for records that are too large.
    """
    notes = []
    for one in clusters:
        limit = BROKERS_MAX
        if one.brokers > limit:
            notes.append(f"{one.role}: {limit} of {one.brokers} brokers tried at their advertised addresses")
        if not one.reports_rights:
            notes.append(f"{one.role}: what user {one.user} may do: brokers before Kafka 2.3 do not report it")
        carried = sum(1 for group in one.groups or {} if mirror.carries_group(group))
        limit = cluster_probes.GROUPS_MAX
        if one.role == "target" and mirror.sets_groups and carried > limit:
            notes.append(f"target: rights on {limit} of {carried} groups")
    if copies is not None and copies.compared < copies.partitions:
        notes.append(f"copies: {copies.compared} of {copies.partitions} partitions")
    if large.read < large.partitions:
        notes.append(
            f"source: sizes of records in {large.read} of {large.partitions} partitions that are behind; the others "
            "could not be read in time"
        )
    return tuple(notes)


def command(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack that declares the mirror, for example stg.")],
    mirror: Annotated[
        str | None, typer.Option("--mirror", "-m", help="Mirror of the stack; not needed if it has only one.")
    ] = None,
    worker_log: Annotated[
        list[Path] | None,
        typer.Option("--worker-log", help="File with a worker's log, where no pod's log can be read. May be repeated."),
    ] = None,
    certificate_days: Annotated[
        int, typer.Option("--certificate-days", min=0, help="Days before its end that a certificate is reported.")
    ] = CERTIFICATE_DAYS,
    without_pulumi: BreakGlass = False,
    folder: ProjectFolder = PROJECT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Inspect everything around a mirror once, recognise known issues and print what to do.

    Example: [bold]python -m ops doctor --stack stg[/bold]

    It inspects both clusters (connection, advertised addresses, certificates, rights, topics, groups, the first records
    of remote topics), Connect with the traces of what failed, the mirror's resource and other mirrors in Kubernetes,
    and the last minutes of the workers' logs. It is read-only and joins no group. Each finding has the evidence, where
    it is, and what to type or change; docs/doctor.md lists all known issues.

    A log that Kubernetes does not give: [bold]kubectl logs POD --since=15m > worker.log[/bold], then
    [bold]--worker-log worker.log[/bold].

    Exit 0 if nothing is found, 1 if something is, 2 if nothing is found but something could not be inspected.
    """
    with guard(as_json, debug):
        found = break_glass.loader(without_pulumi)(stack, mirror, os.environ, folder)
        seen = collect(
            found,
            os.environ,
            log,
            worker_logs=worker_log or (),
            certificate_days=certificate_days,
            pulumi_state=partial(pulumi_state.observe, found, os.environ, folder),
            debug=debug,
        )
        findings = diagnose(seen, found.request.secrets)
        seen = redacted(seen, found.request.secrets)
        show(as_json, document(seen, findings), lambda: shown(seen, findings))
    if findings:
        raise typer.Exit(EXIT_FAILED)
    if seen.unseen:
        raise typer.Exit(EXIT_UNUSABLE)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("doctor")(command)


def document(seen: Observations, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return what `--json` prints."""
    return {
        "stack": seen.stack,
        "mirror": seen.mirror.name,
        "healthy": not findings and not seen.unseen,
        "findings": [one.as_json() for one in findings],
        "notLookedAt": list(seen.unseen),
        "notes": list(seen.notes),
    }


def shown(seen: Observations, findings: Sequence[Finding]) -> RenderableType:
    """Return what people read: a row a finding, and what could not be inspected."""
    parts: list[RenderableType] = []
    if findings:
        columns = Column("trouble", name=True), Column("where"), Column("what"), Column("remedy")
        table = AdaptiveTable(f"mirror {seen.mirror.name}", columns, lines=True)
        for one in findings:
            color = "red" if one.severity == "error" else "yellow"
            table.add_row(Text(one.trouble, color), one.where, one.what, one.remedy)
        parts.append(table)
    else:
        parts.append(f"mirror {escape(seen.mirror.name)}: none of {len(KNOWN_ISSUES)} known issues found")
    parts += [Text().append("not inspected:", "yellow").append(f" {one}") for one in seen.unseen]
    parts += [Text(f"note: {one}") for one in seen.notes]
    return Group(*parts)
