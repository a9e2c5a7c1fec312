"""Troubles of the two clusters: out of reach, missing rights, certificates that end, groups that are active."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from ops.doctor.connect_troubles import active_groups_in_logs
from ops.doctor.seen import Seen, Side
from ops.doctor.troubles import RENEWALS, Finding, found, operator_facts
from spark.clusters.groups import IDLE

NAMED_MAX = 10


def cluster_troubles(seen: Seen) -> Iterator[Finding]:
    """Return the troubles of both sides, the source's first."""
    for side in (seen.source, seen.target):
        yield from _reach(seen, side)
        yield from _rights(seen, side)
        yield from _certificates(seen, side)
    yield from _groups(seen)


def _reach(seen: Seen, side: Side) -> Iterator[Finding]:
    if side.refusal is not None:
        yield found(f"{side.role}-unreachable", _cluster(side), side.refusal, stack=seen.stack)
    for broker, why in side.silent:
        what = f"{side.servers} answers, but broker {broker.number} advertises {broker.host}:{broker.port}, which {why}"
        where = f"{_cluster(side)}, broker {broker.number}"
        yield found("advertised-listener-unreachable", where, what, side=side.alias)


def _rights(seen: Seen, side: Side) -> Iterator[Finding]:
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
    yield found("missing-acls", _cluster(side), what, **facts)


def _certificates(seen: Seen, side: Side) -> Iterator[Finding]:
    for one in side.certificates:
        left = one.ends - seen.now
        if left > timedelta(days=seen.certificate_days):
            continue
        day, ended = one.ends.strftime("%Y-%m-%d %H:%M UTC"), left <= timedelta()
        said = f"{one.what} expired on {day}" if ended else f"{one.what} ends on {day}, in {left.days} days"
        renewal = next((renewal for whose, renewal in RENEWALS.items() if one.what.startswith(whose)), None)
        facts = operator_facts(seen.mirror.resource.api_version if seen.mirror.resource else None)
        near = found("certificate-near-expiry", _cluster(side), said, stack=seen.stack, renewal=renewal, **facts)
        yield replace(near, severity="error") if ended else near


def _groups(seen: Seen) -> Iterator[Finding]:
    """Groups are meant to be active on the target once it is the active side."""
    mirror = seen.mirror
    if seen.active != "source" or not mirror.sync_group_offsets:
        return
    there = seen.target.groups or {}
    wanted = {group for group in seen.source.groups or {} if mirror.carries_group(group)}
    logged = active_groups_in_logs(seen)
    for group in sorted(wanted | logged):
        state = there.get(group, IDLE[0])
        if state not in IDLE:
            what = f"it is {state} on the target, so MirrorMaker does not set its offsets there"
            yield found("group-active-on-target", f"group {group}", what, group=group)


def _cluster(side: Side) -> str:
    return f"{side.role} {side.alias}"
