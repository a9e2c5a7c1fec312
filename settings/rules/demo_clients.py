"""Rules of the demo clients: somebody to log in as, a topic that will be there, an authority within reach."""

from collections.abc import Mapping

from settings.cluster import Cluster
from settings.demo_clients import DemoClients
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.patterns import copied
from settings.rules.common import refusing_listener
from settings.topics import Topic
from settings.users import User
from settings.wording import alike, listed


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
                f"user must be one of this stack's users (got {settings.user}, allowed {listed(users)})."
                f"{alike(settings.user, users) or ' Declare it, or name another.'}",
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
    fix = alike(settings.topic, names) or " Declare it under topics."
    return [
        _problem(
            "topic",
            f"topic must be declared, or one that a mirror makes (got {settings.topic}, allowed {listed(names)}).{fix}",
        )
    ]


def _brings(mirror: Mirror, topic: str) -> bool:
    prefix = f"{mirror.source.alias}{mirror.separator}" if mirror.naming == "prefixed" else ""
    return topic.startswith(prefix) and copied(topic.removeprefix(prefix), mirror.topics, mirror.topics_exclude)
