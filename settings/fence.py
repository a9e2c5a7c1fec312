"""The fence: while a side is not active, applications may not write, delete or alter the mirrored topics there.

Owns what is denied, and to whom; and all rights of a user as its KafkaUser has them. The components render the rights
with these functions, and the commands patch with them: what a command has changed is what the next `up` declares.

A target is fenced by what its mirrors bring: remote topics that keep their names while the source is active, remote
topics with a prefix always, for what others write there never gets back to the source. A source is fenced by `fence`,
which `python -m ops failover` writes. Kafka lets a denial win over all that is allowed (`StandardAuthorizer`), so that
rights with wildcards and prefixes stay as they are. Kafka knows names and prefixes and no other pattern: what no rule
stands for is in `Coverage.without_rule`.
"""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from settings import acl_sets
from settings.cluster import Cluster
from settings.mirror_parts import TOPICS_EXCLUDE
from settings.mirrors import Mirror
from settings.model import Model
from settings.names import KafkaName, Label, copied
from settings.platform import Platform
from settings.users import Acl, AclRule, Deny, Operation, User

if TYPE_CHECKING:
    from settings.stack import Stack

OPERATIONS: tuple[Operation, ...] = ("Write", "Delete", "Alter")
_EVERY_TOPIC = "*"
_CHANGES = {*OPERATIONS, "All"}
_SETS_OF_MIRRORS = {"mirror-source", "mirror-target", "failback"}
_LISTS_SINCE = (0, 33)  # before, an entry has one operation
Entry = dict[str, Any]


class Fence(Model):
    """Topics of this stack that its applications may not write, delete or alter: the other side is active.

    `python -m ops failover` writes it into the source's stack file, and `failback` removes it. While it is there, sets
    `failback` grant what they are for. Users of mirrors are not fenced: those with a set of a mirror, those that this
    stack's mirrors log in as, and `mirrorUsers`.
    """

    topics: tuple[KafkaName, ...] = ()
    """Names of topics."""
    prefixes: tuple[KafkaName, ...] = ()
    """Beginnings of names. One of both must be given."""
    mirror_users: tuple[Label, ...] = ()
    """Users as whom other stacks' mirrors log in, where no set says so."""


@dataclass(frozen=True)
class Coverage:
    """The remote topics of a mirror as rules name them. `without_rule` are patterns that no rule stands for."""

    topics: tuple[str, ...]
    prefixes: tuple[str, ...]
    without_rule: tuple[str, ...]


def application_users(settings: "Stack") -> tuple[User, ...]:
    """Return the declared users that no mirror logs in as."""
    of_mirrors = mirror_users(settings)
    return tuple(user for user in settings.users if user.name not in of_mirrors)


def mirror_users(settings: "Stack") -> frozenset[str]:
    """Return the declared users that mirrors log in as, of this stack or of another one, as far as this file says."""
    named = {mirror.target.user for mirror in settings.mirrors}
    named |= set(settings.fence.mirror_users if settings.fence else ())
    return frozenset(
        user.name
        for user in settings.users
        if user.name in named or _SETS_OF_MIRRORS & {entry.set for entry in user.acl_sets}
    )


def has_rules(cluster: Cluster) -> bool:
    """Whether the stack makes users on this cluster, and the cluster asks for rights: else no rule can fence it."""
    return cluster.external is None and cluster.authorization == "simple"


def rules(user: User, settings: "Stack") -> tuple[Deny, ...]:
    """Return what the fence denies a declared user: at most one rule for names and one for prefixes.

    Of what mirrors bring to this stack only what the user's rights allow: who may write none of it needs no rule, and
    one more mirror changes no user of another one.
    """
    if not has_rules(settings.cluster) or user not in application_users(settings):
        return ()
    declared = settings.fence or Fence()
    covered = [coverage(each) for each in settings.mirrors if is_read_only(each)]
    rights = [each for each in settings.acls(user) if each.type == "topic" and _CHANGES & {*each.operations}]
    names = (name for each in covered for name in each.topics if _reach(rights, name, is_prefix=False))
    begins = (begin for each in covered for begin in each.prefixes if _reach(rights, begin, is_prefix=True))
    topics, prefixes = dict.fromkeys([*declared.topics, *names]), dict.fromkeys([*declared.prefixes, *begins])
    return (
        *([Deny(type="topic", names=tuple(topics), operations=OPERATIONS)] if topics else []),
        *([Deny(type="topic", names=tuple(prefixes), match="prefix", operations=OPERATIONS)] if prefixes else []),
    )


def _reach(rights: Sequence[Acl], name: str, *, is_prefix: bool) -> bool:
    """Whether one of the rights is for the topic, or for one that begins so."""
    if name == _EVERY_TOPIC and not is_prefix:
        return bool(rights)
    for right in rights:
        for given in right.names:
            if given == _EVERY_TOPIC and right.match == "literal":
                return True
            if (name if right.match == "literal" else name[: len(given)]) == given:
                return True
            if is_prefix and given.startswith(name):
                return True
    return False


def is_read_only(mirror: Mirror) -> bool:
    """Whether applications are denied a mirror's remote topics: kept names only while the source is active."""
    return mirror.standby == "read-only" and (mirror.active == "source" or mirror.naming == "prefixed")


def coverage(mirror: Mirror) -> Coverage:
    """Return the remote topics of a mirror: names, prefixes, and the patterns that are neither.

    A prefix within which `topicsExclude` leaves out topics is no rule either: the denial would reach these as well.
    Kafka's default exclusions do not count, for no application writes such topics. Topics that applications use here by
    themselves are none of them, and in place of a prefix of such a topic there are names.
    """
    moved = mirror.failed_over
    at_target = moved.at_target if moved is not None and mirror.naming == "identity" else ()
    begin = f"{mirror.source.alias}{mirror.separator}" if mirror.naming == "prefixed" else ""
    topics: list[str] = []
    prefixes: list[str] = []
    without_rule: list[str] = []
    for pattern in mirror.topics:
        try:
            names, beginnings = acl_sets.literal_topics([pattern])
        except ValueError:
            without_rule.append(pattern)
            continue
        topics += [
            begin + name for name in names if name not in at_target and copied(name, [pattern], mirror.topics_exclude)
        ]
        if moved is not None and any(name.startswith(tuple(beginnings)) for name in at_target):
            without_rule.append(pattern)
            topics += [name for name in moved.read_only if name.startswith(tuple(beginnings))]
        elif any(_excludes_within(prefix, mirror.topics_exclude) for prefix in beginnings):
            without_rule.append(pattern)
        elif begin or "" not in beginnings:
            prefixes += [begin + prefix for prefix in beginnings]
        else:
            topics.append(_EVERY_TOPIC)
    unique = [tuple(dict.fromkeys(each)) for each in (topics, prefixes, without_rule)]
    return Coverage(*unique)


def named_instead(mirror: Mirror, moved: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are denied one by one, because a topic moves for which a rule for their prefix stood.

    Args:
        mirror: Its remote topics keep their names.
        moved: Topics that applications use at the target by themselves.
        names: Names of the source's topics.
    """
    topics, found = [*moved], list[str]()
    for pattern in mirror.topics:
        with contextlib.suppress(ValueError):
            found += acl_sets.literal_topics([pattern])[1]
    prefixes = tuple(prefix for prefix in found if any(topic.startswith(prefix) for topic in topics))
    others = {name for name in names if name not in topics and name.startswith(prefixes)}
    return tuple(sorted(name for name in others if copied(name, mirror.topics, mirror.topics_exclude)))


def _excludes_within(prefix: str, exclude: Iterable[str]) -> bool:
    """Whether one of the expressions, Kafka's defaults aside, may match a name that begins with the prefix."""
    for pattern in exclude:
        if pattern in TOPICS_EXCLUDE:
            continue
        try:
            names, prefixes = acl_sets.literal_topics([pattern])
        except ValueError:
            return True
        if any(name.startswith(prefix) for name in names):
            return True
        if any(each.startswith(prefix) or prefix.startswith(each) for each in prefixes):
            return True
    return False


def rules_of(user: User, settings: "Stack") -> tuple[AclRule, ...]:
    """Return all rules of a declared user, in the order in which they are rendered: its own, then the fence's."""
    return (*settings.acls(user), *rules(user, settings))


def authorization_of(user: User, settings: "Stack") -> Entry | None:
    """Return `spec.authorization` of a declared user's KafkaUser; None if it has none."""
    return authorization(user, rules_of(user, settings), settings.platform)


def authorization(user: User, user_rules: Iterable[AclRule], platform: Platform) -> Entry | None:
    """Return `spec.authorization` of a KafkaUser that has these rules; None without any."""
    found = [entry for rule in user_rules for entry in entries(rule, platform, every=user.config_defaults)]
    return {"type": "simple", "acls": found} if found else None


def entries(rule: AclRule, platform: Platform, *, every: bool) -> list[Entry]:
    """Return the entries of `acls` that a rule becomes: one for each name, on old releases for each operation too.

    A list is compared as a whole, so what exists must come out with the fields that it has.

    Args:
        rule: What is allowed or denied.
        platform: The platform, whose release decides how operations are written.
        every: Whether `type`, `host` and `patternType` of what is allowed are written when they were not given.
    """
    written = rule.model_fields_set | ({"permission", "host", "match"} if every or rule.permission == "deny" else set())
    kind: Entry = {"type": rule.permission} if "permission" in written else {}
    host: Entry = {"host": rule.host} if "host" in written else {}
    match: Entry = {"patternType": rule.match} if "match" in written else {}
    names: list[Entry] = [{"name": name, **match} for name in rule.names] or [{}]
    resources = [{"type": rule.type, **name} for name in names]
    if platform.base >= _LISTS_SINCE:
        return [{**kind, "resource": resource, "operations": list(rule.operations), **host} for resource in resources]
    return [
        {**kind, "resource": resource, "operation": operation, **host}
        for resource in resources
        for operation in rule.operations
    ]
