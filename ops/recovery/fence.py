"""The fence at the source of a mirror: applications may not write the mirrored topics there, because of a failover.

Owns what is fenced, and that the source's stack file and its KafkaUsers say the same. Does not own the rules
(`settings/fence.py`), their patch (`user_rights.py`), nor when a recovery puts it up and takes it down.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from contract.verification_request import Mirror
from kafka import topic_writers
from kafka.cluster import Cluster
from kafka.topic_writers import TopicWriters
from ops import verify
from ops.errors import OpsError
from ops.pulumi import stack_file
from ops.pulumi.stack_file import Lists, change_setting
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.user_rights import WITHIN_S, UserRights
from settings import SettingsError, acl_sets
from settings.fence import Fence, application_users, has_rules
from settings.files import contexts
from settings.files import load as load_settings
from settings.stack import Stack
from settings.text import format_count, format_names

FENCING = "fencing"
"""Noted before a fence is put up: what it is for. It is in the journal until the fence is taken down."""
_COMMENT = "written by ops failover, taken out by ops failback: applications work at the other side"
SUPER_USER = "super user"
"""Why a super user of the stack file may write: no ACL refuses one, and no broker shows who they are."""
Facts = Mapping[str, Any]
Log = Callable[[str], None]
Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class SourceFence:
    """The fence of one mirror's source, by the source's stack file and a context of the kubeconfig.

    Args:
        cluster: Name of the source's cluster, for messages.
        file: Stack file of the source.
        mirror_users: The source's users as whom the mirror logs in.
        rights: The KafkaUsers of the source's stack.
        log: Gets a line for what is done.
    """

    cluster: str
    file: Path
    mirror_users: tuple[str, ...]
    rights: UserRights = field(repr=False)
    log: Log

    def put_up(self, fence: Fence, within_s: float = WITHIN_S) -> list[str]:
        """Declare the fence in the stack file and carry it out; return the users whose rights differ by it.

        It is waited for so long until the operator has carried it out. Raises OpsError.
        """
        self.declare(fence)
        now = self._settings()
        before, after = _with(now, minus(now.fence, fence)), _with(now, plus(now.fence, fence))
        changed = self.rights.change(before, after, within_s=within_s)
        refused = {user.name for user in application_users(now)} & set(changed)
        self.log(
            f"  {self.cluster}: {format_names(sorted(refused)) or 'no declared application user'} may not write "
            f"{described(fence)} any more"
        )
        return changed

    def declare(self, fence: Fence) -> None:
        """Write the fence into the stack file: the next `up` of the source carries it out."""
        self._write(lambda now: plus(now, fence))

    def take_down(self, fence: Fence) -> None:
        """Give all users the rights that they have without this fence, and take it out of the stack file."""
        now = self._settings()
        self.rights.change(_with(now, plus(now.fence, fence)), _with(now, minus(now.fence, fence)))
        self._write(lambda then: minus(then, fence))  # others may have declared theirs since
        self.log(f"  {self.cluster}: applications may write {described(fence)} again")

    def open_for_applications(self, fence: Fence) -> None:
        """Give applications their rights back. Mirrors keep theirs, and the stack file is left for `take_down`."""
        now = self._settings()
        fenced = _with(now, plus(now.fence, fence))
        self.rights.change(fenced, _with(now, minus(now.fence, fence)), application_users(fenced))

    def missing(self, fence: Fence) -> dict[str, bool]:
        """Return whether each application user lacks a rule of this fence: it may write then. Raises OpsError."""
        now = self._settings()
        fenced = _with(now, plus(now.fence, fence))
        found = self.rights.missing(_with(now, minus(now.fence, fence)), fenced)
        names = {user.name for user in application_users(fenced)}
        return {name: bool(rules) for name, rules in found.items() if name in names}

    def declared(self, mirror: Mirror) -> Fence | None:
        """Return the part of the fence in the stack file that is for topics of the mirror; None if there is none."""
        fence = self._settings().fence or Fence()
        topics = tuple(topic for topic in fence.topics if mirror.carries_topic(topic))
        known = _prefixes(mirror)
        prefixes = tuple(prefix for prefix in fence.prefixes if prefix in known)
        return self.of(topics, prefixes) if topics or prefixes else None

    def of(self, topics: Iterable[str], prefixes: Iterable[str]) -> Fence:
        """Return the fence for topics and prefixes."""
        names = {user.name for user in self._settings().users}
        users = [user for user in self.mirror_users if user in names]
        return made({"topics": [*topics], "prefixes": [*prefixes], "mirrorUsers": users})

    def writers(self, source: Cluster, fence: Fence) -> TopicWriters:
        """Return who may write the topics all the same, without the mirror itself and the operators."""
        return others_that_may_write(source, fence.topics, self._settings(), self.mirror_users)

    def require_reachable(self) -> None:
        """Raise OpsError unless the KafkaUsers can be read; nothing is changed."""
        require_reachable(f"source {self.cluster}", self.rights, self._settings())

    def _settings(self) -> Stack:
        return load_settings(self.file)

    def _write(self, change: Callable[[Fence], Fence | None]) -> None:
        def changed(lists: Lists) -> Lists | None:
            fence = change(made(lists))
            return None if fence is None else document(fence)

        self.rights.require_permission()
        change_setting(self.file, "fence", changed, _COMMENT)


def others_that_may_write(
    cluster: Cluster, topics: Iterable[str], settings: Stack, mirror_users: Iterable[str]
) -> TopicWriters:
    """Return who may write topics of a cluster, without users of mirrors, the one that asks, and the operators.

    Super users are those that the cluster's stack declares. Raises ClusterError.
    """
    found = topic_writers.writers(topic_writers.read_rights(cluster), topics)
    own = {f"User:{cluster.refusals.user}", *(f"User:{user}" for user in mirror_users)}
    declared = dict.fromkeys(settings.cluster.super_users, SUPER_USER)
    every = TopicWriters(
        principals={**{_principal(one): why for one, why in declared.items()}, **found.principals},
        unknown=found.unknown,
    )
    return every.without(lambda principal: principal in own or topic_writers.is_operators(principal))


def require_reachable(cluster: str, rights: UserRights, settings: Stack) -> None:
    """Raise OpsError unless the KafkaUsers of a stack can be read; `cluster` is its side and name, for the message."""
    try:
        rights.missing(settings, settings)
    except OpsError as error:
        raise OpsError(
            f"{cluster}: its KafkaUsers must be in reach, for applications lose their right to write "
            f"there. {error} If you stop them yourself: --without-fence."
        ) from None


def _principal(name: str) -> str:
    """A super user as Kafka names it; a stack file may leave `User:` out."""
    return name if name.startswith("User:") else f"User:{name}"


def chosen(
    known: MirrorContext,
    folder: Path,
    environment: Mapping[str, str],
    log: Log,
    require_permission: Callable[[], None],
    *,
    without: bool,
) -> tuple[SourceFence | None, list[str]]:
    """Return the fence of a mirror's source, unless it shall be left `without` one, and warnings for the plan."""
    find = None if without else partial(at_source, known, folder, environment, log, require_permission)
    return with_warnings(find, known.name_of("source"), "see to it that nobody writes there", "the fence")


def with_warnings(
    find: Callable[[], tuple[Found | None, str]] | None, name: str, unfenced: str, fence: str
) -> tuple[Found | None, list[str]]:
    """Return the fence of a side, and warnings for the plan where it is not fenced, or not against everybody.

    Args:
        find: Returns the fence, and why there is none or why it does not reach all applications; None: not wanted.
        name: Of the side's cluster.
        unfenced: What people do without a fence.
        fence: How the fence is called.
    """
    if find is None:
        return None, [f"{name} is not fenced: {unfenced}"]
    try:
        found, why = find()
    except OpsError as error:
        found, why = None, str(error).splitlines()[0]
    if found is None:
        return None, [f"{name} is not fenced, because {why}: {unfenced}"]
    return found, [f"{fence} does not reach all applications, because {why}: stop them"] if why else []


def at_source(
    known: MirrorContext,
    folder: Path,
    environment: Mapping[str, str],
    log: Log,
    require_permission: Callable[[], None] = lambda: None,
) -> tuple[SourceFence | None, str]:
    """Return the fence of a mirror's source; None and the reason if no rule of this project can fence it.

    Raises OpsError if one of both stack files cannot be read: nobody can tell then.
    """
    name = known.source_stack
    if name is None:
        return None, "no stack describes the source"
    label = verify.label_of(name)
    file = folder / f"Pulumi.{label}.yaml"
    try:
        settings = load_settings(file)
        entry = stack_file.mirror_entry(folder / f"Pulumi.{known.label}.yaml", known.mirror)
    except SettingsError as error:
        raise OpsError(str(error)) from None
    if not has_rules(settings.cluster):
        return None, f"cluster {settings.cluster.name} does not ask for rights of users that stack {label} makes"
    of_mirror = (entry.get("source") or {}).get("user")
    rights = UserRights(
        context=contexts(folder).get(label), environment=environment, log=log, require_permission=require_permission
    )
    users = (of_mirror,) if isinstance(of_mirror, str) else ()
    return (
        SourceFence(cluster=known.name_of("source"), file=file, mirror_users=users, rights=rights, log=log),
        _shared(entry, of_mirror),
    )


def _shared(entry: Mapping[str, Any], of_mirror: object) -> str:
    """Why the fence does not reach the applications although there is one; empty if it does."""
    of_clients = (entry.get("clients") or {}).get("source")
    if of_clients is None or of_clients != of_mirror:
        return ""
    return f"user {of_mirror} serves both the mirror and applications (clients.source)"


def covered(mirror: Mirror, at_source: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the topics to fence, and the prefixes that stand for topics to come.

    A prefix is none if the source has topics that begin with it and are not mirrored.

    Args:
        mirror: Which topics it carries.
        at_source: Names of the source's topics, as far as they are known.
    """
    names = [*at_source]
    topics = {name for name in names if mirror.carries_topic(name)} | set(mirror.named_topics)
    others = [name for name in names if not mirror.carries_topic(name)]
    prefixes = [prefix for prefix in _prefixes(mirror) if not any(name.startswith(prefix) for name in others)]
    return sorted(topics), prefixes


def names_at_source(mirror: Mirror, remote_topics: Iterable[str]) -> list[str]:
    """Return the names at the source of remote topics."""
    begin = f"{mirror.source_alias}{mirror.separator}" if mirror.naming == "prefixed" else ""
    return sorted({name.removeprefix(begin) for name in remote_topics})


def _prefixes(mirror: Mirror) -> list[str]:
    found: list[str] = []
    for pattern in mirror.topics:
        try:
            found += [prefix for prefix in acl_sets.literal_topics([pattern])[1] if prefix]
        except ValueError:
            continue
    return list(dict.fromkeys(found))


def plus(fence: Fence | None, other: Fence) -> Fence:
    """Return the topics of both fences."""
    both = [document(each) for each in (fence or Fence(), other)]
    return made({key: list(dict.fromkeys(both[0].get(key, []) + both[1].get(key, []))) for key in _KEYS})


def minus(fence: Fence | None, other: Fence) -> Fence | None:
    """Return a fence without the topics of another one; None if nothing is left."""
    left, gone = document(fence or Fence()), document(other)
    for key in ("topics", "prefixes"):
        left[key] = [each for each in left.get(key, []) if each not in gone.get(key, [])]
    return made(left) if left["topics"] or left["prefixes"] else None


_KEYS = ("topics", "prefixes", "mirrorUsers")


def document(fence: Fence) -> dict[str, list[str]]:
    """Return a fence as a stack file and a journal have it."""
    lists = zip(_KEYS, (fence.topics, fence.prefixes, fence.mirror_users), strict=True)
    return {key: list(items) for key, items in lists if items}


def made(facts: Mapping[str, Any]) -> Fence:
    """Return the fence of a document; other keys of it are left alone."""
    return Fence.model_validate({key: tuple(facts[key]) for key in _KEYS if facts.get(key)})


def described(fence: Fence) -> str:
    """Return what a fence is for in words."""
    parts = [format_count(len(fence.topics), "topic")] if fence.topics else []
    parts += [f"topics that begin with {format_names(fence.prefixes)}"] if fence.prefixes else []
    return " and ".join(parts)


def may_write(found: TopicWriters) -> str:
    """Return in words who may still write, and why there may be others; empty if nobody may."""
    named = ", ".join(f"{principal} ({why})" for principal, why in found.principals.items())
    return named + ("" if not found.unknown else f"{'; ' if named else ''}others are unknown: {found.unknown[0]}")


def _with(settings: Stack, fence: Fence | None) -> Stack:
    return settings.model_copy(update={"fence": fence})
