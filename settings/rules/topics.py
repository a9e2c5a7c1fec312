"""Rules of topics and of the demo clients that use them.

Names are unique in Kafka and in Kubernetes, replicas fit the brokers, and a broker may restart.
"""

from collections.abc import Iterator, Mapping

from settings.cluster import MIN_INSYNC, Cluster
from settings.errors import Problem, Subject
from settings.mirrors import Mirror
from settings.names import copied, is_resource_name
from settings.rules.common import annotations, duplicates, leaves_room, refusing_listener, room
from settings.text import did_you_mean, format_names, format_value
from settings.topics import DemoClients, Topic
from settings.users import User


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
