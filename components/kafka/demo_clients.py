"""Demo clients beside the stack's cluster: a Deployment that produces and one that consumes, each with 0 or more pods.

Owns the Deployments. Does not own the image, the topic, the user, or the Secrets from which the pods learn where the
cluster is and who they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pulumi_kubernetes.apps.v1 import Deployment

from components import endpoint
from components.dialects import Login, Spec
from components.kafka.cluster import KafkaCluster, KafkaUsers
from components.kubernetes_objects import container_security_context, pod_security_context
from settings.cluster import CA_KEY
from settings.stack import Stack
from settings.topics import DemoClients as Settings
from settings.users import CERTIFICATE_KEY, PASSWORD_GENERATION, PASSWORD_KEY, PRIVATE_KEY_KEY, security

USER = 10001  # of the image, see images/demo-clients
# A client that is not let in ends within 20 s, and one that is stopped has delivered within 60 s.
READY_S, GRACE_S, DEADLINE_S = 30, 75, 600
Role = Literal["producer", "consumer"]
Presence = Literal["required", "optional"]
# Keys of a Secret that binds an application to Kafka, as the Service Binding specification and its users call them.
_BINDING: dict[str, tuple[str, Presence]] = {
    "KAFKA_BROKERS": ("bootstrapServers", "required"),
    "KAFKA_SECURITY_PROTOCOL": ("securityProtocol", "required"),
    "KAFKA_SASL_MECHANISM": ("saslMechanism", "optional"),
    "KAFKA_USER": ("user", "optional"),
    "KAFKA_PWD": (PASSWORD_KEY, "optional"),
    "KAFKA_CLIENT_CERT": (CERTIFICATE_KEY, "optional"),
    "KAFKA_CLIENT_KEY": (PRIVATE_KEY_KEY, "optional"),
    "KAFKA_CERT": (CA_KEY, "optional"),
}


@dataclass(frozen=True, kw_only=True)
class DemoClientsArgs:
    """The settings, which ask for demo clients, the cluster's address, and how each user logs in."""

    settings: Stack
    clients: Settings
    bootstrap_servers: pulumi.Input[str]
    logins: Mapping[str, Login]


class DemoClients(pulumi.ComponentResource):
    """Clients that run."""

    names: dict[Role, str]
    """What each Deployment is called."""

    def __init__(self, name: str, args: DemoClientsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make both Deployments and wait until their pods stay up."""
        super().__init__("rt-inventory:kubernetes:DemoClients", name, None, opts)
        limit = pulumi.CustomTimeouts(create=f"{DEADLINE_S}s", update=f"{DEADLINE_S}s")
        self.names = {role: deployment_name(args.settings, role) for role in ("producer", "consumer")}
        for role, deployment in self.names.items():
            Deployment(
                f"{name}-{role}",
                metadata={
                    "name": deployment,
                    "namespace": args.settings.cluster.namespace,
                    "labels": _labels(args.settings, role),
                },
                spec=deployment_spec(args, role),
                opts=pulumi.ResourceOptions(parent=self, custom_timeouts=limit),
            )
        self.register_outputs({"names": self.names})


def install_demo_clients(
    settings: Stack, kafka: KafkaCluster, users: KafkaUsers, opts: pulumi.ResourceOptions
) -> DemoClients | None:
    """Return the demo clients if the settings ask for some."""
    if settings.demo_clients is None:
        return None
    servers = kafka.internal_bootstrap_servers
    args = DemoClientsArgs(
        settings=settings, clients=settings.demo_clients, bootstrap_servers=servers, logins=users.logins
    )
    return DemoClients("demo-clients", args, opts)


def deployment_name(settings: Stack, role: Role) -> str:
    """Return what the Deployment is called; clusters that share a namespace have clients of their own."""
    return f"{settings.cluster.name}-demo-{role}"


def deployment_spec(args: DemoClientsArgs, role: Role) -> Spec:
    """Return the spec of one Deployment."""
    clients, labels = args.clients, _labels(args.settings, role)
    return {
        "replicas": clients.producers if role == "producer" else clients.consumers,
        "minReadySeconds": READY_S,
        "revisionHistoryLimit": 2,
        # It can never change, so it holds no more than it must.
        "selector": {"matchLabels": _selected(args.settings, role)},
        "template": {"metadata": {"labels": labels} | _rotated(args), "spec": _pod(args, role)},
    }


def _pod(args: DemoClientsArgs, role: Role) -> Spec:
    clients = args.clients
    container: Spec = {
        "name": role,
        "image": clients.image,
        "imagePullPolicy": "IfNotPresent",
        "args": _arguments(clients, role),
        "env": _variables(args),
        "resources": clients.resources.rendered(),
        "securityContext": container_security_context(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    pod: Spec = {
        "automountServiceAccountToken": False,
        # Kubernetes would make variables that begin with KAFKA_ out of a Service of that name.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": _security(args.settings),
        "containers": [container],
    }
    if clients.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in clients.image_pull_secrets]
    return pod


def _arguments(clients: Settings, role: Role) -> list[str]:
    if role == "producer":
        return ["produce", "--forever", "--kind", clients.kind, "--rate", str(clients.rate), "--json"]
    shown = ["--print"] if clients.print_records else []
    return ["consume", "--forever", "--group", clients.group, *shown, "--json"]


def _variables(args: DemoClientsArgs) -> list[dict[str, Any]]:
    """The variables of `python -m ops`; of secrets only where they are."""
    topic = _plain("SOURCE_TOPIC", args.clients.topic)
    if args.clients.user is None:
        bound = args.clients.secret or ""
        return [*(_secret(name, bound, *how) for name, how in _BINDING.items()), topic]
    cluster, user = args.settings.cluster, args.settings.user(args.clients.user)
    login = endpoint.login(user, managed=cluster.external is None)
    protocol, mechanism = security(login.authentication, tls=cluster.has_tls)
    found = [_plain("KAFKA_BROKERS", args.bootstrap_servers), _plain("KAFKA_SECURITY_PROTOCOL", protocol)]
    if mechanism is not None:
        found += [
            _plain("KAFKA_SASL_MECHANISM", mechanism),
            _plain("KAFKA_USER", login.username),
            _secret("KAFKA_PWD", login.secret, login.password_key),
        ]
    else:
        found += [
            _secret("KAFKA_CLIENT_CERT", login.secret, login.certificate_key),
            _secret("KAFKA_CLIENT_KEY", login.secret, login.private_key_key),
        ]
    if cluster.ca_secret is not None:
        found.append(_secret("KAFKA_CERT", *cluster.ca_secret))
    return [*found, topic]


def _plain(name: str, value: pulumi.Input[str]) -> dict[str, Any]:
    return {"name": name, "value": value}


def _secret(name: str, secret: str, key: str, presence: Presence = "required") -> dict[str, Any]:
    optional = {"optional": True} if presence == "optional" else {}
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, **optional}}}


def _rotated(args: DemoClientsArgs) -> dict[str, Mapping[str, str]]:
    """What makes new pods of a new password: they learn it when they start."""
    if args.clients.user is None:
        return {}
    generation = args.logins[args.clients.user].password_generation
    return {"annotations": {PASSWORD_GENERATION: str(generation)}}


def _security(settings: Stack) -> Spec:
    context = pod_security_context(USER)
    if settings.platform.distribution == "openshift":
        # It gives every namespace users of its own, and the image is content with any.
        return {key: context[key] for key in ("runAsNonRoot", "seccompProfile")}
    return context


def _selected(settings: Stack, role: Role) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "rt-inventory-demo-clients",
        "app.kubernetes.io/instance": settings.cluster.name,
        "app.kubernetes.io/component": role,
    }


def _labels(settings: Stack, role: Role) -> dict[str, str]:
    return {**_selected(settings, role), "app.kubernetes.io/part-of": "rt-inventory"}
