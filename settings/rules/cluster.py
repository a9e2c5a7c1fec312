"""Rules of the cluster: factors fit the brokers, disks have a size, listeners can be made on the platform."""

from collections import Counter
from collections.abc import Iterator

from settings.cluster import (
    FACTORS,
    MIN_INSYNC,
    SHARE_DEFAULTS,
    SHARE_FACTOR,
    SHARE_MIN_ISR,
    TRANSACTION_MIN_ISR,
    Cluster,
    External,
    Listener,
    Storage,
)
from settings.errors import Problem, Subject
from settings.names import LABEL_LENGTH_MAX
from settings.platform import SINCE, Platform
from settings.rules.common import (
    annotations,
    dotted,
    duplicates,
    leaves_room,
    metrics,
    overridden,
    owned_by_cluster,
    room,
)
from settings.rules.network_policy import network_policy_peer
from settings.text import did_you_mean, format_names, format_value

# The operator sets these itself and ignores them in `config`: FORBIDDEN_PREFIXES and FORBIDDEN_PREFIX_EXCEPTIONS of
# Strimzi's KafkaClusterSpec.
BROKER_MANAGED = (
    "listeners", "advertised.", "broker.", "listener.", "host.name", "port", "inter.broker.listener.name", "sasl.",
    "ssl.", "security.", "password.", "log.dir", "zookeeper.", "authorizer.", "super.user", "node.id", "process.roles",
    "controller.", "metadata.log.dir", "client.quota.callback.static.", "prometheus.metrics.reporter.",
    "cordoned.log.dirs", "cruise.control.metrics.reporter.bootstrap.servers",
)  # fmt: skip
BROKER_ALLOWED = (
    "sasl.server.max.receive.size", "ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols",
    "ssl.secure.random.implementation", "broker.session.timeout.ms", "broker.heartbeat.interval.ms",
    "controller.socket.timeout.ms", "controller.quorum.election.backoff.max.ms",
    "controller.quorum.election.timeout.ms", "controller.quorum.fetch.timeout.ms",
    "zookeeper.connection.timeout.ms",
)  # fmt: skip
BOOTSTRAP_SERVICE = "-kafka-bootstrap"  # which the operator names after the cluster
PORTS_OF_METRICS = (9404, 9999)  # Prometheus and JMX, which Strimzi's ListenersValidator refuses for listeners
WITHOUT_ZOOKEEPER = 4  # major version of Kafka
OF_EVERY_CLUSTER = {"name", "namespace", "create_namespace", "external", "protect"}
NODE_PLACEHOLDER = "{nodeId}"


def cluster(settings: Cluster, platform: Platform | None) -> Iterator[Problem]:
    """All rules of one cluster; those of the platform are left out if that cannot be read."""
    if settings.external is not None:
        yield from _external(settings)
        return
    at = Subject("cluster", f"cluster {settings.name}")
    yield from _names(at, settings)
    yield from _version(at, settings, platform)
    yield from _config(at, settings)
    yield from _storage(at.inside("storage"), settings.storage)
    yield from _node_pools(at, settings, platform)
    yield from _listeners(at, settings, platform)
    yield from annotations(at, settings.annotations)
    if platform is not None:
        yield from _components(at, settings, platform)
        owned = owned_by_cluster(platform, settings.components)
        yield from overridden(at, settings.spec_overrides, owned)
    exposed = settings.metrics
    yield from metrics(at.inside("metrics"), exposed)
    if exposed is not None and platform is not None and exposed.type in SINCE:
        since, reason = SINCE[exposed.type]
        if platform.base < since:
            yield at.problem(
                "metrics.type",
                f"must be jmxPrometheusExporter on {platform.type} {dotted(platform.release)}",
                exposed.type,
                "Change it, or platform.version.",
                why=reason,
            )


def _components(at: Subject, settings: Cluster, platform: Platform) -> Iterator[Problem]:
    if settings.components is None or platform.type == "event-streams":
        return
    yield at.problem(
        "components", f"must not be given for {platform.type}", fix="Remove it.", why="only Event Streams has them"
    )


def _external(settings: Cluster) -> Iterator[Problem]:
    external = settings.external
    given = sorted(settings.model_fields_set - OF_EVERY_CLUSTER)
    for name in given:
        yield Problem(
            f"cluster.{Cluster.model_fields[name].alias}",
            f"cluster {settings.name}: {Cluster.model_fields[name].alias} must not be given for an external cluster "
            "(somebody else runs it). Remove it.",
        )
    if external is not None:
        yield from authority(Subject("cluster.external", f"cluster {settings.name}"), external)


def authority(at: Subject, external: External) -> Iterator[Problem]:
    """An external cluster's authority is in one place, and there is TLS to use it for."""
    found = external.certificate_authority
    if found is None:
        return
    if (found.secret is None) == (found.file is None):
        yield at.problem(
            "certificateAuthority",
            "must have either secret or file",
            "both" if found.secret else "none",
            "Name the one that holds it.",
        )
    if not external.tls:
        yield at.problem("certificateAuthority", "must not be given without tls", "tls false", "Remove one of them.")


def _names(at: Subject, settings: Cluster) -> Iterator[Problem]:
    """Names that the operator makes of the cluster's are short enough for Kubernetes."""
    length = LABEL_LENGTH_MAX - len(BOOTSTRAP_SERVICE)
    if len(settings.name) > length:
        yield Problem(
            "cluster.name",
            f"{at.name}: name must have at most {length} characters (got {len(settings.name)}), for Kubernetes "
            f"must accept the Service {settings.name}{BOOTSTRAP_SERVICE}. Shorten it.",
        )
        return
    for index, pool in enumerate(settings.all_node_pools):
        if len(node := f"{settings.name}-{pool.name}-{pool.replicas - 1}") > LABEL_LENGTH_MAX:
            yield Problem(
                f"cluster.nodePools[{index}].name" if settings.node_pools else "cluster.nodePool",
                f"{at.name}: nodes must have names of at most {LABEL_LENGTH_MAX} characters (got {len(node)}: {node}). "
                "Shorten the pool's name or the cluster's.",
            )


def _version(at: Subject, settings: Cluster, platform: Platform | None) -> Iterator[Problem]:
    """A platform that still needs a ZooKeeper has no Kafka 4."""
    if platform is None or settings.version is None or platform.has_node_pools:
        return
    if int(settings.version.split(".")[0]) < WITHOUT_ZOOKEEPER:
        return
    yield at.problem(
        "version",
        f"must be below {WITHOUT_ZOOKEEPER}.0.0 on {platform.type} {dotted(platform.release)}",
        f"{settings.version}, which has no ZooKeeper",
        "Choose a Kafka 3, or a newer platform.version.",
    )


def _config(at: Subject, settings: Cluster) -> list[Problem]:
    said, problems = settings.kafka_config, []
    config = SHARE_DEFAULTS | dict(said)

    def number(key: str) -> int | None:
        value = config[key]
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        problems.append(
            at.problem(key, "must be a whole number >= 1", format_value(value), "Correct it.", key=f"config[{key}]")
        )
        return None

    factors, brokers = {key: number(key) for key in (*FACTORS, SHARE_FACTOR)}, settings.broker_count
    problems += [
        at.problem(
            key,
            "must be <= brokers",
            f"{factor}, allowed 1..{brokers}",
            "Lower it or add brokers.",
            key=f"config[{key}]",
        )
        for key, factor in factors.items()
        if factor is not None and factor > brokers and key in said
    ]
    for minimum_key, factor_key in (
        (MIN_INSYNC, "default.replication.factor"),
        (TRANSACTION_MIN_ISR, "transaction.state.log.replication.factor"),
        (SHARE_MIN_ISR, SHARE_FACTOR),
    ):
        minimum, factor = number(minimum_key), factors[factor_key]
        if minimum is not None and factor is not None and not leaves_room(minimum, factor):
            problems.append(
                Problem(f"cluster.config[{minimum_key}]", room(at, minimum_key, minimum, factor_key, factor))
            )
    problems += [
        at.problem(
            key, "must not be set in config", fix="Remove it.", why="the operator manages it", key=f"config[{key}]"
        )
        for key in settings.config
        if key.startswith(BROKER_MANAGED) and key not in BROKER_ALLOWED
    ]
    return problems


def _storage(at: Subject, storage: Storage) -> list[Problem]:
    problems = []

    def report(field: str, rule: str) -> None:
        problems.append(Problem(f"{at.key}.{field}", f"{at.name}: {field} {rule}"))

    if storage.type == "persistent-claim" and storage.size_gib is None:
        report("sizeGib", "must be given with persistent-claim (got nothing). Say how large each node's disk is.")
    if storage.type != "persistent-claim" and storage.storage_class is not None:
        report(
            "storageClass",
            f"must not be given with {storage.type} (got {storage.storage_class!r}). "
            "Remove it, or use persistent-claim.",
        )
    if storage.type == "jbod" and not storage.volumes:
        report("volumes", "must have at least one entry with jbod (got nothing). List its disks.")
    if storage.type == "jbod" and storage.size_gib is not None:
        report("sizeGib", f"must not be given with jbod (got {storage.size_gib}). Each of its volumes has a size.")
    if storage.type != "jbod" and storage.volumes:
        report("volumes", f"must not be given with {storage.type} (got {len(storage.volumes)}). Use jbod.")
    for volume, count in Counter(volume.id for volume in storage.volumes).items():
        if count > 1:
            report("volumes", f"must have ids of their own (got id {volume} {count} times). Renumber them.")
    return problems


def _node_pools(at: Subject, settings: Cluster, platform: Platform | None) -> Iterator[Problem]:
    pools = settings.node_pools
    yield from duplicates("cluster.nodePools", "node pool", {i: (pool.name, pool) for i, pool in enumerate(pools)})
    if pools and platform is not None and not platform.has_node_pools:
        yield at.problem(
            "nodePools",
            f"must not be given for {platform.type} {dotted(platform.release)}",
            fix="Use brokers.",
            why="it has none",
        )
    if pools and "brokers" in settings.model_fields_set:
        yield at.problem("brokers", "must not be given with nodePools", settings.brokers, "Remove one of them.")
    roles = {role for pool in pools for role in pool.roles}
    for role in ("broker", "controller"):
        if pools and role not in roles:
            yield at.problem("nodePools", f"must hold a pool with the role {role}", "none", "Add it.")
    for index, pool in enumerate(pools):
        it = Subject(f"cluster.nodePools[{index}]", f"node pool {pool.name}")
        if pool.storage is not None:
            yield from _storage(it.inside("storage"), pool.storage)
        yield from annotations(it, pool.annotations)
        if pool.annotations and platform is not None and platform.type == "event-streams":
            yield it.problem(
                "annotations",
                "must not be given on event-streams",
                format_names(pool.annotations),
                "Move them to cluster.annotations.",
                why="pools are no resources of their own there",
            )


def _listeners(at: Subject, settings: Cluster, platform: Platform | None) -> Iterator[Problem]:
    listeners = settings.listeners
    yield from duplicates("cluster.listeners", "listener", {i: (each.name, each) for i, each in enumerate(listeners)})
    ports: dict[int, str] = {}
    for index, each in enumerate(listeners):
        it = Subject(f"cluster.listeners[{index}]", f"listener {each.name}")
        owner = ports.setdefault(each.port, each.name)
        if owner != each.name:
            yield it.problem("port", "must be its own", f"{each.port}, as listener {owner}", "Change one.")
        if each.port in PORTS_OF_METRICS:
            yield it.problem(
                "port",
                f"must not be one of {', '.join(map(str, PORTS_OF_METRICS))}",
                each.port,
                "Choose another.",
                why="the operator keeps them for metrics",
            )
        yield from _listener(it, each, platform)
    yield from _exposed(settings, platform)
    if listeners and "listener_port" in settings.model_fields_set:
        yield at.problem(
            "listenerPort",
            "must not be given with listeners",
            settings.listener_port,
            "Each of them has a port: remove it.",
        )
    if listeners and settings.listener and settings.listener not in {each.name for each in listeners}:
        names = [each.name for each in listeners]
        yield at.problem(
            "listener",
            "must be one of its listeners",
            f"{settings.listener}, allowed {format_names(names)}",
            f"{did_you_mean(settings.listener, names)} Name the one that mirrors and other stacks use.",
        )


def _exposed(settings: Cluster, platform: Platform | None) -> Iterator[Problem]:
    """The listener that `expose` adds has its name and port to itself, beside one that is for the inside."""
    try:
        exposed, inside = settings.outside_listener, settings.client_listener
    except KeyError:  # reported for cluster.listener
        return
    if settings.expose is None:
        return
    it = Subject("cluster.expose", f"listener {exposed.name}")
    others = settings.all_listeners[:-1]
    yield from _listener(it, exposed, platform)
    if inside.type != "internal":
        yield it.problem(
            "expose",
            "must come with an internal listener in cluster.listener",
            f"{inside.name} of type {inside.type}, which is exposed itself",
            "Remove expose, or name the internal one.",
            key="",
        )
    if exposed.name in {each.name for each in others}:
        yield it.problem(
            "expose",
            "must be the only one to make this listener",
            "it in cluster.listeners too",
            "Remove one of the two.",
            key="",
        )
    taken = {each.port: f"as listener {each.name}" for each in others}
    taken |= dict.fromkeys(PORTS_OF_METRICS, "which the operator keeps for metrics")
    if exposed.port in taken:
        yield it.problem("port", "must be its own", f"{exposed.port}, {taken[exposed.port]}", "Choose another.")
    if exposed.type == "nodeport" and exposed.tls and exposed.host is None:
        yield it.problem(
            "host",
            "must be given with nodeport",
            "nothing",
            "The brokers' certificates name no node by themselves: give the name or address by which clients "
            "reach the nodes.",
        )


def _listener(it: Subject, each: Listener, platform: Platform | None) -> Iterator[Problem]:

    if each.type == "route" and platform is not None and platform.distribution != "openshift":
        yield it.problem(
            "type",
            f"must not be route on {platform.distribution}",
            fix="Use ingress, loadbalancer or nodeport, or set platform.distribution.",
            why="only OpenShift has routes",
        )
    if not each.tls and (each.type in ("route", "ingress") or each.authentication == "tls"):
        why = f"type {each.type}" if each.type in ("route", "ingress") else "authentication tls"
        yield it.problem("tls", f"must be true with {why}", "false", "Remove it.")
    if each.type == "ingress" and not (each.host and each.host_template):
        yield it.problem(
            "host and hostTemplate",
            "must be given with ingress",
            f"{each.host or 'nothing'} and {each.host_template or 'nothing'}",
            "Clients find brokers by them.",
            key="host",
        )
    one_host_serves = each.type == "nodeport"  # every broker has a port of its own
    if each.host_template is not None and not one_host_serves and NODE_PLACEHOLDER not in each.host_template:
        yield it.problem(
            "hostTemplate",
            f"must hold {NODE_PLACEHOLDER}",
            f"{each.host_template!r}",
            "Every broker needs a name of its own.",
        )
    if each.node_port is not None and each.type != "nodeport":
        yield it.problem("nodePort", f"must not be given with {each.type}", each.node_port, "Remove it.")
    if each.ingress_class is not None and each.type != "ingress":
        yield it.problem("ingressClass", f"must not be given with {each.type}", each.ingress_class, "Remove it.")
    for index, peer in enumerate(each.network_policy_peers):
        yield from network_policy_peer(it, f"networkPolicyPeers[{index}]", peer)
