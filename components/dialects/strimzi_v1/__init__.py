"""`kafka.strimzi.io/v1` (Strimzi 1.x): one target, and a source in each mirror."""

from components.dialects import cluster_spec, mirror_spec
from components.dialects.cluster_spec import Manifest, Spec
from components.dialects.mirror_spec import MirrorClusterSpec
from settings.cluster import Cluster
from settings.mirrors import Mirror
from settings.platform import STRIMZI_V1, Platform, annotation_domain

API_VERSION = STRIMZI_V1
LABEL = f"{annotation_domain(STRIMZI_V1)}/cluster"
RUNNING = ("condition=Ready",)


def cluster(settings: Cluster, version: str, platform: Platform) -> list[Manifest]:
    """The node pools, and the Kafka resource that is waited for, last."""
    del platform  # every release of this version writes the same
    pools = [
        Manifest(
            kind="KafkaNodePool",
            name=pool.name,
            labels={LABEL: settings.name},
            annotations={**settings.annotations, **pool.annotations},
            spec=cluster_spec.node_pool(pool, settings),
        )
        for pool in settings.all_node_pools
    ]
    spec: Spec = {
        "kafka": cluster_spec.kafka(settings, version),
        "entityOperator": {"topicOperator": {}, "userOperator": {}},
    }
    spec = cluster_spec.with_overrides(spec, settings.spec_overrides)
    return [*pools, Manifest(kind="Kafka", name=settings.name, annotations=settings.annotations, spec=spec)]


def mirror(
    settings: Mirror, version: str, platform: Platform, source: MirrorClusterSpec, target: MirrorClusterSpec
) -> Spec:
    """KafkaMirrorMaker2: Connect runs at the target, one pair of connectors reads the source."""
    spec: Spec = {
        **mirror_spec.workers(settings, version),
        "target": {
            **mirror_spec.mirror_cluster(target),
            "groupId": settings.connect_group,
            **{f"{kind}StorageTopic": name for kind, name in settings.storage_topics.items()},
            **mirror_spec.configured(settings, mirror_spec.worker_config(settings, target)),
        },
        "mirrors": [
            {
                "source": {
                    **mirror_spec.mirror_cluster(source),
                    **mirror_spec.configured(settings, mirror_spec.source_config(settings, source)),
                },
                **mirror_spec.connectors(settings, version, platform),
                **mirror_spec.patterns(settings, platform),
            }
        ],
    }
    return cluster_spec.with_overrides(spec, settings.spec_overrides)
