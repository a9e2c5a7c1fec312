"""Properties of Java clients, and the Secret by which applications reach the active side of a mirror.

Owns the text of a file that java.util.Properties reads from a stream (escaping, comments, the order of sections), how a
login becomes properties, and the keys of the Secret. Does not own who is active, or who writes the Secret.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from settings.cluster import CA_KEY
from settings.errors import NAMESPACE
from settings.model import Scalar
from settings.users import CERTIFICATE_KEY, PASSWORD_KEY, PRIVATE_KEY_KEY, SASL_MECHANISMS, AnyAuthentication

PASSWORD, CERTIFICATE, PRIVATE_KEY = "password", "certificate", "privateKey"  # of what a login is made of
ACTIVE_LABEL = f"{NAMESPACE}/active"


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
