"""Troubles of topics: patterns that match nothing, topics that are not there, loops, copies that stand twice."""

import re
from collections.abc import Iterable, Iterator

from ops.doctor.seen import OtherMirror, Seen
from ops.doctor.troubles import Finding, found
from spark.java_patterns.errors import PatternError
from spark.java_patterns.patterns import matches

NAMED_MAX = 5
COMPACT = "compact"


def topic_troubles(seen: Seen) -> Iterator[Finding]:
    """Return the troubles of the topics on both sides."""
    yield from _patterns(seen)
    yield from _absent(seen)
    yield from _not_compacted(seen)
    yield from _loops(seen)
    yield from _first_generation(seen)
    yield from _twice(seen)


def _patterns(seen: Seen) -> Iterator[Finding]:
    mirror, where = seen.mirror, f"mirror {seen.mirror.name}"
    named = set(mirror.named_topics)
    for pattern in mirror.topics:
        if seen.source.topics is None or _plain(pattern) in named:
            continue
        all_of_it = _matching(pattern, seen.source.topics)
        if not any(mirror.carries_topic(name) for name in all_of_it):
            shown = f"topics matches no topic of the source: {pattern}"
            if all_of_it:
                shown += f" (only {_listed(all_of_it)}, which the mirror leaves out)"
            yield found("pattern-matches-nothing", where, shown)
    for pattern in mirror.groups:
        if seen.source.groups and not _matching(pattern, seen.source.groups):
            yield found("pattern-matches-nothing", where, f"groups matches no group of the source: {pattern}")


def _absent(seen: Seen) -> Iterator[Finding]:
    mirror = seen.mirror
    facts = {"connect": mirror.connect_url, "connector": mirror.source_connector.replace(">", "%3E")}
    if seen.source.topics is not None:
        denied = {resource for _, resource in seen.source.lacks}
        for name in sorted(set(mirror.named_topics) - set(seen.source.topics)):
            if f"topic {name}" not in denied:
                what = "the mirror names it, and the source has no such topic"
                yield found("unknown-topic-or-partition", f"topic {name} of the source", what, **facts)
    if seen.target.topics is None or not seen.works:
        return
    denied = {resource for _, resource in seen.target.lacks}
    for name, parts in sorted(seen.carried.items()):
        copy = mirror.target_topic(name)
        there = seen.target.topics.get(copy, 0)
        if there < parts and f"topic {copy}" not in denied:
            has = f"has {there} of its {parts} partitions" if there else "does not exist"
            what = f"the copy of {name}, which has {parts} partitions at the source, {has}"
            yield found("unknown-topic-or-partition", f"topic {copy} of the target", what, **facts)


def _not_compacted(seen: Seen) -> Iterator[Finding]:
    for side in (seen.source, seen.target):
        for topic, policy in sorted(side.policies.items()):
            if policy != COMPACT:
                what = f"it has cleanup.policy {policy}, so what the mirror keeps in it is deleted after a while"
                where = f"topic {topic} of the {side.role}"
                yield found("internal-topic-not-compacted", where, what, topic=topic, servers=side.servers)


def _loops(seen: Seen) -> Iterator[Finding]:
    mirror, where = seen.mirror, f"mirror {seen.mirror.name}"
    source, target = seen.source, seen.target
    if mirror.naming != "identity":
        looped = sorted(name for name in target.topics or {} if mirror.is_loop(name))
        if looped:
            what = f"the target holds what was mirrored back to where it came from: {_listed(looped)}"
            yield found("identity-loop", where, what)
        return
    if not seen.works:
        return
    if source.cluster_id is not None and source.cluster_id == target.cluster_id and seen.carried:
        what = f"source and target are one cluster ({source.cluster_id}), and copies keep their names: "
        yield found("identity-loop", where, f"{what}each record of {_listed(sorted(seen.carried))} is copied for ever")
    for other in seen.others:
        shared = sorted(name for name in seen.carried if any(_matching(one, [name]) for one in other.topics))
        if other.keeps_names and shared and _opposes(seen, other):
            what = f"{other.name} mirrors {_listed(shared)} the other way, and both keep the topics' names"
            yield found("identity-loop", where, what)


def _first_generation(seen: Seen) -> Iterator[Finding]:
    """MirrorMaker 1 that copies what this mirror does, to where this mirror does."""
    for other in seen.others if seen.works else ():
        same = other.source & seen.source.addresses and other.target & seen.target.addresses
        shared = sorted(name for name in seen.carried if any(_matching(one, [name]) for one in other.topics))
        if other.is_first and same and shared:
            where, name = other.name.removeprefix("KafkaMirrorMaker ").split("/")
            what = f"{other.name} copies {_listed(shared)} to the same target"
            yield found("mirror-maker-1-beside", f"mirror {seen.mirror.name}", what, other=name, where=where)


def _opposes(seen: Seen, other: OtherMirror) -> bool:
    return bool(other.source & seen.target.addresses and other.target & seen.source.addresses)


def _twice(seen: Seen) -> Iterator[Finding]:
    for one in seen.twice:
        what = (
            f"the record at {one.source} of {one.topic}-{one.partition} at the source stands at {one.first} and again "
            f"at {one.second} on the target"
        )
        where = f"topic {one.copy} of the target, partition {one.partition}"
        facts = {"offset": one.second, "topic": one.copy, "partition": one.partition}
        yield found("re-replicated-topic", where, what, **facts)


def _plain(pattern: str) -> str:
    return re.sub(r"\\([.-])", r"\1", pattern)


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    try:
        return sorted(name for name in names if matches([pattern], name))
    except PatternError:  # of another mirror, which nobody has checked
        return []


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
