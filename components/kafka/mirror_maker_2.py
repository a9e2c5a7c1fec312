"""One KafkaMirrorMaker2 between two endpoints, and the autoscaler of its workers if the settings ask for one.

Owns the wait until the mirror is Ready and none of its tasks has failed; the autoscaler (KEDA's ScaledObject, or a
HorizontalPodAutoscaler); and who sets the number of workers meanwhile. Does not own the mirrored topics, which the
mirror itself creates, the Secrets that it refers to, KEDA, the metrics adapter, or Prometheus.

An autoscaler changes `spec.replicas` through the scale subresource and so becomes the field's owner in the API server,
which from then on refuses the field from anybody else. So Pulumi ignores it: the provider leaves it out of what it
applies, and a refresh finds no difference. Giving an autoscaler up takes two updates, because it outlives the first and
would change what that one sets: one removes it, the next takes the field over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pulumi

from components import guards
from components.custom_resource import READY, CustomResource, Wait
from components.dialects import Manifest, Spec, dialect
from components.kubernetes_objects import per_program
from components.monitoring import worker_rules
from components.replication_flow import ReplicationFlow, previous_outputs
from contract.stack_outputs import FailedOverOutputs, MirrorOutputs
from settings.mirror_parts import FOLLOWED
from settings.mirror_parts import Scaling as ScalingSettings
from settings.mirrors import Mirror
from settings.platform import TAKES_OVER
from settings.stack import Stack

_REPLICAS = "spec.replicas"
_API = {"keda": "keda.sh/v1alpha1", "hpa": "autoscaling/v2"}
_KIND = {"keda": "ScaledObject", "hpa": "HorizontalPodAutoscaler"}
# A burst that the workers make up for by themselves is over by then; each change of their number stops all tasks.
_BURST_S, _POLL_S, _READY_S = 60, 30, 120
# Strimzi calls a mirror Ready whose task has failed. One without a task may have nothing to copy: whether it should
# have one is judged by the verification, which asks the source as the mirror's user.
NO_TASK_FAILED = 'jsonpath={$[?@.conditions && count(@.connectors[*].tasks[?@.state=="FAILED"])==0].conditions}'


class ReplicasOwner(StrEnum):
    """Who sets the number of a mirror's workers."""

    SETTINGS = "settings"
    AUTOSCALER = "autoscaler"
    LEAVING = "leaving"
    """The autoscaler that this update removes; the next one sets the number again."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Who sets the number of workers, and what Pulumi must know about it."""

    owner: ReplicasOwner
    ignored: tuple[str, ...] = ()
    annotations: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ScalingArgs:
    """The flow, its scaling, and the API version of its KafkaMirrorMaker2."""

    flow: ReplicationFlow
    settings: ScalingSettings
    api_version: str


class Scaling(pulumi.ComponentResource):
    """An autoscaler of one mirror's workers."""

    def __init__(self, name: str, args: ScalingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the autoscaler and wait for KEDA's; a HorizontalPodAutoscaler is ready when it is there."""
        super().__init__("rt-inventory:kubernetes:Scaling", name, None, opts)
        mirror, through = args.flow.mirror.name, args.settings.through
        ready = Wait(for_=READY, words=f"ScaledObject {mirror}: Ready, KEDA has taken it", seconds=_READY_S)
        CustomResource(
            f"{name}-autoscaler",
            api_version=_API[through],
            manifest=Manifest(kind=_KIND[through], name=mirror, spec=autoscaler_spec(args, pulumi.get_stack())),
            namespace=args.flow.namespace,
            wait=ready if through == "keda" else None,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def declare_autoscaler(name: str, flow: ReplicationFlow, api_version: str, opts: pulumi.ResourceOptions) -> None:
    """Declare the autoscaler of a mirror that asks for one and copies; at rest its workers stay as many as they are."""
    mirror = flow.mirror
    if mirror.scaling is not None and mirror.state == "running" and mirror.failback is None:
        Scaling(f"{name}-scaling", ScalingArgs(flow=flow, settings=mirror.scaling, api_version=api_version), opts)


def workers_of(mirror: Mirror) -> Workers:
    """Return who sets the number of the mirror's workers in this update, by its settings and the last update."""
    if mirror.scaling is not None:
        return Workers(owner=ReplicasOwner.AUTOSCALER, ignored=(_REPLICAS,), annotations=mirror.annotations)
    before = (per_program(_PreviousMirrors).get(mirror.name) or {}).get("workersSetBy")
    if before == ReplicasOwner.AUTOSCALER:
        pulumi.log.info(
            f"mirror {mirror.name}: its autoscaler is removed, and its workers stay as many as they are. The next "
            f"`pulumi up` makes them {mirror.replicas} (replicas)."
        )
        return Workers(owner=ReplicasOwner.LEAVING, ignored=(_REPLICAS,), annotations=mirror.annotations)
    taken = TAKES_OVER if before == ReplicasOwner.LEAVING else {}
    return Workers(owner=ReplicasOwner.SETTINGS, annotations={**mirror.annotations, **taken})


class _PreviousMirrors(dict[str, Any]):
    """Outputs of the mirrors after the last update, read once for all mirrors of a program."""

    def __init__(self) -> None:
        super().__init__(previous_outputs().get("mirrors") or {})


def autoscaler_spec(args: ScalingArgs, stack: str) -> Spec:
    """Return the autoscaler's spec; `stack` is the label that distinguishes its metrics from other stacks'."""
    mirror, settings = args.flow.mirror.name, args.settings
    target = {"apiVersion": args.api_version, "kind": "KafkaMirrorMaker2", "name": mirror}
    if settings.through == "hpa":
        return {
            "scaleTargetRef": target,
            "minReplicas": settings.min_replicas,
            "maxReplicas": settings.max_replicas,
            "metrics": [_external(settings, stack, mirror)],
            "behavior": _behavior(settings),
        }
    return {
        "scaleTargetRef": target,
        "minReplicaCount": settings.min_replicas,
        "maxReplicaCount": settings.max_replicas,
        "pollingInterval": _POLL_S,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior(settings)}},
        "triggers": [_prometheus(settings, stack, mirror)],
    }


def query(settings: ScalingSettings, stack: str, mirror: str) -> str:
    """Return the PromQL of the mirror's lag; it has no result, and not zero, if the lag is not measured."""
    whole = "sum" if settings.lag_records is not None else "max"
    # No sample is below zero, and NaN is not above it: one would make the whole sum NaN.
    return f'{whole}({settings.series}{{stack="{stack}",mirror="{mirror}"}} >= 0)'


def _prometheus(settings: ScalingSettings, stack: str, mirror: str) -> Spec:
    metadata = {
        "serverAddress": settings.prometheus,
        "query": query(settings, stack, mirror),
        "threshold": str(settings.lag_records or settings.lag_seconds),
        # If the workers are not scraped their lag is unknown: a null is an error, and an error leaves their number.
        "ignoreNullValues": "false",
    }
    trigger: Spec = {"type": "prometheus", "metricType": _target(settings)["type"], "metadata": metadata}
    if settings.trigger_authentication is not None:
        metadata["authModes"] = "bearer"
        trigger["authenticationRef"] = {"name": settings.trigger_authentication}
    return trigger


def _external(settings: ScalingSettings, stack: str, mirror: str) -> Spec:
    metric = {"name": settings.series, "selector": {"matchLabels": {"stack": stack, "mirror": mirror}}}
    return {"type": "External", "external": {"metric": metric, "target": _target(settings)}}


def _target(settings: ScalingSettings) -> dict[str, Any]:
    """Records are shared among workers; how late a mirror is, it is as a whole."""
    if settings.lag_records is not None:
        return {"type": "AverageValue", "averageValue": str(settings.lag_records)}
    return {"type": "Value", "value": str(settings.lag_seconds)}


def _behavior(settings: ScalingSettings) -> Spec:
    """Up in one step, down one by one: each step makes Connect rebalance its tasks."""
    steps = max(1, settings.max_replicas - settings.min_replicas)
    return {
        "scaleUp": {
            "stabilizationWindowSeconds": _BURST_S,
            "policies": [{"type": "Pods", "value": steps, "periodSeconds": settings.cooldown_seconds}],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": settings.stabilization_seconds,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": settings.cooldown_seconds}],
        },
    }


@dataclass(frozen=True, kw_only=True)
class MirrorMaker2Args:
    """The stack's settings, and the flow with its two endpoints."""

    settings: Stack
    flow: ReplicationFlow


class MirrorMaker2(pulumi.ComponentResource):
    """A mirror that its operator calls Ready, and of which no task has failed."""

    connect_url: pulumi.Output[str | None]
    """Address of Connect's REST interface."""
    stack_output: pulumi.Output[Mapping[str, Any]]
    """Its entry in `mirrors`: where it runs, between which clusters, what it copies, and Connect's address."""
    state: pulumi.Output[str]
    """`Ready`, or the reason why the mirror was not ready at the end of the last `up`."""
    spec: pulumi.Output[Mapping[str, Any]]
    """What was asked of the operator."""

    def __init__(self, name: str, args: MirrorMaker2Args, opts: pulumi.ResourceOptions | None = None) -> None:
        """Create the mirror and wait for it."""
        super().__init__("rt-inventory:kafka:MirrorMaker2", name, None, opts)
        flow, platform = args.flow, args.settings.platform
        workers = workers_of(flow.mirror)
        self.spec = pulumi.Output.all(flow.source.bootstrap_servers, flow.target.bootstrap_servers).apply(
            lambda servers: mirror_spec(args.settings, flow, *servers)
        )
        mirror = CustomResource(
            f"{name}-mirror",
            api_version=platform.api,
            manifest=Manifest(
                kind="KafkaMirrorMaker2",
                name=flow.mirror.name,
                annotations={**workers.annotations, **(FOLLOWED if flow.mirror.exact_offsets else {})},
                spec={},
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
        declare_autoscaler(name, flow, platform.api, pulumi.ResourceOptions(parent=self, depends_on=[mirror]))
        self.connect_url = mirror.status.apply(lambda status: (status or {}).get("url"))
        self.stack_output = self.connect_url.apply(lambda url: _stack_output(args, workers.owner, url))
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


def _stack_output(args: MirrorMaker2Args, workers_set_by: ReplicasOwner, connect_url: str | None) -> dict[str, Any]:
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
    if (moved := mirror.failed_over) is not None:
        parts = FailedOverOutputs(topics=moved.topics, groups=moved.groups, pending=moved.pending)
        outputs = outputs.model_copy(update={"failed_over": parts})
    if mirror.exactly_once:
        outputs = outputs.model_copy(update={"exactly_once": True})
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
