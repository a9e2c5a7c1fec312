"""`eventstreams.ibm.com/v1beta2` (IBM Event Streams): an EventStreams resource around the brokers, licensed workers."""

from components.dialects import shapes, strimzi_v1beta2
from components.dialects.shapes import Manifest, Side, Spec
from settings.cluster import Cluster
from settings.mirrors import Mirror
from settings.platform import CloudPak, Platform

LABEL = "eventstreams.ibm.com/cluster"
_ZOOKEEPER_NODES_MAX = 3
_HOST_TEMPLATES_SINCE = (0, 45)


def cluster(settings: Cluster, version: str, platform: Platform) -> list[Manifest]:
    """One EventStreams resource with its license; node pools stand inside it where the release has them."""
    kafka = shapes.kafka(settings, version if settings.version is not None else None)
    if platform.base < _HOST_TEMPLATES_SINCE:
        kafka["listeners"] = [shapes.brokers_by_number(each, settings.broker_count) for each in kafka["listeners"]]
    overrides: Spec = {"kafka": kafka, "entityOperator": {"topicOperator": {}, "userOperator": {}}}
    if platform.has_node_pools:
        overrides["nodePools"] = [
            {"name": pool.name, **shapes.node_pool(pool, settings)} for pool in settings.all_node_pools
        ]
    else:
        nodes = {"replicas": settings.brokers, "storage": shapes.storage(settings.storage)}
        if resources := settings.resources.rendered():
            nodes["resources"] = resources
        overrides["kafka"] = {**nodes, **kafka}
        overrides["zookeeper"] = {
            "replicas": min(settings.brokers, _ZOOKEEPER_NODES_MAX),
            "storage": shapes.storage(settings.storage),
        }
    spec: Spec = {
        "version": platform.version or ".".join(str(part) for part in (*platform.release, 0)),
        "license": _license(platform),
        "strimziOverrides": overrides,
    }
    return [Manifest(kind="EventStreams", name=settings.name, annotations=settings.annotations, spec=spec)]


def mirror(settings: Mirror, version: str, platform: Platform, source: Side, target: Side) -> Spec:
    """KafkaMirrorMaker2 with the annotations that the license service reads; patterns are lists, as IBM writes them."""
    spec = strimzi_v1beta2.mirror_of_clusters(settings, version, platform, source, target, ",")
    annotations = cloud_pak_annotations(platform.cloud_pak, settings.name)
    return {**spec, "template": {"pod": {"metadata": {"annotations": annotations}}}}


def cloud_pak_annotations(settings: CloudPak, mirror_name: str) -> dict[str, str]:
    """Annotations of the workers' pods; the charged container is the operator's `<mirror>-mirrormaker2`."""
    return {
        "eventstreams.production.type": settings.production_type,
        "productID": settings.product_id,
        "productName": settings.product_name,
        "productVersion": settings.product_version,
        "productMetric": settings.product_metric,
        "productChargedContainers": f"{mirror_name}-mirrormaker2",
        "productCloudpakRatio": settings.cloudpak_ratio,
        "cloudpakId": settings.cloudpak_id,
        "cloudpakName": settings.cloudpak_name,
        "cloudpakVersion": settings.cloudpak_version,
        **{key: str(value) for key, value in settings.annotations.items()},
    }


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
