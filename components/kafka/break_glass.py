"""Two Secrets beside a mirror: client properties of its active side, and the copy that a failover without Pulumi needs.

Owns both, which every `up` writes. Applications read the first to reach the active side. `ops failover --break-glass`
works from the other without Pulumi, whose bucket and key may be lost with the source's region; owns what a failover
would change of this stack's custom resources. Does not own who is active, which is a setting, the users' rights, the
outputs that the copy repeats, nor the Secrets with the credentials to which it refers.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pulumi

from components.dialects import Spec
from components.endpoint import ClusterEndpoint, secret_keys
from components.kafka.cluster import spec_of
from components.kafka.mirror_maker_2 import mirror_spec
from components.kubernetes_objects import KubernetesAccess, OwnedSecret, UnreadableError
from components.replication_flow import ReplicationFlow
from components.verification.verification import VARIABLES
from contract.stack_outputs import (
    AUTHORITY_KEYS,
    KEY,
    BreakGlassCopy,
    ChangingObject,
    ClientsAtTarget,
    ClusterOutputs,
    SecretReference,
    secret_name,
)
from settings import NAMESPACE
from settings.mirror_parts import follower_name, is_followed
from settings.mirrors import Mirror
from settings.stack import Stack
from settings.users import ACTIVE_LABEL, secret_values

SECRET_TYPE = "servicebinding.io/kafka"  # noqa: S105 - as the Service Binding specification names it
_CLIENTS_LABELS = {"app.kubernetes.io/name": "rt-inventory-clients", "app.kubernetes.io/part-of": NAMESPACE}
LABEL = {"app.kubernetes.io/name": "rt-inventory-break-glass"}
LABELS = {**LABEL, "app.kubernetes.io/part-of": NAMESPACE}


@dataclass(frozen=True, kw_only=True)
class ClientsArgs:
    """The mirror, the namespace of its Secrets, and the active side as applications log in there."""

    mirror: Mirror
    namespace: str
    active: ClusterEndpoint


class Clients(pulumi.ComponentResource):
    """The Secret that applications read."""

    def __init__(self, name: str, args: ClientsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Write the Secret, in place when the active side changes. It is not protected: an `up` makes it again."""
        super().__init__("rt-inventory:kafka:Clients", name, None, opts)
        mirror, active = args.mirror, args.active
        values = pulumi.Output.all(active.bootstrap_servers, active.ca_certificate, active.credentials).apply(
            lambda known: secret_values(active.login.authentication, active.login.username, *known, tls=active.tls)
        )
        data: pulumi.Output[Mapping[str, str]] = pulumi.Output.secret(values.apply(encoded))
        OwnedSecret(
            f"{name}-secret",
            metadata={
                "name": str(mirror.clients_secret),
                "namespace": args.namespace,
                "labels": clients_labels(mirror),
            },
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
    args = ClientsArgs(mirror=flow.mirror, namespace=flow.namespace, active=flow.clients)
    return Clients(f"{flow.mirror.name}-clients", args, opts)


def clients_labels(mirror: Mirror) -> dict[str, str]:
    """Return the labels of a mirror's Secret, which name the active side."""
    return {**_CLIENTS_LABELS, "app.kubernetes.io/instance": mirror.name, ACTIVE_LABEL: mirror.active}


def encoded(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return values as the field `data` of a Secret has them, in base64."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class BreakGlassArgs:
    """The settings, the mirror's flow, and this stack's outputs of it: cluster, mirror and verification request."""

    settings: Stack
    flow: ReplicationFlow
    cluster: pulumi.Output[Mapping[str, Any]]
    mirror_output: pulumi.Output[Mapping[str, Any]]
    request: pulumi.Output[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What is known once the clusters are up. `authorities` are certificates by side."""

    cluster: Mapping[str, Any]
    mirror_output: Mapping[str, Any]
    request: Mapping[str, Any]
    source_servers: str
    target_servers: str
    authorities: Mapping[str, str | None]
    source_cluster: Mapping[str, Any] | None
    clients_servers: str | None


class BreakGlass(pulumi.ComponentResource):
    """The Secret with the copy."""

    def __init__(self, name: str, args: BreakGlassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Write the Secret. It is not protected: an `up` makes it again."""
        super().__init__("rt-inventory:kafka:BreakGlass", name, None, opts)
        flow, mirror = args.flow, args.flow.mirror
        at_target = flow.clients_at_target
        values = pulumi.Output.all(
            cluster=args.cluster,
            mirror_output=args.mirror_output,
            request=args.request,
            source_servers=flow.source.bootstrap_servers,
            target_servers=flow.target.bootstrap_servers,
            authorities=pulumi.Output.all(source=flow.source.ca_certificate, target=flow.target.ca_certificate),
            source_cluster=flow.source.outputs,
            clients_servers=at_target.bootstrap_servers if at_target is not None else None,
        ).apply(lambda known: _values(args, _Known(**known)))
        labels = {**LABELS, "app.kubernetes.io/instance": mirror.name, ACTIVE_LABEL: mirror.active}
        OwnedSecret(
            f"{name}-secret",
            metadata={"name": secret_name(mirror.name), "namespace": flow.namespace, "labels": labels},
            type="Opaque",
            data=pulumi.Output.secret(values.apply(encoded)),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"secret": secret_name(mirror.name)})


def write_break_glass(args: BreakGlassArgs, opts: pulumi.ResourceOptions) -> BreakGlass | None:
    """Write the Secret of a mirror that can be failed over: not of another one's reverse or failback."""
    if args.flow.is_reverse:
        return None
    return BreakGlass(f"{args.flow.mirror.name}-break-glass", args, opts)


def _values(args: BreakGlassArgs, known: _Known) -> dict[str, str]:
    authorities = {AUTHORITY_KEYS[side]: pem for side, pem in known.authorities.items() if pem is not None}
    return {KEY: _copy(args, known).text(), **authorities}


def _copy(args: BreakGlassArgs, known: _Known) -> BreakGlassCopy:
    flow, name = args.flow, args.flow.mirror.name
    environment = dict(_environment(flow, known.authorities))
    return BreakGlassCopy(
        outputs={
            "cluster": known.cluster,
            "mirrors": {name: known.mirror_output},
            "verificationRequests": {name: known.request},
            "verificationEnvironment": {name: {key: one.document() for key, one in environment.items()}},
        },
        source_cluster=ClusterOutputs.model_validate(known.source_cluster) if known.source_cluster else None,
        objects=(*_mirrors(args, known.source_servers, known.target_servers), *_followers(args), *_users(args)),
        clients=_clients(flow, known.clients_servers),
    )


def _environment(flow: ReplicationFlow, authorities: Mapping[str, str | None]) -> Iterator[tuple[str, SecretReference]]:
    """Where the values of the request's variables are."""
    own = secret_name(flow.mirror.name)
    for side, cluster in (("source", flow.source), ("target", flow.target)):
        for part, reference in _credentials(cluster, flow.namespace).items():
            yield f"{side.upper()}_{VARIABLES[part]}", reference
        if authorities[side] is not None:
            authority = SecretReference(namespace=flow.namespace, secret_name=own, key=AUTHORITY_KEYS[side])
            yield f"{side.upper()}_CA", authority


def _credentials(cluster: ClusterEndpoint, namespace: str) -> dict[str, SecretReference]:
    """Where a login's parts are: in this stack's reach, or as a copy in the mirror's namespace."""
    return {
        part: SecretReference(namespace=cluster.home or namespace, secret_name=cluster.login.secret, key=key)
        for part, key in secret_keys(cluster.login).items()
    }


def _clients(flow: ReplicationFlow, servers: str | None) -> ClientsAtTarget | None:
    target = flow.clients_at_target
    if target is None or servers is None:
        return None
    then = flow.mirror.model_copy(update={"active": "target"})
    return ClientsAtTarget(
        namespace=flow.namespace,
        name=str(then.clients_secret),
        labels=clients_labels(then),
        type=SECRET_TYPE,
        authentication=target.login.authentication,
        username=target.login.username,
        bootstrap_servers=servers,
        tls=target.tls,
        credentials=_credentials(target, flow.namespace),
    )


def _directions(flow: ReplicationFlow) -> list[ReplicationFlow]:
    if flow.mirror.reverse is None:
        return [flow]
    return [flow, replace(flow, mirror=flow.mirror.reverse_mirror(), source=flow.target, target=flow.source)]


def _by_state(settings: Stack, flow: ReplicationFlow) -> Iterator[tuple[str, ReplicationFlow]]:
    """The flow as it is in both states between which a failover changes it."""
    for state in ("running", settings.platform.rest_state):
        yield state, replace(flow, mirror=flow.mirror.model_copy(update={"state": state}))


def _mirrors(args: BreakGlassArgs, source_servers: str, target_servers: str) -> Iterator[ChangingObject]:
    """The KafkaMirrorMaker2 and its reverse, which follow the mirror's `state`."""
    settings, servers = args.settings, (source_servers, target_servers)
    for each in _directions(args.flow):
        specs = {state: mirror_spec(settings, then, *servers) for state, then in _by_state(settings, each)}
        yield _object(settings, "KafkaMirrorMaker2", each.namespace, each.mirror.name, "state", specs)
        servers = (target_servers, source_servers)


def _followers(args: BreakGlassArgs) -> Iterator[ChangingObject]:
    """The Deployments of the followers, which have a pod while the mirror copies."""
    settings = args.settings
    for each in _directions(args.flow):
        if each.mirror.exact_offsets is not None:
            active = replace(each, mirror=each.mirror.model_copy(update={"active": "source", "failback": None}))
            pods = {state: int(is_followed(then.mirror)) for state, then in _by_state(settings, active)}
            specs = {state: {"replicas": number} for state, number in pods.items()}
            name = follower_name(each.mirror.name)
            found = _object(settings, "Deployment", each.namespace, name, "state", specs)
            yield found.model_copy(update={"api_version": "apps/v1"})


def _users(args: BreakGlassArgs) -> Iterator[ChangingObject]:
    """The KafkaUsers whose rights follow the mirror's `active`."""
    settings = args.settings
    if settings.cluster.external is not None:
        return
    sides = {side: _with_active(settings, args.flow.mirror, side) for side in ("source", "target")}
    for user in settings.users:
        specs = {side: spec_of(user, then) for side, then in sides.items()}
        if specs["source"] != specs["target"]:
            yield _object(settings, "KafkaUser", settings.cluster.namespace, user.name, "active", specs)


def _with_active(settings: Stack, mirror: Mirror, side: str) -> Stack:
    state = settings.platform.rest_state if side == "target" else "running"
    changed = mirror.model_copy(update={"active": side, "state": state})
    mirrors = tuple(changed if each.name == mirror.name else each for each in settings.mirrors)
    return settings.model_copy(update={"mirrors": mirrors})


def _object(
    settings: Stack, kind: str, namespace: str, name: str, depends_on: str, specs: Mapping[str, Spec]
) -> ChangingObject:
    """An object with the fields of its specs that differ; None is a field that is not there."""
    keys = {key for spec in specs.values() for key in spec}
    differing = [key for key in sorted(keys) if len({str(spec.get(key)) for spec in specs.values()}) > 1]
    return ChangingObject.model_validate(
        {
            "api_version": settings.platform.api,
            "kind": kind,
            "namespace": namespace,
            "name": name,
            "depends_on": depends_on,
            "specs": {value: {key: spec.get(key) for key in differing} for value, spec in specs.items()},
        }
    )


def active_sides(settings: Stack, access: KubernetesAccess, mirrors: Iterable[Mirror]) -> dict[str, str]:
    """Return the active side of mirrors by the labels of their copies, as far as these can be read."""
    found = {}
    for mirror in mirrors:
        try:
            secret = access.secret(mirror.home(settings.cluster.namespace), secret_name(mirror.name))
        except UnreadableError:
            continue
        side = (secret.metadata.labels or {}).get(ACTIVE_LABEL) if secret is not None else None
        if side is not None:
            found[mirror.name] = side
    return found
