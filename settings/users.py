"""Kafka users: how they log in, where their credentials come from, and exactly the rights that are listed.

On a managed cluster the stack makes the user; on an external one it only knows the user's credentials.
"""

from typing import Annotated, Literal

from pydantic import Field

from settings.errors import NAMESPACE
from settings.model import Count, Model, Seconds
from settings.names import SEPARATOR, Annotations, KafkaName, Label, SecretName, Separator, none

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
AnyAuthentication = Literal["scram-sha-512", "scram-sha-256", "tls", "plain", "none"]
"""Also of a cluster that lets everybody in."""
SASL_MECHANISMS: dict[AnyAuthentication, str] = {
    "scram-sha-512": "SCRAM-SHA-512",
    "scram-sha-256": "SCRAM-SHA-256",
    "plain": "PLAIN",
}


class AclRule(Model):
    """Operations on resources of one type that are allowed or denied. A denial wins over whatever is allowed."""

    type: ResourceType
    """What the right is for."""
    names: tuple[str, ...] = ()
    """Names of topics, groups or transactional ids; `*` is every one. None for the cluster."""
    match: Match = "literal"
    """Whether names are whole or prefixes."""
    operations: Annotated[tuple[Operation, ...], Field(min_length=1)]
    """What is allowed."""
    host: str = "*"
    """Address from which it is allowed."""
    permission: Literal["allow", "deny"]
    """Whether the operations are allowed or denied."""


class Acl(AclRule):
    """Rights on resources of one type. `names` are literal or prefixes; '*' is every name; none for the cluster."""

    permission: Literal["allow"] = "allow"
    """A stack file only allows. What is denied while a side is not active, the fence denies."""


class Deny(AclRule):
    """Operations that the fence denies."""

    permission: Literal["deny"] = "deny"


class AclSet(Model):
    """Ready-made least privilege, see `acl_sets`: for one side of a mirror, a consumer or a producer.

    `mirror` names one of this stack's mirrors, whose topics, groups and internal topics are then used (for
    mirror-source those of its `reverse`, for only that one reads this stack's cluster). Where the mirror is another
    stack's, `topics` and `groups` say what it reads, and `offsetSyncsFor` is the target's alias if the offset-syncs
    topic is kept here, and `separator` that mirror's; `canary` is the topic of the verification's canary
    (mirror-source only). `failback` is for the source of another stack's mirror, beside mirror-source: what brings
    records back into `topics`, empties them first if it must, and sets the positions of `groups`. `failbackOf` is
    that mirror, `failbackFrom` its target's alias. If that mirror is exactlyOnce, `transactionalIds` are what its
    way back's begin with: `<mirror>-failback` and `connect-cluster-<mirror>-failback`.
    """

    set: Literal["mirror-source", "mirror-target", "consumer", "producer", "failback"]
    """For one side of a mirror, its way back, a consumer or a producer."""
    mirror: Label | None = None
    """This stack's mirror whose topics, groups and internal topics are meant."""
    topics: tuple[str, ...] = ()
    """Topics, where no mirror names them."""
    groups: tuple[str, ...] = ()
    """Groups, where no mirror names them."""
    match: Match = "literal"
    """Whether topics are whole names or prefixes."""
    transactional_ids: tuple[str, ...] = ()
    """Transactional ids of a producer, or of a failback with exactlyOnce."""
    offset_syncs_for: Label | None = None
    """Alias of the target of another stack's mirror that keeps its offset syncs here."""
    separator: Separator = SEPARATOR
    """The `separator` of that mirror, which is part of the names of its internal topics."""
    failback_of: Label | None = None
    """Another stack's mirror whose records may be brought back here."""
    failback_from: Label | None = None
    """Alias of that mirror's target."""
    sync_topic_acls: bool = False
    """Whether another stack's mirror reads ACLs here."""
    canary: KafkaName | None = None
    """Topic to which the verification's canary of another stack's mirror is written."""
    describe_cluster: bool = True
    """Whether the mirror's user sees all ACLs, which `standby_read_only` asks for, and all groups' names with them."""


PASSWORD_GENERATION = f"{NAMESPACE}/password-generation"
"""Annotation of what must follow when a user gets another password."""
PASSWORD_KEY, CERTIFICATE_KEY, PRIVATE_KEY_KEY = "password", "user.crt", "user.key"  # of the Secret of a user


class ExistingSecret(Model):
    """A Secret that is there already, with the keys under which it holds a password or a certificate."""

    name: SecretName
    """Name of the Secret."""
    password_key: str = PASSWORD_KEY
    """Key of the password."""
    certificate_key: str = CERTIFICATE_KEY
    """Key of the certificate, for tls."""
    private_key_key: str = PRIVATE_KEY_KEY
    """Key of the certificate's private key, for tls."""


class User(Model):
    """One user and the rights it has; a user without ACLs may connect and nothing else.

    `username` is what an external cluster calls the user (the `token` of Event Streams on IBM Cloud). A password is
    generated by Pulumi unless `secret` holds it; a higher `passwordGeneration` rotates it. With `generatedBy: operator`
    the operator does.
    """

    name: Label
    """Name of the user, its resource and its Secret."""
    username: str | None = None
    """What an external cluster calls the user, for example `token`."""
    authentication: Authentication = "scram-sha-512"
    """How the user logs in. scram-sha-256 and plain are for external clusters."""
    password_length: Annotated[int, Field(ge=16, le=128)] = 32
    """Length of a generated password."""
    password_generation: Count = 1
    """A higher number rotates a generated password."""
    generated_by: Literal["pulumi", "operator"] = "pulumi"
    """Who makes a password that no Secret holds."""
    secret: ExistingSecret | None = None
    """Secret that holds the credentials already."""
    acls: tuple[Acl, ...] = ()
    """Rights, listed one by one."""
    acl_sets: tuple[AclSet, ...] = ()
    """Rights, ready-made."""
    config_defaults: bool = True
    """Whether a right's `match`, `host` and `permission` are written when they are not given."""
    annotations: Annotations = Field(default_factory=none)
    """Annotations of the user's resource, such as exceptions of the policy pack."""
    ready_seconds: Seconds = 300
    """How long to wait for the user."""

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
