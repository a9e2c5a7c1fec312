"""Ready-made rights: what one side of a mirror, a consumer or a producer needs, and nothing else.

Sources: the operations that Kafka's protocol checks (KIP-50 and later), and what MirrorSourceConnector,
MirrorCheckpointConnector and the Connect worker call.
"""

import re
from collections.abc import Iterable, Mapping

from settings.mirrors import Mirror
from settings.topics import (
    checkpoints_topic_name,
    follow_topic,
    internal_topics_of,
    offset_syncs_name,
    offset_syncs_topic,
    possible_separators,
)
from settings.users import Acl, AclSet, Operation, User

_OFFSETS_TOPIC = "__consumer_offsets"
_LITERAL = re.compile(r"(?:[A-Za-z0-9_-]|\\?\.(?![*+?]))+")
_READ_TOPIC: tuple[Operation, ...] = ("Read", "Describe", "DescribeConfigs")
_OWN_TOPIC: tuple[Operation, ...] = ("Create", "Read", "Write", "Describe", "DescribeConfigs")
_REMOTE_TOPIC: tuple[Operation, ...] = (
    "Create",
    "Read",
    "Write",
    "Alter",
    "Describe",
    "AlterConfigs",
    "DescribeConfigs",
)
_FAILBACK_TOPIC: tuple[Operation, ...] = ("Create", "Read", "Write", "Delete", "Alter", "Describe", "DescribeConfigs")
_GROUP: tuple[Operation, ...] = ("Read", "Describe")


def acls(user: User, mirrors: Mapping[str, Mirror], kafka_version: str, *, fenced: bool = True) -> tuple[Acl, ...]:
    """Return all rights of a user: the listed ones and those of its sets, each once.

    Args:
        user: The user.
        mirrors: The stack's mirrors by name.
        kafka_version: Version of Kafka that the mirrors' workers have unless they set their own.
        fenced: Whether the user's cluster is a source that is not active. Only then records come back to it, which
            sets `failback` are for, and only then the verification asks there who may write.

    Raises:
        KeyError: For a set of a mirror that there is not.
        ValueError: For a set that does not fit its mirror.
    """
    sets = [acl for entry in user.acl_sets for acl in expand(entry, mirrors, kafka_version, fenced=fenced)]
    return tuple(dict.fromkeys([*user.acls, *sets]))


def expand(entry: AclSet, mirrors: Mapping[str, Mirror], kafka_version: str, *, fenced: bool) -> list[Acl]:
    """Return the rights of one set; `fenced` as for `acls`."""
    mirror = mirror_direction(entry, mirrors[entry.mirror]) if entry.mirror else None
    if entry.set == "consumer":
        return [*_topics(entry.topics, entry.match, ("Read", "Describe")), *_groups(entry.groups, _GROUP)]
    if entry.set == "producer":
        ids = [_acl("transactionalId", entry.transactional_ids, "literal", ("Write", "Describe"))]
        return [*_topics(entry.topics, entry.match, ("Write", "Describe")), *(ids if entry.transactional_ids else [])]
    if entry.set == "failback":
        return _failback(entry) if fenced else []
    if entry.set == "mirror-source":
        return _source(entry, mirror, kafka_version, fenced=fenced)
    return _target(entry, mirror, kafka_version)


def mirror_direction(entry: AclSet, mirror: Mirror) -> Mirror:
    """Return the direction that a set is for: what the mirror writes to this cluster, or its reverse reads from it.

    Raises ValueError for a mirror-source without a reverse.
    """
    return mirror.reverse_mirror() if entry.set == "mirror-source" else mirror


def literal_topics(patterns: Iterable[str], prefix: str = "") -> tuple[list[str], list[str]]:
    r"""Return the names and prefixes that patterns match: `items\.eu` is a name, `items\..*` a prefix.

    Raises ValueError that names the pattern for any other regular expression.
    """
    names: list[str] = []
    prefixes: list[str] = []
    for pattern in patterns:
        begin = pattern.removesuffix(".*")
        if begin and not _LITERAL.fullmatch(begin):
            raise ValueError(pattern)
        (prefixes if begin != pattern else names).append(prefix + begin.replace("\\", ""))
    return names, prefixes


def _source(entry: AclSet, mirror: Mirror | None, kafka_version: str, *, fenced: bool) -> list[Acl]:
    """Read topics and committed offsets of groups; write the offset syncs if they are on the source.

    Nothing but those and the verification's canary is written. With groups the topic of their offsets is described: no
    broker lists the groups of a partition without a leader, and the verification must know of it. ACLs are read to be
    copied, and while the source is fenced: the verification asks then who may write.
    """
    result = _mirrored(entry, mirror, "", _READ_TOPIC)
    if groups := _synced(entry, mirror, ("Describe",)):
        result = [*result, *groups, _acl("topic", (_OFFSETS_TOPIC,), "literal", ("Describe",))]
    syncs: list[str] = []
    if mirror is not None and mirror.offset_syncs_location == "source":
        syncs = [offset_syncs_topic(mirror, kafka_version).name]
    elif mirror is None and entry.offset_syncs_for:
        joins = possible_separators(entry.separator)
        syncs = [offset_syncs_name(entry.offset_syncs_for, join) for join in joins]
    if syncs:
        result.append(_acl("topic", syncs, "literal", _OWN_TOPIC))
    if entry.canary:
        result.append(_acl("topic", (entry.canary,), "literal", ("Write", "Describe")))
    if entry.sync_topic_acls or (mirror is not None and mirror.sync_topic_acls) or fenced:
        result.append(Acl(type="cluster", operations=("Describe",)))
    return result


def _target(entry: AclSet, mirror: Mirror | None, kafka_version: str) -> list[Acl]:
    """Write remote topics and MirrorMaker's own topics, join Connect's group, commit offsets of groups.

    For a mirror of this stack also read the ACLs, unless `describeCluster` is false: the verification needs them.
    """
    if mirror is None:
        return [*_topics(entry.topics, entry.match, _REMOTE_TOPIC), *_groups(entry.groups, _GROUP)]
    prefix = f"{mirror.source.alias}{mirror.separator}" if mirror.naming == "prefixed" else ""
    own = [topic.name for topic in internal_topics_of(mirror, kafka_version) if topic.location == "target"]
    if mirror.has_failback_mirror and mirror.offset_syncs_location == "source":
        own.append(offset_syncs_topic(mirror.failback_mirror(), kafka_version).name)  # which are kept here
    if mirror.exact_offsets is not None:
        own.append(follow_topic(mirror.source.alias))
    result = [
        *_mirrored(entry, mirror, prefix, _REMOTE_TOPIC),
        _acl("topic", own, "literal", _OWN_TOPIC),
        *_synced(entry, mirror, _GROUP, (mirror.connect_group,)),
    ]
    if mirror.exactly_once:
        ids = f"connect-cluster-{mirror.connect_group}", mirror.connect_group
        result.append(_acl("transactionalId", ids, "prefix", ("Write", "Describe")))
    if mirror.sync_topic_acls:
        result.append(Acl(type="cluster", operations=("Alter", "Describe")))
    elif entry.describe_cluster:
        result.append(Acl(type="cluster", operations=("Describe",)))
    return result


def _failback(entry: AclSet) -> list[Acl]:
    """Write records of a failback, delete those that they replace, write Connect's own topics, commit offsets.

    Configurations of topics are not written. Delete is what Kafka asks for to delete records.
    """
    own = f"{entry.failback_of}-failback"
    alias = entry.failback_from or ""
    internal = [
        name(alias, join)
        for join in possible_separators(entry.separator)
        for name in (offset_syncs_name, checkpoints_topic_name)
    ]
    ids = [_acl("transactionalId", entry.transactional_ids, "prefix", ("Write", "Describe"))]
    return [
        *_topics(entry.topics, entry.match, _FAILBACK_TOPIC),
        _acl("topic", (f"{own}-",), "prefix", _OWN_TOPIC),
        _acl("topic", internal, "literal", _OWN_TOPIC),
        *_groups(dict.fromkeys((own, *entry.groups)), _GROUP),
        *(ids if entry.transactional_ids else []),
    ]


def _mirrored(entry: AclSet, mirror: Mirror | None, prefix: str, operations: tuple[Operation, ...]) -> list[Acl]:
    if mirror is None or entry.topics:
        return _topics(entry.topics, entry.match, operations)
    names, prefixes = literal_topics(mirror.topics, prefix)
    return [*_topics(names, "literal", operations), *_topics(prefixes, "prefix", operations)]


def _synced(
    entry: AclSet, mirror: Mirror | None, operations: tuple[Operation, ...], own: tuple[str, ...] = ()
) -> list[Acl]:
    """Rights on the mirror's own group and on the listed ones, else on those that its patterns match, else on all."""
    names: list[str] = list(entry.groups)
    prefixes: list[str] = []
    if not names and mirror is not None and mirror.emit_checkpoints:
        try:
            names, prefixes = literal_topics(mirror.groups)
        except ValueError:
            names = ["*"]
        if "" in prefixes:
            names, prefixes = ["*"], []
    result = _groups(dict.fromkeys((*own, *names)), operations)
    return [*result, _acl("group", prefixes, "prefix", operations)] if prefixes else result


def _topics(names: Iterable[str], match: str, operations: tuple[Operation, ...]) -> list[Acl]:
    names = tuple(names)
    every = tuple(name for name in names if name in ("", "*"))
    rest = tuple(name for name in names if name not in every)
    result = [_acl("topic", ("*",), "literal", operations)] if every else []
    return [*result, _acl("topic", rest, match, operations)] if rest else result


def _groups(names: Iterable[str], operations: tuple[Operation, ...]) -> list[Acl]:
    names = tuple(names)
    return [_acl("group", names, "literal", operations)] if names else []


def _acl(type_: str, names: Iterable[str], match: str, operations: tuple[Operation, ...]) -> Acl:
    return Acl.model_validate(
        {"type": type_, "names": tuple(names), "match": match, "operations": operations}, by_name=True
    )
