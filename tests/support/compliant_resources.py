"""Resources that comply with every rule, in each API version, and how a test has a rule judge one.

`cluster("kafka.strimzi.io/v1")` and its siblings return a new `Sample` that a test may change in one place. The names
are those of stage `stg`.
"""

import copy
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulumi_policy import ResourceValidationArgs, ResourceValidationPolicy, StackValidationArgs, StackValidationPolicy
from pulumi_policy.deserialize import serialize_properties
from pulumi_policy.policy import PolicyCustomTimeouts, PolicyResource, PolicyResourceOptions
from pulumi_policy.proxy import unknown_checking_proxy
from pulumi_policy.secret import secrets_preserving_proxy

V1 = "kafka.strimzi.io/v1"
V1BETA2 = "kafka.strimzi.io/v1beta2"
EVENT_STREAMS = "eventstreams.ibm.com/v1beta2"
SHAPES = (V1, V1BETA2, EVENT_STREAMS)
STAGE = "stg"
NAMESPACE = "rt-inventory-stg"
Spec = dict[str, Any]
Policy = ResourceValidationPolicy | StackValidationPolicy


@dataclass(frozen=True)
class Sample:
    """A resource as a program declares it; without `protect`, who judges says whether Pulumi protects it."""

    type_: str
    props: Spec
    protect: bool | None = None

    @property
    def spec(self) -> Any:
        """Its spec, to be changed in place."""
        return self.props["spec"]

    @property
    def shape(self) -> str:
        """Its API version."""
        return self.type_.split(":")[1]

    @property
    def urn(self) -> str:
        """A URN made of type and name."""
        return f"urn:pulumi:stg::rt-inventory::{self.type_}::{self.props['metadata']['name']}"

    def annotated(self, **annotations: str) -> "Sample":
        """The same resource with these annotations."""
        self.props["metadata"].setdefault("annotations", {}).update(annotations)
        return self

    @property
    def sent(self) -> Spec:
        """Its properties as the engine sends them to a rule, over the engine's own proxies."""
        return unknown_checking_proxy(_as_the_engine_sends(self.props))


class UnchangedSample(Sample):
    """A resource that nobody changes once it is made: all rules get the same properties, which are converted once."""

    @functools.cached_property
    def sent(self) -> Spec:
        return super().sent


def judge(policy: ResourceValidationPolicy, sample: Sample, **config: object) -> list[str]:
    """What the policy reports of the resource, over the engine's own proxies and with the policy's defaults."""
    found: list[str] = []
    policy.validate(_args(policy, sample, sample.sent, config), lambda message, urn: found.append(message))
    return found


def remedied(policy: ResourceValidationPolicy, sample: Sample, **config: object) -> Any:
    """The properties after the policy's remedy; None if it leaves them alone."""
    props = secrets_preserving_proxy(copy.deepcopy(sample.props))
    answer: Any = policy.remediate(_args(policy, sample, props, config))
    return None if answer is None else serialize_properties(answer)


def judge_stack(
    policy: StackValidationPolicy, samples: Sequence[Sample], *, protected: bool = True, **config: object
) -> list[str]:
    """What the policy reports of the resources together."""
    return [message for message, _urn in judge_stack_by_urn(policy, samples, protected=protected, **config)]


def judge_stack_by_urn(
    policy: StackValidationPolicy, samples: Sequence[Sample], *, protected: bool = True, **config: object
) -> list[tuple[str, str | None]]:
    """What the policy reports of the resources together, each with the URN to which it is attributed."""
    found: list[tuple[str, str | None]] = []
    resources = [
        PolicyResource(
            sample.type_,
            sample.sent,
            sample.urn,
            sample.props.get("metadata", {}).get("name", ""),
            _options(protect=protected if sample.protect is None else sample.protect),
            None,
            None,
            [],
            {},
        )
        for sample in samples
    ]
    args = StackValidationArgs(resources, _configured(policy, config), {})
    policy.validate(args, lambda message, urn: found.append((message, urn)))
    return found


def cluster(shape: str) -> Sample:
    """A cluster of three brokers with one internal and one external listener."""
    kafka: Spec = {
        "version": "4.3.1",
        "listeners": [
            {
                "name": "tls",
                "port": 9093,
                "type": "internal",
                "tls": True,
                "authentication": {"type": "scram-sha-512"},
            },
            {
                "name": "external",
                "port": 9094,
                "type": "loadbalancer",
                "tls": True,
                "authentication": {"type": "scram-sha-512"},
            },
        ],
        "authorization": {"type": "simple"},
        "config": {
            "default.replication.factor": 3,
            "min.insync.replicas": 2,
            "offsets.topic.replication.factor": 3,
            "transaction.state.log.replication.factor": 3,
            "transaction.state.log.min.isr": 2,
        },
    }
    if shape == V1:
        return _sample(shape, "Kafka", NAMESPACE, {"kafka": kafka})
    nodes = {"replicas": 3, "storage": STORAGE, "resources": RESOURCES}
    overrides = {"kafka": {**kafka, **copy.deepcopy(nodes)}, "zookeeper": copy.deepcopy(nodes)}
    if shape == V1BETA2:
        return _sample(shape, "Kafka", NAMESPACE, overrides)
    spec = {"version": "11.0.0", "license": {"accept": True}, "strimziOverrides": overrides}
    return _sample(shape, "EventStreams", NAMESPACE, spec)


def brokers(sample: Sample) -> Any:
    """What a cluster of `cluster()` says of its brokers, to be changed in place."""
    return sample.spec["strimziOverrides"]["kafka"] if sample.shape == EVENT_STREAMS else sample.spec["kafka"]


def node_pool(shape: str) -> Sample:
    """A node pool of three nodes that are brokers and controllers."""
    spec = {
        "replicas": 3,
        "roles": ["controller", "broker"],
        "storage": copy.deepcopy(STORAGE),
        "resources": copy.deepcopy(RESOURCES),
    }
    return _labelled(_sample(shape, "KafkaNodePool", "dual", spec))


def topic(shape: str, name: str = "items", **config: object) -> Sample:
    """A topic with three partitions and three replicas; keyword arguments are configuration with `_` for `.`."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    spec = {"partitions": 3, "replicas": 3, **({"config": settings} if settings else {})}
    return _labelled(_sample(shape, "KafkaTopic", name, spec))


def user(shape: str) -> Sample:
    """A user with SCRAM that reads and writes one topic."""
    right = {
        "type": "allow",
        "host": "*",
        "operations": ["Read", "Write", "Describe"],
        "resource": {"type": "topic", "name": "items", "patternType": "literal"},
    }
    spec = {
        "authentication": {
            "type": "scram-sha-512",
            "password": {"valueFrom": {"secretKeyRef": {"name": "rt-inv-stg-user-credentials", "key": "password"}}},
        },
        "authorization": {"type": "simple", "acls": [right]},
    }
    return _labelled(_sample(shape, "KafkaUser", "rt-inv-stg-user", spec))


def mirror(shape: str, name: str = "mm2") -> Sample:
    """A mirror of three topics with identity naming, for disaster recovery."""
    policy = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
    flow: Spec = {
        "sourceConnector": {
            "tasksMax": 2,
            "config": {"replication.factor": 3, "offset-syncs.topic.replication.factor": 3, **policy},
        },
        "checkpointConnector": {
            "config": {
                "checkpoints.topic.replication.factor": 3,
                "sync.group.offsets.enabled": True,
                "emit.checkpoints.enabled": True,
                **policy,
            }
        },
        "topicsPattern": r"items|items\.inventory|store\.inventory",
        "groupsPattern": ".*",
    }
    from_ = _end("es-src", "rt-inventory-dev", "rt-inv-dev-user")
    to = _end("es-tgt", NAMESPACE, "rt-inv-stg-user")
    to["config"] |= {f"{kind}.storage.replication.factor": 3 for kind in ("config", "offset", "status")}
    spec: Spec = {"replicas": 2, "version": "4.3.1", "resources": copy.deepcopy(RESOURCES)}
    if shape == V1:
        names = {"groupId": name} | {f"{kind}StorageTopic": f"{name}-{kind}" for kind in ("config", "offset", "status")}
        spec |= {"target": {**to, **names}, "mirrors": [{"source": from_, **flow}]}
    else:
        flow["heartbeatConnector"] = {"config": {"heartbeats.topic.replication.factor": 3, **policy}}
        spec |= {
            "connectCluster": "es-tgt",
            "clusters": [from_, to],
            "mirrors": [{"sourceCluster": "es-src", "targetCluster": "es-tgt", **flow}],
        }
    return _sample(shape, "KafkaMirrorMaker2", name, spec)


def flow(sample: Sample) -> Any:
    """The only mirror of `mirror()`, to be changed in place."""
    return sample.spec["mirrors"][0]


def source(sample: Sample) -> Any:
    """The source cluster of `mirror()`, to be changed in place."""
    return flow(sample)["source"] if sample.shape == V1 else sample.spec["clusters"][0]


def target(sample: Sample) -> Any:
    """The target cluster of `mirror()`, to be changed in place."""
    return sample.spec["target"] if sample.shape == V1 else sample.spec["clusters"][1]


def core(kind: str, name: str, **props: object) -> Sample:
    """A resource of Kubernetes' core group: `core("ConfigMap", "settings", data={...})`."""
    return Sample(f"kubernetes:core/v1:{kind}", {"metadata": {"name": name, "namespace": NAMESPACE}, **props})


def subscription() -> Sample:
    """An operator's subscription with everything pinned."""
    spec = {
        "name": "strimzi-kafka-operator",
        "channel": "strimzi-1.0.x",
        "source": "operators",
        "sourceNamespace": "olm",
        "installPlanApproval": "Manual",
        "startingCSV": "strimzi-cluster-operator.v1.0.0",
    }
    metadata = {"name": "strimzi-kafka-operator", "namespace": NAMESPACE}
    return Sample("kubernetes:operators.coreos.com/v1alpha1:Subscription", {"metadata": metadata, "spec": spec})


def scaled_object(shape: str, kind: str = "KafkaMirrorMaker2", name: str = "mm2") -> Sample:
    """KEDA's autoscaler of the mirror's workers."""
    pace = {"scaleDown": {"stabilizationWindowSeconds": 600}}
    spec = {
        "scaleTargetRef": {"apiVersion": shape, "kind": kind, "name": name},
        "minReplicaCount": 2,
        "maxReplicaCount": 3,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": pace}},
        "triggers": [{"type": "prometheus", "metadata": {"query": "up", "threshold": "1"}}],
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return Sample("kubernetes:keda.sh/v1alpha1:ScaledObject", {"metadata": metadata, "spec": spec})


def pod_autoscaler(shape: str, kind: str = "KafkaMirrorMaker2", name: str = "mm2") -> Sample:
    """Kubernetes' autoscaler of the mirror's workers."""
    spec = {
        "scaleTargetRef": {"apiVersion": shape, "kind": kind, "name": name},
        "minReplicas": 2,
        "maxReplicas": 3,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 600}},
        "metrics": [{"type": "External", "external": {"metric": {"name": "lag"}, "target": {"type": "Value"}}}],
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return Sample("kubernetes:autoscaling/v2:HorizontalPodAutoscaler", {"metadata": metadata, "spec": spec})


def compliant(shape: str) -> list[Sample]:
    """A whole stack that no rule complains about."""
    return [
        core("Namespace", NAMESPACE),
        core("Secret", "rt-inv-stg-user-credentials", stringData={"password": "made-up"}),
        core("ConfigMap", "metrics", data={"rules.yml": "lowercaseOutputName: true\n"}),
        subscription(),
        cluster(shape),
        *([node_pool(shape)] if shape == V1 else []),
        topic(shape, "items"),
        topic(shape, "items.inventory", retention_ms=604_800_000, min_insync_replicas=2),
        user(shape),
        mirror(shape),
        scaled_object(shape),
    ]


def _sample(shape: str, kind: str, name: str, spec: Spec) -> Sample:
    metadata = {"name": name, "namespace": NAMESPACE}
    type_ = f"kubernetes:{shape}:{kind}"
    return Sample(type_, {"apiVersion": shape, "kind": kind, "metadata": metadata, "spec": spec})


def _labelled(sample: Sample) -> Sample:
    group = "eventstreams.ibm.com" if sample.shape == EVENT_STREAMS else "strimzi.io"
    sample.props["metadata"]["labels"] = {f"{group}/cluster": NAMESPACE}
    return sample


def _end(alias: str, cluster_name: str, username: str) -> Spec:
    return {
        "alias": alias,
        "bootstrapServers": f"{cluster_name}-kafka-bootstrap.{cluster_name}.svc:9093",
        "authentication": {
            "type": "scram-sha-512",
            "username": username,
            "passwordSecret": {"secretName": username, "password": "password"},
        },
        "tls": {"trustedCertificates": [{"secretName": f"{cluster_name}-cluster-ca-cert", "certificate": "ca.crt"}]},
        "config": {"ssl.endpoint.identification.algorithm": "https"},
    }


def _configured(policy: Policy, config: Mapping[str, object]) -> Any:
    schema = policy.config_schema.properties if policy.config_schema else {}
    assert set(config) <= set(schema), f"{policy.name} has no option {set(config) - set(schema)}"
    defaults = {key: option["default"] for key, option in schema.items()}
    return _as_the_engine_sends({**defaults, **config})


def _as_the_engine_sends(value: Any) -> Any:
    """Numbers are floats on the engine's side."""
    if isinstance(value, Mapping):
        return {key: _as_the_engine_sends(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_the_engine_sends(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _args(
    policy: ResourceValidationPolicy, sample: Sample, props: Any, config: Mapping[str, object]
) -> ResourceValidationArgs:
    name = sample.props.get("metadata", {}).get("name", "")
    options = _options(protect=True)
    return ResourceValidationArgs(sample.type_, props, sample.urn, name, options, None, _configured(policy, config), {})


def _options(*, protect: bool) -> PolicyResourceOptions:
    return PolicyResourceOptions(protect, [], None, [], PolicyCustomTimeouts(0, 0, 0), [], None)


RESOURCES: Spec = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
STORAGE: Spec = {"type": "persistent-claim", "size": "100Gi", "deleteClaim": False}
