"""Rules of the cluster: factors fit the brokers, disks have a size, listeners can be made on the platform."""

from collections import Counter

from settings.cluster import FACTORS, MIN_INSYNC, TRANSACTION_MIN_ISR, Cluster, External, Listener, Storage
from settings.errors import Problem
from settings.names import LABEL_LENGTH_MAX
from settings.platform import SINCE, Platform
from settings.rules.common import annotations, dotted, duplicates, leaves_room, metrics, overridden, room
from settings.spec_overrides import owned_by_cluster
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


def cluster(settings: Cluster, platform: Platform | None) -> list[Problem]:
    """All rules of one cluster; those of the platform are left out if that cannot be read."""
    if settings.external is not None:
        return _external(settings)
    subject = f"cluster {settings.name}"
    problems = [*_names(subject, settings), *_version(subject, settings, platform)]
    problems += [*_config(subject, settings), *_storage("cluster.storage", subject, settings.storage)]
    problems += _node_pools(subject, settings, platform)
    problems += _listeners(subject, settings, platform)
    problems += annotations("cluster", subject, settings.annotations)
    if platform is not None:
        problems += _components(subject, settings, platform)
        owned = owned_by_cluster(platform, settings.components)
        problems += overridden("cluster", subject, settings.spec_overrides, owned)
    exposed = settings.metrics
    problems += metrics("cluster.metrics", subject, exposed)
    if exposed is not None and platform is not None and exposed.type in SINCE:
        since, reason = SINCE[exposed.type]
        if platform.base < since:
            problems.append(
                Problem(
                    "cluster.metrics.type",
                    f"{subject}: metrics.type must be jmxPrometheusExporter on {platform.type} "
                    f"{dotted(platform.release)} (got {exposed.type}; {reason}). Change it, or platform.version.",
                )
            )
    return problems


def _components(subject: str, settings: Cluster, platform: Platform) -> list[Problem]:
    if settings.components is None or platform.type == "event-streams":
        return []
    return [
        Problem(
            "cluster.components",
            f"{subject}: components must not be given for {platform.type} (only Event Streams has them). Remove it.",
        )
    ]


def _external(settings: Cluster) -> list[Problem]:
    external, problems = settings.external, []
    given = sorted(settings.model_fields_set - OF_EVERY_CLUSTER)
    problems += [
        Problem(
            f"cluster.{Cluster.model_fields[name].alias}",
            f"cluster {settings.name}: {Cluster.model_fields[name].alias} must not be given for an external cluster "
            "(somebody else runs it). Remove it.",
        )
        for name in given
    ]
    subject = f"cluster {settings.name}"
    return problems + (authority("cluster.external", subject, external) if external else [])


def authority(where: str, subject: str, external: External) -> list[Problem]:
    """An external cluster's authority is in one place, and there is TLS to use it for."""
    found, problems = external.certificate_authority, []
    if found is None:
        return []
    if (found.secret is None) == (found.file is None):
        problems.append(
            Problem(
                f"{where}.certificateAuthority",
                f"{subject}: certificateAuthority must have either secret or file (got "
                f"{'both' if found.secret else 'none'}). Name the one that holds it.",
            )
        )
    if not external.tls:
        problems.append(
            Problem(
                f"{where}.certificateAuthority",
                f"{subject}: certificateAuthority must not be given without tls (got tls false). Remove one of them.",
            )
        )
    return problems


def _names(subject: str, settings: Cluster) -> list[Problem]:
    """Names that the operator makes of the cluster's are short enough for Kubernetes."""
    length = LABEL_LENGTH_MAX - len(BOOTSTRAP_SERVICE)
    if len(settings.name) > length:
        return [
            Problem(
                "cluster.name",
                f"{subject}: name must have at most {length} characters (got {len(settings.name)}), for Kubernetes "
                f"must accept the Service {settings.name}{BOOTSTRAP_SERVICE}. Shorten it.",
            )
        ]
    return [
        Problem(
            f"cluster.nodePools[{index}].name" if settings.node_pools else "cluster.nodePool",
            f"{subject}: nodes must have names of at most {LABEL_LENGTH_MAX} characters (got {len(node)}: {node}). "
            "Shorten the pool's name or the cluster's.",
        )
        for index, pool in enumerate(settings.all_node_pools)
        if len(node := f"{settings.name}-{pool.name}-{pool.replicas - 1}") > LABEL_LENGTH_MAX
    ]


def _version(subject: str, settings: Cluster, platform: Platform | None) -> list[Problem]:
    """A platform that still needs a ZooKeeper has no Kafka 4."""
    if platform is None or settings.version is None or platform.has_node_pools:
        return []
    if int(settings.version.split(".")[0]) < WITHOUT_ZOOKEEPER:
        return []
    return [
        Problem(
            "cluster.version",
            f"{subject}: version must be below {WITHOUT_ZOOKEEPER}.0.0 on {platform.type} {dotted(platform.release)} "
            f"(got {settings.version}, which has no ZooKeeper). Choose a Kafka 3, or a newer platform.version.",
        )
    ]


def _config(subject: str, settings: Cluster) -> list[Problem]:
    config, problems = settings.kafka_config, []

    def number(key: str) -> int | None:
        value = config[key]
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        problems.append(
            Problem(
                f"cluster.config[{key}]",
                f"{subject}: {key} must be a whole number >= 1 (got {format_value(value)}). Correct it.",
            )
        )
        return None

    factors, brokers = {key: number(key) for key in FACTORS}, settings.broker_count
    problems += [
        Problem(
            f"cluster.config[{key}]",
            f"{subject}: {key} must be <= brokers (got {factor}, allowed 1..{brokers}). Lower it or add brokers.",
        )
        for key, factor in factors.items()
        if factor is not None and factor > brokers
    ]
    for minimum_key, factor_key in (
        (MIN_INSYNC, "default.replication.factor"),
        (TRANSACTION_MIN_ISR, "transaction.state.log.replication.factor"),
    ):
        minimum, factor = number(minimum_key), factors[factor_key]
        if minimum is not None and factor is not None and not leaves_room(minimum, factor):
            problems.append(
                Problem(f"cluster.config[{minimum_key}]", room(subject, minimum_key, minimum, factor_key, factor))
            )
    problems += [
        Problem(
            f"cluster.config[{key}]",
            f"{subject}: {key} must not be set in config (the operator manages it). Remove it.",
        )
        for key in settings.config
        if key.startswith(BROKER_MANAGED) and key not in BROKER_ALLOWED
    ]
    return problems


def _storage(where: str, subject: str, storage: Storage) -> list[Problem]:
    problems = []

    def report(field: str, rule: str) -> None:
        problems.append(Problem(f"{where}.{field}", f"{subject}: {field} {rule}"))

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


def _node_pools(subject: str, settings: Cluster, platform: Platform | None) -> list[Problem]:
    pools = settings.node_pools
    problems = duplicates("cluster.nodePools", "node pool", {i: (pool.name, pool) for i, pool in enumerate(pools)})
    if pools and platform is not None and not platform.has_node_pools:
        problems.append(
            Problem(
                "cluster.nodePools",
                f"{subject}: nodePools must not be given for {platform.type} {dotted(platform.release)} (it has none). "
                "Use brokers.",
            )
        )
    if pools and "brokers" in settings.model_fields_set:
        problems.append(
            Problem(
                "cluster.brokers",
                f"{subject}: brokers must not be given with nodePools (got {settings.brokers}). Remove one of them.",
            )
        )
    roles = {role for pool in pools for role in pool.roles}
    problems += [
        Problem("cluster.nodePools", f"{subject}: nodePools must hold a pool with the role {role} (got none). Add it.")
        for role in ("broker", "controller")
        if pools and role not in roles
    ]
    for index, pool in enumerate(pools):
        where, it = f"cluster.nodePools[{index}]", f"node pool {pool.name}"
        if pool.storage is not None:
            problems += _storage(f"{where}.storage", it, pool.storage)
        problems += annotations(where, it, pool.annotations)
        if pool.annotations and platform is not None and platform.type == "event-streams":
            problems.append(
                Problem(
                    f"{where}.annotations",
                    f"{it}: annotations must not be given on event-streams (got {format_names(pool.annotations)}; "
                    "pools "
                    "are no resources of their own there). Move them to cluster.annotations.",
                )
            )
    return problems


def _listeners(subject: str, settings: Cluster, platform: Platform | None) -> list[Problem]:
    listeners = settings.listeners
    problems = duplicates("cluster.listeners", "listener", {i: (each.name, each) for i, each in enumerate(listeners)})
    ports: dict[int, str] = {}
    for index, each in enumerate(listeners):
        where, it = f"cluster.listeners[{index}]", f"listener {each.name}"
        owner = ports.setdefault(each.port, each.name)
        if owner != each.name:
            problems.append(
                Problem(
                    f"{where}.port", f"{it}: port must be its own (got {each.port}, as listener {owner}). Change one."
                )
            )
        if each.port in PORTS_OF_METRICS:
            problems.append(
                Problem(
                    f"{where}.port",
                    f"{it}: port must not be one of {', '.join(map(str, PORTS_OF_METRICS))} (got {each.port}; the "
                    "operator keeps them for metrics). Choose another.",
                )
            )
        problems += _listener(where, it, each, platform)
    problems += _exposed(settings, platform)
    if listeners and "listener_port" in settings.model_fields_set:
        problems.append(
            Problem(
                "cluster.listenerPort",
                f"{subject}: listenerPort must not be given with listeners (got {settings.listener_port}). Each of "
                "them has a port: remove it.",
            )
        )
    if listeners and settings.listener and settings.listener not in {each.name for each in listeners}:
        names = [each.name for each in listeners]
        problems.append(
            Problem(
                "cluster.listener",
                f"{subject}: listener must be one of its listeners (got {settings.listener}, allowed "
                f"{format_names(names)})."
                f"{did_you_mean(settings.listener, names)} Name the one that mirrors and other stacks use.",
            )
        )
    return problems


def _exposed(settings: Cluster, platform: Platform | None) -> list[Problem]:
    """The listener that `expose` adds has its name and port to itself, beside one that is for the inside."""
    try:
        exposed, inside = settings.outside_listener, settings.client_listener
    except KeyError:  # reported for cluster.listener
        return []
    if settings.expose is None:
        return []
    it, where = f"listener {exposed.name}", "cluster.expose"
    others = settings.all_listeners[:-1]
    problems = _listener(where, it, exposed, platform)
    if inside.type != "internal":
        problems.append(
            Problem(
                where,
                f"{it}: expose must come with an internal listener in cluster.listener (got {inside.name} of type "
                f"{inside.type}, which is exposed itself). Remove expose, or name the internal one.",
            )
        )
    if exposed.name in {each.name for each in others}:
        problems.append(
            Problem(
                where,
                f"{it}: expose must be the only one to make this listener (got it in cluster.listeners too). "
                "Remove one of the two.",
            )
        )
    taken = {each.port: f"as listener {each.name}" for each in others}
    taken |= dict.fromkeys(PORTS_OF_METRICS, "which the operator keeps for metrics")
    if exposed.port in taken:
        problems.append(
            Problem(
                f"{where}.port",
                f"{it}: port must be its own (got {exposed.port}, {taken[exposed.port]}). Choose another.",
            )
        )
    if exposed.type == "nodeport" and exposed.tls and exposed.host is None:
        problems.append(
            Problem(
                f"{where}.host",
                f"{it}: host must be given with nodeport (got nothing). The brokers' certificates name no node by "
                "themselves: give the name or address by which clients reach the nodes.",
            )
        )
    return problems


def _listener(where: str, it: str, each: Listener, platform: Platform | None) -> list[Problem]:
    problems = []
    if each.type == "route" and platform is not None and platform.distribution != "openshift":
        problems.append(
            Problem(
                f"{where}.type",
                f"{it}: type must not be route on {platform.distribution} (only OpenShift has routes). "
                "Use ingress, loadbalancer or nodeport, or set platform.distribution.",
            )
        )
    if not each.tls and (each.type in ("route", "ingress") or each.authentication == "tls"):
        why = f"type {each.type}" if each.type in ("route", "ingress") else "authentication tls"
        problems.append(Problem(f"{where}.tls", f"{it}: tls must be true with {why} (got false). Remove it."))
    if each.type == "ingress" and not (each.host and each.host_template):
        problems.append(
            Problem(
                f"{where}.host",
                f"{it}: host and hostTemplate must be given with ingress (got {each.host or 'nothing'} and "
                f"{each.host_template or 'nothing'}). Clients find brokers by them.",
            )
        )
    one_host_serves = each.type == "nodeport"  # every broker has a port of its own
    if each.host_template is not None and not one_host_serves and NODE_PLACEHOLDER not in each.host_template:
        problems.append(
            Problem(
                f"{where}.hostTemplate",
                f"{it}: hostTemplate must hold {NODE_PLACEHOLDER} (got {each.host_template!r}). "
                "Every broker needs a name of its own.",
            )
        )
    if each.node_port is not None and each.type != "nodeport":
        problems.append(
            Problem(
                f"{where}.nodePort",
                f"{it}: nodePort must not be given with {each.type} (got {each.node_port}). Remove it.",
            )
        )
    if each.ingress_class is not None and each.type != "ingress":
        problems.append(
            Problem(
                f"{where}.ingressClass",
                f"{it}: ingressClass must not be given with {each.type} (got {each.ingress_class}). Remove it.",
            )
        )
    return problems
