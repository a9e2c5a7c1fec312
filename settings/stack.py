"""All settings of one stack: parsed, defaulted and validated, every problem at once."""

from collections.abc import Mapping
from typing import Any, TypeVar

from settings import acl_sets, rules
from settings.cluster import Cluster
from settings.errors import Problem, SettingsError
from settings.mirrors import Mirror
from settings.model import Model
from settings.operator import Operator
from settings.platform import Platform
from settings.reading import read
from settings.topics import Topic
from settings.users import Acl, User
from settings.verification import Verification

M = TypeVar("M", bound=Model)
KEYS = ("platform", "operator", "cluster", "users", "topics", "mirrors", "verification")


class Stack(Model):
    """The settings of one stack, as its stack file says."""

    platform: Platform
    operator: Operator
    cluster: Cluster
    users: tuple[User, ...] = ()
    topics: tuple[Topic, ...] = ()
    mirrors: tuple[Mirror, ...] = ()
    verification: Verification

    def user(self, name: str) -> User:
        """Return a declared user; raises KeyError."""
        return {user.name: user for user in self.users}[name]

    @property
    def kafka_version(self) -> str:
        """Version of Kafka that the managed cluster runs, and that mirrors have unless they set their own."""
        return self.cluster.version or self.platform.kafka_version

    def mirror_version(self, mirror: Mirror) -> str:
        """Version of Kafka that a mirror's workers run."""
        return mirror.version or self.kafka_version

    def acls(self, user: User) -> tuple[Acl, ...]:
        """All rights of a user, its ready-made sets expanded."""
        return acl_sets.acls(user, {mirror.name: mirror for mirror in self.mirrors}, self.kafka_version)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces that the stack makes: the cluster's, its mirrors' and the operator's own."""
        home = self.cluster.namespace
        own = self.operator.home(home) if self.operator.install != "none" else home
        names = [home, own, *(mirror.home(home) for mirror in self.mirrors)]
        return tuple(name for name in dict.fromkeys(names) if name != home or self.cluster.create_namespace)


def parse(values: Mapping[str, Any], stack: str | None = None) -> Stack:
    """Return the settings that raw values (by key, without the namespace) describe.

    `stack` is the stack's own name, if known. Raises SettingsError with all problems; what cannot be read is left out
    of the rules that look at several settings together, so that one mistake is told once.
    """
    problems = [
        Problem(key, f"stack: {key} must be a known key (got {key}, allowed {', '.join(KEYS)}).")
        for key in values
        if key not in KEYS
    ]

    def one(key: str, model: type[M], default: M | None = None) -> M | None:
        if values.get(key) is None and default is not None:
            return default
        if values.get(key) is None:
            problems.append(Problem(key, f"stack: {key} must be given (got nothing)."))
            return None
        found, wrong = read(model, values[key], key, _subject(key, values[key]))
        problems.extend(wrong)
        return found

    def many(key: str, noun: str, model: type[M]) -> dict[int, M]:
        raw = values.get(key)
        if raw is None:
            return {}
        if not isinstance(raw, list | tuple):
            problems.append(Problem(key, f"stack: {key} must be a list (got {type(raw).__name__})."))
            return {}
        result: dict[int, M] = {}
        for index, item in enumerate(raw):
            found, wrong = read(model, item, f"{key}[{index}]", _subject(noun, item))
            problems.extend(wrong)
            if found is not None:
                result[index] = found
        return result

    platform = one("platform", Platform, Platform())
    operator = one("operator", Operator, Operator())
    cluster = one("cluster", Cluster)
    verification = one("verification", Verification, Verification())
    users, topics, mirrors = (
        many("users", "user", User),
        many("topics", "topic", Topic),
        many("mirrors", "mirror", Mirror),
    )
    known_users: dict[str, User | None] = {
        str(item.get("name")): None for item in values.get("users") or [] if isinstance(item, Mapping)
    }
    known_users |= {user.name: user for user in users.values()}

    target = cluster or _salvaged(values.get("cluster"))
    if platform is not None:
        problems += rules.platform(platform)
    if operator is not None:
        problems += rules.operator(operator, cluster, mirrors)
    if cluster is not None:
        problems += rules.cluster(cluster, platform)
    problems += rules.users(users, target, mirrors)
    problems += rules.topics(topics, target)
    around = rules.Around(stack=stack, platform=platform, cluster=target, users=known_users)
    problems += rules.mirrors(mirrors, around)
    if verification is not None:
        problems += rules.verification(verification)
    if problems or platform is None or operator is None or cluster is None or verification is None:
        raise SettingsError(problems)
    return Stack(
        platform=platform,
        operator=operator,
        cluster=cluster,
        users=tuple(users.values()),
        topics=tuple(topics.values()),
        mirrors=tuple(mirrors.values()),
        verification=verification,
    )


def _salvaged(raw: object) -> Cluster | None:
    """What topics and mirrors are held against when the cluster's own settings are wrong elsewhere."""
    if not isinstance(raw, Mapping) or "brokers" not in raw:
        return None
    name = raw["name"] if isinstance(raw.get("name"), str) else "cluster"
    parts = {"name": "cluster", "namespace": "cluster", "brokers": raw["brokers"], "config": raw.get("config") or {}}
    found, _ = read(Cluster, parts, "cluster", "cluster")
    return found.model_copy(update={"name": name}) if found else None


def _subject(noun: str, raw: object) -> str:
    """What a message is about: the thing by its name if it has one."""
    name = raw.get("name") if isinstance(raw, Mapping) else None
    return f"{noun} {name}" if isinstance(name, str) and name else noun
