"""What applications read to reach the active side of a mirror: a Secret with the properties of a Kafka client.

Owns the Secret. Does not own who is active, which is a setting, or the users' rights.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from components import endpoint
from components.dialects import Login
from components.endpoint import ClusterEndpoint
from components.kubernetes_objects import OwnedSecret
from components.replication_flow import ReplicationFlow
from settings import NAMESPACE
from settings.cluster import CA_KEY
from settings.java_properties import Section, sasl_jaas_config, text
from settings.mirrors import Mirror
from settings.users import CERTIFICATE_KEY, PASSWORD_KEY, PRIVATE_KEY_KEY

SECRET_TYPE = "servicebinding.io/kafka"  # noqa: S105 - as the Service Binding specification names it
ACTIVE_LABEL = f"{NAMESPACE}/active"
LABELS = {"app.kubernetes.io/name": "rt-inventory-clients", "app.kubernetes.io/part-of": NAMESPACE}


@dataclass(frozen=True, kw_only=True)
class ClientsArgs:
    """The mirror, the namespace of its Secrets, and the active side as applications log in there."""

    mirror: Mirror
    namespace: str
    end: ClusterEndpoint


class Clients(pulumi.ComponentResource):
    """The Secret that applications read."""

    def __init__(self, name: str, args: ClientsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Write the Secret, in place when the active side changes. It is not protected: an `up` makes it again."""
        super().__init__("rt-inventory:kafka:Clients", name, None, opts)
        mirror, end = args.mirror, args.end
        labels = {**LABELS, "app.kubernetes.io/instance": mirror.name, ACTIVE_LABEL: mirror.active}
        values = pulumi.Output.all(end.bootstrap_servers, end.ca_certificate, end.credentials).apply(
            lambda known: secret_values(end.login, *known, tls=end.tls)
        )
        data: pulumi.Output[Mapping[str, str]] = pulumi.Output.secret(values.apply(_encoded))
        OwnedSecret(
            f"{name}-secret",
            metadata={"name": str(mirror.clients_secret), "namespace": args.namespace, "labels": labels},
            type=SECRET_TYPE,
            # Not `stringData`, of which a key that is no longer there would stay: the sides may log in differently.
            data=data,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"secret": mirror.clients_secret})


def write_clients(flow: ReplicationFlow, opts: pulumi.ResourceOptions) -> Clients | None:
    """Write the Secret of a flow whose applications read one."""
    if flow.clients is None:
        return None
    args = ClientsArgs(mirror=flow.mirror, namespace=flow.namespace, end=flow.clients)
    return Clients(f"{flow.mirror.name}-clients", args, opts)


def secret_values(
    login: Login, servers: str, ca_certificate: str | None, credentials: endpoint.Values, *, tls: bool
) -> dict[str, str]:
    """Return what the Secret holds, by key: each fact by itself, and all of them as a file of a Java client."""
    protocol, mechanism = endpoint.security(login.authentication, tls=tls)
    values = {"type": "kafka", "bootstrapServers": servers, "securityProtocol": protocol}
    if login.username:
        values["user"] = login.username
    client = {"bootstrap.servers": servers, "security.protocol": protocol}
    if ca_certificate is not None:
        values[CA_KEY] = ca_certificate
        client |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": ca_certificate}
    if login.authentication == "tls":
        certificate, key = credentials[endpoint.CERTIFICATE], credentials[endpoint.PRIVATE_KEY]
        values |= {CERTIFICATE_KEY: certificate, PRIVATE_KEY_KEY: key}
        client |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": key,
        }
    elif mechanism is not None:
        password = credentials[endpoint.PASSWORD]
        jaas = sasl_jaas_config(login.authentication, login.username, password)
        values |= {"saslMechanism": mechanism, PASSWORD_KEY: password, "sasl.jaas.config": jaas}
        client |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    return {**values, "client.properties": text([Section(comment=(), values=client)])}


def _encoded(values: Mapping[str, str]) -> Mapping[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
