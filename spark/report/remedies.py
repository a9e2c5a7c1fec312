"""What to do about a check that does not hold."""

REMEDIES = {
    "topics_present": (
        "Check that the mirror's topic pattern names them and that its user may DESCRIBE and READ them at the "
        "source and CREATE on the target; then restart the source connector, or wait for "
        "refresh.topics.interval.seconds."
    ),
    "partitions_match": (
        "Raise the smaller topic's partitions (kafka-topics --alter). More partitions on the target than at the "
        "source mean that something else manages the topic there."
    ),
    "replication_factor": (
        "Bring brokers that are down back first. If the factor itself is low, reassign the partitions (kafka- "
        "reassign-partitions) and set replication.factor of the mirror for topics made later."
    ),
    "topic_config": (
        "Set the property on the target, or let MirrorMaker do so: sync.topic.configs.enabled=true and no "
        "exclusion of it in config.properties.exclude."
    ),
    "acls_synced": ("Turn on sync.topic.acls.enabled, or add the missing ACLs on the target."),
    "internal_topics": (
        "Raise the replication factor of the mirror's internal topics and set cleanup.policy=compact; the mirror "
        "loses its positions with them."
    ),
    "connectors_running": (
        "Read the failed task's trace (GET /connectors/NAME/status), remove its cause, then restart it: POST "
        "/connectors/NAME/restart?includeTasks=true&onlyFailed=true."
    ),
    "lag": (
        "Look for a stopped or throttled source connector; then raise tasksMax, or the producer's batch.size and "
        "linger.ms. A lag that keeps growing never ends by waiting."
    ),
    "canary_latency": ("Look at lag and connectors first: stamped records take the same way as all others."),
    "records_complete": (
        "Do not fail over. Look at the runs of offsets: a tail is a mirror that is behind or stopped, a gap or a "
        "head is lost for good: mirror the topic again from offset 0 into an empty topic."
    ),
    "records_unique": (
        "A restart of an at-least-once mirror repeats records. Turn on exactly-once support in Connect, or raise "
        "limits.duplicates_max if consumers are idempotent."
    ),
    "records_intact": (
        "Something changes records on their way: look for transforms (SMT), converters other than "
        "ByteArrayConverter, and message.timestamp.type=LogAppendTime on the target topic."
    ),
    "records_ordered": (
        "Look for two mirrors or workers that write the same topic, and for producer retries with more than one "
        "request in flight without idempotence."
    ),
    "records_foreign": (
        "Something else writes to the target topic. Find the producer (ACLs with WRITE) and stop it; under "
        "identity naming exactly one direction may feed a topic."
    ),
    "groups_synced": (
        "Check sync.group.offsets.enabled, the mirror's group pattern and the checkpoint connector; offsets of a "
        "group that is active on the target are never synced."
    ),
    "groups_no_loss": (
        "Do not start these groups from the synced offset: they would skip records. Stop them on the target and "
        "commit the position that each row gives as lowest: kafka-consumer-groups --reset-offsets --group GROUP "
        "--topic TOPIC:PARTITION --to-offset LOWEST --execute."
    ),
    "groups_reread_bounded": (
        "Lower offset.lag.max and sync.group.offsets.interval.seconds. Or commit, before the groups start on the "
        "target, the position that each row gives as lowest (kafka-consumer-groups --reset-offsets --to-offset)."
    ),
    "checkpoints_consistent": (
        "Restart the checkpoint connector. If it stays so, its offset-syncs topic has lost entries: trust the "
        "true range below, not MirrorMaker's translation."
    ),
}
UNPROVEN = "It could not be judged: read what was observed, remove the cause and verify again. Unknown is never green."
