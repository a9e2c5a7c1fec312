"""Rules of mirrors: both ends are there and differ, factors fit the target, and no two mirrors share what is theirs."""

from collections.abc import Mapping
from dataclasses import dataclass

from settings.cluster import MIN_INSYNC, Cluster
from settings.errors import Problem
from settings.mirror_parts import ExternalSource
from settings.mirrors import Mirror
from settings.names import LABEL_LENGTH_MAX, SEPARATOR
from settings.patterns import copied, may_overlap
from settings.platform import Platform
from settings.rules import active, mirror_resources
from settings.rules.active import failback
from settings.rules.cluster import authority
from settings.rules.common import annotations, duplicates, leaves_room, refusing_listener
from settings.text import did_you_mean, format_names
from settings.topics import internal_topics_of
from settings.users import User

API_SERVICE = "-mirrormaker2-api"  # of Kafka Connect, which the operator names after the mirror


@dataclass(frozen=True, kw_only=True)
class RuleContext:
    """What a mirror is checked against; None is what cannot be parsed and is reported elsewhere."""

    stack: str | None
    platform: Platform | None
    cluster: Cluster | None
    users: Mapping[str, User | None]


def mirrors(found: Mapping[int, Mirror], context: RuleContext) -> list[Problem]:
    """All rules of all mirrors."""
    problems = duplicates("mirrors", "mirror", {index: (mirror.name, mirror) for index, mirror in found.items()})
    for index, mirror in found.items():
        where, subject = f"mirrors[{index}]", f"mirror {mirror.name}"
        problems += _ends(where, subject, mirror, context)
        problems += _factors(where, subject, mirror, context.cluster)
        problems += mirror_resources.free_maps(where, subject, mirror)
        problems += _naming(where, subject, mirror)
        problems += _counting(where, subject, mirror)
        problems += active.active(where, subject, mirror, context.platform)
        problems += active.clients(where, subject, mirror, context.cluster, context.users)
        problems += failback(where, subject, mirror)
        problems += mirror_resources.scaling(where, subject, mirror)
        problems += annotations(where, subject, mirror.annotations)
        if context.platform is not None:
            problems += mirror_resources.platform_support(where, subject, mirror, context.platform)
        problems += _internal_topics(where, subject, mirror, context)
    return [*problems, *_names(found), *_shared(found), *_aliases(found)]


def _counting(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    """From where a topic counts is said in one way, and of a topic that is copied."""
    problems = []
    for topic, at in mirror.counts_from.items():
        if (at.time is None) == (not at.offsets):
            got = "both" if at.time else "neither"
            message = f"{subject}: countsFrom.{topic} must have time or offsets (got {got}). Leave one of them."
            problems.append(Problem(f"{where}.countsFrom.{topic}", message))
        if not copied(topic, mirror.topics, mirror.topics_exclude):
            message = (
                f"{subject}: countsFrom must name topics that it copies (got {topic}). Add it to topics, or remove it."
            )
            problems.append(Problem(f"{where}.countsFrom", message))
    return problems


def _internal_topics(where: str, subject: str, mirror: Mirror, context: RuleContext) -> list[Problem]:
    """Topics are declared by the operator of the cluster, and an external one has none that listens to us."""
    if mirror.internal_topics != "declared" or context.cluster is None or context.cluster.external is None:
        return []
    version = mirror.version or (context.platform or Platform()).kafka_version
    topics = ", ".join(
        f"{topic.name} ({topic.partitions})"
        for topic in internal_topics_of(mirror, version)
        if topic.location == "target"
    )
    return [
        Problem(
            f"{where}.internalTopics",
            f"{subject}: internalTopics must be created where the target is an external cluster (got declared). If it "
            f"forbids that, create them there by hand, compacted: {topics}; partitions stand in brackets.",
        )
    ]


def _names(found: Mapping[int, Mirror]) -> list[Problem]:
    """Names that the operator makes of a mirror's are short enough, and each direction has its name for itself."""
    others = {
        mirror.name: {
            **({"reverse": mirror.reverse_mirror().name} if mirror.reverse is not None else {}),
            **({"failback": mirror.failback_mirror().name} if mirror.has_failback_mirror else {}),
        }
        for mirror in found.values()
    }
    taken = {name: f"{kind} of mirror {owner}" for owner, made in others.items() for kind, name in made.items()}
    problems = []
    for index, mirror in found.items():
        where, subject = f"mirrors[{index}].name", f"mirror {mirror.name}"
        if mirror.name in taken:
            problems.append(
                Problem(
                    where,
                    f"{subject}: name must differ from that of the {taken[mirror.name]} (got {mirror.name}). Rename "
                    "it.",
                )
            )
        longest = max([mirror.name, *others[mirror.name].values()], key=len)
        length = LABEL_LENGTH_MAX - len(API_SERVICE) - (len(longest) - len(mirror.name))
        if len(mirror.name) > length:
            problems.append(
                Problem(
                    where,
                    f"{subject}: name must have at most {length} characters (got {len(mirror.name)}), for Kubernetes "
                    f"must accept the Service {longest}{API_SERVICE}. Shorten it.",
                )
            )
    return problems


def _ends(where: str, subject: str, mirror: Mirror, context: RuleContext) -> list[Problem]:
    source, problems = mirror.source, []
    if (source.stack is None) == (source.external is None):
        got, fix = ("nothing", "Name one.") if source.stack is None else ("both", "Remove one.")
        problems.append(
            Problem(f"{where}.source.stack", f"{subject}: source must have either stack or external (got {got}). {fix}")
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
                f"{subject}: source.user must not be given with external (got {source.user}; external.username is it). "
                "Remove it.",
            )
        )
    if source.external is not None:
        at, external = f"{where}.source.external", source.external
        problems += authority(f"{at}.cluster", f"{subject} source {external.name}", external.cluster)
        problems += _external_login(at, f"{subject} source {external.name}", external)
        if external.authentication == "tls" and not external.cluster.tls:
            problems.append(
                Problem(
                    f"{at}.cluster.tls",
                    f"{subject} source {external.name}: tls must be true with authentication tls (got false). "
                    "Certificates are shown inside TLS only.",
                )
            )
    if mirror.target.user not in context.users:
        problems.append(
            Problem(
                f"{where}.target.user",
                f"{subject}: target.user must be one of this stack's users (got {mirror.target.user}, allowed "
                f"{format_names(context.users)}).{did_you_mean(mirror.target.user, context.users)} Declare it under "
                "users.",
            )
        )
    if source.stack is not None and source.stack == context.stack:
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
                f"{subject}: target.alias must differ from source.alias (got {mirror.target.alias} for both). "
                "Rename one.",
            )
        )
    return [*problems, *_login(where, subject, mirror, context)]


def _login(where: str, subject: str, mirror: Mirror, context: RuleContext) -> list[Problem]:
    """The target's listener takes the user's authentication."""
    cluster, user = context.cluster, context.users.get(mirror.target.user)
    listener = refusing_listener(cluster, user)
    if cluster is None or user is None or listener is None:
        return []
    fix = "Change the user, or cluster.listener."
    if listener.authentication == "none":
        fix = "Mirrors log in: name a listener with authentication as cluster.listener."
    return [
        Problem(
            f"{where}.target.user",
            f"{subject}: target.user must log in as listener {listener.name} of {cluster.name} demands (got "
            f"{user.authentication}, allowed {listener.authentication}). {fix}",
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


def _naming(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    problems = []
    if mirror.naming == "prefixed" and not mirror.separator:
        problems.append(
            Problem(
                f"{where}.separator",
                f"{subject}: separator must not be empty with prefixed names (got ''). "
                f"The alias could not be derived from the topic's name: leave it at '{SEPARATOR}'.",
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
    if mirror.naming == "prefixed" and mirror.separator:
        problems += [
            Problem(
                f"{where}.{end}.alias",
                f"{subject}: {end}.alias must not hold the separator (got {alias}, separator '{mirror.separator}'). "
                "MirrorMaker takes what stands before the first separator for the alias: rename it, or use another "
                "separator.",
            )
            for end, alias in (("source", mirror.source.alias), ("target", mirror.target.alias))
            if mirror.separator in alias
        ]
    if mirror.reverse is None or mirror.naming == "prefixed":
        return problems
    both = may_overlap(mirror.topics, mirror.reverse.topics)
    if both:
        problems.append(
            Problem(
                f"{where}.naming",
                f"{subject}: naming must be prefixed where both directions copy the same topics (got identity, and "
                f"topics and reverse.topics both match {format_names(both)}). Under the same name a record would "
                "come back "
                "and be copied again, without end.",
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


def _external_login(at: str, subject: str, external: ExternalSource) -> list[Problem]:
    """A login has a Secret; whoever is let in without one has neither Secret nor name."""
    if external.authentication != "none" and external.secret is None:
        return [
            Problem(
                f"{at}.secret",
                f"{subject}: secret must be given with authentication {external.authentication} (got nothing). Name "
                "the Secret with the user's credentials in the mirror's namespace; authentication: none for a cluster "
                "that lets everybody in.",
            )
        ]
    given = [key for key in ("secret", "username") if getattr(external, key) is not None]
    if external.authentication == "none" and given:
        return [
            Problem(
                f"{at}.{given[0]}",
                f"{subject}: {given[0]} must not be given with authentication none (got one). Remove it, or say how "
                "the mirror logs in.",
            )
        ]
    return []
