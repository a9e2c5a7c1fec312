"""The replication flows of a stack, each with the endpoints of its two clusters, and the Secrets that they refer to.

A mirror with a `reverse`, or with a failback under way, has two flows. A Secret that is not in the mirror's namespace
is copied there under the name that it has at home: one copy for all mirrors that use it, never one for two clusters.
The stack that a mirror copies from is read by StackReference: address, authority and user of its cluster. Owns the
message when that stack is not up yet. Does not own what is copied, nor anything of that stack.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi

from components import endpoint
from components.dialects import Login
from components.endpoint import ClusterEndpoint
from components.kafka.cluster import KafkaCluster, KafkaUsers
from components.kubernetes_objects import OwnedSecret
from settings import SettingsError
from settings.files import load
from settings.mirrors import Mirror
from settings.stack import Stack

# Not the authority's certificate: a cluster with a public one, or without TLS, exports none.
OWN_STATE_S = 20.0
_HALF_WRITTEN = "failed to load checkpoint"
_NEEDED = ("cluster", "users", "userCredentials")


def source_endpoints(mirror: Mirror, namespace: str) -> dict[str, ClusterEndpoint]:
    """Return the source of a mirror in a namespace as each user that is needed there, by the user.

    Raises RunError if that stack is not up or lacks a user.

    Asks the engine before the first resource is registered, so that nothing is created when the answer is no. A preview
    of a pair that is not up yet takes the source from its stack file, and warns that an `up` would not do so; what only
    the cluster knows is unknown then.
    Empty for a mirror that waits for a source that is not required.
    """
    stack, needed = str(mirror.source.stack), sorted(set(mirror.source_users.values()))
    full_name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{stack}"
    outputs, missing = _outputs(full_name)
    if missing:
        declared = _declared(stack) if pulumi.runtime.is_dry_run() else None
        if declared is None and not mirror.source.required and not _was_up(mirror):
            pulumi.log.warn(
                f"mirror {mirror.name}: left out, because its source stack {stack} is not up ({missing}). "
                "Bring that up, then run `pulumi up` here again."
            )
            return {}
        if declared is None:
            raise pulumi.RunError(
                f"mirror {mirror.name}: source.stack must be a stack that is up (got {stack}, {missing}). "
                f"Run `pulumi up -s {stack}` first."
            )
        _require_users(mirror, stack, [each.name for each in declared.users])
        then = "is refused" if mirror.source.required or _was_up(mirror) else "leaves the mirror out"
        pulumi.log.warn(
            f"mirror {mirror.name}: its source stack {stack} is not up ({missing}): this preview takes the source from "
            f"Pulumi.{stack}.yaml, and `pulumi up` {then} until that stack is up. Run `pulumi up -s {stack}` first."
        )
        return {user: _expected(mirror, namespace, declared, user) for user in needed}
    _require_users(mirror, stack, outputs["users"])
    reference = pulumi.StackReference(f"{mirror.name}-source", full_name)
    return {user: _deployed(mirror, namespace, outputs, reference, user) for user in needed}


def _deployed(
    mirror: Mirror, namespace: str, outputs: Mapping[str, Any], reference: pulumi.StackReference, user: str
) -> ClusterEndpoint:
    cluster, access = outputs["cluster"], outputs["users"][user]
    login = Login(
        authentication=access["authentication"],
        username=access["username"],
        secret=access["secretName"],
        password_key=access["key"],
        certificate_key=access["certificateKey"],
        private_key_key=access["privateKeyKey"],
        password_generation=int(access.get("passwordGeneration") or 1),
    )
    trust, outside = cluster.get("caSecret"), "bootstrapServers"
    # Two clusters in one namespace need no way around. A stack that was up before has no address for the inside.
    inside = outside if mirror.source.copy_secrets else "internalBootstrapServers"
    known = reference.require_output("cluster")
    return ClusterEndpoint(
        name=str(cluster["name"]),
        owner=f"stack {mirror.source.stack}",
        home=None if mirror.source.copy_secrets else namespace,
        tls=str(cluster["securityProtocol"]).endswith("SSL"),
        bootstrap_servers=known.apply(lambda found: str(found.get(inside) or found[outside])),
        outside_servers=known.apply(lambda found: str(found[outside])),
        ca_secret=(str(trust["name"]), str(trust["key"])) if trust else None,
        ca_certificate=pulumi.Output.secret(reference.get_output("clusterCaCertificate")),
        login=login,
        credentials=pulumi.Output.secret(
            reference.require_output("userCredentials").apply(lambda found: dict(found[user]))
        ),
        stack=str(mirror.source.stack),
        namespace=str(cluster["namespace"]) if cluster.get("namespace") else None,
        outputs=known.apply(lambda found: dict(found)),
    )


def _expected(mirror: Mirror, namespace: str, declared: Stack, user: str) -> ClusterEndpoint:
    """The endpoint as it will be once the source stack is up."""
    unknown: pulumi.Output[Any] = pulumi.Output.from_input(pulumi.UNKNOWN)
    access, cluster = declared.user(user), declared.cluster
    return ClusterEndpoint(
        name=cluster.name,
        owner=f"stack {mirror.source.stack}",
        home=None if mirror.source.copy_secrets else namespace,
        tls=cluster.has_tls,
        bootstrap_servers=unknown,
        outside_servers=unknown,
        ca_secret=cluster.ca_secret,
        ca_certificate=unknown,
        login=endpoint.login(access, managed=cluster.external is None),
        credentials=pulumi.Output.secret(unknown),
        stack=str(mirror.source.stack),
        namespace=cluster.namespace,
        outputs=unknown,
    )


def _declared(stack: str) -> Stack | None:
    """Settings of a stack whose file lies beside this one's; None if there is no such file or it has mistakes."""
    path = Path(pulumi.get_root_directory()) / f"Pulumi.{stack}.yaml"
    try:
        return load(path) if path.exists() else None
    except SettingsError:
        return None


def _require_users(mirror: Mirror, stack: str, users: Mapping[str, Any] | list[str]) -> None:
    problems = [
        f"mirror {mirror.name}: {field} must be a user of stack {stack} (got {user}, allowed "
        f"{', '.join(sorted(users)) or 'none'}). Declare it there and run `pulumi up -s {stack}`."
        for field, user in mirror.source_users.items()
        if user not in users
    ]
    if isinstance(users, Mapping):
        problems += [
            f"mirror {mirror.name}: {field} must be a user whose credentials stack {stack} exports (got {user}). It "
            f"exports those that the stack files beside its own name, and those with `exported: true`: run `pulumi up "
            f"-s {stack}` with this file beside it, or set that."
            for field, user in mirror.source_users.items()
            if user in users and users[user].get("exported") is False
        ]
    if problems:
        raise pulumi.RunError("\n".join(problems))


def _outputs(full_name: str) -> tuple[Mapping[str, Any], str]:
    """Outputs of a stack, and in words what it lacks."""
    try:
        answer = pulumi.runtime.invoke("pulumi:pulumi:readStackOutputs", {"name": full_name}).value
    except Exception as error:
        if "unknown stack" not in str(error):
            raise
        return {}, "which does not exist"
    outputs: Mapping[str, Any] = (answer or {}).get("outputs") or {}
    missing = [name for name in _NEEDED if name not in outputs]
    return outputs, f"without the outputs {', '.join(missing)}" if missing else ""


def _was_up(mirror: Mirror) -> bool:
    """Whether the mirror runs already: then it must not go away because its source cannot be asked."""
    return mirror.name in (previous_outputs().get("mirrors") or {})


def previous_outputs() -> Mapping[str, Any]:
    """Return what this stack exported when it was last up; empty if it never was.

    While a stack is updated its engine writes the very state that is read here. What it finds half written it is asked
    for again, for at most `OWN_STATE_S`.
    """
    end = time.monotonic() + OWN_STATE_S
    while True:
        try:
            return _outputs(f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}")[0]
        except Exception as error:
            if _HALF_WRITTEN not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.1)


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
    """Return the endpoints of other stacks' clusters, by mirror and user.

    A mirror that waits for a source that is not required is left out.

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
                string_data=copy.data,
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
        for side in (flow.source, flow.target):
            for secret in side.secret_names:
                owner = owners.setdefault((flow.namespace, secret), side.owner)
                if owner != side.owner:
                    raise pulumi.RunError(
                        f"mirror {flow.mirror.name}: Secret {secret} in namespace {flow.namespace} must belong to one "
                        f"cluster (got {owner} and {side.owner}). Give the user, or the cluster, of one another name."
                    )
            for secret, data in side.secrets_for(flow.namespace).items():
                found.setdefault((flow.namespace, secret), Copy(flow.mirror.name)).data |= data
    return found
