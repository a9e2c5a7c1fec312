"""Rights of a user as its KafkaUser has them: what the stack file allows, then what the fence denies.

The components render with these functions, and the commands patch with them: what a command has changed is what the
next `up` declares.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from settings import fence
from settings.platform import Platform
from settings.users import AclRule, User

if TYPE_CHECKING:
    from settings.stack import Stack

_LISTS_SINCE = (0, 33)  # before, an entry has one operation
Entry = dict[str, Any]


def rules_of(user: User, settings: "Stack") -> tuple[AclRule, ...]:
    """Return all rules of a declared user, in the order in which they are rendered: its own, then the fence's."""
    return (*settings.acls(user), *fence.rules(user, settings))


def authorization_of(user: User, settings: "Stack") -> Entry | None:
    """Return `spec.authorization` of a declared user's KafkaUser; None if it has none."""
    return authorization(user, rules_of(user, settings), settings.platform)


def authorization(user: User, rules: Iterable[AclRule], platform: Platform) -> Entry | None:
    """Return `spec.authorization` of a KafkaUser with these rules; None without any."""
    found = [entry for rule in rules for entry in entries(rule, platform, every=user.config_defaults)]
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
