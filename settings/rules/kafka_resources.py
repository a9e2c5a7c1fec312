"""Rules of what lies on a cluster: users, topics, and the demo clients that use both.

Every right exists, every set can be expanded, and credentials come from where the cluster allows. Names of topics are
unique in Kafka and in Kubernetes, their replicas fit the brokers, and a broker may restart.
"""

from collections.abc import Iterator, Mapping

from settings import acl_sets
from settings.cluster import MIN_INSYNC, Cluster, External
from settings.errors import Problem, Subject
from settings.mirrors import Mirror
from settings.names import copied, is_resource_name
from settings.rules.common import annotations, duplicates, leaves_room, refusing_listener, room
from settings.text import did_you_mean, format_names, format_value
from settings.topics import DemoClients, Topic
from settings.users import OPERATIONS, AclSet, User

MANAGED_AUTHENTICATIONS = ("scram-sha-512", "tls")  # what the operators' KafkaUser offers
_NEEDS = {
    "consumer": ("topics", "groups"),
    "producer": ("topics",),
    "failback": ("topics", "groups", "failback_of", "failback_from"),
}
_USES = {
    "consumer": {"topics", "groups", "match"},
    "producer": {"topics", "match", "transactional_ids"},
    "failback": {"topics", "groups", "match", "transactional_ids", "failback_of", "failback_from", "separator"},
}
_FIX = "List what it uses; '*' is every one."
_FIXES = {
    "failback_of": "Name the other stack's mirror whose records come back.",
    "failback_from": "Name the alias of that mirror's target.",
}
_OF_TARGET = {"mirror", "topics", "groups", "match"}
_OF_SOURCE = {*_OF_TARGET, "offset_syncs_for", "separator", "sync_topic_acls", "canary"}


def users(found: Mapping[int, User], on: Cluster | None, mirrors: Mapping[int, Mirror]) -> Iterator[Problem]:
    """All rules of all users."""
    yield from duplicates("users", "user", {index: (user.name, user) for index, user in found.items()})
    by_name = {mirror.name: mirror for mirror in mirrors.values()}
    for index, user in found.items():
        at = Subject(f"users[{index}]", f"user {user.name}")
        yield from _acls(at, user)
        yield from annotations(at, user.annotations)
        for number, entry in enumerate(user.acl_sets):
            yield from _acl_set(at.inside(f"aclSets[{number}]"), entry, by_name)
        if on is not None:
            yield from _external(at, user, on.external) if on.external is not None else _managed(at, user, on)


def _acls(user_at: Subject, user: User) -> Iterator[Problem]:
    for number, acl in enumerate(user.acls):
        at, allowed = user_at.inside(f"acls[{number}]"), OPERATIONS[acl.type]
        for operation in acl.operations:
            if operation not in allowed:
                yield at.problem(
                    "operations",
                    f"must exist for a {acl.type}",
                    f"{operation}, allowed {', '.join(allowed)}",
                    "Kafka knows no other there.",
                )
        if bool(acl.names) == (acl.type == "cluster"):
            rule = "must not be given for the cluster" if acl.names else "must have at least one entry"
            fix = "There is only one: remove them." if acl.names else "Write '*' for all."
            yield at.problem("names", rule, ", ".join(acl.names) or "nothing", fix)
        if acl.match == "prefix" and "*" in acl.names:
            yield at.problem(
                "match",
                "must be literal for the name '*'",
                "prefix",
                "As a prefix '*' is an ordinary character; an empty prefix is every name.",
            )


def _acl_set(at: Subject, entry: AclSet, mirrors: Mapping[str, Mirror]) -> Iterator[Problem]:
    used = {**_USES, "mirror-source": _OF_SOURCE, "mirror-target": {*_OF_TARGET, "describe_cluster"}}[entry.set]
    for name in sorted(entry.model_fields_set - used - {"set"}):
        yield at.problem(
            str(AclSet.model_fields[name].alias),
            f"must not be given for {entry.set}",
            fix="Remove it.",
            why="it makes no difference there",
        )
    if entry.set in _NEEDS:
        for name in _NEEDS[entry.set]:
            if not getattr(entry, name):
                yield at.problem(
                    str(AclSet.model_fields[name].alias),
                    f"must be given for {entry.set}",
                    "nothing",
                    _FIXES.get(name, _FIX),
                )
        return
    if entry.mirror is None:
        if not entry.topics:
            yield at.problem(
                "mirror or topics",
                f"must be given for {entry.set}",
                "nothing",
                "Name this stack's mirror, or what another stack's mirror copies.",
                key="mirror",
            )
        return
    if entry.mirror not in mirrors:
        yield at.problem(
            "mirror",
            "must be one of this stack's mirrors",
            f"{entry.mirror}, allowed {format_names(mirrors)}",
            f"{did_you_mean(entry.mirror, mirrors)} For another stack's mirror give topics and groups.",
        )
        return
    mirror = mirrors[entry.mirror]
    if entry.set == "mirror-source" and mirror.reverse is None:
        yield at.problem(
            "mirror",
            "must have a reverse for mirror-source",
            f"{entry.mirror}, which reads another cluster",
            "Use mirror-target, or give topics and groups of the mirror that reads here.",
        )
        return
    if not entry.topics:
        try:
            acl_sets.literal_topics(acl_sets.mirror_direction(entry, mirror).topics)
        except ValueError as error:
            yield at.problem(
                "topics",
                "must be given",
                f"nothing, and '{error}' of mirror {entry.mirror} is neither a name nor a name followed by '.*'",
                "Name them, or their prefixes with match prefix.",
            )


def _managed(at: Subject, user: User, on: Cluster) -> Iterator[Problem]:
    if user.authentication not in MANAGED_AUTHENTICATIONS:
        yield at.problem(
            "authentication",
            "must be one that the operator makes",
            f"{user.authentication}, allowed {', '.join(MANAGED_AUTHENTICATIONS)}",
            "Others are for external clusters.",
        )
    if on.authorization == "none" and (user.acls or user.acl_sets):
        yield at.problem(
            "acls and aclSets",
            "must not be given where cluster.authorization is none",
            fix="Remove them, or use simple.",
            why="every user may do everything",
            key="acls" if user.acls else "aclSets",
        )
    if user.username is not None:
        yield at.problem(
            "username", "must not be given on a managed cluster", user.username, "Remove it.", why="it is the name"
        )
    if user.secret is not None and user.authentication == "tls":
        yield at.problem("secret", "must not be given with tls", fix="Remove it.", why="the operator writes it")
    if user.secret is not None and user.secret.name == user.name:
        yield at.problem(
            "secret.name",
            "must differ from the user's name",
            user.secret.name,
            "The operator writes a Secret of that name itself.",
        )
    if user.generated_by == "operator" and (user.secret is not None or user.authentication == "tls"):
        yield at.problem(
            "generatedBy",
            "must not be operator without a generated password",
            f"operator, and {'a secret' if user.secret else 'tls'}",
            "Remove one of them.",
        )
    if user.generated_by == "operator" and user.password_generation > 1:
        yield at.problem(
            "passwordGeneration",
            "must not be given with generatedBy operator",
            user.password_generation,
            "Delete the user's Secret instead: the operator makes another password.",
        )
    elif user.password_generation > 1 and (user.secret is not None or user.authentication == "tls"):
        yield at.problem(
            "passwordGeneration",
            "must not be given without a generated password",
            user.password_generation,
            "Change the Secret instead.",
        )


def _external(at: Subject, user: User, on: External) -> Iterator[Problem]:
    if user.secret is None:
        yield at.problem(
            "secret",
            "must be given on an external cluster",
            "nothing",
            "Name the Secret with its password or certificate.",
        )
    if user.authentication == "tls" and not on.tls:
        yield at.problem(
            "authentication",
            "must not be tls where cluster.external.tls is false",
            "tls",
            "Certificates are shown inside TLS only.",
        )
    if user.acls or user.acl_sets:
        yield at.problem(
            "acls and aclSets",
            "must not be given on an external cluster",
            fix="Remove them.",
            why="somebody else grants them",
            key="acls" if user.acls else "aclSets",
        )
    if user.annotations:
        yield at.problem(
            "annotations",
            "must not be given on an external cluster",
            format_names(user.annotations),
            "Remove them.",
            why="nothing is made there",
        )


def topics(found: Mapping[int, Topic], on: Cluster | None) -> Iterator[Problem]:
    """All rules of all topics."""
    yield from duplicates("topics", "topic", {index: (topic.name, topic) for index, topic in found.items()})
    first: dict[str, Topic] = {}
    resources: dict[str, Topic] = {}
    for index, topic in found.items():
        at = Subject(f"topics[{index}]", f"topic {topic.name}")
        other = first.setdefault(topic.name.replace(".", "_").lower(), topic)
        if other.name != topic.name:
            yield at.problem(
                "name",
                f"must differ from {other.name} by more than case, '.' and '_'",
                fix="Rename one.",
                why="Kafka's metrics and Kubernetes cannot tell them apart",
            )
        twin = resources.setdefault(topic.resource_name, topic)
        if twin.name != topic.name and other.name == topic.name:
            yield at.problem(
                "resource",
                "must be its own",
                f"{topic.resource_name}, as topic {twin.name}",
                "Change one.",
                key="resource" if topic.resource else "name",
            )
        if not is_resource_name(topic.resource_name):
            yield at.problem(
                "name",
                "must make a name for Kubernetes",
                f"{topic.resource_name!r}",
                "Begin and end every part between dots with a letter or digit.",
            )
        yield from annotations(at, topic.annotations)
        if on is not None:
            yield from _replicas(at, topic, on)


def _replicas(at: Subject, topic: Topic, on: Cluster) -> Iterator[Problem]:
    if on.external is not None:
        yield at.problem(
            "topics",
            "must not be declared on an external cluster",
            fix="Remove it.",
            why="somebody else runs it",
            key="",
        )
        return
    brokers = on.broker_count
    if topic.replicas > brokers:
        yield at.problem(
            "replicas",
            f"must be <= brokers of {on.name}",
            f"{topic.replicas}, allowed 1..{brokers}",
            "Lower replicas, or raise cluster.brokers.",
        )
    minimum = topic.config.get(MIN_INSYNC, on.kafka_config[MIN_INSYNC])
    if not isinstance(minimum, int) or isinstance(minimum, bool) or minimum < 1:
        yield at.problem(
            MIN_INSYNC, "must be a whole number >= 1", format_value(minimum), "Correct it.", key=f"config[{MIN_INSYNC}]"
        )
    elif not leaves_room(minimum, topic.replicas):
        yield Problem(f"{at.key}.config[{MIN_INSYNC}]", room(at, MIN_INSYNC, minimum, "replicas", topic.replicas))


def demo_clients(
    settings: DemoClients,
    on: Cluster | None,
    users: Mapping[str, User | None],
    sources: tuple[Mapping[int, Topic], Mapping[int, Mirror]] | None,
) -> Iterator[Problem]:
    """All rules of the demo clients; `sources` is where topics come from, None if not every entry can be read."""
    yield from _from_secret(settings) if settings.secret is not None else _from_user(settings, on, users)
    if on is not None and on.external is None and sources is not None:
        topics, mirrors = sources
        yield from _topic(settings, on, list(topics.values()), list(mirrors.values()))


def _problem(key: str, message: str) -> Problem:
    return Problem(f"demoClients.{key}" if key else "demoClients", f"demoClients: {message}")


def _from_secret(settings: DemoClients) -> Iterator[Problem]:
    if settings.user is None:
        return
    yield _problem(
        "user",
        f"user must not be given with secret (got {settings.user}; the Secret says who logs in). Remove one.",
    )


def _from_user(settings: DemoClients, on: Cluster | None, users: Mapping[str, User | None]) -> Iterator[Problem]:

    if settings.user is None:
        yield _problem("user", "user or secret must be given (got nothing). Name a user of this stack.")
    elif settings.user not in users:
        yield _problem(
            "user",
            f"user must be one of this stack's users (got {settings.user}, allowed {format_names(users)})."
            f"{did_you_mean(settings.user, users) or ' Declare it, or name another.'}",
        )
    elif (user := users[settings.user]) is not None:
        listener = refusing_listener(on, user)
        if on is not None and listener is not None:
            yield _problem(
                "user",
                f"user must log in as listener {listener.name} of {on.name} demands (got {user.authentication}, "
                f"allowed {listener.authentication}). Name another user, or another cluster.listener.",
            )
    authority = on.external.certificate_authority if on is not None and on.external is not None else None
    if authority is not None and authority.file is not None:
        yield _problem(
            "user",
            f"user must come with cluster.external.certificateAuthority.secret (got its file {authority.file}, "
            "which no pod sees). Put the certificate into a Secret, or give secret in place of user.",
        )


def _topic(settings: DemoClients, on: Cluster, topics: list[Topic], mirrors: list[Mirror]) -> Iterator[Problem]:
    """A managed cluster has the topics that are declared and those that mirrors make, unless anybody may make some."""
    names = [topic.name for topic in topics]
    anybody = on.kafka_config.get("auto.create.topics.enable", True)
    if settings.topic in names or str(anybody).lower() == "true" or not (names or mirrors):
        return
    if any(_brings(mirror, settings.topic) for mirror in mirrors):
        return
    fix = did_you_mean(settings.topic, names) or " Declare it under topics."
    yield _problem(
        "topic",
        f"topic must be declared, or one that a mirror makes (got {settings.topic}, allowed "
        f"{format_names(names)}).{fix}",
    )


def _brings(mirror: Mirror, topic: str) -> bool:
    prefix = f"{mirror.source.alias}{mirror.separator}" if mirror.naming == "prefixed" else ""
    return topic.startswith(prefix) and copied(topic.removeprefix(prefix), mirror.topics, mirror.topics_exclude)
