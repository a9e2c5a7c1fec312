"""Rules that look at several settings together. Each returns the problems it finds; none raises."""

from collections import Counter
from collections.abc import Iterable, Mapping

from settings.cluster import FACTORS, MIN_INSYNC, TRANSACTION_MIN_ISR, Cluster
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.model import Model
from settings.names import is_resource_name
from settings.operator import Operator
from settings.topics import Topic
from settings.users import OPERATIONS, User
from settings.verification import Verification

# Strimzi sets these itself and ignores them in `config` (KafkaClusterSpec.FORBIDDEN_PREFIXES).
BROKER_MANAGED = (
    "listeners", "advertised.", "broker.", "listener.", "host.name", "port", "inter.broker.listener.name", "sasl.",
    "ssl.", "security.", "password.", "log.dir", "authorizer.", "super.user", "node.id", "process.roles",
    "controller.quorum",
)  # fmt: skip
BROKER_ALLOWED = (
    "ssl.cipher.suites",
    "ssl.protocol",
    "ssl.enabled.protocols",
    "controller.quorum.election.backoff.max.ms",
)
# What this project's own settings decide in a mirror, by the free map in which it would come back.
MIRROR_MANAGED = {
    "worker_config": (
        "group.id", "config.storage.", "offset.storage.", "status.storage.", "offset.flush.interval.ms",
        "bootstrap.servers", "security.protocol", "sasl.",
    ),
    "source_config": ("bootstrap.servers", "security.protocol", "sasl."),
    "source_connector_config": (
        "topics", "tasks.max", "replication.factor", "replication.policy.", "offset-syncs.topic.", "sync.topic.acls.",
        "refresh.topics.interval.seconds",
    ),
    "checkpoint_connector_config": (
        "groups", "tasks.max", "checkpoints.topic.", "replication.policy.", "offset-syncs.topic.",
        "sync.group.offsets.", "refresh.groups.interval.seconds", "emit.checkpoints.",
    ),
}  # fmt: skip


def operator(settings: Operator) -> list[Problem]:
    """A subscription that waits for a hand's approval never becomes ready inside one `up`."""
    if settings.approval == "Manual" and settings.starting_csv is None:
        return [
            Problem(
                "operator.startingCsv",
                "operator: startingCsv must be given with approval Manual (got nothing). Pin the version to approve.",
            )
        ]
    return []


def cluster(settings: Cluster) -> list[Problem]:
    """Factors fit the number of brokers; in-sync minimums leave room for one broker's restart; disks have a size."""
    subject, problems = f"cluster {settings.name}", []
    config = settings.kafka_config

    def number(key: str) -> int | None:
        value = config[key]
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        problems.append(
            Problem(f"cluster.config[{key}]", f"{subject}: {key} must be a whole number >= 1 (got {value!r}).")
        )
        return None

    factors = {key: number(key) for key in FACTORS}
    problems += [
        Problem(
            f"cluster.config[{key}]",
            f"{subject}: {key} must be <= brokers (got {factor}, allowed 1..{settings.brokers}). "
            "Lower it or add brokers.",
        )
        for key, factor in factors.items()
        if factor is not None and factor > settings.brokers
    ]
    for minimum_key, factor_key in (
        (MIN_INSYNC, "default.replication.factor"),
        (TRANSACTION_MIN_ISR, "transaction.state.log.replication.factor"),
    ):
        minimum, factor = number(minimum_key), factors[factor_key]
        if minimum is not None and factor is not None and not _leaves_room(minimum, factor):
            problems.append(
                Problem(f"cluster.config[{minimum_key}]", _room(subject, minimum_key, minimum, factor_key, factor))
            )
    problems += [
        Problem(
            f"cluster.config[{key}]",
            f"{subject}: {key} must not be set in config (the operator manages it). Remove it.",
        )
        for key in settings.config
        if key.startswith(BROKER_MANAGED) and key not in BROKER_ALLOWED
    ]
    if settings.storage.type == "persistent-claim" and settings.storage.size_gib is None:
        problems.append(
            Problem("cluster.storage.sizeGib", f"{subject}: sizeGib must be given with persistent-claim (got nothing).")
        )
    if settings.storage.type == "ephemeral" and settings.storage.storage_class is not None:
        problems.append(
            Problem(
                "cluster.storage.storageClass",
                f"{subject}: storageClass must not be given with ephemeral (got {settings.storage.storage_class!r}). "
                "Remove it, or use persistent-claim.",
            )
        )
    return problems


def users(found: Mapping[int, User]) -> list[Problem]:
    """Names are unique; every right exists for the resource it is on."""
    problems = _duplicates("users", "user", {index: (user.name, user) for index, user in found.items()})
    for index, user in found.items():
        for number, acl in enumerate(user.acls):
            where, subject = f"users[{index}].acls[{number}]", f"user {user.name}"
            allowed = OPERATIONS[acl.type]
            problems += [
                Problem(
                    f"{where}.operations",
                    f"{subject}: operations must exist for a {acl.type} (got {operation}, "
                    f"allowed {', '.join(allowed)}).",
                )
                for operation in acl.operations
                if operation not in allowed
            ]
            if bool(acl.names) == (acl.type == "cluster"):
                rule = "must not be given for the cluster" if acl.names else "must have at least one entry"
                got = ", ".join(acl.names) or "nothing"
                problems.append(Problem(f"{where}.names", f"{subject}: names {rule} (got {got})."))
            if acl.match == "prefix" and "*" in acl.names:
                problems.append(
                    Problem(
                        f"{where}.match",
                        f"{subject}: match must be literal for the name '*' (got prefix). "
                        "As a prefix '*' is an ordinary character.",
                    )
                )
    return problems


def topics(found: Mapping[int, Topic], on: Cluster | None) -> list[Problem]:
    """Names are unique in Kafka and in Kubernetes; replicas fit the brokers; a broker may restart."""
    problems = _duplicates("topics", "topic", {index: (topic.name, topic) for index, topic in found.items()})
    first: dict[str, Topic] = {}
    for index, topic in found.items():
        where, subject = f"topics[{index}]", f"topic {topic.name}"
        other = first.setdefault(topic.name.replace(".", "_").lower(), topic)
        if other.name != topic.name:
            problems.append(
                Problem(
                    f"{where}.name",
                    f"{subject}: name must differ from {other.name} by more than case, '.' and '_' (Kafka's metrics "
                    "and Kubernetes cannot tell them apart). Rename one.",
                )
            )
        if not is_resource_name(topic.resource_name):
            problems.append(
                Problem(
                    f"{where}.name",
                    f"{subject}: name must make a name for Kubernetes (got {topic.resource_name!r}). "
                    "Begin and end every part between dots with a letter or digit.",
                )
            )
        if on is None:
            continue
        if topic.replicas > on.brokers:
            problems.append(
                Problem(
                    f"{where}.replicas",
                    f"{subject}: replicas must be <= brokers of {on.name} (got {topic.replicas}, allowed "
                    f"1..{on.brokers}). Lower replicas, or raise cluster.brokers.",
                )
            )
        minimum = topic.config.get(MIN_INSYNC, on.kafka_config[MIN_INSYNC])
        if not isinstance(minimum, int) or isinstance(minimum, bool) or minimum < 1:
            problems.append(
                Problem(
                    f"{where}.config[{MIN_INSYNC}]",
                    f"{subject}: {MIN_INSYNC} must be a whole number >= 1 (got {minimum!r}).",
                )
            )
        elif not _leaves_room(minimum, topic.replicas):
            problems.append(
                Problem(
                    f"{where}.config[{MIN_INSYNC}]", _room(subject, MIN_INSYNC, minimum, "replicas", topic.replicas)
                )
            )
    return problems


def mirrors(found: Mapping[int, Mirror], on: Cluster | None, known: Iterable[str], stack: str | None) -> list[Problem]:
    """Both ends are there and differ, factors fit the target, and nothing that two mirrors use is shared by them."""
    known = sorted(known)
    problems = _duplicates("mirrors", "mirror", {index: (mirror.name, mirror) for index, mirror in found.items()})
    used: dict[str, str] = {}
    for index, mirror in found.items():
        where, subject = f"mirrors[{index}]", f"mirror {mirror.name}"
        if mirror.target.user not in known:
            problems.append(
                Problem(
                    f"{where}.target.user",
                    f"{subject}: target.user must be one of this stack's users (got {mirror.target.user}, allowed "
                    f"{', '.join(known) or 'none'}). Declare it under users.",
                )
            )
        if mirror.source.stack == stack:
            problems.append(
                Problem(
                    f"{where}.source.stack",
                    f"{subject}: source.stack must be another stack (got {stack}, which is this one). "
                    "A mirror into its own source would never end.",
                )
            )
        if mirror.source.alias == mirror.target.alias:
            problems.append(
                Problem(
                    f"{where}.target.alias",
                    f"{subject}: target.alias must differ from source.alias (got {mirror.target.alias} for both).",
                )
            )
        problems += _mirror_factors(where, subject, mirror, on)
        problems += _managed_keys(where, subject, mirror)
        shared = {"groupId": mirror.connect_group, **{f"{k}StorageTopic": v for k, v in mirror.storage_topics.items()}}
        for field, value in shared.items():
            owner = used.setdefault(f"{field == 'groupId'}:{value}", f"{subject} {field}")
            if owner != f"{subject} {field}":
                problems.append(
                    Problem(
                        f"{where}.{field}", f"{subject}: {field} must be its own (got {value}, as {owner}). Rename it."
                    )
                )
    return problems


def verification(settings: Verification) -> list[Problem]:
    """The job has time left after it has waited for the mirror; no check is allowed twice."""
    problems = []
    if settings.mirror_wait_seconds >= settings.deadline_seconds:
        problems.append(
            Problem(
                "verification.mirrorWaitSeconds",
                f"verification: mirrorWaitSeconds must be < deadlineSeconds (got {settings.mirror_wait_seconds}, "
                f"deadlineSeconds {settings.deadline_seconds}). The comparison comes after the wait.",
            )
        )
    problems += [
        Problem("verification.allowUnknown", f"verification: allowUnknown must name a check once (got {name} twice).")
        for name, count in Counter(settings.allow_unknown).items()
        if count > 1
    ]
    return problems


def _mirror_factors(where: str, subject: str, mirror: Mirror, on: Cluster | None) -> list[Problem]:
    if on is None:
        return []
    factor, minimum = mirror.replication_factor, on.kafka_config[MIN_INSYNC]
    if factor > on.brokers:
        return [
            Problem(
                f"{where}.replicationFactor",
                f"{subject}: replicationFactor must be <= brokers of the target {on.name} (got {factor}, allowed "
                f"1..{on.brokers}). Lower it, or raise cluster.brokers.",
            )
        ]
    if isinstance(minimum, int) and not _leaves_room(minimum, factor):
        return [
            Problem(
                f"{where}.replicationFactor",
                f"{subject}: replicationFactor must be > {MIN_INSYNC} of the target {on.name} (got {factor}, "
                f"{MIN_INSYNC} {minimum}). One broker restart would stop the mirror.",
            )
        ]
    return []


def _managed_keys(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    return [
        Problem(
            f"{where}.{Mirror.model_fields[name].alias}[{key}]",
            f"{subject}: {key} must not be set in {Mirror.model_fields[name].alias} (another setting decides it). "
            "Use that setting.",
        )
        for name, prefixes in MIRROR_MANAGED.items()
        for key in getattr(mirror, name)
        if key.startswith(prefixes)
    ]


def _duplicates(key: str, noun: str, named: Mapping[int, tuple[str, Model]]) -> list[Problem]:
    first: dict[str, int] = {}
    return [
        Problem(
            f"{key}[{index}].name",
            f"{noun} {name}: name must be unique (got it in {key}[{first[name]}] too). Rename or remove one.",
        )
        for index, (name, _) in named.items()
        if first.setdefault(name, index) != index
    ]


def _leaves_room(minimum: int, factor: int) -> bool:
    """One replica may be away without stopping acks=all producers; a single replica has no room to leave."""
    return minimum < factor or minimum == factor == 1


def _room(subject: str, minimum_key: str, minimum: int, factor_key: str, factor: int) -> str:
    rule = f"must be < {factor_key}" if factor > 1 else "must be 1"
    return (
        f"{subject}: {minimum_key} {rule} (got {minimum}, {factor_key} {factor}). "
        "One broker restart would block acks=all producers."
    )
