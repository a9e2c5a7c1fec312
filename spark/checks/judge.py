"""All checks, in the order in which they are told."""

from spark.checks import connectors, groups, records, topics
from spark.checks.check import Check
from spark.facts import Facts


def judge(facts: Facts) -> list[Check]:
    """Return every check of a run."""
    mirror, limits = facts.request.mirror, facts.request.limits
    return [
        topics.topics_present(mirror, facts.source_topics, facts.target_topics),
        topics.partitions_match(mirror, facts.source_topics, facts.target_topics),
        topics.replication_factor(mirror, facts.target_topics),
        connectors.connectors_running(facts.connectors, mirror.connect_url),
        records.records_complete(facts.partitions),
        records.records_unique(facts.partitions, limits),
        records.records_intact(facts.partitions),
        groups.groups_synced(facts.groups),
        groups.groups_no_loss(facts.groups),
        groups.groups_reread_bounded(facts.groups, limits),
    ]
