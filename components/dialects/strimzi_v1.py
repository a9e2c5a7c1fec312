"""`kafka.strimzi.io/v1` (Strimzi 1.x): the target stands by itself, each mirror has its source."""

from components.dialects import shapes
from components.dialects.shapes import Manifest, Side, Spec
from settings.cluster import Cluster
from settings.mirrors import Mirror
from settings.platform import STRIMZI_V1, Platform, annotation_domain

LABEL = f"{annotation_domain(STRIMZI_V1)}/cluster"


def cluster(settings: Cluster, version: str, platform: Platform) -> list[Manifest]:
    """The node pools, and the Kafka resource that is waited for, last."""
    del platform  # every release of this version writes the same
    pools = [
        Manifest(
            kind="KafkaNodePool",
            name=pool.name,
            labels={LABEL: settings.name},
            annotations={**settings.annotations, **pool.annotations},
            spec=shapes.node_pool(pool, settings),
        )
        for pool in settings.all_node_pools
    ]
    spec: Spec = {
        "kafka": shapes.kafka(settings, version),
        "entityOperator": {"topicOperator": {}, "userOperator": {}},
    }
    spec = shapes.with_overrides(spec, settings.spec_overrides)
    return [*pools, Manifest(kind="Kafka", name=settings.name, annotations=settings.annotations, spec=spec)]


def mirror(settings: Mirror, version: str, platform: Platform, source: Side, target: Side) -> Spec:
    """KafkaMirrorMaker2: Connect runs at the target, one pair of connectors reads the source."""
    spec: Spec = {
        **shapes.workers(settings, version),
        "target": {
            **shapes.side(target),
            "groupId": settings.connect_group,
            **{f"{kind}StorageTopic": name for kind, name in settings.storage_topics.items()},
            **shapes.configured(settings, shapes.worker_config(settings, target)),
        },
        "mirrors": [
            {
                "source": {
                    **shapes.side(source),
                    **shapes.configured(settings, shapes.source_config(settings, source)),
                },
                **shapes.connectors(settings, version, platform),
                **shapes.patterns(settings, "|"),
            }
        ],
    }
    return shapes.with_overrides(spec, settings.spec_overrides)
