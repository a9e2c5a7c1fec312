"""The stack's Kafka cluster with its topics and users: a managed one, or an external one that is only described.

Owns the wait until brokers, topics and users are ready, the internal topics that are declared before their mirrors
start, and generated passwords, which are Pulumi secrets from birth. Does not own topics that a mirror creates, Secrets
that the operator writes or that existed before, or the operator itself.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi
from pulumi_random import RandomPassword

from components import endpoint
from components.custom_resource import READY, CustomResource, Wait
from components.dialects import Login, Manifest, Spec, dialect, read_again
from components.dialects import topic as topic_spec
from components.dialects import user as user_spec
from components.kubernetes_objects import OwnedSecret
from components.monitoring import broker_rules
from contract.stack_outputs import ClusterOutputs, SecretKey
from settings import fence
from settings.cluster import Cluster, Listener
from settings.model import Scalar
from settings.stack import Stack
from settings.topics import Topic, internal_topics_of
from settings.users import PASSWORD, PASSWORD_KEY, Authentication, User, security


@dataclass(frozen=True, kw_only=True)
class KafkaClusterArgs:
    """The stack's settings: its cluster and the platform that runs it. `context` is the kubeconfig's, if one is set."""

    settings: Stack
    context: str | None = None


class KafkaCluster(pulumi.ComponentResource):
    """A cluster that is ready."""

    bootstrap_servers: pulumi.Output[str]
    """`host:port,...` of the listener for clients outside of its Kubernetes cluster."""
    internal_bootstrap_servers: pulumi.Output[str]
    """`host:port,...` of the listener for what runs in its Kubernetes cluster; the same unless one is exposed."""
    connection: pulumi.Output[Mapping[str, Any]]
    """What clients need besides credentials: names, address, protocol, SASL mechanism, the authority's Secret."""
    ca_certificate: pulumi.Output[str | None]
    """PEM text of the authority that signs the brokers' certificates, None for a public one; a secret."""

    def __init__(self, name: str, args: KafkaClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create the cluster and wait for it, or describe the external one."""
        super().__init__("rt-inventory:kafka:KafkaCluster", name, None, opts)
        cluster = args.settings.cluster
        if cluster.external is not None:
            self.bootstrap_servers = pulumi.Output.from_input(",".join(cluster.external.bootstrap_servers))
            self.internal_bootstrap_servers = self.bootstrap_servers
            authority = cluster.external.certificate_authority
            file = authority.file if authority else None
            self.ca_certificate = endpoint.certificate(
                f"{name}-authority", cluster.ca_secret, file, cluster.namespace, self
            )
        else:
            kind, made = self._managed(name, args.settings)
            listener = made.status.apply(lambda status: _listener(cluster, cluster.outside_listener, kind, status))
            inside = made.status.apply(lambda status: _listener(cluster, cluster.client_listener, kind, status))
            self.bootstrap_servers = listener.apply(lambda found: str(found["bootstrapServers"]))
            self.internal_bootstrap_servers = inside.apply(lambda found: str(found["bootstrapServers"]))
            self.ca_certificate = pulumi.Output.secret(listener.apply(_authority))
        self.connection = pulumi.Output.all(self.bootstrap_servers, self.internal_bootstrap_servers).apply(
            lambda servers: _connection(args, *servers)
        )
        self.register_outputs({"connection": self.connection, "caCertificate": self.ca_certificate})

    def _managed(self, name: str, settings: Stack) -> tuple[str, CustomResource]:
        cluster, platform = settings.cluster, settings.platform
        child = pulumi.ResourceOptions(parent=self, protect=cluster.protect)
        rules = broker_rules(cluster, self)
        *pools, main = dialect(platform).cluster(cluster, settings.kafka_version, platform)
        made = [
            CustomResource(
                f"{name}-pool-{pool.name}" if cluster.node_pools else f"{name}-pool",
                api_version=platform.api,
                manifest=pool,
                namespace=cluster.namespace,
                opts=child,
            )
            for pool in pools
        ]
        return main.kind, CustomResource(
            f"{name}-{main.kind.lower()}",
            api_version=platform.api,
            manifest=main,
            namespace=cluster.namespace,
            wait=Wait(
                for_=dialect(platform).RUNNING, words=f"{main.kind} {main.name}: Ready", seconds=cluster.ready_seconds
            ),
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[*made, *rules])),
        )


def client_authentication(settings: Stack) -> Authentication | None:
    """How clients log in: as the listener demands, or as the first user of an external cluster does."""
    if settings.cluster.external is not None:
        return settings.users[0].authentication if settings.users else None
    demanded = settings.cluster.client_listener.authentication
    return None if demanded == "none" else demanded


def _connection(args: KafkaClusterArgs, servers: str, internal_servers: str) -> dict[str, Any]:
    settings = args.settings
    cluster = settings.cluster
    protocol, mechanism = security(client_authentication(settings), tls=cluster.has_tls)
    outputs = ClusterOutputs(
        name=cluster.name,
        namespace=cluster.namespace,
        context=args.context,
        bootstrap_servers=servers,
        internal_bootstrap_servers=internal_servers,
        security_protocol=protocol,
        sasl_mechanism=mechanism,
        ca_secret=SecretKey(name=cluster.ca_secret[0], key=cluster.ca_secret[1]) if cluster.ca_secret else None,
    )
    return outputs.document()


def _listener(
    cluster: Cluster, wanted: Listener, kind: str, status: Mapping[str, Any] | None
) -> pulumi.Input[Mapping[str, Any]]:
    """A listener's entry in the status; raises RunError if the cluster, though ready, does not publish it.

    Unknown in the preview of a listener that is yet to be made.
    """
    found = status or {}
    for entry in found.get("listeners") or found.get("kafkaListeners") or []:
        published = entry.get("bootstrapServers") and (entry.get("certificates") or not wanted.tls)
        if entry.get("name", entry.get("type")) == wanted.name and published:
            listener: Mapping[str, Any] = entry
            return listener
    if pulumi.runtime.is_dry_run():
        unknown: pulumi.Output[Any] = pulumi.Output.from_input(pulumi.UNKNOWN)
        return unknown
    what = "bootstrapServers and certificates" if wanted.tls else "bootstrapServers"
    raise pulumi.RunError(
        f"{kind} {cluster.name}: status must hold listener {wanted.name} with {what} (got none). "
        f"Look at it: kubectl describe -n {cluster.namespace} {kind.lower()} {cluster.name}."
    )


def _authority(listener: Mapping[str, Any]) -> str | None:
    certificates = listener.get("certificates") or []
    return "\n".join(text.strip() for text in certificates) + "\n" if certificates else None


@dataclass(frozen=True, kw_only=True)
class KafkaTopicsArgs:
    """The topics, and the settings with the cluster that they lie on."""

    settings: Stack
    topics: Sequence[Topic]


class KafkaTopics(pulumi.ComponentResource):
    """Topics that exist."""

    names: list[str]
    """Names in Kafka."""

    def __init__(self, name: str, args: KafkaTopicsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each topic and wait until the cluster has it."""
        super().__init__("rt-inventory:kafka:KafkaTopics", name, None, opts)
        cluster, platform = args.settings.cluster, args.settings.platform
        child = pulumi.ResourceOptions(parent=self, protect=cluster.protect)
        labels = {dialect(platform).LABEL: cluster.name}
        for each in args.topics:
            CustomResource(
                f"{name}-{each.name}",
                api_version=platform.api,
                manifest=Manifest(
                    kind="KafkaTopic",
                    name=each.resource_name,
                    labels=labels,
                    annotations=each.annotations,
                    spec=topic_spec(each),
                ),
                namespace=cluster.namespace,
                wait=Wait(for_=READY, words=f"KafkaTopic {each.name}: Ready", seconds=each.ready_seconds),
                opts=child,
            )
        self.names = [each.name for each in args.topics]
        self.register_outputs({"names": self.names})


_SEGMENT_MS = 6 * 3600 * 1000
# Only closed segments are compacted: by Kafka's default a busy topic holds a week of offsets, all of which are read.
_COMPACTED: dict[str, Scalar] = {"cleanup.policy": "compact", "segment.ms": _SEGMENT_MS}


def internal_topics(settings: Stack) -> list[Topic]:
    """Return the internal topics on this stack's cluster, each once, for mirrors with `internalTopics: declared`."""
    found: dict[str, Topic] = {}
    for mirror in settings.mirrors:
        if mirror.internal_topics != "declared":
            continue
        for topic in internal_topics_of(mirror, settings.mirror_version(mirror)):
            if topic.location == "target":
                earlier = found[topic.name].annotations if topic.name in found else {}
                found[topic.name] = Topic(
                    name=topic.name,
                    partitions=topic.partitions,
                    replicas=mirror.replication_factor,
                    config=_COMPACTED,
                    annotations={**earlier, **mirror.annotations},
                )
    return list(found.values())


@dataclass(frozen=True, kw_only=True)
class KafkaUsersArgs:
    """The settings with the users and the cluster that they belong to.

    `shared_logins` are the clusters of other stacks, by user, whose password for that user is set here too.
    `exported` are the users whose credentials become outputs of the stack.
    """

    settings: Stack
    exported: Collection[str]
    shared_logins: Mapping[str, endpoint.ClusterEndpoint] = field(default_factory=dict)


class KafkaUsers(pulumi.ComponentResource):
    """Users that can log in."""

    logins: dict[str, Login]
    """How each user logs in, and the Secret that clients mount."""
    credentials: dict[str, pulumi.Output[endpoint.Values]]
    """Password, or certificate and private key, of each user; secrets."""
    exported_credentials: dict[str, pulumi.Output[endpoint.Values]]
    """Those of them that other stacks and commands may read."""
    stack_output: dict[str, dict[str, Any]]
    """The stack output `users`: what others need to find each user's Secret."""

    def __init__(self, name: str, args: KafkaUsersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each user and wait until the cluster knows it; look up what exists already."""
        super().__init__("rt-inventory:kafka:KafkaUsers", name, None, opts)
        managed = args.settings.cluster.external is None
        self._shared = args.shared_logins
        self.logins = {user.name: endpoint.login(user, managed=managed) for user in args.settings.users}
        for user, source in args.shared_logins.items():
            generation = source.login.password_generation
            self.logins[user] = replace(self.logins[user], password_generation=generation)
        self.credentials = {user.name: self._credentials(name, args.settings, user) for user in args.settings.users}
        self.exported_credentials = {user: self.credentials[user] for user in self.logins if user in args.exported}
        applications = {user.name for user in fence.application_users(args.settings)}
        self.stack_output = {
            user: endpoint.login_outputs(login, application=user in applications, exported=user in args.exported)
            for user, login in self.logins.items()
        }
        self.register_outputs({"credentials": pulumi.Output.secret(self.credentials)})

    def _credentials(self, name: str, settings: Stack, user: User) -> pulumi.Output[endpoint.Values]:
        namespace, login, read = settings.cluster.namespace, self.logins[user.name], f"{name}-{user.name}-login"
        if settings.cluster.external is not None:
            return endpoint.existing_credentials(read, login, namespace, self)
        if user.authentication == "tls" or user.generated_by == "operator":
            return endpoint.existing_credentials(read, login, namespace, self, self._user(name, settings, user, []))
        if user.secret is not None:
            self._user(name, settings, user, [])
            return endpoint.existing_credentials(read, endpoint.login(user, managed=False), namespace, self)
        password = self._password(name, settings, user)
        secret = OwnedSecret(
            f"{name}-{user.name}-credentials",
            metadata={"name": user.credentials_secret, "namespace": namespace},
            string_data={PASSWORD_KEY: password},
            opts=pulumi.ResourceOptions(parent=self, protect=settings.cluster.protect),
        )
        made = self._user(name, settings, user, [secret])
        # The cluster refuses a new password until the operator has set it: whoever logs in with it comes after that.
        known = pulumi.Output.all(password, made.id).apply(lambda found: {PASSWORD: found[0]})
        return pulumi.Output.secret(known)

    def _password(self, name: str, settings: Stack, user: User) -> pulumi.Output[str]:
        if user.name in self._shared:
            return self._shared[user.name].credentials.apply(lambda found: found[PASSWORD])
        # Without keepers for the first generation, so that passwords made before rotation was known stay as they are.
        generation = user.password_generation
        password = RandomPassword(
            f"{name}-{user.name}-password",
            length=user.password_length,
            special=False,  # safe inside JAAS, properties files and URLs
            keepers={"generation": str(generation)} if generation > 1 else None,
            # A rotation replaces it, so it is not protected; another length takes effect at the next rotation only.
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["length"]),
        )
        return password.result

    def _user(self, name: str, settings: Stack, user: User, needs: list[pulumi.Resource]) -> CustomResource:
        platform, cluster = settings.platform, settings.cluster
        manifest = Manifest(
            kind="KafkaUser",
            name=user.name,
            labels={dialect(platform).LABEL: cluster.name},
            annotations=user.annotations,
            spec=spec_of(user, settings) | self._read_again(user),
        )
        return CustomResource(
            f"{name}-{user.name}",
            api_version=platform.api,
            manifest=manifest,
            namespace=cluster.namespace,
            wait=Wait(for_=READY, words=f"KafkaUser {user.name}: Ready", seconds=user.ready_seconds),
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs, protect=cluster.protect),
        )

    def _read_again(self, user: User) -> Spec:
        """What makes the operator read a password again that another stack has rotated, or that is shared from now."""
        shared = self._shared.get(user.name)
        return read_again(f"{shared.stack}-{shared.login.password_generation}") if shared is not None else {}


def spec_of(user: User, settings: Stack) -> Spec:
    """Return the spec of a user's KafkaUser: its own rights, then what the fence denies."""
    return user_spec(user, fence.rules_of(user, settings), settings.platform)


def passwords(credentials: Mapping[str, pulumi.Output[endpoint.Values]]) -> dict[str, pulumi.Output[str | None]]:
    """Return the password of each user, None for users with a certificate."""
    return {user: values.apply(lambda found: found.get(PASSWORD)) for user, values in credentials.items()}
