"""Rules of topics and of the demo clients that use them.

Names are unique in Kafka and in Kubernetes, replicas fit the brokers, and a broker may restart.
"""

from collections.abc import Mapping

from settings.cluster import MIN_INSYNC, Cluster
from settings.demo_clients import DemoClients
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.names import is_resource_name
from settings.patterns import copied
from settings.rules.common import annotations, duplicates, leaves_room, refusing_listener, room
from settings.text import did_you_mean, format_names, format_value
from settings.topics import Topic
from settings.users import User


def topics(found: Mapping[int, Topic], on: Cluster | None) -> list[Problem]:
    """All rules of all topics."""
    problems = duplicates("topics", "topic", {index: (topic.name, topic) for index, topic in found.items()})
    first: dict[str, Topic] = {}
    resources: dict[str, Topic] = {}
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
        twin = resources.setdefault(topic.resource_name, topic)
        if twin.name != topic.name and other.name == topic.name:
            problems.append(
                Problem(
                    f"{where}.{'resource' if topic.resource else 'name'}",
                    f"{subject}: resource must be its own (got {topic.resource_name}, as topic {twin.name}). Change "
                    "one.",
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
        problems += annotations(where, subject, topic.annotations)
        if on is not None:
            problems += _replicas(where, subject, topic, on)
    return problems


def _replicas(where: str, subject: str, topic: Topic, on: Cluster) -> list[Problem]:
    if on.external is not None:
        return [
            Problem(
                where,
                f"{subject}: topics must not be declared on an external cluster (somebody else runs it). Remove it.",
            )
        ]
    problems, brokers = [], on.broker_count
    if topic.replicas > brokers:
        problems.append(
            Problem(
                f"{where}.replicas",
                f"{subject}: replicas must be <= brokers of {on.name} (got {topic.replicas}, allowed 1..{brokers}). "
                "Lower replicas, or raise cluster.brokers.",
            )
        )
    minimum = topic.config.get(MIN_INSYNC, on.kafka_config[MIN_INSYNC])
    if not isinstance(minimum, int) or isinstance(minimum, bool) or minimum < 1:
        problems.append(
            Problem(
                f"{where}.config[{MIN_INSYNC}]",
                f"{subject}: {MIN_INSYNC} must be a whole number >= 1 (got {format_value(minimum)}). Correct it.",
            )
        )
    elif not leaves_room(minimum, topic.replicas):
        problems.append(
            Problem(f"{where}.config[{MIN_INSYNC}]", room(subject, MIN_INSYNC, minimum, "replicas", topic.replicas))
        )
    return problems


def demo_clients(
    settings: DemoClients,
    on: Cluster | None,
    users: Mapping[str, User | None],
    sources: tuple[Mapping[int, Topic], Mapping[int, Mirror]] | None,
) -> list[Problem]:
    """All rules of the demo clients; `sources` is where topics come from, None if not every entry can be read."""
    problems = _from_secret(settings) if settings.secret is not None else _from_user(settings, on, users)
    if on is not None and on.external is None and sources is not None:
        topics, mirrors = sources
        problems += _topic(settings, on, list(topics.values()), list(mirrors.values()))
    return problems


def _problem(key: str, message: str) -> Problem:
    return Problem(f"demoClients.{key}" if key else "demoClients", f"demoClients: {message}")


def _from_secret(settings: DemoClients) -> list[Problem]:
    if settings.user is None:
        return []
    return [
        _problem(
            "user",
            f"user must not be given with secret (got {settings.user}; the Secret says who logs in). Remove one.",
        )
    ]


def _from_user(settings: DemoClients, on: Cluster | None, users: Mapping[str, User | None]) -> list[Problem]:
    problems = []
    if settings.user is None:
        problems.append(_problem("user", "user or secret must be given (got nothing). Name a user of this stack."))
    elif settings.user not in users:
        problems.append(
            _problem(
                "user",
                f"user must be one of this stack's users (got {settings.user}, allowed {format_names(users)})."
                f"{did_you_mean(settings.user, users) or ' Declare it, or name another.'}",
            )
        )
    elif (user := users[settings.user]) is not None:
        listener = refusing_listener(on, user)
        if on is not None and listener is not None:
            problems.append(
                _problem(
                    "user",
                    f"user must log in as listener {listener.name} of {on.name} demands (got {user.authentication}, "
                    f"allowed {listener.authentication}). Name another user, or another cluster.listener.",
                )
            )
    authority = on.external.certificate_authority if on is not None and on.external is not None else None
    if authority is not None and authority.file is not None:
        problems.append(
            _problem(
                "user",
                f"user must come with cluster.external.certificateAuthority.secret (got its file {authority.file}, "
                "which no pod sees). Put the certificate into a Secret, or give secret in place of user.",
            )
        )
    return problems


def _topic(settings: DemoClients, on: Cluster, topics: list[Topic], mirrors: list[Mirror]) -> list[Problem]:
    """A managed cluster has the topics that are declared and those that mirrors make, unless anybody may make some."""
    names = [topic.name for topic in topics]
    anybody = on.kafka_config.get("auto.create.topics.enable", True)
    if settings.topic in names or str(anybody).lower() == "true" or not (names or mirrors):
        return []
    if any(_brings(mirror, settings.topic) for mirror in mirrors):
        return []
    fix = did_you_mean(settings.topic, names) or " Declare it under topics."
    return [
        _problem(
            "topic",
            f"topic must be declared, or one that a mirror makes (got {settings.topic}, allowed "
            f"{format_names(names)}).{fix}",
        )
    ]


def _brings(mirror: Mirror, topic: str) -> bool:
    prefix = f"{mirror.source.alias}{mirror.separator}" if mirror.naming == "prefixed" else ""
    return topic.startswith(prefix) and copied(topic.removeprefix(prefix), mirror.topics, mirror.topics_exclude)
