"""Hints: what a mirror may do and is seldom meant to, rights that its user seems to lack, monitoring without an effect.

A hint never stops anything. Rights may also be granted by hand, and a dot may be meant as any character.
"""

from collections.abc import Iterable, Iterator, Mapping

from settings import acl_sets
from settings.errors import Problem
from settings.event_streams import USES
from settings.names import SEPARATOR, has_bare_dot, literal, matches
from settings.parsing import ParsedStack
from settings.platform import Platform
from settings.replication_topology import ReplicationTopology, TopicFlow, flows
from settings.rules.active import fence_hints
from settings.rules.mirrors import KAFKA_4, version_numbers
from settings.rules.operation import monitoring_hints
from settings.rules.siblings import connectivity_hints
from settings.text import format_names
from settings.topics import HEARTBEATS, internal_topics_of, offset_syncs_topic
from settings.users import Acl, Operation

SEND_BUFFER, AHEAD = "socket.send.buffer.bytes", "log.message.timestamp.after.max.ms"
_SEE: set[Operation] = {"Describe", "Read", "Delete", "All"}  # each of them lets a user see a group


def hints(found: ParsedStack, stack: str | None, others: Mapping[str, ParsedStack]) -> Iterator[Problem]:
    """Yield all hints of a file, compared with its siblings."""
    name = stack or ""
    topology = ReplicationTopology({**others, name: found})
    for flow in flows(name, found):
        yield from _bare_dots(flow, topology)
        yield from _heartbeats(flow, topology)
        yield from _idle_workers(flow)
        yield from _unmeasured_lag(flow, found)
        yield from fence_hints(flow, found)
        there = others.get(flow.source or "")
        if there is not None and not flow.is_reverse:
            yield from _rights(flow, found, there, topology)
            yield from _small_buffers(flow, there)
            yield from _failback_rights(flow, found, there, topology)
        if not flow.is_reverse:
            yield from _refused_times(flow, found, there)
    yield from _unnamed_use(found)
    yield from _default_network_policy(found)
    yield from connectivity_hints(found, stack, others)
    if found.monitoring is not None:
        yield from monitoring_hints(found.monitoring, found.cluster, found.mirrors)


def _unnamed_use(found: ParsedStack) -> Iterator[Problem]:
    """Mirrors are counted as non-production where the license does not name its use."""
    terms = found.platform.license if found.platform else None
    if terms is None or terms.use is not None or not found.mirrors:
        return
    yield Problem(
        "platform.license.use",
        f"platform: license.use is not given, so that IBM's license service counts mirrors as {USES[0]}. Name the "
        f"use that was bought ({', '.join(USES)}).",
    )


def _default_network_policy(found: ParsedStack) -> Iterator[Problem]:
    """A default NetworkPolicy shuts out all other clients if the operator makes none for the mirror."""
    run = found.verification.run if found.verification else None
    if run is None or not run.in_cluster or "network_policy" in run.model_fields_set or not found.mirrors:
        return
    yield Problem(
        "verification.run.networkPolicy",
        "verification: run.networkPolicy is not given, so that a NetworkPolicy admits the verification to Connect. "
        "That takes for granted that the operator makes one for the mirror, as Strimzi's does by default: ours "
        "alone shuts out the operator, the other workers and Prometheus. Where it makes none "
        "(STRIMZI_NETWORK_POLICY_GENERATION=false), set it to false; true ends this hint.",
    )


def _bare_dots(flow: TopicFlow, topology: ReplicationTopology) -> Iterator[Problem]:
    names = topology.topics(flow.source) or set()
    result = []
    for index, pattern in enumerate(flow.mirror.topics):
        matched = sorted(name for name in names if matches(pattern, name))
        if has_bare_dot(pattern) and len(matched) > 1:
            escaped = (literal(pattern) or "").replace(".", "\\.")
            result.append(
                Problem(
                    f"{flow.where}.topics[{index}]",
                    f"mirror {flow.mirror.name}: '{pattern}' matches {format_names(matched)} on stack {flow.source}, "
                    f"because '.' stands for any character. Write '{escaped}' for the one topic.",
                )
            )
    yield from result


def _heartbeats(flow: TopicFlow, topology: ReplicationTopology) -> Iterator[Problem]:
    """IdentityReplicationPolicy takes each name that ends so for heartbeats, which it renames."""
    names = sorted(name for name in topology.topics(flow.source) or set() if name.endswith(HEARTBEATS))
    if not flow.is_identity or not (copied := [name for name in names if flow.copies(name)]):
        return
    first = f"{flow.mirror.source.alias}{flow.mirror.separator}{copied[0]}"
    yield Problem(
        f"{flow.where}.topics",
        f"mirror {flow.mirror.name}: MirrorMaker takes {format_names(copied)} of stack {flow.source} for heartbeats, "
        f"because of the end of the name, and copies it to {first}, where no application looks after a failover. Give "
        "it another name, or leave it out (topicsExclude).",
    )


def _idle_workers(flow: TopicFlow) -> Iterator[Problem]:
    """Only source tasks copy records, so that more workers than these do not make a mirror faster."""
    mirror, settings = flow.mirror, flow.mirror.scaling
    if settings is None or settings.max_replicas <= mirror.source_tasks_max:
        return
    yield Problem(
        f"{flow.where}.scaling.maxReplicas",
        f"mirror {mirror.name}: of {settings.max_replicas} workers (scaling.maxReplicas) only "
        f"{mirror.source_tasks_max} copy records (sourceTasksMax). The others add no speed: lower maxReplicas, or "
        "raise sourceTasksMax.",
    )


def _unmeasured_lag(flow: TopicFlow, found: ParsedStack) -> Iterator[Problem]:
    """The metric that an autoscaler reads by default comes from rules that only monitoring makes."""
    mirror, settings = flow.mirror, flow.mirror.scaling
    if settings is None or settings.metric is not None or found.monitoring is not None:
        return
    yield Problem(
        f"{flow.where}.scaling",
        f"mirror {mirror.name}: its autoscaler reads {settings.series}, and the stack has no monitoring. Without "
        "that metric the number of workers never changes: set monitoring, or name a metric of your own (metric).",
    )


def _small_buffers(flow: TopicFlow, there: ParsedStack) -> Iterator[Problem]:
    """Over a distance the brokers' socket buffer limits a connection as the client's does, which `latencyMs` lifts."""
    mirror, cluster = flow.mirror, there.reference_cluster
    if mirror.source.latency_ms is None or cluster is None or cluster.external is not None:
        return
    if str(cluster.config.get(SEND_BUFFER)) == "-1":
        return
    yield Problem(
        f"{flow.where}.source.latencyMs",
        f"mirror {mirror.name}: the brokers of stack {flow.source} keep a socket buffer of a fixed size ({SEND_BUFFER}"
        f"), so that each connection sends that much in {mirror.source.latency_ms} ms, however wide the line is. Set "
        f"it to -1 in cluster.config of Pulumi.{flow.source}.yaml, or give the mirror more tasks (docs/sizing.md).",
    )


def _refused_times(flow: TopicFlow, found: ParsedStack, there: ParsedStack | None) -> Iterator[Problem]:
    """Brokers before Kafka 4 take a record of any time, later ones none that is an hour ahead: its task fails there."""
    external, cluster = flow.mirror.source.external, found.reference_cluster
    known = external.kafka_version if external is not None else _kafka(there) if there is not None else None
    if known is None or cluster is None or cluster.external is not None or AHEAD in cluster.config:
        return
    if version_numbers(known) >= KAFKA_4 or version_numbers(_kafka(found)) < KAFKA_4:
        return
    yield Problem(
        "cluster.config",
        f"cluster {cluster.name}: brokers of Kafka 4 refuse records that are more than an hour ahead of their clock, "
        f"and the source of mirror {flow.mirror.name}, of Kafka {known}, takes them: the mirror's task would fail at "
        f"the first one. Set {AHEAD} in cluster.config to what the source takes, by default {2**63 - 1}.",
    )


def _rights(
    flow: TopicFlow, found: ParsedStack, there: ParsedStack, topology: ReplicationTopology
) -> Iterator[Problem]:
    """Yield a hint for each right that the mirror needs at its source and that its user has not."""
    mirror, acls = flow.mirror, _acls(flow, there)
    if acls is None:
        return
    user = mirror.source.user
    result = []
    unread = sorted(
        name
        for name in topology.topics(flow.source) or set()
        if flow.copies(name) and not granted(acls, name, ("Read", "Describe"))
    )
    if unread:
        result.append(
            Problem(
                f"{flow.where}.source.user",
                f"mirror {mirror.name}: user {user} of stack {flow.source} may not read {format_names(unread)}, which "
                f"would then not be copied. Add them to an aclSets entry of the set mirror-source there.",
            )
        )
    if mirror.emit_checkpoints and not any(acl.type == "group" and _SEE & set(acl.operations) for acl in acls):
        result.append(
            Problem(
                f"{flow.where}.groups",
                f"mirror {mirror.name}: user {user} of stack {flow.source} may see no group, so that no offset "
                "would be synchronised. Give its aclSets entry mirror-source groups, or set emitCheckpoints and "
                "syncGroupOffsets to false.",
            )
        )
    syncs = offset_syncs_topic(mirror, _kafka(found))
    if syncs.location == "source" and not granted(acls, syncs.name, ("Read", "Write", "Describe")):
        result.append(
            Problem(
                f"{flow.where}.offsetSyncsLocation",
                f"mirror {mirror.name}: user {user} of stack {flow.source} may not write {syncs.name}, which is "
                f"kept there. Give its aclSets entry mirror-source {_names_of_syncs(flow, there)}.",
            )
        )
    yield from result


def _names_of_syncs(flow: TopicFlow, there: ParsedStack) -> str:
    """Return what an entry mirror-source at the source lacks to name the mirror's offset-syncs topic."""
    mirror, user = flow.mirror, there.users_by_name().get(flow.mirror.source.user or "")
    entries = [each for each in (user.acl_sets if user else ()) if each.set == "mirror-source"]
    named = any(each.offset_syncs_for == mirror.target.alias for each in entries)
    missing = [] if named else [f"offsetSyncsFor: {mirror.target.alias}"]
    if named or mirror.separator != SEPARATOR:
        missing.append(f"separator: '{mirror.separator}'")
    return " and ".join(missing)


def _failback_rights(
    flow: TopicFlow, found: ParsedStack, there: ParsedStack, topology: ReplicationTopology
) -> Iterator[Problem]:
    """While the target is active: yield a hint for the rights that a failback needs at the source."""
    mirror, acls = flow.mirror, _acls(flow, there)
    if acls is None or mirror.active == "source" or not flow.is_identity:
        return
    name = mirror.failback_mirror_name
    back = mirror.model_copy(update={"failback": "copying"}).failback_mirror()
    topics = sorted(topic for topic in topology.topics(flow.source) or set() if flow.copies(topic))
    missing = [topic for topic in topics if not granted(acls, topic, ("Create", "Write", "Delete"))]
    missing += [f"{name}-configs"] if not granted(acls, f"{name}-configs", ("Create", "Read", "Write")) else []
    own = [each.name for each in internal_topics_of(back, _kafka(found)) if each.location == "target"]
    unnamed = sorted(each for each in own if not granted(acls, each, ("Create", "Read", "Write")))
    if unnamed and not missing:
        yield Problem(
            f"{flow.where}.active",
            f"mirror {mirror.name}: user {mirror.source.user} of stack {flow.source} may not write "
            f"{format_names(unnamed)}, so that a failback would fail. Give its aclSets entry of the set failback "
            f"there separator: '{mirror.separator}' and failbackFrom: {mirror.target.alias}.",
        )
        return
    if not missing:
        return
    yield Problem(
        f"{flow.where}.active",
        f"mirror {mirror.name}: user {mirror.source.user} of stack {flow.source} may not write "
        f"{format_names(missing)}, so that a failback would fail. Give it an aclSets entry of the set failback "
        f"there (failbackOf {mirror.name}, failbackFrom {mirror.target.alias}).",
    )


def _acls(flow: TopicFlow, there: ParsedStack) -> tuple[Acl, ...] | None:
    """Return all rights of the mirror's user at its source; None if everything is allowed, or if they are unknown."""
    user, cluster = there.users_by_name().get(flow.mirror.source.user or ""), there.reference_cluster
    if user is None or cluster is None or cluster.external is not None or cluster.authorization != "simple":
        return None
    if {user.name, user.principal.removeprefix("User:")} & set(cluster.super_users):
        return None
    try:
        return acl_sets.acls(user, {each.name: each for each in there.mirrors.values()}, _kafka(there))
    except (KeyError, ValueError):
        return None  # the check of the source's own file reports its sets


def granted(acls: Iterable[Acl], topic: str, operations: tuple[Operation, ...]) -> bool:
    """Whether every operation on a topic is allowed; Read and Write imply Describe, as in Kafka."""
    allowed = {
        operation
        for acl in acls
        if acl.type == "topic" and any(_covers(acl, name, topic) for name in acl.names)
        for operation in acl.operations
    }
    if allowed & {"Read", "Write", "Delete", "Alter"}:
        allowed.add("Describe")
    return "All" in allowed or allowed >= set(operations)


def _covers(acl: Acl, name: str, topic: str) -> bool:
    if acl.match == "prefix":
        return topic.startswith(name)
    return name in ("*", topic)


def _kafka(parsed: ParsedStack) -> str:
    version = parsed.cluster.version if parsed.cluster else None
    return version or (parsed.platform or Platform()).kafka_version
