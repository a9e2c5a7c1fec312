"""Rules of users: every right exists, every set can be expanded, credentials come from where the cluster allows."""

from collections.abc import Mapping

from settings import acl_sets
from settings.cluster import Cluster
from settings.errors import Problem
from settings.mirrors import Mirror
from settings.rules.common import duplicates
from settings.users import OPERATIONS, AclSet, User

MANAGED_AUTHENTICATIONS = ("scram-sha-512", "tls")  # what the operators' KafkaUser offers
_NEEDS = {"consumer": ("topics", "groups"), "producer": ("topics",)}


def users(found: Mapping[int, User], on: Cluster | None, mirrors: Mapping[int, Mirror]) -> list[Problem]:
    """All rules of all users."""
    problems = duplicates("users", "user", {index: (user.name, user) for index, user in found.items()})
    by_name = {mirror.name: mirror for mirror in mirrors.values()}
    for index, user in found.items():
        where = f"users[{index}]"
        problems += _acls(where, user)
        for number, entry in enumerate(user.acl_sets):
            problems += _acl_set(f"{where}.aclSets[{number}]", f"user {user.name}", entry, by_name)
        if on is not None:
            problems += _external(where, user) if on.external is not None else _managed(where, user)
    return problems


def _acls(where: str, user: User) -> list[Problem]:
    problems = []
    for number, acl in enumerate(user.acls):
        at, subject = f"{where}.acls[{number}]", f"user {user.name}"
        allowed = OPERATIONS[acl.type]
        problems += [
            Problem(
                f"{at}.operations",
                f"{subject}: operations must exist for a {acl.type} (got {operation}, allowed {', '.join(allowed)}).",
            )
            for operation in acl.operations
            if operation not in allowed
        ]
        if bool(acl.names) == (acl.type == "cluster"):
            rule = "must not be given for the cluster" if acl.names else "must have at least one entry"
            got = ", ".join(acl.names) or "nothing"
            problems.append(Problem(f"{at}.names", f"{subject}: names {rule} (got {got})."))
        if acl.match == "prefix" and "*" in acl.names:
            problems.append(
                Problem(
                    f"{at}.match",
                    f"{subject}: match must be literal for the name '*' (got prefix). "
                    "As a prefix '*' is an ordinary character.",
                )
            )
    return problems


def _acl_set(where: str, subject: str, entry: AclSet, mirrors: Mapping[str, Mirror]) -> list[Problem]:
    problems = []
    if entry.set in _NEEDS:
        problems += [
            Problem(f"{where}.{name}", f"{subject}: {name} must be given for {entry.set} (got nothing).")
            for name in _NEEDS[entry.set]
            if not getattr(entry, name)
        ]
        if entry.mirror is not None:
            problems.append(Problem(f"{where}.mirror", f"{subject}: mirror must not be given for {entry.set}."))
        return problems
    if entry.mirror is None:
        if not entry.topics:
            problems.append(
                Problem(f"{where}.mirror", f"{subject}: mirror or topics must be given for {entry.set} (got nothing).")
            )
        return problems
    if entry.mirror not in mirrors:
        known = ", ".join(sorted(mirrors)) or "none"
        return [
            Problem(
                f"{where}.mirror",
                f"{subject}: mirror must be one of this stack's mirrors (got {entry.mirror}, allowed {known}). "
                "For another stack's mirror give topics and groups.",
            )
        ]
    if not entry.topics:
        try:
            acl_sets.literal_topics(mirrors[entry.mirror].topics)
        except ValueError as error:
            problems.append(
                Problem(
                    f"{where}.topics",
                    f"{subject}: topics must be given (got nothing, and '{error}' of mirror {entry.mirror} is neither "
                    "a name nor a name followed by '.*'). Name them, or their prefixes with match prefix.",
                )
            )
    return problems


def _managed(where: str, user: User) -> list[Problem]:
    problems, subject = [], f"user {user.name}"
    if user.authentication not in MANAGED_AUTHENTICATIONS:
        problems.append(
            Problem(
                f"{where}.authentication",
                f"{subject}: authentication must be one that the operator makes (got {user.authentication}, allowed "
                f"{', '.join(MANAGED_AUTHENTICATIONS)}). Others are for external clusters.",
            )
        )
    if user.username is not None:
        problems.append(
            Problem(
                f"{where}.username",
                f"{subject}: username must not be given on a managed cluster (got {user.username}; it is the name).",
            )
        )
    if user.secret is not None and user.authentication == "tls":
        problems.append(
            Problem(f"{where}.secret", f"{subject}: secret must not be given with tls (the operator writes it).")
        )
    if user.secret is not None and user.secret.name == user.name:
        problems.append(
            Problem(
                f"{where}.secret.name",
                f"{subject}: secret.name must differ from the user's name (got {user.secret.name}). "
                "The operator writes a Secret of that name itself.",
            )
        )
    if user.password_generation > 1 and (user.secret is not None or user.authentication == "tls"):
        problems.append(
            Problem(
                f"{where}.passwordGeneration",
                f"{subject}: passwordGeneration must not be given without a generated password (got "
                f"{user.password_generation}). Change the Secret instead.",
            )
        )
    return problems


def _external(where: str, user: User) -> list[Problem]:
    problems, subject = [], f"user {user.name}"
    if user.secret is None:
        problems.append(
            Problem(
                f"{where}.secret",
                f"{subject}: secret must be given on an external cluster (got nothing). Name the Secret with its "
                "password or certificate.",
            )
        )
    if user.acls or user.acl_sets:
        problems.append(
            Problem(
                f"{where}.acls",
                f"{subject}: acls must not be given on an external cluster (somebody else grants them).",
            )
        )
    return problems
