"""What to do about a check that does not hold: in words, what to type, and where to read on."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """`page` is a path below the project's folder, with an anchor.

    Commands are typed in that folder. What stands in braces is of the run: `mirror` its stack and mirror, `source` and
    `target` the stack of a side, `groups` and `topic` what the check found. A command of which something is not known
    is left out.
    """

    text: str
    commands: tuple[str, ...]
    page: str


DOCTOR = "python -m ops doctor {mirror}"
STATUS = "python -m ops status {mirror}"
VERIFY = "python -m ops verify {mirror}"
EXACT = "python -m ops offsets set {mirror} {groups} --exact"

REMEDIES = {
    "topics_present": Remedy(
        text="Check that the mirror's topic pattern names them and that its user may DESCRIBE and READ them at the "
        "source and CREATE on the target; then restart the source connector, or wait for "
        "refresh.topics.interval.seconds.",
        commands=(DOCTOR, "python -m ops topics list {target}"),
        page="docs/verification.md#rights-the-users-need",
    ),
    "partitions_match": Remedy(
        text="Raise the smaller topic's partitions (kafka-topics --alter). More partitions on the target than at the "
        "source mean that something else manages the topic there.",
        commands=("python -m ops topics describe {topic} {source}",),
        page="docs/topics.md",
    ),
    "replication_factor": Remedy(
        text="Bring brokers that are down back first. If the factor itself is low, reassign the partitions "
        "(kafka-reassign-partitions) and set replication.factor of the mirror for topics made later.",
        commands=("python -m ops topics describe {topic} {target}", DOCTOR),
        page="docs/topics.md",
    ),
    "topic_config": Remedy(
        text="Set the property on the target, or let MirrorMaker do so: sync.topic.configs.enabled=true and no "
        "exclusion of it in config.properties.exclude.",
        commands=("python -m ops topics describe {topic} {target}",),
        page="docs/verification.md#how-terms-are-settled",
    ),
    "acls_synced": Remedy(
        text="Turn on sync.topic.acls.enabled, or add the missing ACLs on the target.",
        commands=(DOCTOR,),
        page="docs/mirrors.md#rights",
    ),
    "internal_topics": Remedy(
        text="Raise the replication factor of the mirror's internal topics and set cleanup.policy=compact; the mirror "
        "loses its positions with them.",
        commands=(DOCTOR, "python -m ops topics list {target} --internal"),
        page="docs/mirrors.md#topics-that-a-mirror-keeps-for-itself",
    ),
    "connectors_running": Remedy(
        text="Read the failed task's trace, remove its cause, then restart what failed: doctor shows the trace and the "
        "request that restarts it.",
        commands=(DOCTOR,),
        page="docs/doctor.md#the-troubles",
    ),
    "lag": Remedy(
        text="Look for a stopped or throttled source connector; then raise tasksMax, or the producer's batch.size and "
        "linger.ms. A lag that keeps growing never ends by waiting.",
        commands=(STATUS, DOCTOR),
        page="docs/mirrors.md#scaling-on-lag",
    ),
    "canary_latency": Remedy(
        text="Look at lag and connectors first: stamped records take the same way as all others.",
        commands=(STATUS,),
        page="docs/verification.md#how-terms-are-settled",
    ),
    "records_complete": Remedy(
        text="Do not fail over. Records that are behind are still at the source: the mirror has not copied them. Wait "
        "for it (a longer mirrorWaitSeconds), or find out with doctor why it stands still. A gap or a head that is "
        "lost stays lost: mirror the topic again from offset 0 into an empty topic.",
        commands=(DOCTOR,),
        page="docs/runbook.md#mirror-everything-anew",
    ),
    "records_unique": Remedy(
        text="A restart of an at-least-once mirror repeats records. Turn on exactly-once support in Connect, or raise "
        "limits.duplicates_max if consumers are idempotent.",
        commands=(DOCTOR,),
        page="docs/verification.md#how-terms-are-settled",
    ),
    "records_intact": Remedy(
        text="Something changes records on their way: look for transforms (SMT), converters other than "
        "ByteArrayConverter, and message.timestamp.type=LogAppendTime on the target topic.",
        commands=("python -m ops topics describe {topic} {target}",),
        page="docs/verification.md#how-terms-are-settled",
    ),
    "records_ordered": Remedy(
        text="Look for two mirrors or workers that write the same topic, and for producer retries with more than one "
        "request in flight without idempotence.",
        commands=(DOCTOR,),
        page="docs/verification.md#how-terms-are-settled",
    ),
    "records_foreign": Remedy(
        text="Something else writes to the target topic. Find the producer (ACLs with WRITE) and stop it; under "
        "identity naming exactly one direction may feed a topic.",
        commands=(DOCTOR,),
        page="docs/mirrors.md#names",
    ),
    "groups_synced": Remedy(
        text="Check sync.group.offsets.enabled, the mirror's group pattern and the checkpoint connector; offsets of a "
        "group that is active on the target are never synced.",
        commands=("python -m ops offsets show {mirror} {groups}", DOCTOR),
        page="docs/offsets.md",
    ),
    "groups_no_loss": Remedy(
        text="Do not start these groups on the target: they would skip records. While they are stopped there, set "
        "them to the exact offsets. The command shows its plan and asks.",
        commands=(EXACT,),
        page="docs/offsets.md",
    ),
    "groups_reread_bounded": Remedy(
        text="Lower offset.lag.max and sync.group.offsets.interval.seconds. Or set the exact offsets before the groups "
        "start on the target; the command shows its plan and asks.",
        commands=(EXACT,),
        page="docs/offsets.md",
    ),
    "checkpoints_consistent": Remedy(
        text="Restart the checkpoint connector. If it stays so, its offset-syncs topic has lost entries: trust the "
        "true range below, not MirrorMaker's translation.",
        commands=("python -m ops offsets show {mirror} --exact",),
        page="docs/offsets.md",
    ),
}
OTHER = Remedy(
    text="Look at what was observed, remove the cause and verify again.",
    commands=(DOCTOR,),
    page="docs/verification.md#how-terms-are-settled",
)
UNPROVEN = Remedy(
    text="It could not be judged: read what was observed, remove the cause and verify again. Unknown is never green.",
    commands=(DOCTOR,),
    page="docs/verification.md#rights-the-users-need",
)
# Of a run that could not judge: nothing to type but what looks for the cause.
ENDED = {
    "error": Remedy(text="", commands=(DOCTOR,), page="docs/verification.md#bad-input"),
    "stopped": Remedy(text="", commands=(VERIFY,), page="docs/runbook.md#verification"),
}
