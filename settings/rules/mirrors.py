"""Rules of mirrors: both clusters exist and differ, factors fit the target, and no two mirrors share what is theirs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from settings.cluster import MIN_INSYNC, Cluster
from settings.errors import Problem, Subject
from settings.mirror_parts import ExternalSource
from settings.mirrors import Mirror
from settings.names import LABEL_LENGTH_MAX, SEPARATOR, copied, may_overlap
from settings.platform import Platform
from settings.rules import active, mirror_resources
from settings.rules.active import failback
from settings.rules.cluster import authority
from settings.rules.common import annotations, duplicates, leaves_room, refusing_listener
from settings.text import did_you_mean, format_names
from settings.topics import internal_topics_of
from settings.users import User

KAFKA_4, OLDEST_FOR_4 = (4, 0, 0), (2, 1, 0)
API_SERVICE = "-mirrormaker2-api"  # of Kafka Connect, which the operator names after the mirror


@dataclass(frozen=True, kw_only=True)
class RuleContext:
    """What a mirror is checked against; None is what cannot be parsed and is reported elsewhere."""

    stack: str | None
    platform: Platform | None
    cluster: Cluster | None
    users: Mapping[str, User | None]


def mirrors(found: Mapping[int, Mirror], context: RuleContext) -> Iterator[Problem]:
    """Yield the problems of all mirrors."""
    yield from duplicates("mirrors", "mirror", {index: (mirror.name, mirror) for index, mirror in found.items()})
    for index, mirror in found.items():
        at = Subject(f"mirrors[{index}]", f"mirror {mirror.name}")
        yield from _endpoints(at, mirror, context)
        yield from _factors(at, mirror, context.cluster)
        yield from mirror_resources.free_maps(at, mirror)
        yield from _naming(at, mirror)
        yield from _counts_from(at, mirror)
        yield from active.active(at, mirror, context.platform)
        yield from active.clients(at, mirror, context.cluster, context.users)
        yield from failback(at, mirror)
        yield from active.failed_over(at, mirror)
        yield from mirror_resources.scaling(at, mirror)
        yield from mirror_resources.exact_offsets(at, mirror)
        yield from annotations(at, mirror.annotations)
        if context.platform is not None:
            yield from mirror_resources.platform_support(at, mirror, context.platform)
        yield from _internal_topics(at, mirror, context)
    yield from active.logins(found)
    yield from _names(found)
    yield from _shared(found)
    yield from _aliases(found)


def _counts_from(at: Subject, mirror: Mirror) -> Iterator[Problem]:
    """`countsFrom` gives a time or offsets, and names only topics that are copied."""
    for topic, start in mirror.counts_from.items():
        if (start.time is None) == (not start.offsets):
            got = "both" if start.time else "neither"
            yield at.problem(f"countsFrom.{topic}", "must have time or offsets", got, "Leave one of them.")
        if not copied(topic, mirror.topics, mirror.topics_exclude):
            yield at.problem("countsFrom", "must name topics that it copies", topic, "Add it to topics, or remove it.")


def _internal_topics(at: Subject, mirror: Mirror, context: RuleContext) -> Iterator[Problem]:
    """Topics are declared by the operator of the cluster, and an external one has none that listens to us."""
    if mirror.internal_topics != "declared" or context.cluster is None or context.cluster.external is None:
        return
    topics = ", ".join(
        f"{topic.name} ({topic.partitions})"
        for topic in internal_topics_of(mirror, _version(mirror, context))
        if topic.location == "target"
    )
    yield at.problem(
        "internalTopics",
        "must be created where the target is an external cluster",
        "declared",
        f"If it forbids that, create them there by hand, compacted (number of partitions in brackets): {topics}.",
    )


def _names(found: Mapping[int, Mirror]) -> Iterator[Problem]:
    """Names that the operator makes of a mirror's are short enough, and each direction has its name for itself."""
    others = {
        mirror.name: {
            **({"reverse": mirror.reverse_mirror().name} if mirror.reverse is not None else {}),
            **({"failback": mirror.failback_mirror().name} if mirror.has_failback_mirror else {}),
        }
        for mirror in found.values()
    }
    taken = {name: f"{kind} of mirror {owner}" for owner, made in others.items() for kind, name in made.items()}

    for index, mirror in found.items():
        at = Subject(f"mirrors[{index}].name", f"mirror {mirror.name}")
        if mirror.name in taken:
            yield at.problem(
                "name", f"must differ from that of the {taken[mirror.name]}", mirror.name, "Rename it.", key=""
            )
        longest = max([mirror.name, *others[mirror.name].values()], key=len)
        length = LABEL_LENGTH_MAX - len(API_SERVICE) - (len(longest) - len(mirror.name))
        if len(mirror.name) > length:
            yield Problem(
                at.key,
                f"{at.name}: name must have at most {length} characters (got {len(mirror.name)}), for Kubernetes "
                f"must accept the Service {longest}{API_SERVICE}. Shorten it.",
            )


def _endpoints(at: Subject, mirror: Mirror, context: RuleContext) -> Iterator[Problem]:
    source = mirror.source
    if (source.stack is None) == (source.external is None):
        got, fix = ("nothing", "Name one.") if source.stack is None else ("both", "Remove one.")
        yield at.problem("source", "must have either stack or external", got, fix, key="source.stack")
    if source.stack is not None and source.user is None:
        yield at.problem("source.user", "must be given with source.stack", "nothing", "Name one of its users.")
    if source.external is not None and source.user is not None:
        yield at.problem(
            "source.user", "must not be given with external", source.user, "Remove it.", why="external.username is it"
        )
    if source.external is not None:
        external = source.external
        there = Subject(f"{at.key}.source.external", f"{at.name} source {external.name}")
        yield from authority(there.inside("cluster"), external.cluster)
        yield from _external_login(there, external)
        yield from _readable(there, external, _version(mirror, context))
        if external.authentication == "tls" and not external.cluster.tls:
            yield there.problem(
                "tls",
                "must be true with authentication tls",
                "false",
                "Certificates are shown inside TLS only.",
                key="cluster.tls",
            )
    if mirror.target.user not in context.users:
        yield at.problem(
            "target.user",
            "must be one of this stack's users",
            f"{mirror.target.user}, allowed {format_names(context.users)}",
            f"{did_you_mean(mirror.target.user, context.users)} Declare it under users.",
        )
    if source.stack is not None and source.stack == context.stack:
        yield at.problem(
            "source.stack",
            "must be another stack",
            f"{source.stack}, which is this one",
            "A mirror into its own source would never end.",
        )
    if source.alias == mirror.target.alias:
        yield at.problem(
            "target.alias", "must differ from source.alias", f"{mirror.target.alias} for both", "Rename one."
        )
    yield from _login(at, mirror, context)


def _login(at: Subject, mirror: Mirror, context: RuleContext) -> Iterator[Problem]:
    """The target's listener takes the user's authentication."""
    cluster, user = context.cluster, context.users.get(mirror.target.user)
    listener = refusing_listener(cluster, user)
    if cluster is None or user is None or listener is None:
        return
    fix = "Change the user, or cluster.listener."
    if listener.authentication == "none":
        fix = "Mirrors log in: name a listener with authentication as cluster.listener."
    yield at.problem(
        "target.user",
        f"must log in as listener {listener.name} of {cluster.name} demands",
        f"{user.authentication}, allowed {listener.authentication}",
        fix,
    )


def _factors(at: Subject, mirror: Mirror, on: Cluster | None) -> Iterator[Problem]:
    if on is None:
        return
    factor, minimum, brokers = mirror.replication_factor, on.kafka_config[MIN_INSYNC], on.broker_count
    if factor > brokers:
        yield at.problem(
            "replicationFactor",
            f"must be <= brokers of the target {on.name}",
            f"{factor}, allowed 1..{brokers}",
            "Lower it, or raise cluster.brokers.",
        )
        return
    if on.external is None and isinstance(minimum, int) and not leaves_room(minimum, factor):
        yield at.problem(
            "replicationFactor",
            f"must be > {MIN_INSYNC} of the target {on.name}",
            f"{factor}, {MIN_INSYNC} {minimum}",
            "One broker restart would stop the mirror.",
        )
        return


def _naming(at: Subject, mirror: Mirror) -> Iterator[Problem]:

    if mirror.naming == "prefixed" and not mirror.separator:
        yield at.problem(
            "separator",
            "must not be empty with prefixed names",
            "''",
            f"The alias could not be derived from the topic's name: leave it at '{SEPARATOR}'.",
        )
    if mirror.sync_group_offsets and not mirror.emit_checkpoints:
        yield at.problem(
            "syncGroupOffsets",
            "must be false without emitCheckpoints",
            "true",
            "Offsets are synchronised from checkpoints.",
        )
    if mirror.naming == "prefixed" and mirror.separator:
        for side, alias in (("source", mirror.source.alias), ("target", mirror.target.alias)):
            if mirror.separator in alias:
                yield at.problem(
                    f"{side}.alias",
                    "must not hold the separator",
                    f"{alias}, separator '{mirror.separator}'",
                    "MirrorMaker takes what comes before the first separator for the alias: rename it, or use "
                    "another separator.",
                )
    if mirror.reverse is None or mirror.naming == "prefixed":
        return
    both = may_overlap(mirror.topics, mirror.reverse.topics)
    if both:
        yield at.problem(
            "naming",
            "must be prefixed where both directions copy the same topics",
            f"identity, and topics and reverse.topics both match {format_names(both)}",
            "Under the same name a record would come back and be copied again, without end.",
        )


def _shared(found: Mapping[int, Mirror]) -> Iterator[Problem]:
    """Connect's group and topics belong to one mirror of a target."""
    used = dict[str, str]()
    for index, mirror in found.items():
        fields = {"groupId": mirror.connect_group}
        fields |= {f"{kind}StorageTopic": topic for kind, topic in mirror.storage_topics.items()}
        for field, value in fields.items():
            mine = f"mirror {mirror.name} {field}"
            owner = used.setdefault(f"{field == 'groupId'}:{value}", mine)
            if owner != mine:
                yield Subject(f"mirrors[{index}]", f"mirror {mirror.name}").problem(
                    field, "must be its own", f"{value}, as {owner}", "Rename it."
                )


def _aliases(found: Mapping[int, Mirror]) -> Iterator[Problem]:
    """One alias is one cluster, in all mirrors of a stack: it is part of the names of remote and internal topics."""
    meaning = dict[str, str]()
    for index, mirror in found.items():
        source = mirror.source
        external = source.external.name if source.external else ""
        sides = {
            "source": (source.alias, f"stack {source.stack}" if source.stack else f"external cluster {external}"),
            "target": (mirror.target.alias, "this stack's cluster"),
        }
        for side, (alias, cluster) in sides.items():
            known = meaning.setdefault(alias, cluster)
            if known != cluster and source.alias != mirror.target.alias:
                yield Subject(f"mirrors[{index}]", f"mirror {mirror.name}").problem(
                    f"{side}.alias",
                    "must name one cluster",
                    f"{alias} for {cluster}, and for {known} elsewhere",
                    "Rename one.",
                )


def _version(mirror: Mirror, context: RuleContext) -> str:
    """Return the version of Kafka of the mirror's workers, as far as it is known here."""
    cluster = context.cluster.version if context.cluster is not None else None
    return mirror.version or cluster or (context.platform or Platform()).kafka_version


def _readable(at: Subject, external: ExternalSource, workers: str) -> Iterator[Problem]:
    """Clients of Kafka 4 connect to brokers of 2.1 and later; those of 3.9 to earlier ones too."""
    given = external.kafka_version
    if given is None or version_numbers(workers) < KAFKA_4 or version_numbers(given) >= OLDEST_FOR_4:
        return
    yield at.problem(
        "kafkaVersion",
        f"must be 2.1.0 or later for workers of Kafka {workers}",
        given,
        "Set the mirror's version to one of the 3.9 line, such as 3.9.1, on a release of the operator that runs it, or "
        "upgrade the source.",
        why="the protocol of earlier brokers was removed from Kafka 4 (KIP-896)",
    )


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, by which versions are ordered."""
    return tuple(map(int, version.split(".")))


def _external_login(at: Subject, external: ExternalSource) -> Iterator[Problem]:
    """A login has a Secret; with authentication none there is neither a Secret nor a username."""
    if external.authentication != "none" and external.secret is None:
        yield at.problem(
            "secret",
            f"must be given with authentication {external.authentication}",
            "nothing",
            "Name the Secret with the user's credentials in the mirror's namespace; authentication: none for a cluster "
            "that lets everybody in.",
        )
        return
    given = [key for key in ("secret", "username") if getattr(external, key) is not None]
    if external.authentication == "none" and given:
        yield at.problem(
            given[0],
            "must not be given with authentication none",
            "one",
            "Remove it, or set how the mirror logs in.",
        )
        return
