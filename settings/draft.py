"""What can be read of a stack file: each setting that is well formed by itself, and what is wrong with the others.

Does not look at settings together; that is the rules' part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from settings.cluster import Cluster
from settings.demo_clients import DemoClients
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.model import Model
from settings.monitoring import Monitoring
from settings.operator import Operator
from settings.platform import Platform
from settings.reading import read
from settings.secrets import withheld
from settings.topics import Topic
from settings.users import User
from settings.verification import Verification
from settings.wording import alike, shown

M = TypeVar("M", bound=Model)
KEYS = ("platform", "operator", "cluster", "users", "topics", "mirrors", "verification", "monitoring", "demoClients")
# Keys of a cluster that rules of topics, users and mirrors read.
_HELD_AGAINST = ("external", "brokers", "nodePools", "listener", "listenerPort", "listeners", "expose", "config")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One stack file as far as it can be read; what cannot be is None or missing, and told in `problems`.

    `withheld` are the keys of values that look like secrets: they are told as such, and as nothing else. `against` is
    what topics and mirrors are held against even if the cluster has a mistake elsewhere. `user_names` holds unreadable
    users too, and `whole` the lists of which every entry could be read.
    """

    platform: Platform | None
    operator: Operator | None
    cluster: Cluster | None
    against: Cluster | None
    users: Mapping[int, User]
    topics: Mapping[int, Topic]
    mirrors: Mapping[int, Mirror]
    verification: Verification | None
    monitoring: Monitoring | None
    demo_clients: DemoClients | None
    user_names: frozenset[str]
    whole: frozenset[str]
    withheld: frozenset[str]
    problems: tuple[Problem, ...]

    def users_by_name(self) -> dict[str, User | None]:
        """Every user by its name, the first of two; None for one that cannot be read."""
        return dict.fromkeys(self.user_names) | {user.name: user for user in reversed(tuple(self.users.values()))}


def draft(raw_values: Mapping[str, Any]) -> Draft:
    """Read each setting by itself; never raises."""
    values, secrets = withheld(raw_values)
    problems = [
        Problem(key, f"stack: {key} must be a known key (got {key}, allowed {', '.join(KEYS)}).{alike(key, KEYS)}")
        for key in values
        if key not in KEYS
    ]

    def one(key: str, model: type[M], default: M | None = None) -> M | None:
        if values.get(key) is None:
            if default is None:
                problems.append(Problem(key, f"stack: {key} must be given (got nothing). Add it."))
            return default
        result, wrong = read(model, values[key], key, _subject(key, values[key]))
        problems.extend(wrong)
        return result

    whole = set()

    def many(key: str, noun: str, model: type[M]) -> dict[int, M]:
        raw, result = values.get(key), dict[int, M]()
        if raw is None:
            whole.add(key)
            return result
        if not isinstance(raw, list | tuple):
            problems.append(
                Problem(key, f"stack: {key} must be a list (got {shown(raw)}). Begin every {noun} with '- name: ...'.")
            )
            return result
        for index, item in enumerate(raw):
            entry, wrong = read(model, item, f"{key}[{index}]", _subject(noun, item))
            problems.extend(wrong)
            if entry is not None:
                result[index] = entry
        if len(result) == len(raw):
            whole.add(key)
        return result

    platform, operator = one("platform", Platform, Platform()), one("operator", Operator, Operator())
    cluster, verification = one("cluster", Cluster), one("verification", Verification, Verification())
    users, topics, mirrors = (
        many("users", "user", User),
        many("topics", "topic", Topic),
        many("mirrors", "mirror", Mirror),
    )
    monitoring = one("monitoring", Monitoring) if values.get("monitoring") is not None else None
    demo_clients = one("demoClients", DemoClients) if values.get("demoClients") is not None else None
    return Draft(
        platform=platform,
        operator=operator,
        cluster=cluster,
        against=cluster or _salvaged(values.get("cluster")),
        users=users,
        topics=topics,
        mirrors=mirrors,
        verification=verification,
        monitoring=monitoring,
        demo_clients=demo_clients,
        user_names=_names(values.get("users")),
        whole=frozenset(whole),
        withheld=frozenset(problem.key for problem in secrets),
        problems=(*secrets, *(problem for problem in problems if problem.key not in {each.key for each in secrets})),
    )


def _names(raw: object) -> frozenset[str]:
    """Names in a list of mappings, readable or not."""
    items = raw if isinstance(raw, list | tuple) else []
    return frozenset(str(item.get("name")) for item in items if isinstance(item, Mapping))


def _salvaged(raw: object) -> Cluster | None:
    """What topics and mirrors are held against when the cluster's own settings are wrong elsewhere."""
    if not isinstance(raw, Mapping):
        return None
    parts = {"name": "cluster", "namespace": "cluster", **{key: raw[key] for key in _HELD_AGAINST if key in raw}}
    found, _ = read(Cluster, parts, "cluster", "cluster")
    name = raw["name"] if isinstance(raw.get("name"), str) else "cluster"
    return found.model_copy(update={"name": name}) if found else None


def _subject(noun: str, raw: object) -> str:
    """What a message is about: the thing by its name if it has one."""
    name = raw.get("name") if isinstance(raw, Mapping) else None
    return f"{noun} {name}" if isinstance(name, str) and name else noun
