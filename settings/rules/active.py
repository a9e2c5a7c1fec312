"""Rules of active and standby: no mirror writes into the cluster that applications use, a failback can begin and end.

Mirrors whose clusters share a namespace keep their Secrets apart.
"""

from collections.abc import Mapping

from settings.cluster import Cluster
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.patterns import literal, may_overlap
from settings.platform import Platform
from settings.replication_topology import ReplicationTopology, TopicFlow
from settings.rules.common import refusing_listener
from settings.text import did_you_mean, format_names
from settings.users import User


def active(where: str, subject: str, mirror: Mirror, platform: Platform | None) -> list[Problem]:
    """A mirror that keeps names is at rest while its target is active, unless it carries over what was left behind."""
    if mirror.active == "source" or mirror.naming != "identity" or platform is None or mirror.failback == "settling":
        return []
    rest = platform.rest_state
    if mirror.state in (rest, "stopped"):  # where it cannot be stopped, the platform's rule reports it
        return []
    return [
        Problem(
            f"{where}.state",
            f"{subject}: state must be {rest} where target is active and names are kept (got {mirror.state}). A "
            "mirror that runs writes into the topics that applications use, and sets their groups back. "
            f"Set state {rest}, or active source.",
        )
    ]


def clients(
    where: str, subject: str, mirror: Mirror, cluster: Cluster | None, users: Mapping[str, User | None]
) -> list[Problem]:
    """Applications log in as users that both sides have; their Secret has its name for itself."""
    wanted = mirror.clients
    if wanted is None:
        return []
    problems = _source(where, subject, mirror)
    if wanted.target not in users:
        problems.append(
            Problem(
                f"{where}.clients.target",
                f"{subject}: clients.target must be one of this stack's users (got {wanted.target}, allowed "
                f"{format_names(users)}).{did_you_mean(wanted.target, users)} Declare it under users.",
            )
        )
    user = users.get(wanted.target)
    listener = refusing_listener(cluster, user)
    if user is not None and cluster is not None and listener is not None:
        problems.append(
            Problem(
                f"{where}.clients.target",
                f"{subject}: clients.target must log in as listener {listener.name} of {cluster.name} demands (got "
                f"{user.name} with {user.authentication}, allowed {listener.authentication}). Change the user, or "
                "cluster.listener.",
            )
        )
    secret = f"{mirror.name}-clients"
    taken = {mirror.source.user, *users, *(user.credentials_secret for user in users.values() if user is not None)}
    if secret in taken:
        problems.append(
            Problem(
                f"{where}.clients",
                f"{subject}: clients must have the Secret {secret} to itself (got a user whose Secret has that name). "
                "Rename the user, or the mirror.",
            )
        )
    return problems


def _source(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    given, at = mirror.clients.source if mirror.clients else None, f"{where}.clients.source"
    if mirror.source.external is not None and given is not None:
        return [
            Problem(
                at,
                f"{subject}: clients.source must not be given with external (got {given}; the one login known there is "
                "the mirror's, which is not for applications). Remove it.",
            )
        ]
    if mirror.source.stack is not None and given is None:
        return [
            Problem(
                at,
                f"{subject}: clients.source must be given with source.stack (got nothing). Name one of its users.",
            )
        ]
    return []


def failback(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    """What keeps records that were written on the target from being brought back under their names."""
    phase = mirror.failback
    if phase is None:
        return []
    at, problems = f"{where}.failback", []

    def refuse(rule: str) -> None:
        problems.append(Problem(at, f"{subject}: failback must {rule}"))

    if mirror.naming != "identity":
        refuse(
            f"not be given with prefixed names (got {phase}). The direction back is a mirror of its own there: declare "
            "it with reverse."
        )
    if mirror.active != "target":
        refuse(
            f"not be given while source is active (got {phase}). There is nothing to bring back: set active target, or "
            "remove it; `python -m ops failback` sets and removes it by itself."
        )
    if mirror.source.external is not None:
        refuse(
            f"not be given with an external source (got {phase}; no user is known that may write there). Bring its "
            "records back by hand."
        )
    if not mirror.config_defaults:
        refuse(
            f"not be given with configDefaults false (got {phase}; such a mirror names no ConfigMap for its offsets). "
            "Leave configDefaults out."
        )
    return problems


def sharing(subject: str, flow: TopicFlow, topology: ReplicationTopology) -> list[Problem]:
    """What a mirror of the checked file shares with one of any file; of two of one file the later one is reported."""
    problems = []
    for other in topology.all_flows:
        if other.file == flow.file and other.where >= flow.where:
            continue
        named = f"mirror {other.mirror.name} of stack {other.file}"
        if flow.target is not None and other.target == flow.target:
            problems += _workers(subject, flow, other, named) if other.file != flow.file else []
            problems += _copies(subject, flow, other, named)
        if flow.source is not None and other.source == flow.source and other.target != flow.target:
            problems += _offset_syncs(subject, flow, other, named)
    return problems


def _workers(subject: str, flow: TopicFlow, other: TopicFlow, named: str) -> list[Problem]:
    """Workers of one group run each other's connectors, and each operator removes those that it does not know."""
    mine, theirs = flow.mirror.storage_topics, other.mirror.storage_topics
    shared = sorted(set(mine.values()) & set(theirs.values()))
    if flow.mirror.connect_group == other.mirror.connect_group:
        shared.insert(0, flow.mirror.connect_group)
    if not shared:
        return []
    return [
        Problem(
            f"{flow.where}.name" if not flow.is_reverse else flow.where,
            f"{subject}: group and storage topics must be its own on the target (got {', '.join(shared)}, as {named}). "
            "Rename the mirror, or set groupId and the storage topics.",
        )
    ]


def _copies(subject: str, flow: TopicFlow, other: TopicFlow, named: str) -> list[Problem]:
    """Two mirrors that copy a topic to the same name double its records."""
    if flow.source is None or other.source != flow.source or other.mirror.source.external is not None:
        return []
    if flow.is_identity != other.is_identity:
        return []
    if not flow.is_identity and flow.mirror.source.alias != other.mirror.source.alias:
        return []
    found = may_overlap(flow.mirror.topics, other.mirror.topics)
    both = [each for each in found if literal(each) is None or (flow.copies(each) and other.copies(each))]
    if not both:
        return []
    return [
        Problem(
            f"{flow.where}.topics",
            f"{subject}: topics must not be copied to the same name by two mirrors (got {', '.join(both)}, as "
            f"{named}). Every record would be there twice: exclude them in one.",
        )
    ]


def _offset_syncs(subject: str, flow: TopicFlow, other: TopicFlow, named: str) -> list[Problem]:
    """On the source the topic is named after the target's alias only."""
    location = {flow.mirror.offset_syncs_location, other.mirror.offset_syncs_location}
    if location != {"source"} or flow.mirror.target.alias != other.mirror.target.alias:
        return []
    return [
        Problem(
            f"{flow.where}.target.alias",
            f"{subject}: target.alias must be its own where offset syncs lie on the source (got "
            f"{flow.mirror.target.alias}, as {named}). Each would translate groups with the other's offsets: rename "
            "one, or set offsetSyncsLocation target.",
        )
    ]
