"""Kafka users: how they log in, where their credentials come from, and exactly the rights that are listed.

On a managed cluster the stack makes the user; on an external one it only knows the user's credentials.
"""

from typing import Annotated, Literal

from pydantic import Field

from settings.model import Count, Model, Seconds
from settings.names import Label, SecretName

ResourceType = Literal["topic", "group", "cluster", "transactionalId"]
Operation = Literal[
    "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "AlterConfigs", "DescribeConfigs",
    "IdempotentWrite", "All",
]  # fmt: skip
Match = Literal["literal", "prefix"]
# org.apache.kafka.common.acl.AclOperation per resource, as org.apache.kafka.server.authorizer supports them
OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    "topic": ("Read", "Write", "Create", "Delete", "Alter", "Describe", "AlterConfigs", "DescribeConfigs", "All"),
    "group": ("Read", "Delete", "Describe", "AlterConfigs", "DescribeConfigs", "All"),
    "cluster": (
        "Create", "Alter", "Describe", "ClusterAction", "AlterConfigs", "DescribeConfigs", "IdempotentWrite", "All",
    ),
    "transactionalId": ("Write", "Describe", "All"),
}  # fmt: skip
Authentication = Literal["scram-sha-512", "scram-sha-256", "tls", "plain"]
SASL_MECHANISMS: dict[Authentication, str] = {
    "scram-sha-512": "SCRAM-SHA-512",
    "scram-sha-256": "SCRAM-SHA-256",
    "plain": "PLAIN",
}


class Acl(Model):
    """Rights on resources of one type. `names` are literal or prefixes; '*' is every name; none for the cluster."""

    type: ResourceType
    names: tuple[str, ...] = ()
    match: Match = "literal"
    operations: Annotated[tuple[Operation, ...], Field(min_length=1)]
    host: str = "*"


class AclSet(Model):
    """Ready-made least privilege, see `acl_sets`: for one side of a mirror, a consumer or a producer.

    `mirror` names one of this stack's mirrors, whose topics, groups and internal topics are then used (for
    mirror-source those of its `reverse`, for only that one reads this stack's cluster). Where the mirror is another
    stack's, `topics` and `groups` say what it reads, and `offsetSyncsFor` is the target's alias if the
    offset-syncs topic is kept here.
    """

    set: Literal["mirror-source", "mirror-target", "consumer", "producer"]
    mirror: Label | None = None
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    match: Match = "literal"
    transactional_ids: tuple[str, ...] = ()
    offset_syncs_for: Label | None = None
    sync_topic_acls: bool = False


PASSWORD_KEY, CERTIFICATE_KEY, PRIVATE_KEY_KEY = "password", "user.crt", "user.key"  # of the Secret of a user


class ExistingSecret(Model):
    """A Secret that is there already, with the keys under which it holds a password or a certificate."""

    name: SecretName
    password_key: str = PASSWORD_KEY
    certificate_key: str = CERTIFICATE_KEY
    private_key_key: str = PRIVATE_KEY_KEY


class User(Model):
    """One user and the rights it has; a user without ACLs may connect and nothing else.

    `username` is what an external cluster calls the user (the `token` of Event Streams on IBM Cloud). A password is
    generated unless `secret` holds it; a higher `passwordGeneration` rotates it.
    """

    name: Label
    username: str | None = None
    authentication: Authentication = "scram-sha-512"
    password_length: Annotated[int, Field(ge=16, le=128)] = 32
    password_generation: Count = 1
    secret: ExistingSecret | None = None
    acls: tuple[Acl, ...] = ()
    acl_sets: tuple[AclSet, ...] = ()
    ready_seconds: Seconds = 300

    @property
    def credentials_secret(self) -> str:
        """Secret with the password that the user's resource refers to."""
        return self.secret.name if self.secret else f"{self.name}-credentials"

    @property
    def login(self) -> str:
        """Name with which the user logs in."""
        return self.username or self.name

    @property
    def principal(self) -> str:
        """Principal that ACLs name: a certificate's subject, or the login."""
        return f"User:CN={self.name}" if self.authentication == "tls" else f"User:{self.login}"
