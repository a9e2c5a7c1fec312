"""Rules of mirrors: both ends are there and differ, factors fit the target, and no two mirrors share what is theirs."""

from collections.abc import Mapping
from dataclasses import dataclass

from settings.cluster import MIN_INSYNC, Cluster
from settings.errors import Problem
from settings.mirrors import SEPARATOR, Mirror
from settings.platform import Platform
from settings.rules import mirror_platform
from settings.rules.common import duplicates, leaves_room
from settings.users import User

# What other settings decide in a mirror, by the free map in which it would come back, and the setting to use.
_CONNECTION = ("bootstrap.servers", "security.protocol", "sasl.")
_POLICY = ("replication.policy.", "offset-syncs.topic.", "offset.lag.max")
MANAGED = {
    "worker_config": (
        "group.id", "config.storage.", "offset.storage.", "status.storage.", "offset.flush.interval.ms",
        "exactly.once.source.support", *_CONNECTION,
    ),
    "source_config": _CONNECTION,
    "source_connector_config": (
        "topics", "tasks.max", "replication.factor", "sync.topic.acls.", "sync.topic.configs.",
        "config.properties.exclude", "refresh.topics.interval.seconds", "exactly.once.support", *_POLICY,
    ),
    "checkpoint_connector_config": (
        "groups", "tasks.max", "checkpoints.topic.", "sync.group.offsets.", "refresh.groups.interval.seconds",
        "emit.checkpoints.", *_POLICY,
    ),
    "heartbeat_connector_config": ("tasks.max", "replication.policy.", "heartbeats.topic.replication.factor"),
}  # fmt: skip
# What the operator itself sets and refuses in `config` (KafkaMirrorMaker2ClusterSpec, KafkaMirrorMaker2ConnectorSpec).
FORBIDDEN = {
    "worker_config": (
        "ssl.", "listeners", "plugin.path", "rest.", "consumer.interceptor.classes", "producer.interceptor.classes",
    ),
    "source_config": (
        "ssl.", "listeners", "plugin.path", "rest.", "consumer.interceptor.classes", "producer.interceptor.classes",
    ),
    "source_connector_config": ("name", "connector.class", "source.cluster.", "target.cluster."),
    "checkpoint_connector_config": ("name", "connector.class", "source.cluster.", "target.cluster."),
    "heartbeat_connector_config": ("name", "connector.class", "source.cluster.", "target.cluster."),
}  # fmt: skip
_ALLOWED = ("ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm")


@dataclass(frozen=True, kw_only=True)
class Around:
    """What a mirror is held against; None is what cannot be read and is told elsewhere."""

    stack: str | None
    platform: Platform | None
    cluster: Cluster | None
    users: Mapping[str, User | None]


def mirrors(found: Mapping[int, Mirror], around: Around) -> list[Problem]:
    """All rules of all mirrors."""
    problems = duplicates("mirrors", "mirror", {index: (mirror.name, mirror) for index, mirror in found.items()})
    for index, mirror in found.items():
        where, subject = f"mirrors[{index}]", f"mirror {mirror.name}"
        problems += _ends(where, subject, mirror, around)
        problems += _factors(where, subject, mirror, around.cluster)
        problems += _keys(where, subject, mirror)
        problems += _naming(where, subject, mirror)
        if around.platform is not None:
            problems += mirror_platform.mirror(where, subject, mirror, around.platform)
        if mirror.internal_topics == "declared" and around.cluster is not None and around.cluster.external is not None:
            problems.append(
                Problem(
                    f"{where}.internalTopics",
                    f"{subject}: internalTopics must be created where the target is an external cluster (got declared)."
                    " Create them there by hand; docs/mirrors.md lists names, partitions and configuration.",
                )
            )
    return [*problems, *_shared(found), *_aliases(found)]


def _ends(where: str, subject: str, mirror: Mirror, around: Around) -> list[Problem]:
    source, problems = mirror.source, []
    if (source.stack is None) == (source.external is None):
        got = "nothing" if source.stack is None else "both"
        problems.append(
            Problem(f"{where}.source.stack", f"{subject}: source must have either stack or external (got {got}).")
        )
    if source.stack is not None and source.user is None:
        problems.append(
            Problem(
                f"{where}.source.user",
                f"{subject}: source.user must be given with source.stack (got nothing). Name one of its users.",
            )
        )
    if source.external is not None and source.user is not None:
        problems.append(
            Problem(
                f"{where}.source.user",
                f"{subject}: source.user must not be given with external (got {source.user}; external.username is it).",
            )
        )
    if mirror.target.user not in around.users:
        problems.append(
            Problem(
                f"{where}.target.user",
                f"{subject}: target.user must be one of this stack's users (got {mirror.target.user}, allowed "
                f"{', '.join(sorted(around.users)) or 'none'}). Declare it under users.",
            )
        )
    if source.stack is not None and source.stack == around.stack:
        problems.append(
            Problem(
                f"{where}.source.stack",
                f"{subject}: source.stack must be another stack (got {source.stack}, which is this one). "
                "A mirror into its own source would never end.",
            )
        )
    if source.alias == mirror.target.alias:
        problems.append(
            Problem(
                f"{where}.target.alias",
                f"{subject}: target.alias must differ from source.alias (got {mirror.target.alias} for both).",
            )
        )
    return [*problems, *_login(where, subject, mirror, around)]


def _login(where: str, subject: str, mirror: Mirror, around: Around) -> list[Problem]:
    """The target's listener takes the user's authentication."""
    cluster, user = around.cluster, around.users.get(mirror.target.user)
    if cluster is None or cluster.external is not None or user is None:
        return []
    try:
        listener = cluster.client_listener
    except KeyError:
        return []
    if listener.authentication == user.authentication:
        return []
    return [
        Problem(
            f"{where}.target.user",
            f"{subject}: target.user must log in as listener {listener.name} of {cluster.name} demands (got "
            f"{user.authentication}, allowed {listener.authentication}). Change the user, or cluster.listener.",
        )
    ]


def _factors(where: str, subject: str, mirror: Mirror, on: Cluster | None) -> list[Problem]:
    if on is None:
        return []
    factor, minimum, brokers = mirror.replication_factor, on.kafka_config[MIN_INSYNC], on.broker_count
    if factor > brokers:
        return [
            Problem(
                f"{where}.replicationFactor",
                f"{subject}: replicationFactor must be <= brokers of the target {on.name} (got {factor}, allowed "
                f"1..{brokers}). Lower it, or raise cluster.brokers.",
            )
        ]
    if on.external is None and isinstance(minimum, int) and not leaves_room(minimum, factor):
        return [
            Problem(
                f"{where}.replicationFactor",
                f"{subject}: replicationFactor must be > {MIN_INSYNC} of the target {on.name} (got {factor}, "
                f"{MIN_INSYNC} {minimum}). One broker restart would stop the mirror.",
            )
        ]
    return []


def _keys(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    problems = []
    for name, managed in MANAGED.items():
        field = Mirror.model_fields[name].alias
        for key in getattr(mirror, name):
            at = f"{where}.{field}[{key}]"
            if key.startswith(managed):
                rule = f"must not be set in {field} (another setting decides it). Use that setting."
            elif key.startswith(FORBIDDEN[name]) and key not in _ALLOWED:
                rule = f"must not be set in {field} (the operator sets it and ignores or refuses this one). Remove it."
            else:
                continue
            problems.append(Problem(at, f"{subject}: {key} {rule}"))
    return problems


def _naming(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    problems = []
    if mirror.naming == "prefixed" and not mirror.separator:
        problems.append(
            Problem(
                f"{where}.separator",
                f"{subject}: separator must not be empty with prefixed names (got ''). "
                f"The alias could not be told from the topic's name: leave it at '{SEPARATOR}'.",
            )
        )
    if mirror.sync_group_offsets and not mirror.emit_checkpoints:
        problems.append(
            Problem(
                f"{where}.syncGroupOffsets",
                f"{subject}: syncGroupOffsets must be false without emitCheckpoints (got true). "
                "Offsets are synchronised from checkpoints.",
            )
        )
    if mirror.reverse is None or mirror.naming == "prefixed":
        return problems
    both = sorted(set(mirror.topics) & set(mirror.reverse.topics))
    problems.append(
        Problem(
            f"{where}.naming",
            f"{subject}: naming must be prefixed with reverse (got identity"
            f"{', and both directions copy ' + ', '.join(both) if both else ''}). "
            "Under the same name a record would come back and be copied again, without end.",
        )
    )
    return problems


def _shared(found: Mapping[int, Mirror]) -> list[Problem]:
    """Connect's group and topics belong to one mirror of a target."""
    problems, used = [], dict[str, str]()
    for index, mirror in found.items():
        fields = {"groupId": mirror.connect_group}
        fields |= {f"{kind}StorageTopic": topic for kind, topic in mirror.storage_topics.items()}
        for field, value in fields.items():
            mine = f"mirror {mirror.name} {field}"
            owner = used.setdefault(f"{field == 'groupId'}:{value}", mine)
            if owner != mine:
                problems.append(
                    Problem(
                        f"mirrors[{index}].{field}",
                        f"mirror {mirror.name}: {field} must be its own (got {value}, as {owner}). Rename it.",
                    )
                )
    return problems


def _aliases(found: Mapping[int, Mirror]) -> list[Problem]:
    """One alias is one cluster, in all mirrors of a stack: names of copies and of internal topics hold it."""
    problems, meaning = [], dict[str, str]()
    for index, mirror in found.items():
        source = mirror.source
        external = source.external.name if source.external else ""
        ends = {
            "source": (source.alias, f"stack {source.stack}" if source.stack else f"external cluster {external}"),
            "target": (mirror.target.alias, "this stack's cluster"),
        }
        for end, (alias, cluster) in ends.items():
            known = meaning.setdefault(alias, cluster)
            if known != cluster and source.alias != mirror.target.alias:
                problems.append(
                    Problem(
                        f"mirrors[{index}].{end}.alias",
                        f"mirror {mirror.name}: {end}.alias must name one cluster (got {alias} for {cluster}, and for "
                        f"{known} elsewhere). Rename one.",
                    )
                )
    return problems
