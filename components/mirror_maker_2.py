"""A mirror into this stack's cluster: the source's two Secrets under their own names, and the KafkaMirrorMaker2.

Owns the wait until the connectors run. Does not own the mirrored topics, which the mirror itself creates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.core.v1 import Secret

from components.custom_resource import READY, CustomResource, Wait
from components.dialects import Side, strimzi_v1
from components.kafka_cluster import KafkaCluster
from components.source_stack import SourceCluster
from settings.cluster import Cluster
from settings.mirrors import Mirror
from settings.platform import Platform


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The two clusters of a mirror, and the password of its user on the target."""

    source: SourceCluster
    target: KafkaCluster
    target_password: pulumi.Output[str]


@dataclass(frozen=True, kw_only=True)
class MirrorMaker2Args:
    """The mirror's settings, this stack's cluster, and both ends."""

    platform: Platform
    cluster: Cluster
    mirror: Mirror
    ends: Ends


class MirrorMaker2(pulumi.ComponentResource):
    """A mirror whose connectors run."""

    connect_url: pulumi.Output[str | None]
    """Address of Connect's REST interface."""
    facts: pulumi.Output[Mapping[str, Any]]
    """What people on call need to know: where it runs, between what, what it carries, where Connect answers."""
    state: pulumi.Output[str]
    """`Ready`, or the reason why the mirror was not ready when it was last looked at."""
    spec: pulumi.Output[Mapping[str, Any]]
    """What was asked of the operator."""

    def __init__(self, name: str, args: MirrorMaker2Args, opts: pulumi.ResourceOptions | None = None) -> None:
        """Copy the Secrets, create the mirror and wait for it."""
        super().__init__("rt-inventory:kafka:MirrorMaker2", name, None, opts)
        source, namespace = args.ends.source, args.cluster.namespace
        child = pulumi.ResourceOptions(parent=self)
        copies = {
            source.user_secret: {source.user_secret_key: source.password},
            strimzi_v1.ca_secret(source.name): {strimzi_v1.CA_KEY: source.ca_certificate},
        }
        secrets = [
            Secret(
                f"{name}-{secret}",
                metadata={"name": secret, "namespace": namespace},
                string_data=dict(data),
                opts=child,
            )
            for secret, data in copies.items()
        ]
        self.spec = pulumi.Output.all(source.bootstrap_servers, args.ends.target.bootstrap_servers).apply(
            lambda servers: _spec(args, servers[0], servers[1])
        )
        mirror = CustomResource(
            f"{name}-mirror",
            api_version=args.platform.api_version,
            kind="KafkaMirrorMaker2",
            metadata={"name": args.mirror.name, "namespace": namespace},
            spec=self.spec,
            wait=Wait(
                for_=READY,
                words=f"KafkaMirrorMaker2 {args.mirror.name}: Ready, all connectors running",
                seconds=args.mirror.ready_seconds,
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=secrets),
        )
        self.connect_url = mirror.status.apply(lambda status: (status or {}).get("url"))
        self.facts = self.connect_url.apply(lambda url: _facts(args, url))
        self.state = mirror.status.apply(_state)
        self.register_outputs({"connectUrl": self.connect_url, "state": self.state})


def _spec(args: MirrorMaker2Args, source_servers: str, target_servers: str) -> dict[str, Any]:
    mirror = args.mirror
    source = Side(
        alias=mirror.source.alias,
        bootstrap_servers=source_servers,
        user=mirror.source.user,
        password_secret=args.ends.source.user_secret,
        ca_secret=strimzi_v1.ca_secret(args.ends.source.name),
    )
    target = Side(
        alias=mirror.target.alias,
        bootstrap_servers=target_servers,
        user=mirror.target.user,
        password_secret=mirror.target.user,
        ca_secret=strimzi_v1.ca_secret(args.cluster.name),
    )
    return strimzi_v1.mirror(mirror, args.cluster.version, source, target)


def _facts(args: MirrorMaker2Args, connect_url: str | None) -> dict[str, Any]:
    mirror = args.mirror
    return {
        "namespace": args.cluster.namespace,
        "sourceStack": mirror.source.stack,
        "sourceAlias": mirror.source.alias,
        "targetAlias": mirror.target.alias,
        "topics": list(mirror.topics),
        "topicsExclude": list(mirror.topics_exclude),
        "groups": list(mirror.groups),
        "naming": mirror.naming,
        "connectUrl": connect_url,
        "offsetStorageTopic": mirror.storage_topics["offset"],
    }


def _state(status: Mapping[str, Any] | None) -> str:
    for condition in (status or {}).get("conditions") or []:
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            return "Ready"
        if condition.get("type") in ("Ready", "NotReady"):
            return str(condition.get("reason") or "NotReady")
    return "Unknown"
