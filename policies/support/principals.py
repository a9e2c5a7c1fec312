"""Who a login is to Kafka, and what makes a superuser of somebody.

A principal is written as Strimzi's `superUsers` has it, without the `User:` that Kafka puts in front.
"""

from collections.abc import Iterator

from policies.support.clusters import brokers, spec_of
from policies.support.resource_types import is_v1
from policies.support.traversal import Props, each, mapping, name, sequence, text, within

# Who may change ACLs can take every right, who may change brokers' configuration can open a door, and who acts as a
# broker reads every record.
_TAKE_OVER = ("All", "Alter", "AlterConfigs", "ClusterAction")
_EVERY_NAME = {("literal", "*"), ("prefix", "")}
# What `All` means for a topic.
_ON_TOPICS = ("Read", "Write", "Create", "Delete", "Alter", "Describe", "AlterConfigs", "DescribeConfigs")


def superuser_rights(type_: str, props: Props) -> list[str]:
    """Rights of a KafkaUser that make it a superuser, such as `All on topic *`.

    They are `All` on every topic, group or transactional ID, on topics also if spelled out, and on the cluster whatever
    lets the user take over. Denials are not set off against them.
    """
    granted = dict.fromkeys(each(sequence(within(props, "spec", "authorization", "acls")), lambda acl: _of(type_, acl)))
    found = [f"{operation} on {resource}" for operation, resource in granted if _suffices(operation, resource)]
    every = dict.fromkeys(resource for _, resource in granted if resource.startswith("topic "))
    spelled = (resource for resource in every if all((operation, resource) in granted for operation in _ON_TOPICS))
    return found + [f"{', '.join(_ON_TOPICS)} on {resource}" for resource in spelled]


def principal_of_user(props: Props) -> str:
    """Principal of a KafkaUser."""
    certified = within(props, "spec", "authentication", "type") in ("tls", "tls-external")
    return f"CN={name(props)}" if certified else name(props)


def principal_of_login(login: Props) -> str | None:
    """Principal that an `authentication` of a client logs in as; None if that is not known.

    A certificate is taken for that of the user after whom its Secret is named, as the User Operator names it.
    """
    authentication = mapping(login.get("authentication"))
    kind = text(authentication.get("type"))
    if kind is None:
        return "ANONYMOUS"
    if kind == "tls":
        secret = text(within(authentication, "certificateAndKey", "secretName"))
        return f"CN={secret}" if secret else None
    return text(authentication.get("username")) if kind.startswith("scram-") or kind == "plain" else None


def secret_of_login(login: Props) -> str | None:
    """Name of the Secret that has the password or the certificate of a client."""
    authentication = mapping(login.get("authentication"))
    part = "certificateAndKey" if authentication.get("type") == "tls" else "passwordSecret"
    return text(within(authentication, part, "secretName"))


def secret_prefix(type_: str, props: Props) -> str:
    """What the User Operator of a cluster puts before the names of users to name their Secrets."""
    return str(within(spec_of(type_, props), "entityOperator", "userOperator", "secretPrefix") or "")


def super_users(type_: str, props: Props) -> list[str]:
    """Principals that a cluster lists as superusers."""
    return [bare(listed) for listed in sequence(within(brokers(type_, props), "authorization", "superUsers"))]


def bare(principal: object) -> str:
    """A principal without `User:`."""
    return str(principal).strip().removeprefix("User:")


def _of(type_: str, acl: object) -> Iterator[tuple[str, str]]:
    """Operation and resource of each right that an ACL grants on every name of a type, or on the cluster."""
    if within(acl, "type") not in (None, "allow"):
        return
    resource = mapping(within(acl, "resource"))
    kind, pattern = str(resource.get("type")), str(resource.get("patternType") or "literal")
    if kind == "cluster":
        granted_on = "the cluster"
    elif (pattern, str(resource.get("name"))) in _EVERY_NAME:
        granted_on = f"{kind} {resource['name'] or 'with an empty prefix'}"
    else:
        return
    yield from ((str(operation), granted_on) for operation in sequence(within(acl, "operations")))
    # v1 has the list only.
    if not is_v1(type_) and within(acl, "operation") is not None:
        yield str(within(acl, "operation")), granted_on


def _suffices(operation: str, resource: str) -> bool:
    return operation in (_TAKE_OVER if resource == "the cluster" else ("All",))
