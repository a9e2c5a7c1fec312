"""Checks of the metadata of mirrored topics, of the topics that the mirror keeps for itself, and of rights on topics.

Rights are the ACLs that the mirror copies, and who may write on the side that is not active.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from contract.verification_request import TOPIC_LENGTH_MAX, ClusterConfig, Mirror, may_exist
from kafka.cluster import Topic
from kafka.connectivity import subject
from kafka.errors import Answers
from kafka.mirror_metadata import InternalState, Metadata, expected_acls
from kafka.topic_metadata import HiddenTopics, Setting, TopicState
from kafka.topic_writers import BrokerRights, is_operators, writers
from spark.checks.registry import DOCTOR, NOTHING, Check, Remedy, check, named
from spark.run_context import RunContext


def topics_present(
    mirror: Mirror,
    source: Mapping[str, Topic],
    target: Mapping[str, Topic],
    absent: Sequence[str] = (),
    *,
    loops: Sequence[str] = (),
    hidden: HiddenTopics | None = None,
    doubtful: Sequence[str] = (),
) -> Check:
    """Every topic that the mirror carries is on the target; `absent` ones it names and the source does not have.

    `loops` were mirrored back to where they came from. `hidden` may be at the source, whose user may not see them: as
    long as nobody knows, the check does not hold. Neither does it with `doubtful` ones, of which the mirror's release
    decides whether it copies them.
    """
    missing = sorted(name for name in source if mirror.target_topic(name) not in target)
    longest = {name: len(mirror.target_topic(name)) for name in missing if not may_exist(mirror.target_topic(name))}
    problems = [f"missing: {', '.join(missing)}"] if missing else []
    problems += [
        f"{name} would have a name of {length} characters there, Kafka allows {TOPIC_LENGTH_MAX}"
        for name, length in longest.items()
    ]
    problems += [f"not at the source: {', '.join(absent)}"] if absent else []
    problems += [f"loop, mirrored back to where it came from: {', '.join(loops)}"] if loops else []
    not_shown = hidden or HiddenTopics()
    depends = (
        f"mirror.version must be the release of Kafka of the mirror's workers (got {mirror.version or 'none'}): "
        f"whether they copy {', '.join(doubtful)} depends on it, up to 3.9 they do not. Set it in the request, or "
        "leave these topics out (topics_exclude). A stack's mirror gets it with `pulumi up`, from its version or its "
        "cluster's; topicsExclude leaves topics out"
        if doubtful
        else ""
    )
    open_ = [*filter(None, [not_shown.reason, depends])]
    observed = "; ".join([*problems, *open_]) or f"{len(source)} topics"
    known = bool(source or absent or loops or open_)
    return Check(
        name="topics_present",
        ok=False if problems else None if open_ or not known else True,
        expected="every mirrored topic is on the target",
        observed=observed if known else "no topic of the source matches the mirror's patterns",
        evidence=[
            *({"topic": name, "target_topic": mirror.target_topic(name)} for name in [*missing, *absent]),
            *({"loop": name} for name in loops),
            *({"doubtful": name} for name in doubtful),
            *({"hidden": name, "named_by": who} for name, who in not_shown.named_by.items()),
        ],
    )


def partitions_match(mirror: Mirror, source: Mapping[str, Topic], target: Mapping[str, Topic]) -> Check:
    """Topics have as many partitions on the target as at the source."""
    common = {name: mirror.target_topic(name) for name in source if mirror.target_topic(name) in target}
    unequal = [
        {"topic": name, "source": len(source[name].replicas), "target": len(target[there].replicas)}
        for name, there in sorted(common.items())
        if len(source[name].replicas) != len(target[there].replicas)
    ]
    shown = "; ".join(
        f"{item['topic']}: {item['source']} at the source, {item['target']} on the target" for item in unequal
    )
    return Check(
        name="partitions_match",
        ok=not unequal if common else None,
        expected="the same number of partitions on both sides",
        observed=(shown or f"{len(common)} topics agree") if common else NOTHING,
        evidence=unequal,
    )


def replication_factor(mirror: Mirror, target: Answers[TopicState]) -> Check:
    """Every partition of the mirrored topics has the mirror's factor, all replicas in sync, and a leader."""
    wanted = mirror.replication_factor
    low = [
        {"topic": topic.name, "partition": number, "fault": fault, **asdict(topic.partitions[number])}
        for topic in target.found.values()
        for number, fault in topic.faults(wanted).items()
    ]
    shown = named([f"{item['topic']}-{item['partition']} {item['fault']}" for item in low])
    unknown = next(iter(target.refused.values()), None)
    known = wanted is not None and bool(target.found) and unknown is None
    held = f"{len(target.found)} topics hold it" if known else unknown or NOTHING
    return Check(
        name="replication_factor",
        ok=False if low else True if known else None,
        expected=(f"at least {wanted} replicas" if wanted is not None else "a factor stated in the request")
        + ", all in sync",
        observed=shown if low else held,
        evidence=low,
    )


def topic_config(mirror: Mirror, metadata: Metadata) -> Check:
    """The copies of topics are configured as MirrorMaker would have configured them."""
    found = metadata.config_differences(mirror)
    refused = [*metadata.source_configs.refused.values(), *metadata.target_configs.refused.values()]
    compared = [
        name for name in metadata.source_configs.found if mirror.target_topic(name) in metadata.target_configs.found
    ]
    shown = named(
        [
            f"{one.target_topic}: {one.property} is {_value(one.target)} on the target, "
            f"{_value(one.source)} at the source"
            for one in found
        ]
    )
    good = f"{len(compared)} topics agree" if compared else NOTHING
    return Check(
        name="topic_config",
        ok=False if found else True if compared and not refused else None,
        expected="the configuration that MirrorMaker copies is that of the source",
        observed=shown if found else refused[0] if refused else good,
        evidence=[
            {
                "topic": one.topic,
                "target_topic": one.target_topic,
                "property": one.property,
                "source": one.source.value,
                "source_set_by": one.source.origin,
                "target": one.target.value if one.target else None,
                "target_set_by": one.target.origin if one.target else None,
            }
            for one in found
        ],
    )


def _value(setting: Setting | None) -> str:
    if setting is None:
        return "not known"
    if setting.hidden:
        return "hidden"
    return setting.value if setting.value not in (None, "") else "empty"


def _configs_left_out(mirror: Mirror) -> str | None:
    configs = mirror.topic_configs
    if not configs.sync:
        return "the mirror does not copy configuration (sync.topic.configs)"
    return f"what {configs.filter_class} lets through is not known" if configs.filter_class is not None else None


@check(
    "topics_present",
    after=None,
    needs_records=False,
    remedy=Remedy(
        text="Check that the mirror's topic pattern names them and that its user may DESCRIBE and READ them at the "
        "source and CREATE on the target; then restart the source connector, or wait for "
        "refresh.topics.interval.seconds.",
        commands=(DOCTOR, "python -m ops topics list {target}"),
        page="docs/verification.md#rights-the-users-need",
    ),
)
def _topics_present(context: RunContext) -> Check:
    return topics_present(
        context.request.mirror,
        context.source_topics,
        context.target_topics,
        context.absent_topics,
        loops=context.loops,
        hidden=context.hidden_topics,
        doubtful=context.doubtful_topics,
    )


@check(
    "partitions_match",
    after="topics_present",
    needs_records=False,
    remedy=Remedy(
        text="Raise the smaller topic's partitions (kafka-topics --alter). More partitions on the target than at the "
        "source mean that something else manages the topic there.",
        commands=("python -m ops topics describe {topic} {source}",),
        page="docs/topics.md",
    ),
)
def _partitions_match(context: RunContext) -> Check:
    return partitions_match(context.request.mirror, context.source_topics, context.target_topics)


@check(
    "replication_factor",
    after="partitions_match",
    needs_records=False,
    remedy=Remedy(
        text="Bring brokers that are down back first. If the factor itself is low, reassign the partitions "
        "(kafka-reassign-partitions) and set replication.factor of the mirror for topics made later.",
        commands=("python -m ops topics describe {topic} {target}", DOCTOR),
        page="docs/topics.md",
    ),
)
def _replication_factor(context: RunContext) -> Check:
    return replication_factor(context.request.mirror, context.metadata.states)


@check(
    "topic_config",
    after="replication_factor",
    needs_records=False,
    left_out=_configs_left_out,
    remedy=Remedy(
        text="Set the property on the target, or let MirrorMaker do so: sync.topic.configs.enabled=true and no "
        "exclusion of it in config.properties.exclude.",
        commands=("python -m ops topics describe {topic} {target}",),
        page="docs/verification.md#how-terms-are-settled",
    ),
)
def _topic_config(context: RunContext) -> Check:
    return topic_config(context.request.mirror, context.metadata)


def internal_topics(states: Sequence[InternalState]) -> Check:
    """The topics that the mirror keeps for itself exist, have their factor, are in sync, and are compacted only.

    One that is not required and may not be described counts as absent: a broker answers both alike.
    """
    bad = [one for one in states if one.faults]
    refused = [one.refused for one in states if one.refused is not None and one.topic.required]
    there = [one for one in states if one.state is not None]
    shown = named([f"{one.topic.name} on the {one.topic.location} {', '.join(one.faults)}" for one in bad])
    return Check(
        name="internal_topics",
        ok=False if bad else True if there and not refused else None,
        expected="every internal topic is there, with its factor, in sync, cleanup.policy compact",
        observed=shown if bad else refused[0] if refused else f"{len(there)} topics hold it" if there else NOTHING,
        evidence=[
            {
                "topic": one.topic.name,
                "location": one.topic.location,
                "wanted_replicas": one.topic.replication_factor,
                "cleanup_policy": one.cleanup_policy,
                "partitions": {number: asdict(part) for number, part in one.state.partitions.items()}
                if one.state
                else None,
                "faults": one.faults,
                "refused": one.refused,
            }
            for one in states
        ],
    )


@check(
    "internal_topics",
    after="topic_config",
    needs_records=False,
    left_out=lambda mirror: None if mirror.internal_topics else "the request names none",
    remedy=Remedy(
        text="Raise the replication factor of the mirror's internal topics and set cleanup.policy=compact; the mirror "
        "loses its positions with them.",
        commands=(DOCTOR, "python -m ops topics list {target} --internal"),
        page="docs/mirrors.md#topics-that-a-mirror-keeps-for-itself",
    ),
)
def _internal_topics(context: RunContext) -> Check:
    return internal_topics(context.metadata.internal)


def acls_synced(mirror: Mirror, metadata: Metadata) -> Check:
    """The target has every ACL of mirrored topics that MirrorMaker copies."""
    missing = metadata.missing_acls(mirror)
    sides = [side for side in (metadata.source_acls, metadata.target_acls) if side is not None]
    refused = [side.refused for side in sides if side.refused is not None]
    wanted = expected_acls(mirror, metadata.source_acls.acls) if metadata.source_acls is not None else {}
    good = f"{len(wanted)} ACLs" if wanted else f"{NOTHING}: no ACL of a mirrored topic's literal name is to be copied"
    return Check(
        name="acls_synced",
        ok=None if refused or not wanted else not missing,
        expected="every ACL that MirrorMaker copies is on the target",
        observed=refused[0] if refused else named([f"missing: {acl}" for acl in missing]) if missing else good,
        evidence=[{"missing": str(acl), "source": str(origin)} for acl, origin in missing.items()],
    )


@check(
    "acls_synced",
    after="internal_topics",
    needs_records=False,
    left_out=lambda mirror: None if mirror.sync_topic_acls else "the mirror does not copy ACLs (sync.topic.acls)",
    remedy=Remedy(
        text="Turn on sync.topic.acls.enabled, or add the missing ACLs on the target.",
        commands=(DOCTOR,),
        page="docs/mirrors.md#rights",
    ),
)
def _acls_synced(context: RunContext) -> Check:
    return acls_synced(context.request.mirror, context.metadata)


def standby_read_only(side: ClusterConfig, rights: BrokerRights | None, topics: Iterable[str]) -> Check:
    """No access rule lets a principal write; brokers, the operator and the mirror's own user are left out.

    Super users need no rule, and no broker shows who they are: the check does not judge them, and says so.

    Args:
        side: The side that is not active, as the mirror's user reaches it.
        rights: What the cluster says of rights; None if it was not asked.
        topics: The mirrored topics by their names there.
    """
    names = sorted(topics)
    own = principal(side)
    seen = writers(rights or BrokerRights(rules=None, unknown=("it was not asked",)), names)
    found = seen.without(lambda each: each == own or is_operators(each))
    may_write = [f"{each} ({why})" for each, why in sorted(found.principals.items())]
    if may_write:
        observed = f"on {side.role} {side.alias} may write: {named(may_write)}"
    elif found.unknown or not names:
        observed = "; ".join(found.unknown) or NOTHING
    else:
        observed = f"no rule lets anybody write {len(names)} topics of {side.role} {side.alias} (super users need none)"
    return Check(
        name="standby_read_only",
        ok=False if may_write else True if names and not found.unknown else None,
        expected="no rule lets anybody but the mirror write the mirrored topics on the side that is not active",
        observed=observed,
        evidence=[{"principal": each, "by": why} for each, why in sorted(found.principals.items())],
    )


def principal(side: ClusterConfig) -> str:
    """Return the principal of the mirror's user on a side: its login, else the subject of its certificate."""
    login = side.client_config.get("sasl.username")
    return f"User:{login or subject(side.client_config) or 'ANONYMOUS'}"


def _left_out(mirror: Mirror) -> str | None:
    return None if mirror.active is not None else "the request does not say which side is active"


@check(
    "standby_read_only",
    after="connectors_running",
    needs_records=False,
    left_out=_left_out,
    remedy=Remedy(
        text="Take the right to write from whom it names: a user of the stack gets it back with `ops failover`, a rule "
        "made by hand is removed. If it is unknown, grant the mirror's user Describe on the cluster; a topic that no "
        "rule names needs one.",
        commands=(DOCTOR,),
        page="docs/mirrors.md#the-fence",
    ),
)
def _standby_read_only(context: RunContext) -> Check:
    request = context.request
    there: Mapping[str, str] = {name: request.mirror.target_topic(name) for name in context.source_topics}
    if request.mirror.active == "target":
        return standby_read_only(request.source, context.metadata.standby_rights, there)
    topics = [name for name in there.values() if name in context.target_topics]
    return standby_read_only(request.target, context.metadata.standby_rights, topics)
