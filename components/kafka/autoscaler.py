"""The autoscaler of a mirror's workers, by its lag: KEDA's ScaledObject, or a HorizontalPodAutoscaler.

Owns that object, and who sets the number of workers meanwhile. Does not own KEDA, the metrics adapter, or Prometheus.

An autoscaler changes `spec.replicas` through the scale subresource and so becomes the field's owner in the API server,
which from then on refuses the field from anybody else. So Pulumi ignores it: the provider leaves it out of what it
applies, and a refresh finds no difference. The way back takes two updates, because the autoscaler outlives the first
and would change what that one sets: one removes it, the next takes the field over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pulumi

from components.custom_resource import READY, CustomResource, Wait
from components.dialects import Manifest, Spec
from components.kubernetes_objects import per_program
from components.replication_flow import ReplicationFlow
from components.source_stack import previous_outputs
from settings.mirror_parts import Scaling as Settings
from settings.mirrors import Mirror

REPLICAS = "spec.replicas"
_API = {"keda": "keda.sh/v1alpha1", "hpa": "autoscaling/v2"}
_KIND = {"keda": "ScaledObject", "hpa": "HorizontalPodAutoscaler"}
_TAKE_OVER = {"pulumi.com/patchForce": "true"}
# A burst that the workers make up for by themselves is over by then; each change of their number stops all tasks.
_BURST_S, _POLL_S, _READY_S = 60, 30, 120


class Owner(StrEnum):
    """Who sets the number of a mirror's workers."""

    SETTINGS = "settings"
    AUTOSCALER = "autoscaler"
    LEAVING = "leaving"
    """The autoscaler that this update removes; the next one sets the number again."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Who sets the number of workers, and what Pulumi must know about it."""

    owner: Owner
    ignored: tuple[str, ...] = ()
    annotations: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ScalingArgs:
    """The flow, its scaling, and the API version of its KafkaMirrorMaker2."""

    flow: ReplicationFlow
    settings: Settings
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
            manifest=Manifest(kind=_KIND[through], name=mirror, spec=spec(args, pulumi.get_stack())),
            namespace=args.flow.namespace,
            wait=ready if through == "keda" else None,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def scale(name: str, flow: ReplicationFlow, api_version: str, opts: pulumi.ResourceOptions) -> None:
    """Declare the autoscaler of a mirror that asks for one and copies; at rest its workers stay as many as they are."""
    mirror = flow.mirror
    if mirror.scaling is not None and mirror.state == "running" and mirror.failback is None:
        Scaling(f"{name}-scaling", ScalingArgs(flow=flow, settings=mirror.scaling, api_version=api_version), opts)


def workers(mirror: Mirror) -> Workers:
    """Return who sets the number of the mirror's workers in this update, by its settings and the last update."""
    if mirror.scaling is not None:
        return Workers(owner=Owner.AUTOSCALER, ignored=(REPLICAS,), annotations=mirror.annotations)
    before = (per_program(_PreviousMirrors).get(mirror.name) or {}).get("workersSetBy")
    if before == Owner.AUTOSCALER:
        pulumi.log.info(
            f"mirror {mirror.name}: its autoscaler is removed, and its workers stay as many as they are. The next "
            f"`pulumi up` makes them {mirror.replicas} (replicas)."
        )
        return Workers(owner=Owner.LEAVING, ignored=(REPLICAS,), annotations=mirror.annotations)
    taken = _TAKE_OVER if before == Owner.LEAVING else {}
    return Workers(owner=Owner.SETTINGS, annotations={**mirror.annotations, **taken})


class _PreviousMirrors(dict[str, Any]):
    """Outputs of the mirrors after the last update, read once for all mirrors of a program."""

    def __init__(self) -> None:
        super().__init__(previous_outputs().get("mirrors") or {})


def spec(args: ScalingArgs, stack: str) -> Spec:
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


def query(settings: Settings, stack: str, mirror: str) -> str:
    """Return the PromQL of the mirror's lag; it has no result, and not zero, if the lag is not measured."""
    whole = "sum" if settings.lag_records is not None else "max"
    # No sample is below zero, and NaN is not above it: one would make the whole sum NaN.
    return f'{whole}({settings.series}{{stack="{stack}",mirror="{mirror}"}} >= 0)'


def _prometheus(settings: Settings, stack: str, mirror: str) -> Spec:
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


def _external(settings: Settings, stack: str, mirror: str) -> Spec:
    metric = {"name": settings.series, "selector": {"matchLabels": {"stack": stack, "mirror": mirror}}}
    return {"type": "External", "external": {"metric": metric, "target": _target(settings)}}


def _target(settings: Settings) -> dict[str, Any]:
    """Records are shared among workers; how late a mirror is, it is as a whole."""
    if settings.lag_records is not None:
        return {"type": "AverageValue", "averageValue": str(settings.lag_records)}
    return {"type": "Value", "value": str(settings.lag_seconds)}


def _behavior(settings: Settings) -> Spec:
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
