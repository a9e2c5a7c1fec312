"""The issues that are recognised: symptom, severity, and what to type or change.

Owns names, symptoms and remedies. Does not own how an issue is recognised.
"""

from dataclasses import dataclass
from typing import Any, Literal

from settings.platform import annotation_domain, operator_name

Severity = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class KnownIssue:
    """One known issue. A finding replaces the names in braces of the remedy."""

    name: str
    sign: str
    remedy: str
    severity: Severity = "error"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A known issue that was found: its name, where it is, the evidence, and what to do about it there."""

    trouble: str
    where: str
    what: str
    remedy: str
    severity: Severity

    def as_json(self) -> dict[str, str]:
        """Return the finding as `--json` prints it."""
        return dict(vars(self))


_REACH = "The {side} cannot be used: its address does not answer, or certificate, user or password is refused"
_RESTART = (
    "restart what failed: curl -X POST '{connect}/connectors/{connector}/restart?includeTasks=true&onlyFailed=true'"
)
_FORCED = "kubectl annotate secret CLUSTER-cluster-ca-cert {domain}/force-renew=true"
RENEWALS = {
    "the client certificate": "Renew the client's certificate; with {operator}: kubectl delete secret USER in the "
    "namespace of its cluster gets this user a new one, and kubectl annotate secret CLUSTER-clients-ca-cert "
    "{domain}/force-renew=true all of them.",
    "the trusted authority": f"Renew the authority; with {{whose}} own: {_FORCED}. Put the successor of your own "
    "into the Secrets that hold it, that of a public one into the settings.",
    "the broker's certificate": f"Renew the broker's certificate; with {{whose}} own authority: {_FORCED}. Put "
    "the successor of your own into the Secret that the listener names (brokerCertChainAndKey).",
}
"""How a certificate is renewed, by whose it is."""
_OPERATOR = {"operator": "Strimzi", "whose": "Strimzi's", "domain": "strimzi.io"}
"""The operator whose annotations a remedy names if the mirror's platform is not known."""
_EVERYWHERE = {"renewal": " ".join(RENEWALS.values()).format(**_OPERATOR), **_OPERATOR}
_MORE_TIME = (
    "Win time first: give {topic} a longer retention at the source, in the topics of the stack file of {source_stack}; "
    "if nothing declares it: kafka-configs.sh --bootstrap-server {servers} --entity-type topics --entity-name {topic} "
    "--alter --add-config retention.ms=-1,retention.bytes=-1. "
)
_FULL_DISK = (
    "one whose disk is full ends with `No space left on device` in its log and needs a larger volume first "
    "(storage.sizeGib, where a stack declares the cluster)"
)
_ALL = (
    KnownIssue(
        name="source-unreachable",
        sign=_REACH.format(side="source"),
        remedy="Follow the message. If the source is lost: python -m ops failover --to {stack} --unplanned. "
        "It first shows what that costs.",
    ),
    KnownIssue(
        name="target-unreachable",
        sign=_REACH.format(side="target"),
        remedy="Follow the message. The mirror resumes by itself at its position, as long as the source still has the "
        "records that it has not copied.",
    ),
    KnownIssue(
        name="advertised-listener-unreachable",
        sign="The bootstrap address answers, and a broker that it names takes no connection at its advertised address",
        remedy="If the broker is down, start it; " + _FULL_DISK + ". Else correct the address that the listener "
        "advertises on cluster {side} (spec.kafka.listeners, configuration.brokers), or let this network reach it. "
        "This was tried from here: try it from the mirror's workers too.",
    ),
    KnownIssue(
        name="partition-without-leader",
        sign="A partition has no leader: nobody writes or reads it until a broker with all its records is back",
        remedy="Start these brokers again: their logs say why they ended; " + _FULL_DISK + ". Then look again: the "
        "mirror resumes by itself at its position.",
    ),
    KnownIssue(
        name="certificate-near-expiry",
        sign="A broker's, a client's or an authority's certificate ends within the days of --certificate-days; an "
        "error once it has ended",
        remedy="{renewal} Then `pulumi up` of the source's stack and after it of stack {stack}, which hands what is "
        "new to the mirror.",
        severity="warning",
    ),
    KnownIssue(
        name="missing-acls",
        sign="The mirror's user lacks a right that the mirror needs; a refused task or a group that is not listed",
        remedy="Give user {user} the right under rt-inventory:users in the stack file of the {side} (aclSets "
        "{set} holds all that a mirror needs) and run `pulumi up`. Then " + _RESTART + ".",
    ),
    KnownIssue(
        name="connectors-failed-under-ready",
        sign="A connector or a task failed, although the KafkaMirrorMaker2 is Ready",
        remedy="Correct the cause that the message names, then " + _RESTART + ". With autoRestart in the mirror's "
        "settings the operator does that by itself.",
    ),
    KnownIssue(
        name="connectors-failed",
        sign="A connector or a task failed or is missing, and the KafkaMirrorMaker2 is not Ready",
        remedy="Correct the cause that the message names, then " + _RESTART + ".",
    ),
    KnownIssue(
        name="connector-without-tasks",
        sign="The source connector runs without a task although there are topics to mirror",
        remedy="Look for `failed authentication` and `Authorization` in the worker's log: kubectl logs -n {namespace} "
        "-l {domain}/cluster={resource} --since=15m. Correct the user's Secret or rights; it starts tasks by itself.",
    ),
    KnownIssue(
        name="partitions-without-task",
        sign="A task of the source connector is on no worker, or no task is configured to read a partition: nothing of "
        "it is copied, and Connect may still report the task as RUNNING",
        remedy="Bring the missing worker back: kubectl get pods -n {namespace} -l {domain}/cluster={resource}. "
        "Connect gives its tasks to the others after scheduled.rebalance.max.delay.ms (30 s with more than one worker, "
        "unless workerConfig has another value). If it lasts longer, "
        + _RESTART.replace("onlyFailed=true", "onlyFailed=false")
        + ".",
    ),
    KnownIssue(
        name="copies-nothing",
        sign="Connect reports connectors and tasks as RUNNING, and nothing is copied although records have waited for "
        "five minutes: a worker may hang and answer nevertheless",
        remedy="Look at what the tasks wait for (jstack in a worker's pod, and its log), then "
        + _RESTART.replace("what failed", "them").replace("onlyFailed=true", "onlyFailed=false")
        + "; or the workers: kubectl delete pod -n {namespace} -l {domain}/cluster={resource}.",
    ),
    KnownIssue(
        name="mirror-not-ready",
        sign="The operator reports that the KafkaMirrorMaker2 is not Ready, for a reason that no other issue explains",
        remedy="Follow the operator's message: kubectl describe kafkamirrormaker2 {resource} -n {namespace}.",
    ),
    KnownIssue(
        name="plugin-not-found",
        sign="Connect has no class of the name that a connector, a policy or a converter is configured with",
        remedy="Use a class that the worker's image has, or an image with the plugin. Kafka's own policy that "
        "keeps names is org.apache.kafka.connect.mirror.IdentityReplicationPolicy; that of io.strimzi is in the images "
        "of older operators only. In a stack file: naming, sourceConnectorConfig and platform.version.",
    ),
    KnownIssue(
        name="unknown-topic-or-partition",
        sign="A topic that the mirror names, copies from or copies to does not exist, or the remote topic has fewer "
        "partitions",
        remedy="If it is missing at the source: create it there, or take it out of the mirror's topics. If the remote "
        "topic is missing: the mirror creates it within refreshTopicsSeconds, unless it was deleted under a running "
        "task: then " + _RESTART.replace("onlyFailed=true", "onlyFailed=false") + ".",
    ),
    KnownIssue(
        name="flush-time-out",
        sign="A worker could not write records to the target in time (`Expiring … record(s)`, `Failed to flush`)",
        remedy="Look at the target's brokers first (disk, network, partitions that are not in sync). If they are only "
        "slow: a longer producer.override.delivery.timeout.ms, a smaller producer.override.batch.size "
        "(sourceConnectorConfig), more tasks. Then " + _RESTART + ".",
    ),
    KnownIssue(
        name="offset-commit-time-out",
        sign="A worker could not write its position to its offsets topic within offset.flush.timeout.ms",
        remedy="Nothing is lost: it tries again with the next interval, and a restart until then repeats records. Look "
        "at the target's brokers and at topic {topic}; if they are only slow, give workerConfig a longer "
        "offset.flush.timeout.ms.",
        severity="warning",
    ),
    KnownIssue(
        name="authentication-refused",
        sign="A broker refuses the certificate, user or password that a worker comes with (`failed authentication`)",
        remedy="The line names the broker. `pulumi up` of its stack and after it of stack {stack} gives the mirror the "
        "users and passwords that the clusters know; if one was set by hand, the `up` sets it back. Then "
        + _RESTART
        + ".",
    ),
    KnownIssue(
        name="broker-out-of-workers-reach",
        sign="A worker gets no connection to a broker again and again (`could not be established`)",
        remedy="Start the broker, or let the workers' pods in namespace {namespace} reach the address that the line "
        "names: network policies, firewalls, and what the listener advertises. From here it may be in reach.",
        severity="warning",
    ),
    KnownIssue(
        name="mirror-maker-1-beside",
        sign="A KafkaMirrorMaker (MirrorMaker 1) copies topics of this mirror to the same target",
        remedy="Remove it: each record that both copy is twice on the target. Stop its producers or wait until its "
        "group has no lag, then kubectl delete kafkamirrormaker {other} -n {where}. Its offsets are not those of "
        "MirrorMaker 2: with identity naming set countsFrom to the time of the change.",
    ),
    KnownIssue(
        name="group-active-on-target",
        sign="A mirrored group has members on the target: its offsets are not synced as long as it does",
        remedy="Stop the applications of group {group} on the target; the mirror then syncs it within "
        "syncGroupOffsetsSeconds. If it is another application of that name, put the group into groupsExclude.",
        severity="warning",
    ),
    KnownIssue(
        name="groups-not-carried",
        sign="Share groups or Streams groups (KIP-932, KIP-1071) have names that the mirror carries: MirrorMaker and a "
        "failover carry positions of consumer groups only",
        remedy="Plan how these applications go on after a failover: a share group begins at the target where its "
        "share.auto.offset.reset says (kafka-configs.sh --entity-type groups), latest by default, which skips what is "
        "there. If they need not go on, put the groups into groupsExclude.",
        severity="warning",
    ),
    KnownIssue(
        name="groups-not-followed",
        sign="The follower of a mirror with exactOffsets is missing, or no round of it has succeeded lately: after an "
        "unplanned failover groups go on where it last set them, and read more again",
        remedy="kubectl logs -n {namespace} deployment/{deployment} has the reason. Is the source away, it goes on by "
        "itself. If the Deployment is missing or has no pod: pulumi up --refresh -s {stack}.",
    ),
    KnownIssue(
        name="fence-left-behind",
        sign="Applications may not write at the source although it is active, and no failover or failback is under way",
        remedy="pulumi up -s {source_stack} with rt-inventory:fence in its stack file, so that Pulumi knows the rules "
        "that the failover has made; then take it out, and pulumi up -s {source_stack} again: that gives the "
        "applications their rights back. If it is not in the file: take the rules of type deny out of these KafkaUsers "
        "(kubectl edit).",
    ),
    KnownIssue(
        name="target-fenced",
        sign="Applications may not write at the target although it is active: a failback has fenced it",
        remedy="Wait until the failback has ended. One that was interrupted goes on with the same command, which "
        "python -m ops status --stack {stack} shows, and gives them their rights back if it ends before its switch. "
        "If there is no failback, take the rules of type deny out of these KafkaUsers (kubectl edit).",
    ),
    KnownIssue(
        name="source-still-takes-writes",
        sign="The target is active, and an application user may write the mirrored topics at the source",
        remedy="python -m ops status --stack {stack} --watch fences it by what the failover has noted; or pulumi up "
        "--refresh -s {source_stack} with the stack file that the failover has written. What was written there "
        "meanwhile is brought over by the failback.",
    ),
    KnownIssue(
        name="mirror-runs-behind-failover",
        sign="The target is active, and the mirror that the failover has stopped runs: it writes into topics in use",
        remedy="Unless a failback is under way, stop it: pulumi up --refresh -s {stack} with the stack file that the "
        "failover has written, or kubectl edit kafkamirrormaker2 {resource} -n {namespace}, state: stopped. Whoever "
        "has started it (GitOps, a restore) must have that state too. What was copied stays on the target.",
    ),
    KnownIssue(
        name="re-replicated-topic",
        sign="The first records of a partition are twice on the target: the mirror lost its position and began again",
        remedy="Find out why (a changed group id, alias or offsets topic, deleted offsets, a topic created again at "
        "the source) before it happens again. Groups that go on at the target read the second copy again; to be rid of "
        "the first: delete the records before offset {offset} of {topic}-{partition} (kafka-delete-records.sh), and "
        "set countsFrom of the mirror so that the verification counts from there.",
    ),
    KnownIssue(
        name="retention-overtakes-mirror",
        sign="Retention of the source deletes records before the mirror copies them: less is left than twice the time "
        "that it needs to catch up; or it copies nothing, and less than a day, and than they have waited, is left",
        remedy=_MORE_TIME + "Then let the mirror copy: state: running, and what else is found here; if it is too slow, "
        "more tasks. Give the topic its retention back once ops status shows no lag.",
    ),
    KnownIssue(
        name="retention-overtook-mirror",
        sign="The source's log begins behind the mirror's position: what was between was deleted before it was copied",
        remedy="No mirror can copy them any more, and it goes on behind them by itself: have them written again, or "
        "accept the loss, which python -m ops verify counts. " + _MORE_TIME + "Give it its retention back later.",
    ),
    KnownIssue(
        name="source-topic-recreated",
        sign="A mirrored topic was deleted and created again at the source: it has another id than the latest "
        "verification found, or its log begins again in front of the mirror's position",
        remedy="The remote topic holds records of both. Where the new log has grown beyond the mirror's position, what "
        "is in front of it was never copied. To have all of {topic} there, and nothing else: "
        "docs/mirrors.md#copy-everything-again.",
    ),
    KnownIssue(
        name="source-log-truncated",
        sign="A log of the source ends in front of the mirror's position: records that were copied are gone there",
        remedy="The target may be the only place that has them: keep it. The mirror begins again at the log start, and "
        "doubles what is there. Look for an unclean leader election or a lost disk at the source, set "
        "unclean.leader.election.enable=false, and count what differs: python -m ops verify --stack {stack}.",
    ),
    KnownIssue(
        name="record-too-large",
        sign="A record of the source is larger than the target or the mirror's producer takes: its task fails, and "
        "nothing behind the record is copied",
        remedy="Set all three to at least {size}: max.message.bytes of {topic} at the target (at the source too, or "
        "the mirror sets it back), message.max.bytes of the target's brokers where no topic sets its own, and "
        "producer.override.max.request.size in the mirror's sourceConnectorConfig. Run `pulumi up`, then "
        + _RESTART
        + ".",
    ),
    KnownIssue(
        name="record-time-refused",
        sign="The target refuses a record because of its time, which is ahead of the target's clock: its task fails, "
        "and nothing behind the record is copied",
        remedy="Brokers of Kafka 4 refuse what is more than an hour ahead of their clock; earlier ones take "
        "everything, 9223372036854775807 ms. Set log.message.timestamp.after.max.ms of the target's brokers to what "
        "the source takes, and message.timestamp.after.max.ms of {topic} where a topic sets it (at the source too, or "
        "the mirror sets it back). Run `pulumi up`, then " + _RESTART + ".",
    ),
    KnownIssue(
        name="orphan-remote-topic",
        sign="A topic that the mirror has copied from was deleted at the source, and its remote topic is still there",
        remedy="MirrorMaker deletes no topic. If nobody needs what is in it: kafka-topics.sh --bootstrap-server "
        "{servers} --delete --topic {topic}. If it stays, a topic of that name that is created at the source later is "
        "copied behind what is there.",
        severity="warning",
    ),
    KnownIssue(
        name="identity-loop",
        sign="Records that keep their names come back to where they came from: two mirrors against each other, or a "
        "mirror of a cluster onto itself",
        remedy="Stop one direction at once (state: stopped in the mirror's settings, `pulumi up`). Mirror one way "
        "only, or with naming: prefixed, which knows where a topic came from.",
    ),
    KnownIssue(
        name="pattern-matches-nothing",
        sign="A pattern of the mirror matches no topic, or no group, that the source has",
        remedy="Correct it in the mirror's settings (Java's regular expressions, matched against the whole name: a dot "
        "in a name is \\.), or create a topic or group that it matches.",
        severity="warning",
    ),
    KnownIssue(
        name="internal-topic-not-compacted",
        sign="A topic that the mirror keeps for itself is not compacted: retention deletes its positions",
        remedy="kafka-configs.sh --bootstrap-server {servers} --entity-type topics --entity-name {topic} --alter "
        "--add-config cleanup.policy=compact",
    ),
    KnownIssue(
        name="pulumi-state-behind",
        sign="Pulumi's outputs name another active side than the break-glass copy beside the mirror",
        remedy="A failover without Pulumi has switched it. Let Pulumi take it over, with the stack file that the "
        "failover has written: pulumi up --refresh -s {stack}.",
        severity="warning",
    ),
    KnownIssue(
        name="pulumi-state-in-one-place",
        sign="The bucket of Pulumi's state, or the key of its secrets, is in one Region only, or on one machine",
        remedy="Replicate the bucket to another Region and use a multi-Region key: docs/state-backend.md. Until then a "
        "loss of that place is met with python -m ops failover --to {stack} --unplanned --break-glass.",
        severity="warning",
    ),
)
KNOWN_ISSUES = {one.name: one for one in _ALL}


class _Facts(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return _EVERYWHERE.get(key, key.upper())


def remedy(issue: KnownIssue, **facts: Any) -> str:
    """Return an issue's remedy with the facts of a finding; the name of an unknown fact is in capitals.

    Without the fact whose certificate it is, the remedy has the renewal of each kind.
    """
    known = _Facts({name: str(fact) for name, fact in facts.items() if fact is not None})
    if "renewal" in known:
        known["renewal"] = known["renewal"].format_map(known)
    return issue.remedy.format_map(known)


def operator_facts(api_version: str | None) -> dict[str, str]:
    """Return whose annotations a remedy names, for the API version of a mirror's resource; {} without one."""
    if api_version is None:
        return {}
    name = operator_name(api_version)
    whose = f"{name}'" if name.endswith("s") else f"{name}'s"
    return {"operator": name, "whose": whose, "domain": annotation_domain(api_version)}


def finding(trouble: str, where: str, what: str, /, **facts: Any) -> Finding:
    """Return a finding of a known issue."""
    known = KNOWN_ISSUES[trouble]
    return Finding(trouble=trouble, where=where, what=what, remedy=remedy(known, **facts), severity=known.severity)
