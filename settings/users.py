"""Kafka users of the cluster: SCRAM-SHA-512 with a generated password, and exactly the rights that are listed."""

from typing import Annotated, Literal

from pydantic import Field

from settings.model import Model, Seconds
from settings.names import Label

ResourceType = Literal["topic", "group", "cluster", "transactionalId"]
Operation = Literal[
    "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "AlterConfigs", "DescribeConfigs",
    "IdempotentWrite", "All",
]  # fmt: skip
# org.apache.kafka.common.acl.AclOperation per resource, as org.apache.kafka.server.authorizer supports them
OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    "topic": ("Read", "Write", "Create", "Delete", "Alter", "Describe", "AlterConfigs", "DescribeConfigs", "All"),
    "group": ("Read", "Delete", "Describe", "AlterConfigs", "DescribeConfigs", "All"),
    "cluster": (
        "Create", "Alter", "Describe", "ClusterAction", "AlterConfigs", "DescribeConfigs", "IdempotentWrite", "All",
    ),
    "transactionalId": ("Write", "Describe", "All"),
}  # fmt: skip


class Acl(Model):
    """Rights on resources of one type. `names` are literal or prefixes; '*' is every name; none for the cluster."""

    type: ResourceType
    names: tuple[str, ...] = ()
    match: Literal["literal", "prefix"] = "literal"
    operations: Annotated[tuple[Operation, ...], Field(min_length=1)]
    host: str = "*"


class User(Model):
    """One user and the rights it has; a user without ACLs may connect and nothing else."""

    name: Label
    authentication: Literal["scram-sha-512"] = "scram-sha-512"
    password_length: Annotated[int, Field(ge=16, le=128)] = 32
    acls: tuple[Acl, ...] = ()
    ready_seconds: Seconds = 300

    @property
    def credentials_secret(self) -> str:
        """Secret with the generated password, which the user's resource refers to."""
        return f"{self.name}-credentials"
