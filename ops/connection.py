"""The connection to a Kafka cluster: its settings from a stack's outputs or the KAFKA_* variables, and first contact.

Owns how errors of the first contact are explained: unreachable, not authorized, or no such topic.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException

from ops.errors import FINAL, OpsError, explain

PROJECT = Path(__file__).resolve().parent.parent
DEFAULT_TOPIC = "items"
OUTPUTS_TIMEOUT_S = 60
_SASL_PROTOCOLS = {"SASL_SSL", "SASL_PLAINTEXT"}
_PROTOCOLS = {"PLAINTEXT", "SSL", *_SASL_PROTOCOLS}
_PEM_VARIABLES = ("KAFKA_CERT", "KAFKA_CLIENT_CERT", "KAFKA_CLIENT_KEY")


class NotDeployedError(OpsError):
    """The stack is there and has no outputs yet."""


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A cluster's address and a user's credentials. `repr` shows neither the password nor the certificate."""

    name: str
    bootstrap_servers: str
    security_protocol: str
    sasl_mechanism: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    certificate_pem: str | None = field(default=None, repr=False)
    private_key_pem: str | None = field(default=None, repr=False)
    ca_pem: str | None = field(default=None, repr=False)

    def client_config(self) -> dict[str, Any]:
        """Return librdkafka's properties for this connection. They hold the password: never show or log them."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": self.security_protocol,
        }
        if self.security_protocol in _SASL_PROTOCOLS:
            config |= {
                "sasl.mechanism": self.sasl_mechanism,
                "sasl.username": self.user,
                "sasl.password": self.password,
            }
        if self.certificate_pem is not None and self.security_protocol == "SSL":
            config |= {"ssl.certificate.pem": self.certificate_pem, "ssl.key.pem": self.private_key_pem}
        if self.ca_pem is not None and self.security_protocol.endswith("SSL"):
            config |= {"ssl.ca.pem": self.ca_pem, "ssl.endpoint.identification.algorithm": "https"}
        return config


def from_environment(environment: Mapping[str, str]) -> Connection:
    """Return the connection that the KAFKA_* variables describe; all problems are reported at once.

    KAFKA_CERT is the path of a PEM file with the cluster's CA certificate, or the PEM text itself. KAFKA_CERT is only
    needed when the system does not trust the cluster's CA already. A user with a certificate gives it and its private
    key, in the same way, as KAFKA_CLIENT_CERT and KAFKA_CLIENT_KEY in place of a password.
    """
    problems: list[str] = []
    brokers = environment.get("KAFKA_BROKERS", "")
    if not brokers:
        problems.append("KAFKA_BROKERS must be set (host:port,...)")
    mechanism = environment.get("KAFKA_SASL_MECHANISM") or "SCRAM-SHA-512"
    user, password = environment.get("KAFKA_USER"), environment.get("KAFKA_PWD")
    protocol = environment.get("KAFKA_SECURITY_PROTOCOL") or _usual_protocol(environment)
    if protocol not in _PROTOCOLS:
        problems.append(f"KAFKA_SECURITY_PROTOCOL must be one of {', '.join(sorted(_PROTOCOLS))} (got {protocol!r})")
    if protocol in _SASL_PROTOCOLS:
        problems += [
            f"{name} must be set for {protocol}" for name in ("KAFKA_USER", "KAFKA_PWD") if not environment.get(name)
        ]
    pem = {name: _pem(name, environment.get(name), problems) for name in _PEM_VARIABLES}
    if bool(pem["KAFKA_CLIENT_CERT"]) != bool(pem["KAFKA_CLIENT_KEY"]):
        problems.append("KAFKA_CLIENT_CERT and KAFKA_CLIENT_KEY must be set together")
    if problems:
        raise OpsError(f"environment: {'; '.join(problems)}. Or name a stack: --stack dev.")
    return Connection(
        name="environment",
        bootstrap_servers=brokers,
        security_protocol=protocol,
        sasl_mechanism=mechanism if protocol in _SASL_PROTOCOLS else None,
        user=user,
        password=password,
        certificate_pem=pem["KAFKA_CLIENT_CERT"],
        private_key_pem=pem["KAFKA_CLIENT_KEY"],
        ca_pem=pem["KAFKA_CERT"],
    )


def _usual_protocol(environment: Mapping[str, str]) -> str:
    if environment.get("KAFKA_USER"):
        return "SASL_SSL"
    return "SSL" if environment.get("KAFKA_CLIENT_CERT") else "PLAINTEXT"


def _pem(name: str, value: str | None, problems: list[str]) -> str | None:
    """PEM text from itself or from a file. A value that is neither is not shown: it may be part of a key."""
    if not value or value.startswith("-----BEGIN"):
        return value or None
    try:
        return Path(value).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        got = f"got {value!r}: " if name == "KAFKA_CERT" else ""
        problems.append(f"{name} must be PEM text or a readable PEM file ({got}{reason})")
        return None


def from_outputs(
    stack: str, outputs: Mapping[str, Any], user: str | None = None, *, as_mirror: bool = False
) -> Connection:
    """Return the connection that a stack's outputs describe.

    Args:
        stack: Name of the stack.
        outputs: What it exports.
        user: As whom. Without it as the stack's only user, or as the only one of applications.
        as_mirror: Without a user, as the only one of mirrors rather than of applications.

    Raises:
        OpsError: If outputs are missing, or if several users come into question.
    """
    from contract.stack_outputs import OutputsError, StackOutputs

    try:
        known = StackOutputs.read(stack, outputs, "cluster", "userPasswords")
    except OutputsError as error:
        raise OpsError(str(error)) from None
    cluster, passwords = known.cluster, known.user_passwords
    kind = [each for each in passwords if (known.users.get(each) or {}).get("application") is (not as_mirror)]
    usual = kind if max(len(passwords), len(known.users)) > 1 else [*passwords]
    if user is None and len(usual) != 1:
        hidden = sorted(each for each, login in known.users.items() if login.get("exported") is False)
        more = f" Set `exported: true` at one of {', '.join(hidden)} to use that." if hidden else ""
        raise OpsError(f"stack {stack}: --user must be given (allowed {', '.join(sorted(passwords)) or 'none'}).{more}")
    name = user if user is not None else usual[0]
    if name not in passwords and (known.users.get(name) or {}).get("exported") is False:
        raise OpsError(
            f"stack {stack}: --user must be a user whose credentials the stack exports (got {name!r}, allowed "
            f"{', '.join(sorted(passwords)) or 'none'}). Set `exported: true` at the user and run `pulumi up -s "
            f"{stack}`."
        )
    if name not in passwords:
        raise OpsError(
            f"stack {stack}: --user must be a user of the stack (got {name!r}, allowed {', '.join(sorted(passwords))})."
        )
    servers, protocol = cluster.bootstrap_servers, cluster.security_protocol
    if not servers or not protocol:
        needed = {"bootstrapServers": servers, "securityProtocol": protocol}
        missing = " and ".join(key for key, value in needed.items() if not value)
        raise OpsError(f"stack {stack}: output cluster must hold {missing}. Run `pulumi up -s {stack}`.")
    login = known.user_credentials.get(name) or {}
    return Connection(
        name=stack,
        bootstrap_servers=servers,
        security_protocol=protocol,
        sasl_mechanism=cluster.sasl_mechanism,
        user=name,
        password=passwords[name],
        certificate_pem=login.get("certificate"),
        private_key_pem=login.get("privateKey"),
        ca_pem=known.cluster_ca_certificate,
    )


CONTACT_TIMEOUT_S = 20.0
_TRY_S = 2.0


class Metadata(Protocol):
    """The part of a client that asks a cluster what it has."""

    def list_topics(self, *, timeout: float) -> Any:
        """Return the cluster's metadata."""

    def poll(self, timeout: float) -> Any:
        """Serve the client's callbacks."""


@dataclass
class ClientErrors:
    """What a client reports through its error callback, one error of a kind, so that a failure can be explained."""

    connection: Connection
    seen: list[KafkaError] = field(default_factory=list)

    def note(self, error: KafkaError) -> None:
        """Keep an error, the latest of its kind in its first one's place; librdkafka calls this."""
        for index, known in enumerate(self.seen):
            if known.code() == error.code():
                self.seen[index] = error
                return
        self.seen.append(error)

    def final(self) -> bool:
        """Whether something was seen that no retry heals."""
        return any(error.code() in FINAL or error.fatal() for error in self.seen)

    def error(self, *more: KafkaError) -> OpsError:
        """Return the one error to show for everything that was seen."""
        connection = self.connection
        return explain([*self.seen, *more], connection.name, connection.bootstrap_servers, connection.user)


def client_settings(connection: Connection, client_errors: ClientErrors) -> dict[str, Any]:
    """Return the properties that every client of this package has: the connection, quiet logs, collected errors."""
    quiet = logging.getLogger("ops.librdkafka")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    return {
        **connection.client_config(),
        "client.id": "rt-inventory-ops",
        "error_cb": client_errors.note,
        "logger": quiet,
    }


def partitions_of(
    client: Metadata, topic: str, client_errors: ClientErrors, deadline_s: float = CONTACT_TIMEOUT_S
) -> list[int]:
    """Return a topic's partitions; raise OpsError if the cluster or the topic cannot be used within the deadline."""
    end = time.monotonic() + deadline_s
    last: list[KafkaError] = []
    while time.monotonic() < end:
        try:
            topics = client.list_topics(timeout=_TRY_S).topics
        except KafkaException as error:
            last = [error.args[0]]
            client.poll(0)
            if client_errors.final():
                break
            continue
        if topic in topics:
            return sorted(topics[topic].partitions)
        shown = ", ".join(sorted(name for name in topics if not name.startswith("__"))) or "none"
        raise OpsError(
            f"cluster {client_errors.connection.name}: topic {topic!r} must exist and be open to user "
            f"{client_errors.connection.user!r} (got none, allowed {shown}). Declare it under rt-inventory:topics."
        )
    raise client_errors.error(*last)
