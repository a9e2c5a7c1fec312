"""A mirror for `connect-mirror-maker.sh` (org.apache.kafka.connect.mirror.MirrorMaker): settings to properties.

Also the Deployment that runs one in a cluster without an operator, with its ConfigMap. Its image is that of
`images/mirror`. The Secret with passwords, certificates and keys is only named here: somebody else creates it.

What MirrorMakerConfig makes of prefixes decides the prefix of a key: `B.` is the Connect worker at B, its clients and
its producer of records; `A.consumer.` reads records at A; `A->B.` goes to all three connectors of that direction;
without a prefix it reads its own keys, the connectors' and few of a worker's. Owns those places. Does not own how a
cluster is found, or where secrets come from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from ops.errors import OpsError
from ops.render.client_endpoints import ENV_SINCE, ClientEndpoint, End, Kind, Secrets
from settings.mirror_parts import groups_left_out, topics_left_out
from settings.mirrors import Mirror
from settings.model import Scalar
from settings.users import SASL_MECHANISMS, Section, sasl_jaas_config

SUFFIX = "-dedicated"
REST_PORT = 8083
_PACKAGE = "org.apache.kafka.connect.mirror"
# Kafka has both itself; what Strimzi once brought for identity names is only in its images.
POLICIES = {
    "identity": f"{_PACKAGE}.IdentityReplicationPolicy",
    "prefixed": f"{_PACKAGE}.DefaultReplicationPolicy",
}
_DEDICATED_EXACTLY_ONCE_SINCE = (3, 5)
Values = dict[str, Scalar]
Manifest = dict[str, Any]
FILE = "mm2.properties"
_CONFIG = "/opt/mirror/config"
_METRICS_PORT = 9404
_STARTS_WITHIN_S = 120
_HEADER = "# Written by `python -m ops render --as deployment`; change the stack file, not this one.\n"


def as_dedicated(mirror: Mirror) -> Mirror:
    """Return the mirror with a Connect group and storage topics of its own.

    In those of the operator's workers a dedicated process would join their group and start their connectors beside its
    own.
    """
    topics = {f"{kind}_storage_topic": f"{topic}{SUFFIX}" for kind, topic in mirror.storage_topics.items()}
    return mirror.model_copy(update={"group_id": f"{mirror.connect_group}{SUFFIX}", **topics})


def directions(mirror: Mirror) -> list[Mirror]:
    """Return the mirror and, with `reverse`, the one that runs the other way, as one process runs them."""
    both = [mirror] if mirror.reverse is None else [mirror, mirror.reverse_mirror()]
    return [as_dedicated(each) for each in both]


def listener(mirror: Mirror, given: str | None) -> str | None:
    """Return the address of the internal REST interface; None where it stays off, as Kafka has it.

    Exactly once needs it (KIP-710), and so do several processes, whose followers report to the leader by it.
    """
    if given is not None:
        return given
    if mirror.replicas > 1:
        return f"http://:{REST_PORT}"
    return f"http://127.0.0.1:{REST_PORT}" if mirror.exactly_once else None


def sections(
    mirror: Mirror,
    version: str,
    source: ClientEndpoint,
    target: ClientEndpoint,
    secrets: Secrets,
    rest: str | None = None,
) -> list[Section]:
    """Return the content of mm2.properties.

    Args:
        mirror: the mirror, whose reverse direction is in the same file.
        version: Kafka's version.
        source: the source cluster as the process reaches it.
        target: the target cluster as the process reaches it.
        secrets: where the properties refer to for secrets.
        rest: address of the internal REST interface, if it is to have another than the default.

    Raises:
        OpsError: the dedicated mode of that Kafka version cannot do what the mirror's settings ask for.
    """
    _refuse(mirror, version, secrets)
    flows = directions(mirror)
    sides: dict[End, ClientEndpoint] = {"source": source, "target": target}
    found = [_head(mirror, version, source, target, secrets)]
    if (address := listener(mirror, rest)) is not None:
        found.append(_rest(mirror, address))
    for end, side in sides.items():
        found.append(_cluster(mirror, flows, end, side, secrets))
    found += [_flow(flow) for flow in flows]
    if len(flows) == 1:
        found.append(_no_way_back(mirror))
    return found


def _refuse(mirror: Mirror, version: str, secrets: Secrets) -> None:
    release = tuple(int(part) for part in version.split(".")[:2])
    if secrets.kind is Kind.ENV and release < ENV_SINCE:
        raise OpsError(
            f"mirror {mirror.name}: --secrets must be directory with Kafka {version} (got env). "
            "EnvVarConfigProvider came with Kafka 3.5."
        )
    if mirror.exactly_once and release < _DEDICATED_EXACTLY_ONCE_SINCE:
        raise OpsError(
            f"mirror {mirror.name}: exactlyOnce must be false for a dedicated mirror of Kafka {version} (got true). "
            "Its dedicated mode has it since 3.5: set a newer version."
        )


def _head(mirror: Mirror, version: str, source: ClientEndpoint, target: ClientEndpoint, secrets: Secrets) -> Section:
    values: Values = {"clusters": f"{source.alias},{target.alias}", **secrets.properties()}
    values["replication.policy.class"] = POLICIES[mirror.naming]
    values["replication.policy.separator"] = mirror.separator
    arrow = "<->" if mirror.reverse is not None else "->"
    return Section(
        comment=(
            f"Mirror {mirror.name}, {source.alias} {arrow} {target.alias}: connect-mirror-maker.sh of Kafka {version}.",
            "Written by `python -m ops render --as properties`; change the stack file, not this one.",
            "It contains no secret: MirrorMaker reads them through the config provider below.",
            f"Never run it while the KafkaMirrorMaker2 {mirror.name} runs: every record would be copied twice.",
            "Changing between Kafka Connect (the operator's way) and this dedicated mode copies everything AGAIN: each",
            "keeps its positions under names that the other one does not read. See docs/dedicated-mirror.md.",
        ),
        values=values,
    )


def _rest(mirror: Mirror, address: str) -> Section:
    reason = "Exactly once needs it" if mirror.exactly_once else "Several processes need it"
    open_to_others = "127.0.0.1" not in address and "localhost" not in address
    warning = (
        ("Every process must reach the others' port, and nobody else: it has no login.",) if open_to_others else ()
    )
    return Section(
        comment=(f"Workers talk to each other here; off by default. {reason}.", *warning),
        values={"dedicated.mode.enable.internal.rest": True, "listeners": address},
    )


def _cluster(mirror: Mirror, flows: Iterable[Mirror], end: End, side: ClientEndpoint, secrets: Secrets) -> Section:
    """Connection of one cluster, the workers that write to it, and the clients that read or write its records."""
    own: Values = {}
    for flow in flows:
        _add(mirror, own, _worker(flow) if flow.target.alias == side.alias else _reader(flow))
    values = {**_connection(side, end, secrets), **own}
    prefixed: Values = {f"{side.alias}.{key}": value for key, value in values.items()}
    return Section(comment=(f"{side.alias}: cluster {side.cluster}",), values=prefixed)


def _connection(side: ClientEndpoint, end: End, secrets: Secrets) -> Values:
    values: Values = {"bootstrap.servers": side.bootstrap_servers, "security.protocol": side.security_protocol}
    if side.tls:
        values["ssl.endpoint.identification.algorithm"] = "https"
    if "ca" in side.origins:
        values["ssl.truststore.type"] = "PEM"
        values["ssl.truststore.certificates"] = secrets.reference(end, "ca")
    if side.authentication == "tls":
        values["ssl.keystore.type"] = "PEM"
        values["ssl.keystore.certificate.chain"] = secrets.reference(end, "certificate")
        values["ssl.keystore.key"] = secrets.reference(end, "key")
        return values
    if side.authentication == "none":
        return values
    values["sasl.mechanism"] = SASL_MECHANISMS[side.authentication]
    values["sasl.jaas.config"] = sasl_jaas_config(
        side.authentication, side.username, secrets.reference(end, "password")
    )
    return values


def _worker(flow: Mirror) -> Values:
    """The Connect worker at a flow's target, and the producer that writes remote topics."""
    values: Values = {"group.id": flow.connect_group}
    values |= {f"{kind}.storage.topic": topic for kind, topic in flow.storage_topics.items()}
    values |= {f"{kind}.storage.replication.factor": flow.replication_factor for kind in flow.storage_topics}
    if flow.flush_offsets_seconds is not None:
        values["offset.flush.interval.ms"] = flow.flush_offsets_seconds * 1000
    if flow.exactly_once:
        values["exactly.once.source.support"] = "enabled"
    return {**values, **flow.worker_config, **{f"producer.{key}": value for key, value in flow.producer.items()}}


def _reader(flow: Mirror) -> Values:
    """The consumer that reads records at a flow's source; exactly once must not read what is aborted later."""
    consumer: Values = {"isolation.level": "read_committed"} if flow.exactly_once else {}
    consumer |= {**flow.source.consumer_defaults, **flow.consumer}
    return {**flow.source_config, **{f"consumer.{key}": value for key, value in consumer.items()}}


def _flow(flow: Mirror) -> Section:
    factor = flow.replication_factor
    values: Values = {"enabled": True}
    lists = {
        "topics": flow.topics, "topics.exclude": topics_left_out(flow),
        "groups": flow.groups, "groups.exclude": groups_left_out(flow),
        "config.properties.exclude": flow.config_properties_exclude,
    }  # fmt: skip
    values |= {key: ",".join(entries) for key, entries in lists.items() if entries}
    values |= {
        "tasks.max": max(flow.source_tasks_max, flow.checkpoint_tasks_max),
        "replication.factor": factor,
        "offset-syncs.topic.replication.factor": factor,
        "checkpoints.topic.replication.factor": factor,
        "heartbeats.topic.replication.factor": factor,
        "offset-syncs.topic.location": flow.offset_syncs_location,
    }
    if flow.offset_lag_max is not None:
        values["offset.lag.max"] = flow.offset_lag_max
    values |= {
        "refresh.topics.interval.seconds": flow.refresh_topics_seconds,
        "sync.topic.configs.enabled": flow.sync_topic_configs,
        "sync.topic.acls.enabled": flow.sync_topic_acls,
        "refresh.groups.interval.seconds": flow.refresh_groups_seconds,
        "emit.checkpoints.enabled": flow.emit_checkpoints,
        "emit.checkpoints.interval.seconds": flow.emit_checkpoints_seconds,
        "sync.group.offsets.enabled": flow.sync_group_offsets,
        "sync.group.offsets.interval.seconds": flow.sync_group_offsets_seconds,
        "emit.heartbeats.enabled": flow.heartbeats,
    }
    if flow.sync_topic_configs_seconds is not None:
        values["sync.topic.configs.interval.seconds"] = flow.sync_topic_configs_seconds
    for free in (flow.source_connector_config, flow.checkpoint_connector_config, flow.heartbeat_connector_config):
        _add(flow, values, free)
    pair = f"{flow.source.alias}->{flow.target.alias}"
    return Section(
        comment=(f"{pair}: the three connectors share these, tasks.max too",),
        values={f"{pair}.{key}": value for key, value in values.items()},
    )


def _no_way_back(mirror: Mirror) -> Section:
    back = f"{mirror.target.alias}->{mirror.source.alias}"
    return Section(
        comment=("Nothing goes back. Heartbeats, on by default, would start a worker that writes to the source.",),
        values={f"{back}.enabled": False, f"{back}.emit.heartbeats.enabled": False},
    )


def _add(mirror: Mirror, values: Values, more: Mapping[str, Scalar]) -> None:
    """Add properties; raises OpsError where two settings disagree about one that both would set."""
    for key, value in more.items():
        if values.setdefault(key, value) != value:
            raise OpsError(
                f"mirror {mirror.name}: {key} must have one value in a dedicated mirror (got {values[key]} and {value}"
                "). Its connectors, and both directions of a reverse, share it: give the same value, or remove one."
            )


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What a dedicated mirror in pods needs. `secret_keys` are the files that its properties refer to."""

    mirror: Mirror
    namespace: str
    image: str
    secret: str
    secret_keys: tuple[str, ...]
    secrets: Secrets
    properties: str

    @property
    def name(self) -> str:
        """Name of both objects. The operator's objects of the same mirror have others."""
        return deployment_name(self.mirror)

    def manifests(self) -> list[Manifest]:
        """Return the ConfigMap with the properties, and the Deployment."""
        labels = {"app.kubernetes.io/name": self.name}
        metadata = {"name": self.name, "namespace": self.namespace, "labels": labels}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {FILE: self.properties}}
        spec = {
            # One process: several could not reach each other's REST interface by the names of their pods.
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": self._pod()},
        }
        return [config, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}]

    def _pod(self) -> Manifest:
        volumes: list[Manifest] = [
            {"name": "config", "configMap": {"name": self.name}},
            {"name": "tmp", "emptyDir": {}},
        ]
        mounts: list[Manifest] = [
            {"name": "config", "mountPath": _CONFIG, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  # a volume of the pod's own
        ]
        if self.secret_keys:
            # With a list of keys the pod waits and reports the missing one, instead of being refused by a broker.
            items = [{"key": key, "path": key} for key in self.secret_keys]
            volumes.append({"name": "secrets", "secret": {"secretName": self.secret, "items": items}})
            mounts.append({"name": "secrets", "mountPath": str(self.secrets.folder), "readOnly": True})
        return {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "terminationGracePeriodSeconds": 60,
            "containers": [{**self._container(), "volumeMounts": mounts}],
            "volumes": volumes,
        }

    def _container(self) -> Manifest:
        # The metrics agent answers as long as the process lives; MirrorMaker ends it when a worker cannot start.
        health = {"httpGet": {"path": "/-/healthy", "port": "metrics"}, "periodSeconds": 10}
        # Kafka's scripts write logs below their own folder, which is read-only.
        environment = {"LOG_DIR": "/tmp/logs"}  # noqa: S108  # a volume of the pod's own
        heap = [f"-X{key}{value}" for key, value in (("ms", self.mirror.jvm.xms), ("mx", self.mirror.jvm.xmx)) if value]
        if heap:
            environment["KAFKA_HEAP_OPTS"] = " ".join(heap)
        container: Manifest = {
            "name": "mirror",
            "image": self.image,
            "env": [{"name": name, "value": value} for name, value in environment.items()],
            "ports": [{"name": "metrics", "containerPort": _METRICS_PORT}],
            "startupProbe": {**health, "failureThreshold": _STARTS_WITHIN_S // 10},
            "readinessProbe": health,
            "livenessProbe": {**health, "failureThreshold": 6},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        resources = self.mirror.resources.rendered()
        return {**container, "resources": resources} if resources else container


def deployment_name(mirror: Mirror) -> str:
    """Return the name of the objects of a dedicated mirror."""
    return f"{mirror.name}-dedicated"


def manifests_yaml(manifests: list[Manifest]) -> str:
    """Return manifests as one YAML file."""
    pages = [yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=120) for each in manifests]
    return _HEADER + "---\n".join(pages)


class _Dumper(yaml.SafeDumper):
    """Lines as lines, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        """Return true, so that what objects share is written for each of them."""
        return True


def _represent(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _represent)
