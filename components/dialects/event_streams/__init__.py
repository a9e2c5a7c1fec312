"""`eventstreams.ibm.com/v1beta2` (IBM Event Streams): an EventStreams resource around the brokers, licensed workers."""

from components.dialects import cluster_spec, strimzi_v1beta2
from components.dialects.cluster_spec import Manifest, Spec
from components.dialects.mirror_spec import MirrorClusterSpec
from settings.cluster import Cluster
from settings.event_streams import (
    CHARGED_CONTAINERS,
    CLOUD_PAK_ANNOTATIONS,
    COMPONENTS,
    CloudPak,
    Component,
    Components,
)
from settings.mirrors import Mirror
from settings.platform import EVENT_STREAMS, Platform, annotation_domain

API_VERSION = EVENT_STREAMS
LABEL = f"{annotation_domain(EVENT_STREAMS)}/cluster"
RUNNING = ("jsonpath={.status.phase}=Ready",)
_ZOOKEEPER_NODES_MAX = 3
_HOST_TEMPLATES_SINCE = (0, 45)


def cluster(settings: Cluster, version: str, platform: Platform) -> list[Manifest]:
    """One EventStreams resource with its license; node pools are inside it if the release has them."""
    kafka = cluster_spec.kafka(settings, version if settings.version is not None else None)
    if platform.base < _HOST_TEMPLATES_SINCE:
        kafka["listeners"] = [
            cluster_spec.brokers_by_number(each, settings.broker_count) for each in kafka["listeners"]
        ]
    overrides: Spec = {"kafka": kafka, "entityOperator": {"topicOperator": {}, "userOperator": {}}}
    if platform.has_node_pools:
        overrides["nodePools"] = [
            {"name": pool.name, **cluster_spec.node_pool(pool, settings)} for pool in settings.all_node_pools
        ]
    else:
        nodes: Spec = {"storage": cluster_spec.storage(settings.storage)}
        if resources := settings.resources.rendered():
            nodes["resources"] = resources
        overrides["kafka"] = {"replicas": settings.brokers, **nodes, **kafka}
        overrides["zookeeper"] = {"replicas": min(settings.brokers, _ZOOKEEPER_NODES_MAX), **nodes}
        if "resources" in settings.spec_overrides.get("strimziOverrides", {}).get("zookeeper", {}):
            overrides["zookeeper"].pop("resources", None)  # no setting stands for them: the brokers' are a default
    spec: Spec = {
        "version": platform.full_version,
        "license": _license(platform),
        **_components(settings.components),
        "strimziOverrides": overrides,
    }
    spec = cluster_spec.with_overrides(spec, settings.spec_overrides)
    return [Manifest(kind="EventStreams", name=settings.name, annotations=settings.annotations, spec=spec)]


def mirror(
    settings: Mirror, version: str, platform: Platform, source: MirrorClusterSpec, target: MirrorClusterSpec
) -> Spec:
    """KafkaMirrorMaker2 with the annotations that the license service reads; patterns are lists, as IBM writes them."""
    spec = strimzi_v1beta2.mirror_of_clusters(settings, version, platform, source, target)
    annotations = cloud_pak_annotations(platform.counted_as, settings.name)
    counted = {**spec, "template": {"pod": {"metadata": {"annotations": annotations}}}}
    return cluster_spec.with_overrides(counted, settings.spec_overrides)


def cloud_pak_annotations(settings: CloudPak, mirror_name: str) -> dict[str, str]:
    """Annotations of the workers' pods; the charged container is the operator's `<mirror>-mirrormaker2`."""
    values = {field.alias: getattr(settings, name) for name, field in CloudPak.model_fields.items()}
    named = {name: values[key] for key, name in CLOUD_PAK_ANNOTATIONS.items() if values[key] is not None}
    own = {key: str(value) for key, value in settings.annotations.items()}
    return {**named, CHARGED_CONTAINERS: f"{mirror_name}-mirrormaker2", **own}


def _components(settings: Components | None) -> Spec:
    """The parts that are enabled; the operator decides what is not given."""
    found: Spec = {}
    for name, field in COMPONENTS.items():
        part: Component | None = getattr(settings, name, None)
        if part is not None and part.enabled:
            replicas: Spec = {} if part.replicas is None else {"replicas": part.replicas}
            resources = part.resources.rendered()
            found[field] = {**replicas, **({"resources": resources} if resources else {})}
    return found


def _license(platform: Platform) -> Spec:
    terms = platform.license
    if terms is None:  # the settings refuse it
        return {"accept": False}
    spec: Spec = {"accept": terms.accept}
    if terms.id is not None:
        spec["license"] = terms.id
    if terms.use is not None:
        spec["use"] = terms.use
    return spec
