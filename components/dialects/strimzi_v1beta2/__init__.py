"""`kafka.strimzi.io/v1beta2` (Strimzi 0.45 to 0.51): a mirror lists its clusters and names them by alias."""

from dataclasses import replace

from components.dialects import cluster_spec, mirror_spec, strimzi_v1
from components.dialects.cluster_spec import Manifest, Spec
from components.dialects.mirror_spec import MirrorClusterSpec
from settings.cluster import Cluster
from settings.mirrors import Mirror
from settings.platform import STRIMZI_V1BETA2, Platform

API_VERSION = STRIMZI_V1BETA2
LABEL = strimzi_v1.LABEL
RUNNING = strimzi_v1.RUNNING
# Up to here a Kafka resource must say that it wants node pools and no ZooKeeper.
_ANNOTATED_BEFORE = (0, 46)
_KRAFT = {"strimzi.io/kraft": "enabled", "strimzi.io/node-pools": "enabled"}
# What the operator takes for the workers' group and topics when `config` does not name them.
_USUAL = {
    "group.id": "mirrormaker2-cluster",
    "config.storage.topic": "mirrormaker2-cluster-configs",
    "offset.storage.topic": "mirrormaker2-cluster-offsets",
    "status.storage.topic": "mirrormaker2-cluster-status",
}


def cluster(settings: Cluster, version: str, platform: Platform) -> list[Manifest]:
    """The node pools, and the Kafka resource that is waited for, last."""
    *pools, kafka = strimzi_v1.cluster(settings, version, platform)
    own = _KRAFT if platform.base < _ANNOTATED_BEFORE else {}
    return [*pools, replace(kafka, annotations={**kafka.annotations, **own})]


def mirror(
    settings: Mirror, version: str, platform: Platform, source: MirrorClusterSpec, target: MirrorClusterSpec
) -> Spec:
    """KafkaMirrorMaker2 whose connect cluster is the target, with regular expressions joined by '|'."""
    spec = mirror_of_clusters(settings, version, platform, source, target)
    return cluster_spec.with_overrides(spec, settings.spec_overrides)


def mirror_of_clusters(
    settings: Mirror, version: str, platform: Platform, source: MirrorClusterSpec, target: MirrorClusterSpec
) -> Spec:
    """The shape that Event Streams shares."""
    names = {"group.id": settings.connect_group}
    names |= {f"{kind}.storage.topic": name for kind, name in settings.storage_topics.items()}
    config = {
        **mirror_spec.worker_config(settings, target),
        **{key: value for key, value in names.items() if value != _USUAL[key]},
    }
    flow: Spec = {
        "sourceCluster": source.alias,
        "targetCluster": target.alias,
        **mirror_spec.connectors(settings, version, platform),
    }
    return {
        **mirror_spec.workers(settings, version),
        "connectCluster": target.alias,
        "clusters": [
            {
                **mirror_spec.mirror_cluster(source),
                **mirror_spec.configured(settings, mirror_spec.source_config(settings, source)),
            },
            {**mirror_spec.mirror_cluster(target), **mirror_spec.configured(settings, config)},
        ],
        "mirrors": [{**flow, **mirror_spec.patterns(settings, platform)}],
    }
