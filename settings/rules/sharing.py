"""Rules of what two mirrors must not share, wherever they are declared: a Connect cluster, offset syncs, a copy."""

from settings.errors import Problem
from settings.flows import Flow, Landscape
from settings.patterns import literal, may_overlap


def sharing(subject: str, flow: Flow, around: Landscape) -> list[Problem]:
    """What a mirror of the checked file shares with one of any file; between two of one file the later one is told."""
    problems = []
    for other in around.all_flows:
        if other.file == flow.file and other.where >= flow.where:
            continue
        named = f"mirror {other.mirror.name} of stack {other.file}"
        if flow.target is not None and other.target == flow.target:
            problems += _workers(subject, flow, other, named) if other.file != flow.file else []
            problems += _copies(subject, flow, other, named)
        if flow.source is not None and other.source == flow.source and other.target != flow.target:
            problems += _offset_syncs(subject, flow, other, named)
    return problems


def _workers(subject: str, flow: Flow, other: Flow, named: str) -> list[Problem]:
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


def _copies(subject: str, flow: Flow, other: Flow, named: str) -> list[Problem]:
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


def _offset_syncs(subject: str, flow: Flow, other: Flow, named: str) -> list[Problem]:
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
