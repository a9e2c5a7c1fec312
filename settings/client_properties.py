"""The values of the Secret by which applications reach the active side of a mirror, with a file for Java clients.

Owns the keys and how a login becomes properties. Does not own who is active, or who writes the Secret.
"""

from collections.abc import Mapping

from settings.cluster import CA_KEY
from settings.errors import NAMESPACE
from settings.java_properties import Section, sasl_jaas_config, text
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
    """Return what the Secret holds, by key: each fact by itself, and all of them as a file of a Java client."""
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
    return {**values, "client.properties": text([Section(comment=(), values=client)])}
