"""All checks, in the order in which they are told."""

from spark.checks import acls, canary, checkpoints, connectors, groups, internal_topics, lag, records, topics
from spark.checks.check import Check
from spark.facts import Facts
from spark.request.model import Mirror

WITHOUT_RECORDS = (
    *("topics_present", "partitions_match", "replication_factor", "topic_config", "internal_topics", "acls_synced"),
    "connectors_running",
)
SYNCED = ("groups_synced", "groups_no_loss", "groups_reread_bounded")


def judge(facts: Facts) -> list[Check]:
    """Return every check of a run."""
    mirror, limits, metadata = facts.request.mirror, facts.request.limits, facts.metadata
    configured = [topics.topic_config(mirror, metadata)] if mirror.topic_configs.judged else []
    internal = [internal_topics.internal_topics(metadata.internal)] if mirror.internal_topics else []
    synced = [acls.acls_synced(mirror, metadata)] if mirror.sync_topic_acls else []
    claims = [checkpoints.checkpoints_consistent(facts.groups, mirror, facts.cut.cut, facts.truth)]
    claimed = claims if mirror.keeps(mirror.checkpoints_topic) else []
    sent = canary.canary_latency(facts.canary, limits)
    measured = lag.lag(facts.lag, mirror, limits)
    unseen = groups.unseen(facts.absent_groups, facts.denied_groups)
    positions = [
        groups.groups_synced(facts.groups, mirror, unseen),
        groups.groups_no_loss(facts.groups.positions, unseen),
        groups.groups_reread_bounded(facts.groups.positions, limits, unseen),
    ]
    return [
        topics.topics_present(
            mirror,
            facts.source_topics,
            facts.target_topics,
            facts.absent_topics,
            loops=facts.loops,
            hidden=facts.hidden_topics,
            doubtful=facts.doubtful_topics,
        ),
        topics.partitions_match(mirror, facts.source_topics, facts.target_topics),
        topics.replication_factor(mirror, metadata.states),
        *configured,
        *internal,
        *synced,
        connectors.connectors_running(facts.connectors, mirror.connect_url, metadata.resource),
        *([measured] if measured else []),
        *([sent] if sent else []),
        records.records_complete(facts.partitions, facts.cut, facts.connectors),
        records.records_unique(facts.partitions, limits),
        records.records_intact(facts.partitions),
        records.records_ordered(facts.partitions),
        records.records_foreign(facts.partitions),
        *(positions if mirror.sync_group_offsets else []),
        *claimed,
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
    if not mirror.keeps(mirror.checkpoints_topic):
        found.append({"name": "checkpoints_consistent", "reason": "the mirror emits no checkpoints"})
    if mirror.canary is None:
        found.append({"name": "canary_latency", "reason": "the request asks for no canary"})
    if not mirror.sync_group_offsets:
        reason = "the mirror syncs no group offsets (sync.group.offsets)"
        found += [{"name": name, "reason": reason} for name in SYNCED]
    if not mirror.sync_topic_acls:
        found.append({"name": "acls_synced", "reason": "the mirror does not copy ACLs (sync.topic.acls)"})
    return found


def judge_part(facts: Facts) -> list[Check]:
    """Return the checks that hold for a run that had to stop: those that need no record, once their facts are known."""
    return [check for check in judge(facts) if check.name in WITHOUT_RECORDS] if facts.waited else []
