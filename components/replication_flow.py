"""The replication flows of a stack, each with the endpoints of its two clusters, and the Secrets that they refer to.

A mirror with a `reverse`, or with a failback under way, has two flows. A Secret that is not in the mirror's namespace
is copied there under the name that it has at home: one copy for all mirrors that use it, never one for two clusters.
Does not own what is copied.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pulumi

from components import endpoint
from components.endpoint import ClusterEndpoint
from components.kafka.cluster import KafkaCluster
from components.kafka.users import KafkaUsers
from components.kubernetes_objects import OwnedSecret
from components.source_stack import source_endpoints
from settings.mirrors import Mirror
from settings.stack import Stack


@dataclass(frozen=True, kw_only=True)
class ReplicationFlow:
    """One KafkaMirrorMaker2: its settings, where it runs, and between which clusters.

    `clients` is the active side as applications log in there; None if they get nothing from here. `clients_at_target`
    is the target's, whichever side is active.
    """

    mirror: Mirror
    namespace: str
    source: ClusterEndpoint
    target: ClusterEndpoint
    clients: ClusterEndpoint | None = None
    clients_at_target: ClusterEndpoint | None = None
    is_reverse: bool = False


def sources(settings: Stack) -> dict[str, dict[str, ClusterEndpoint]]:
    """Return the ends that other stacks hold, by mirror and user, without those that are awaited.

    Raises RunError before any resource is made.
    """
    home = settings.cluster.namespace
    return {
        each.name: found
        for each in settings.mirrors
        if each.source.stack is not None and (found := source_endpoints(each, each.home(home)))
    }


def flows(
    settings: Stack, known: dict[str, dict[str, ClusterEndpoint]], kafka: KafkaCluster, users: KafkaUsers
) -> list[ReplicationFlow]:
    """Return every flow of the stack, both directions of a mirror with `reverse` or with a failback under way."""
    found = []
    for mirror in settings.mirrors:
        namespace = mirror.home(settings.cluster.namespace)
        external = mirror.source.external
        if external is None and mirror.name not in known:
            continue
        if external is not None:
            source = endpoint.external_source(external, mirror.name, namespace, users)
        else:
            source = known[mirror.name][str(mirror.source.user)]
        target = _own_endpoint(settings, mirror.target.user, kafka, users)
        user = mirror.clients.user_of("target") if mirror.clients else None
        at_target = _own_endpoint(settings, user, kafka, users) if user is not None else None
        clients = at_target if mirror.active == "target" else None
        if mirror.clients_user is not None and mirror.active == "source":
            clients = known[mirror.name][mirror.clients_user]
        found.append(
            ReplicationFlow(
                mirror=mirror,
                namespace=namespace,
                source=source,
                target=target,
                clients=clients,
                clients_at_target=at_target,
            )
        )
        backwards = [mirror.reverse_mirror()] if mirror.reverse is not None else []
        backwards += [mirror.failback_mirror()] if mirror.has_failback_mirror else []
        found += [
            ReplicationFlow(mirror=back, namespace=namespace, source=target, target=source, is_reverse=True)
            for back in backwards
        ]
    return found


def shared_logins(settings: Stack, known: dict[str, dict[str, ClusterEndpoint]]) -> dict[str, ClusterEndpoint]:
    """Return the source, by user, as the users that have one login on both sides log in there."""
    return {
        mirror.clients.login: known[mirror.name][mirror.clients.login]
        for mirror in settings.mirrors
        if mirror.clients is not None and mirror.clients.login is not None and mirror.name in known
    }


def _own_endpoint(settings: Stack, user: str, kafka: KafkaCluster, users: KafkaUsers) -> ClusterEndpoint:
    cluster = settings.cluster
    authority = cluster.external.certificate_authority if cluster.external else None
    return ClusterEndpoint(
        name=cluster.name,
        owner="this stack",
        home=cluster.namespace,
        tls=cluster.has_tls,
        bootstrap_servers=kafka.internal_bootstrap_servers,
        outside_servers=kafka.bootstrap_servers,
        ca_secret=cluster.ca_secret,
        ca_certificate=kafka.ca_certificate,
        ca_from_file=authority is not None and authority.file is not None,
        login=users.logins[user],
        credentials=users.credentials[user],
        stack=pulumi.get_stack() if cluster.external is None else None,
        namespace=cluster.namespace if cluster.external is None else None,
    )


_OLD_PARENT = "urn:pulumi:{stack}::{project}::rt-inventory:kafka:MirrorMaker2::{mirror}"


@dataclass
class Copy:
    """Data of one copied Secret, and the mirror that asked for it first."""

    mirror: str
    data: dict[str, pulumi.Input[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CopiedSecretsArgs:
    """The flows whose Secrets are copied; the settings say whether Pulumi may delete the copies."""

    settings: Stack
    flows: Sequence[ReplicationFlow]


class CopiedSecrets(pulumi.ComponentResource):
    """Copies that exist."""

    def __init__(self, name: str, args: CopiedSecretsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each copy."""
        super().__init__("rt-inventory:kubernetes:CopiedSecrets", name, None, opts)
        found = copies(args.flows)
        for (namespace, secret), copy in found.items():
            # Earlier each mirror owned its copies.
            parent = _OLD_PARENT.format(stack=pulumi.get_stack(), project=pulumi.get_project(), mirror=copy.mirror)
            OwnedSecret(
                f"{name}-{namespace}/{secret}",
                metadata={"name": secret, "namespace": namespace},
                stringData=copy.data,
                opts=pulumi.ResourceOptions(
                    parent=self,
                    protect=args.settings.cluster.protect,
                    aliases=[pulumi.Alias(name=f"{copy.mirror}-{secret}", parent=parent)],
                ),
            )
        self.register_outputs({"names": sorted(f"{namespace}/{secret}" for namespace, secret in found)})


def copies(flows: Iterable[ReplicationFlow]) -> dict[tuple[str, str], Copy]:
    """Return what the flows' namespaces lack, by namespace and name.

    Raises RunError if two clusters have a Secret of one name: one's mirror would log in with the other's.
    """
    found: dict[tuple[str, str], Copy] = {}
    owners: dict[tuple[str, str], str] = {}
    for flow in flows:
        for end in (flow.source, flow.target):
            for secret in end.secret_names:
                owner = owners.setdefault((flow.namespace, secret), end.owner)
                if owner != end.owner:
                    raise pulumi.RunError(
                        f"mirror {flow.mirror.name}: Secret {secret} in namespace {flow.namespace} must belong to one "
                        f"cluster (got {owner} and {end.owner}). Give the user, or the cluster, of one another name."
                    )
            for secret, data in end.secrets_for(flow.namespace).items():
                found.setdefault((flow.namespace, secret), Copy(flow.mirror.name)).data |= data
    return found
