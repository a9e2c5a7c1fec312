"""All checks, in the order in which they are told."""

from spark.checks import acls, connectors, groups, internal_topics, lag, records, topics
from spark.checks.check import Check
from spark.facts import Facts
from spark.request.model import Mirror


def judge(facts: Facts) -> list[Check]:
    """Return every check of a run."""
    mirror, limits, metadata = facts.request.mirror, facts.request.limits, facts.metadata
    configured = [topics.topic_config(mirror, metadata)] if mirror.topic_configs.judged else []
    internal = [internal_topics.internal_topics(metadata.internal)] if mirror.internal_topics else []
    synced = [acls.acls_synced(mirror, metadata)] if mirror.sync_topic_acls else []
    measured = lag.lag(facts.lag, mirror, limits)
    return [
        topics.topics_present(mirror, facts.source_topics, facts.target_topics),
        topics.partitions_match(mirror, facts.source_topics, facts.target_topics),
        topics.replication_factor(mirror, metadata.states),
        *configured,
        *internal,
        *synced,
        connectors.connectors_running(facts.connectors, mirror.connect_url, metadata.resource),
        *([measured] if measured else []),
        records.records_complete(facts.partitions),
        records.records_unique(facts.partitions, limits),
        records.records_intact(facts.partitions),
        groups.groups_synced(facts.groups),
        groups.groups_no_loss(facts.groups),
        groups.groups_reread_bounded(facts.groups, limits),
    ]


def not_judged(mirror: Mirror) -> list[dict[str, str]]:
    """Return the checks that this request leaves out, each with the reason."""
    found = []
    configs = mirror.topic_configs
    if not configs.sync:
        found.append({"name": "topic_config", "reason": "the mirror does not copy configuration (sync.topic.configs)"})
    elif configs.filter_class is not None:
        found.append({"name": "topic_config", "reason": f"what {configs.filter_class} lets through is not known"})
    if not mirror.internal_topics:
        found.append({"name": "internal_topics", "reason": "the request names none"})
    if not mirror.sync_topic_acls:
        found.append({"name": "acls_synced", "reason": "the mirror does not copy ACLs (sync.topic.acls)"})
    return found
