"""Topics that the stack declares, and the internal topics of its mirrors that are declared before they start.

Does not own topics that a mirror creates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.custom_resource import READY, CustomResource, Wait
from components.dialects import Manifest, dialect
from components.dialects import topic as topic_spec
from settings.model import Scalar
from settings.stack import Stack
from settings.topics import Topic, internal_topics_of


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
