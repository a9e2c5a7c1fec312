"""Topics that the stack declares. Does not own topics that a mirror creates."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.custom_resource import READY, CustomResource, Wait
from components.dialects import strimzi_v1
from settings.cluster import Cluster
from settings.platform import Platform
from settings.topics import Topic


@dataclass(frozen=True, kw_only=True)
class KafkaTopicsArgs:
    """The topics and the cluster that they lie on."""

    platform: Platform
    cluster: Cluster
    topics: Sequence[Topic]


class KafkaTopics(pulumi.ComponentResource):
    """Topics that exist."""

    names: list[str]
    """Names in Kafka."""

    def __init__(self, name: str, args: KafkaTopicsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create each topic and wait until the cluster has it."""
        super().__init__("rt-inventory:kafka:KafkaTopics", name, None, opts)
        child = pulumi.ResourceOptions(parent=self, protect=args.cluster.protect)
        for topic in args.topics:
            CustomResource(
                f"{name}-{topic.name}",
                api_version=args.platform.api_version,
                kind="KafkaTopic",
                metadata={
                    "name": topic.resource_name,
                    "namespace": args.cluster.namespace,
                    "labels": {strimzi_v1.CLUSTER_LABEL: args.cluster.name},
                },
                spec=strimzi_v1.topic(topic),
                wait=Wait(for_=READY, words=f"KafkaTopic {topic.name}: Ready", seconds=topic.ready_seconds),
                opts=child,
            )
        self.names = [topic.name for topic in args.topics]
        self.register_outputs({"names": self.names})
