"""Rules of users: every right exists, every set can be expanded, credentials come from where the cluster allows."""

from collections.abc import Mapping

from settings import acl_sets
from settings.cluster import Cluster, External
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.rules.common import annotations, duplicates
from settings.text import did_you_mean, format_names
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


def users(found: Mapping[int, User], on: Cluster | None, mirrors: Mapping[int, Mirror]) -> list[Problem]:
    """All rules of all users."""
    problems = duplicates("users", "user", {index: (user.name, user) for index, user in found.items()})
    by_name = {mirror.name: mirror for mirror in mirrors.values()}
    for index, user in found.items():
        where = f"users[{index}]"
        problems += _acls(where, user)
        problems += annotations(where, f"user {user.name}", user.annotations)
        for number, entry in enumerate(user.acl_sets):
            problems += _acl_set(f"{where}.aclSets[{number}]", f"user {user.name}", entry, by_name)
        if on is not None:
            problems += _external(where, user, on.external) if on.external is not None else _managed(where, user, on)
    return problems


def _acls(where: str, user: User) -> list[Problem]:
    problems = []
    for number, acl in enumerate(user.acls):
        at, subject = f"{where}.acls[{number}]", f"user {user.name}"
        allowed = OPERATIONS[acl.type]
        problems += [
            Problem(
                f"{at}.operations",
                f"{subject}: operations must exist for a {acl.type} (got {operation}, allowed {', '.join(allowed)}). "
                "Kafka knows no other there.",
            )
            for operation in acl.operations
            if operation not in allowed
        ]
        if bool(acl.names) == (acl.type == "cluster"):
            rule = "must not be given for the cluster" if acl.names else "must have at least one entry"
            got = ", ".join(acl.names) or "nothing"
            fix = "There is only one: remove them." if acl.names else "Write '*' for all."
            problems.append(Problem(f"{at}.names", f"{subject}: names {rule} (got {got}). {fix}"))
        if acl.match == "prefix" and "*" in acl.names:
            problems.append(
                Problem(
                    f"{at}.match",
                    f"{subject}: match must be literal for the name '*' (got prefix). "
                    "As a prefix '*' is an ordinary character; an empty prefix is every name.",
                )
            )
    return problems


def _acl_set(where: str, subject: str, entry: AclSet, mirrors: Mapping[str, Mirror]) -> list[Problem]:
    used = {**_USES, "mirror-source": _OF_SOURCE, "mirror-target": _OF_TARGET}[entry.set]
    problems = [
        Problem(
            f"{where}.{AclSet.model_fields[name].alias}",
            f"{subject}: {AclSet.model_fields[name].alias} must not be given for {entry.set} (it makes no difference "
            "there). Remove it.",
        )
        for name in sorted(entry.model_fields_set - used - {"set"})
    ]
    if entry.set in _NEEDS:
        problems += [
            Problem(
                f"{where}.{AclSet.model_fields[name].alias}",
                f"{subject}: {AclSet.model_fields[name].alias} must be given for {entry.set} (got nothing). "
                f"{_FIXES.get(name, _FIX)}",
            )
            for name in _NEEDS[entry.set]
            if not getattr(entry, name)
        ]
        return problems
    if entry.mirror is None:
        if not entry.topics:
            problems.append(
                Problem(
                    f"{where}.mirror",
                    f"{subject}: mirror or topics must be given for {entry.set} (got nothing). Name this stack's "
                    "mirror, or what another stack's mirror copies.",
                )
            )
        return problems
    if entry.mirror not in mirrors:
        problems.append(
            Problem(
                f"{where}.mirror",
                f"{subject}: mirror must be one of this stack's mirrors (got {entry.mirror}, allowed "
                f"{format_names(mirrors)}).{did_you_mean(entry.mirror, mirrors)} For another stack's mirror give "
                "topics and groups.",
            )
        )
        return problems
    mirror = mirrors[entry.mirror]
    if entry.set == "mirror-source" and mirror.reverse is None:
        problems.append(
            Problem(
                f"{where}.mirror",
                f"{subject}: mirror must have a reverse for mirror-source (got {entry.mirror}, which reads another "
                "cluster). Use mirror-target, or give topics and groups of the mirror that reads here.",
            )
        )
        return problems
    if not entry.topics:
        try:
            acl_sets.literal_topics(acl_sets.lists(entry, mirror).topics)
        except ValueError as error:
            problems.append(
                Problem(
                    f"{where}.topics",
                    f"{subject}: topics must be given (got nothing, and '{error}' of mirror {entry.mirror} is neither "
                    "a name nor a name followed by '.*'). Name them, or their prefixes with match prefix.",
                )
            )
    return problems


def _managed(where: str, user: User, on: Cluster) -> list[Problem]:
    problems, subject = [], f"user {user.name}"
    if user.authentication not in MANAGED_AUTHENTICATIONS:
        problems.append(
            Problem(
                f"{where}.authentication",
                f"{subject}: authentication must be one that the operator makes (got {user.authentication}, allowed "
                f"{', '.join(MANAGED_AUTHENTICATIONS)}). Others are for external clusters.",
            )
        )
    if on.authorization == "none" and (user.acls or user.acl_sets):
        problems.append(
            Problem(
                f"{where}.{'acls' if user.acls else 'aclSets'}",
                f"{subject}: acls and aclSets must not be given where cluster.authorization is none (every user may do "
                "everything). Remove them, or use simple.",
            )
        )
    if user.username is not None:
        problems.append(
            Problem(
                f"{where}.username",
                f"{subject}: username must not be given on a managed cluster (got {user.username}; it is the name). "
                "Remove it.",
            )
        )
    if user.secret is not None and user.authentication == "tls":
        problems.append(
            Problem(
                f"{where}.secret", f"{subject}: secret must not be given with tls (the operator writes it). Remove it."
            )
        )
    if user.secret is not None and user.secret.name == user.name:
        problems.append(
            Problem(
                f"{where}.secret.name",
                f"{subject}: secret.name must differ from the user's name (got {user.secret.name}). "
                "The operator writes a Secret of that name itself.",
            )
        )
    if user.generated_by == "operator" and (user.secret is not None or user.authentication == "tls"):
        problems.append(
            Problem(
                f"{where}.generatedBy",
                f"{subject}: generatedBy must not be operator without a generated password (got operator, and "
                f"{'a secret' if user.secret else 'tls'}). Remove one of them.",
            )
        )
    if user.generated_by == "operator" and user.password_generation > 1:
        problems.append(
            Problem(
                f"{where}.passwordGeneration",
                f"{subject}: passwordGeneration must not be given with generatedBy operator (got "
                f"{user.password_generation}). Delete the user's Secret instead: the operator makes another password.",
            )
        )
    elif user.password_generation > 1 and (user.secret is not None or user.authentication == "tls"):
        problems.append(
            Problem(
                f"{where}.passwordGeneration",
                f"{subject}: passwordGeneration must not be given without a generated password (got "
                f"{user.password_generation}). Change the Secret instead.",
            )
        )
    return problems


def _external(where: str, user: User, on: External) -> list[Problem]:
    problems, subject = [], f"user {user.name}"
    if user.secret is None:
        problems.append(
            Problem(
                f"{where}.secret",
                f"{subject}: secret must be given on an external cluster (got nothing). Name the Secret with its "
                "password or certificate.",
            )
        )
    if user.authentication == "tls" and not on.tls:
        problems.append(
            Problem(
                f"{where}.authentication",
                f"{subject}: authentication must not be tls where cluster.external.tls is false (got tls). "
                "Certificates are shown inside TLS only.",
            )
        )
    if user.acls or user.acl_sets:
        problems.append(
            Problem(
                f"{where}.{'acls' if user.acls else 'aclSets'}",
                f"{subject}: acls and aclSets must not be given on an external cluster (somebody else grants them). "
                "Remove them.",
            )
        )
    if user.annotations:
        problems.append(
            Problem(
                f"{where}.annotations",
                f"{subject}: annotations must not be given on an external cluster (got "
                f"{format_names(user.annotations)}; "
                "nothing is made there). Remove them.",
            )
        )
    return problems
