"""What applications read to reach the active side of a mirror: a Secret with the properties of a Kafka client.

Owns the Secret. Does not own who is active, which is a setting, or the users' rights.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from components.endpoint import ClusterEndpoint
from components.kubernetes_objects import OwnedSecret
from components.replication_flow import ReplicationFlow
from settings import NAMESPACE
from settings.client_properties import ACTIVE_LABEL, secret_values
from settings.mirrors import Mirror

SECRET_TYPE = "servicebinding.io/kafka"  # noqa: S105 - as the Service Binding specification names it
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
        values = pulumi.Output.all(end.bootstrap_servers, end.ca_certificate, end.credentials).apply(
            lambda known: secret_values(end.login.authentication, end.login.username, *known, tls=end.tls)
        )
        data: pulumi.Output[Mapping[str, str]] = pulumi.Output.secret(values.apply(encoded))
        OwnedSecret(
            f"{name}-secret",
            metadata={"name": str(mirror.clients_secret), "namespace": args.namespace, "labels": labels(mirror)},
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


def labels(mirror: Mirror) -> dict[str, str]:
    """Return the labels of a mirror's Secret, which name the active side."""
    return {**LABELS, "app.kubernetes.io/instance": mirror.name, ACTIVE_LABEL: mirror.active}


def encoded(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return values as the field `data` of a Secret has them, in base64."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
