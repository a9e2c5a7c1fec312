"""Kafka users: how they log in, the rights that are listed, and what a login becomes in the properties of a client.

On a managed cluster the stack makes the user; on an external one it only knows the user's credentials. Owns how a login
becomes properties of Java clients, the text of a file that java.util.Properties reads from a stream (escaping,
comments, the order of sections), and the keys of the Secret by which applications reach the active side of a mirror.
Does not own who is active, or who writes the Secret.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from settings.cluster import CA_KEY
from settings.errors import NAMESPACE
from settings.model import Count, Model, Scalar, Seconds
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
PASSWORD, CERTIFICATE, PRIVATE_KEY = "password", "certificate", "privateKey"  # of what a login is made of
ACTIVE_LABEL = f"{NAMESPACE}/active"


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
    that mirror, `failbackFrom` its target's alias. If that mirror is exactlyOnce, `transactionalIds` are what those
    of its failback begin with: `<mirror>-failback` and `connect-cluster-<mirror>-failback`.
    """

    set: Literal["mirror-source", "mirror-target", "consumer", "producer", "failback"]
    """For one side of a mirror, its failback, a consumer or a producer."""
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
    exported: bool = False
    """Whether the stack exports the user's credentials although no mirror logs in as it, and none gives it to
    applications: for another project, or a tool.
    """
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


def security(authentication: AnyAuthentication | None, *, tls: bool) -> tuple[str, str | None]:
    """Return Kafka's security protocol and SASL mechanism."""
    mechanism = SASL_MECHANISMS.get(authentication) if authentication else None
    return f"{'SASL_' if mechanism else ''}{'SSL' if tls else 'PLAINTEXT'}", mechanism


def secret_values(
    authentication: AnyAuthentication,
    username: str,
    servers: str,
    ca_certificate: str | None,
    credentials: Mapping[str, str],
    *,
    tls: bool,
) -> dict[str, str]:
    """Return the values of the Secret by key, and all of them together as a file of a Java client.

    Args:
        authentication: how the user of the applications logs in.
        username: name of that user; empty for a certificate.
        servers: bootstrap servers of the active cluster.
        ca_certificate: PEM of its authority; None for a public one.
        credentials: PASSWORD, or CERTIFICATE and PRIVATE_KEY.
        tls: whether the listener has TLS.
    """
    protocol, mechanism = security(authentication, tls=tls)
    values = {"type": "kafka", "bootstrapServers": servers, "securityProtocol": protocol}
    if username:
        values["user"] = username
    client = {"bootstrap.servers": servers, "security.protocol": protocol}
    if ca_certificate is not None:
        values[CA_KEY] = ca_certificate
        client |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": ca_certificate}
    if authentication == "tls":
        certificate, key = credentials[CERTIFICATE], credentials[PRIVATE_KEY]
        values |= {CERTIFICATE_KEY: certificate, PRIVATE_KEY_KEY: key}
        client |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": key,
        }
    elif mechanism is not None:
        password = credentials[PASSWORD]
        jaas = sasl_jaas_config(authentication, username, password)
        values |= {"saslMechanism": mechanism, PASSWORD_KEY: password, "sasl.jaas.config": jaas}
        client |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    return {**values, "client.properties": properties_text([Section(comment=(), values=client)])}


_SHORT = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_ENDS_KEY = "=: "


@dataclass(frozen=True, kw_only=True)
class Section:
    """Properties that belong together, in order, below comment lines that say what they are."""

    comment: tuple[str, ...]
    values: Mapping[str, Scalar]


def properties_text(sections: Iterable[Section]) -> str:
    """Return the file: sections divided by empty lines. A comment's own line ends become spaces."""
    return "\n".join(_section(section) for section in sections)


def property_line(key: str, value: Scalar) -> str:
    r"""Return one property. Properties.load(InputStream) reads ISO-8859-1, so other characters stand as \uXXXX."""
    return f"{_key(key)}={_value(value)}\n"


def _section(section: Section) -> str:
    comments = "".join(f"# {' '.join(words.split())}\n" for words in section.comment)
    return comments + "".join(property_line(key, value) for key, value in section.values.items())


def _key(key: str) -> str:
    escaped = "".join(f"\\{character}" if character in _ENDS_KEY else _escaped(character) for character in key)
    return f"\\{escaped}" if escaped.startswith(("#", "!")) else escaped


def _value(value: Scalar) -> str:
    plain = str(value).lower() if isinstance(value, bool) else str(value)
    escaped = "".join(_escaped(character) for character in plain)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))


_PACKAGE = "org.apache.kafka.common.security"


def sasl_jaas_config(authentication: AnyAuthentication, username: str, password: str) -> str:
    """Return the entry of a user with a password, or with a placeholder for one."""
    module = "plain.PlainLoginModule" if authentication == "plain" else "scram.ScramLoginModule"
    return f"{_PACKAGE}.{module} required username={_quoted(username)} password={_quoted(password)};"


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
