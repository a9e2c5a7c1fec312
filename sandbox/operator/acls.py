"""ACLs of one user: what the resource declares against what the cluster has."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it re-exports
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

CLUSTER_NAME = "kafka-cluster"
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.BROKER,
    "transactionalId": ResourceType.TRANSACTIONAL_ID,
}
_PATTERNS = {"literal": ResourcePatternType.LITERAL, "prefix": ResourcePatternType.PREFIXED}
_PERMISSIONS = {"allow": AclPermissionType.ALLOW, "deny": AclPermissionType.DENY}
_OPERATIONS = {
    "All": AclOperation.ALL, "Read": AclOperation.READ, "Write": AclOperation.WRITE, "Create": AclOperation.CREATE,
    "Delete": AclOperation.DELETE, "Alter": AclOperation.ALTER, "Describe": AclOperation.DESCRIBE,
    "ClusterAction": AclOperation.CLUSTER_ACTION, "AlterConfigs": AclOperation.ALTER_CONFIGS,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS, "IdempotentWrite": AclOperation.IDEMPOTENT_WRITE,
}  # fmt: skip


@dataclass(frozen=True, order=True)
class Rule:
    """One ACL binding without its principal, comparable and hashable; members are Kafka's names."""

    resource: str
    name: str
    pattern: str
    operation: str
    permission: str
    host: str


def declared(user: str, spec: dict[str, Any]) -> set[Rule]:
    """Rules of `spec.authorization.acls`; raises ValueError for an operation that does not exist."""
    rules = set()
    for entry in (spec.get("authorization") or {}).get("acls") or []:
        resource = entry["resource"]
        name = CLUSTER_NAME if resource["type"] == "cluster" else resource.get("name", "*")
        for operation in entry.get("operations") or []:
            if operation not in _OPERATIONS:
                raise ValueError(
                    f"KafkaUser {user}: operations must be known (got {operation}, allowed {', '.join(_OPERATIONS)})."
                )
            rules.add(
                Rule(
                    _RESOURCES[resource["type"]].name,
                    name,
                    _PATTERNS[resource.get("patternType", "literal")].name,
                    _OPERATIONS[operation].name,
                    _PERMISSIONS[entry.get("type", "allow")].name,
                    entry.get("host", "*"),
                )
            )
    return rules


def found(bindings: Iterable[Any]) -> set[Rule]:
    """Rules of the `AclBinding`s that a cluster lists."""
    return {
        Rule(
            binding.restype.name,
            binding.name,
            binding.resource_pattern_type.name,
            binding.operation.name,
            binding.permission_type.name,
            binding.host,
        )
        for binding in bindings
    }


def binding(principal: str, rule: Rule) -> AclBinding:
    """The binding to create for a rule."""
    return AclBinding(*_arguments(principal, rule))


def exactly(principal: str, rule: Rule) -> AclBindingFilter:
    """The filter that matches this rule's binding and no other."""
    return AclBindingFilter(*_arguments(principal, rule))


def all_of(principal: str) -> AclBindingFilter:
    """The filter that matches every binding of a principal."""
    anything: Any = None  # the package's types do not know that a filter may leave names out
    return AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        principal,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def _arguments(principal: str, rule: Rule) -> tuple[Any, ...]:
    return (
        ResourceType[rule.resource],
        rule.name,
        ResourcePatternType[rule.pattern],
        principal,
        rule.host,
        AclOperation[rule.operation],
        AclPermissionType[rule.permission],
    )
