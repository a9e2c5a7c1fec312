"""One KafkaMirrorMaker2 between two endpoints.

Owns the wait until the mirror is Ready and none of its tasks has failed. Does not own the mirrored topics, which the
mirror itself creates, the Secrets that it refers to, or the number of its workers while something scales them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components import guards
from components.custom_resource import READY, CustomResource, Wait
from components.dialects import Manifest, Spec, dialect
from components.kafka import autoscaler
from components.monitoring import worker_rules
from components.replication_flow import ReplicationFlow
from contract.stack_outputs import MirrorOutputs
from settings.stack import Stack

# Strimzi calls a mirror Ready whose task has failed. One without a task may have nothing to copy: whether it should
# have one is judged by the verification, which asks the source as the mirror's user.
NO_TASK_FAILED = 'jsonpath={$[?@.conditions && count(@.connectors[*].tasks[?@.state=="FAILED"])==0].conditions}'


@dataclass(frozen=True, kw_only=True)
class MirrorMaker2Args:
    """The stack's settings, and the flow with its two endpoints."""

    settings: Stack
    flow: ReplicationFlow


class MirrorMaker2(pulumi.ComponentResource):
    """A mirror that its operator calls Ready, and of which no task has failed."""

    connect_url: pulumi.Output[str | None]
    """Address of Connect's REST interface."""
    facts: pulumi.Output[Mapping[str, Any]]
    """What people on call need to know: where it runs, between what, what it carries, where Connect answers."""
    state: pulumi.Output[str]
    """`Ready`, or the reason why the mirror was not ready at the end of the last `up`."""
    spec: pulumi.Output[Mapping[str, Any]]
    """What was asked of the operator."""

    def __init__(self, name: str, args: MirrorMaker2Args, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create the mirror and wait for it."""
        super().__init__("rt-inventory:kafka:MirrorMaker2", name, None, opts)
        flow, platform = args.flow, args.settings.platform
        workers = autoscaler.workers(flow.mirror)
        self.spec = pulumi.Output.all(flow.source.bootstrap_servers, flow.target.bootstrap_servers).apply(
            lambda servers: mirror_spec(args.settings, flow, *servers)
        )
        mirror = CustomResource(
            f"{name}-mirror",
            api_version=platform.api,
            manifest=Manifest(
                kind="KafkaMirrorMaker2", name=flow.mirror.name, annotations=workers.annotations, spec={}
            ),
            namespace=flow.namespace,
            spec=self.spec,
            wait=Wait(
                for_=(*READY, NO_TASK_FAILED),
                words=f"KafkaMirrorMaker2 {flow.mirror.name}: Ready, no task failed",
                seconds=flow.mirror.ready_seconds,
            ),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=worker_rules(flow.mirror, flow.namespace, self),
                ignore_changes=[*workers.ignored],
            ),
        )
        autoscaler.scale(name, flow, platform.api, pulumi.ResourceOptions(parent=self, depends_on=[mirror]))
        self.connect_url = mirror.status.apply(lambda status: (status or {}).get("url"))
        self.facts = self.connect_url.apply(lambda url: _facts(args, workers.owner, url))
        self.state = mirror.status.apply(_state)
        self.register_outputs({"connectUrl": self.connect_url, "state": self.state})


def mirror_spec(settings: Stack, flow: ReplicationFlow, source_servers: str, target_servers: str) -> Spec:
    """Return the resource's spec in the platform's dialect."""
    mirror = flow.mirror
    return dialect(settings.platform).mirror(
        mirror,
        settings.mirror_version(mirror),
        settings.platform,
        flow.source.mirror_cluster(mirror.source.alias, source_servers),
        flow.target.mirror_cluster(mirror.target.alias, target_servers),
    )


def _facts(args: MirrorMaker2Args, workers_set_by: autoscaler.Owner, connect_url: str | None) -> dict[str, Any]:
    mirror = args.flow.mirror
    outputs = MirrorOutputs(
        **dict(guards.mirror_identity(mirror)),
        state=mirror.state,
        active=None if args.flow.is_reverse else mirror.active,
        clients_secret=mirror.clients_secret,
        failback=mirror.failback,
        workers_set_by=workers_set_by.value,
        rest_state=args.settings.platform.rest_state,
        alters_offsets=args.settings.platform.has_connector_offsets and mirror.config_defaults,
        namespace=args.flow.namespace,
        version=args.settings.mirror_version(mirror),
        source_cluster=args.flow.source.name,
        target_cluster=args.flow.target.name,
        topics=mirror.topics,
        topics_exclude=mirror.topics_exclude,
        groups=mirror.groups,
        connect_url=connect_url,
    )
    if mirror.clients is not None and mirror.clients.restart:
        outputs = outputs.model_copy(update={"restart_clients": True})
    return outputs.document()


def _state(status: Mapping[str, Any] | None) -> str:
    for condition in (status or {}).get("conditions") or []:
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            return "Ready"
        if condition.get("type") in ("Ready", "NotReady"):
            return str(condition.get("reason") or "NotReady")
    return "Unknown"
