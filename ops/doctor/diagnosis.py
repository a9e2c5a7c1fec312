"""Finds known issues in observations. It connects to nothing; equal observations give equal findings."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

from contract.java_character_class import PatternError
from contract.java_patterns import matches
from kafka.errors import HIDDEN, redact, without_leader
from kafka.groups import IDLE
from ops.doctor.connect_symptoms import active_groups_in_logs, connect_symptoms
from ops.doctor.known_issues import KNOWN_ISSUES, RENEWALS, Finding, finding, operator_facts
from ops.doctor.lost_records import lost_records
from ops.doctor.observations import ClusterObservation, Observations, OtherMirror
from ops.doctor.pulumi_state import state_symptoms
from ops.inspection.follower_status import NOT_FOLLOWED
from ops.recovery.target_fence import TARGET_FENCED
from settings.mirror_parts import follower_name
from settings.text import format_names

_LOGIN = re.compile(r"(?<=://)[^/\s@]+@")


def diagnose(seen: Observations, secrets: list[str] | None = None) -> list[Finding]:
    """Return a finding for each known issue that was seen, errors first, each once; none contains one of `secrets`."""
    all_of_them = [
        *cluster_symptoms(seen),
        *connect_symptoms(seen),
        *topic_symptoms(seen),
        *lost_records(seen),
        *state_symptoms(seen),
    ]
    order = list(KNOWN_ISSUES)
    clean = {
        Finding(
            trouble=one.trouble,
            where=one.where,
            what=_line(_clean(one.what, secrets or ())),
            remedy=_line(_clean(one.remedy, secrets or ())),
            severity=one.severity,
        ): None
        for one in all_of_them
    }
    return sorted(clean, key=lambda one: (one.severity != "error", order.index(one.trouble), one.where))


def redacted(seen: Observations, secrets: Iterable[str]) -> Observations:
    """Return the observations without any secret in the probes' own messages."""
    unseen, notes = (tuple(_clean(one, secrets) for one in messages) for messages in (seen.unseen, seen.notes))
    return replace(seen, unseen=unseen, notes=notes)


def _clean(text: str, secrets: Iterable[str]) -> str:
    """Return the text without these secrets, and without the login in an address."""
    return _LOGIN.sub(f"{HIDDEN}@", redact(text, secrets))


def _line(text: str) -> str:
    return " ".join(text.split())


NAMED_MAX = 10


def cluster_symptoms(seen: Observations) -> Iterator[Finding]:
    """Return the known issues of both clusters, the source's first."""
    for side in (seen.source, seen.target):
        yield from _reachability(seen, side)
        yield from _rights(seen, side)
        yield from _certificates(seen, side)
    yield from _groups(seen)
    if seen.fence_issue is not None:
        name, what = seen.fence_issue
        yield finding(name, _cluster(seen.source), what, stack=seen.stack, source_stack=seen.source_stack)
    if seen.target_fenced is not None:
        yield finding(TARGET_FENCED, _cluster(seen.target), seen.target_fenced, stack=seen.stack)
    if seen.not_followed is not None:
        namespace = seen.mirror.resource.namespace if seen.mirror.resource is not None else "NAMESPACE"
        facts = {"stack": seen.stack, "namespace": namespace, "deployment": follower_name(seen.mirror.name)}
        yield finding(NOT_FOLLOWED, f"mirror {seen.mirror.name}", seen.not_followed, **facts)


def _reachability(seen: Observations, side: ClusterObservation) -> Iterator[Finding]:
    if side.refusal is not None:
        yield finding(f"{side.role}-unreachable", _cluster(side), side.refusal, stack=seen.stack)
    for broker, why in side.silent:
        what = f"{side.servers} answers, but broker {broker.number} advertises {broker.host}:{broker.port}, which {why}"
        where = f"{_cluster(side)}, broker {broker.number}"
        yield finding("advertised-listener-unreachable", where, what, side=side.alias)
    if side.leaderless:
        brokers = ", ".join(map(str, sorted({one for replicas in side.leaderless.values() for one in replicas})))
        partitions = without_leader([f"{topic}-{number}" for topic, number in side.leaderless])
        what = f"{partitions}; replicas: brokers {brokers}"
        yield finding("partition-without-leader", _cluster(side), what)


def _rights(seen: Observations, side: ClusterObservation) -> Iterator[Finding]:
    by_resource: dict[str, list[str]] = {}
    for operation, resource in side.lacks:
        by_resource.setdefault(resource, []).append(operation)
    if not by_resource:
        return
    named = [f"{' and '.join(operations)} on {resource}" for resource, operations in sorted(by_resource.items())]
    more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
    facts = {
        "user": side.user,
        "side": side.role,
        "set": f"mirror-{side.role}",
        "connect": seen.mirror.connect_url,
        "connector": seen.mirror.source_connector.replace(">", "%3E"),
    }
    what = f"user {side.user} lacks {', '.join(named[:NAMED_MAX])}{more}"
    yield finding("missing-acls", _cluster(side), what, **facts)


def _certificates(seen: Observations, side: ClusterObservation) -> Iterator[Finding]:
    for one in side.certificates:
        left = one.ends - seen.now
        if left > timedelta(days=seen.certificate_days):
            continue
        day, ended = one.ends.strftime("%Y-%m-%d %H:%M UTC"), left <= timedelta()
        what = f"{one.what} expired on {day}" if ended else f"{one.what} ends on {day}, in {left.days} days"
        renewal = next((renewal for whose, renewal in RENEWALS.items() if one.what.startswith(whose)), None)
        facts = operator_facts(seen.mirror.resource.api_version if seen.mirror.resource else None)
        near = finding("certificate-near-expiry", _cluster(side), what, stack=seen.stack, renewal=renewal, **facts)
        yield replace(near, severity="error") if ended else near


def _groups(seen: Observations) -> Iterator[Finding]:
    """Groups are meant to be active on the target once it is the active side."""
    mirror = seen.mirror
    if seen.active != "source":
        return
    if others := seen.source.other_groups:
        more = f" and {len(others) - NAMED_MAX} more" if len(others) > NAMED_MAX else ""
        what = f"the source has {', '.join(others[:NAMED_MAX])}{more}, which are no consumer groups"
        yield finding("groups-not-carried", _cluster(seen.source), what)
    if not mirror.sets_groups:
        return
    there = seen.target.groups or {}
    wanted = {group for group in seen.source.groups or {} if mirror.carries_group(group)}
    logged = active_groups_in_logs(seen)
    active = sorted(group for group in wanted | logged if there.get(group, IDLE[0]) not in IDLE)
    who = "the follower" if mirror.exact_offsets else "MirrorMaker"
    for group in active[:NAMED_MAX]:
        what = f"it is {there[group]} on the target, so {who} does not set its offsets there"
        yield finding("group-active-on-target", f"group {group}", what, group=group)
    if rest := active[NAMED_MAX:]:
        what = f"they have members on the target, so {who} does not set their offsets there: {format_names(rest)}"
        where = f"groups, {len(rest)} more"
        yield finding("group-active-on-target", where, what, group=format_names(rest))


def _cluster(side: ClusterObservation) -> str:
    return f"{side.role} {side.alias}"


TOPICS_NAMED_MAX = 5
COMPACT = "compact"


def topic_symptoms(seen: Observations) -> Iterator[Finding]:
    """Return the known issues of topics on both clusters."""
    yield from _patterns(seen)
    yield from _absent(seen)
    yield from _not_compacted(seen)
    yield from _loops(seen)
    yield from _first_generation(seen)
    yield from _duplicates(seen)


def _patterns(seen: Observations) -> Iterator[Finding]:
    mirror, where = seen.mirror, f"mirror {seen.mirror.name}"
    named = set(mirror.named_topics)
    for pattern in mirror.topics:
        if seen.source.topics is None or _plain(pattern) in named:
            continue
        all_of_it = _matching(pattern, seen.source.topics)
        if not any(mirror.carries_topic(name) for name in all_of_it):
            shown = f"topics matches no topic of the source: {pattern}"
            if all_of_it:
                shown += f" (only {_format_list(all_of_it)}, which the mirror leaves out)"
            yield finding("pattern-matches-nothing", where, shown)
    for pattern in mirror.groups:
        if seen.source.groups and not _matching(pattern, seen.source.groups):
            yield finding("pattern-matches-nothing", where, f"groups matches no group of the source: {pattern}")


def _absent(seen: Observations) -> Iterator[Finding]:
    mirror = seen.mirror
    facts = {"connect": mirror.connect_url, "connector": mirror.source_connector.replace(">", "%3E")}
    if seen.source.topics is not None:
        denied = {resource for _, resource in seen.source.lacks}
        for name in sorted(set(mirror.named_topics) - set(seen.source.topics)):
            if f"topic {name}" not in denied:
                what = "the mirror names it, and the source has no such topic"
                yield finding("unknown-topic-or-partition", f"topic {name} of the source", what, **facts)
    if seen.target.topics is None or not seen.should_run:
        return
    denied = {resource for _, resource in seen.target.lacks}
    for name, parts in sorted(seen.carried.items()):
        remote = mirror.target_topic(name)
        there = seen.target.topics.get(remote, 0)
        if there < parts and f"topic {remote}" not in denied:
            has = f"has {there} of its {parts} partitions" if there else "does not exist"
            what = f"the remote topic of {name}, which has {parts} partitions at the source, {has}"
            yield finding("unknown-topic-or-partition", f"topic {remote} of the target", what, **facts)


def _not_compacted(seen: Observations) -> Iterator[Finding]:
    for side in (seen.source, seen.target):
        for topic, policy in sorted(side.policies.items()):
            if policy != COMPACT:
                what = f"it has cleanup.policy {policy}, so what the mirror keeps in it is deleted after a while"
                where = f"topic {topic} of the {side.role}"
                yield finding("internal-topic-not-compacted", where, what, topic=topic, servers=side.servers)


def _loops(seen: Observations) -> Iterator[Finding]:
    mirror, where = seen.mirror, f"mirror {seen.mirror.name}"
    source, target = seen.source, seen.target
    if mirror.naming != "identity":
        looped = sorted(name for name in target.topics or {} if mirror.is_loop(name))
        if looped:
            what = f"the target has topics that were mirrored back to where they came from: {_format_list(looped)}"
            yield finding("identity-loop", where, what)
        return
    if not seen.should_run:
        return
    if source.cluster_id is not None and source.cluster_id == target.cluster_id and seen.carried:
        what = f"source and target are one cluster ({source.cluster_id}), and remote topics keep their names: "
        yield finding(
            "identity-loop", where, f"{what}each record of {_format_list(sorted(seen.carried))} is copied for ever"
        )
    for other in seen.others:
        shared = sorted(name for name in seen.carried if any(_matching(one, [name]) for one in other.topics))
        if other.keeps_names and shared and _opposes(seen, other):
            what = f"{other.name} mirrors {_format_list(shared)} the other way, and both keep the topics' names"
            yield finding("identity-loop", where, what)


def _first_generation(seen: Observations) -> Iterator[Finding]:
    """Return each MirrorMaker 1 that copies topics of this mirror from its source to its target."""
    for other in seen.others if seen.should_run else ():
        same = other.source & seen.source.addresses and other.target & seen.target.addresses
        shared = sorted(name for name in seen.carried if any(_matching(one, [name]) for one in other.topics))
        if other.is_first and same and shared:
            where, name = other.name.removeprefix("KafkaMirrorMaker ").split("/")
            what = f"{other.name} copies {_format_list(shared)} to the same target"
            yield finding("mirror-maker-1-beside", f"mirror {seen.mirror.name}", what, other=name, where=where)


def _opposes(seen: Observations, other: OtherMirror) -> bool:
    return bool(other.source & seen.target.addresses and other.target & seen.source.addresses)


def _duplicates(seen: Observations) -> Iterator[Finding]:
    for one in seen.duplicates:
        what = (
            f"the record at {one.source} of {one.topic}-{one.partition} at the source is at {one.first} and again "
            f"at {one.second} on the target"
        )
        where = f"topic {one.remote_topic} of the target, partition {one.partition}"
        facts = {"offset": one.second, "topic": one.remote_topic, "partition": one.partition}
        yield finding("re-replicated-topic", where, what, **facts)


def _plain(pattern: str) -> str:
    return re.sub(r"\\([.-])", r"\1", pattern)


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    try:
        return sorted(name for name in names if matches([pattern], name))
    except PatternError:  # of another mirror, whose settings are not checked here
        return []


def _format_list(names: list[str]) -> str:
    more = f" and {len(names) - TOPICS_NAMED_MAX} more" if len(names) > TOPICS_NAMED_MAX else ""
    return ", ".join(names[:TOPICS_NAMED_MAX]) + more
