"""The follower of a mirror, which `exactOffsets` asks for: a Deployment that sets groups exactly on the target.

Owns the ConfigMap with what the pod needs of the stack's outputs, the Secret with the values that these name, the
NetworkPolicy that leaves only its metrics to others, and the Deployment. While the mirror does not copy from an active
source it has no pod: a failover stops it with the mirror. Does not own what the pod does (`ops/follow/`), the image,
the users as whom it logs in, which are the mirror's, or how the pod is scraped (`components.monitoring`).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ConfigMap, Secret
from pulumi_kubernetes.networking.v1 import NetworkPolicy

from components.dialects import Spec
from components.kubernetes_objects import container_security_context, pod_security_context
from components.verification.audit import metrics_access
from components.verification.verification import VerificationArgs, build_request
from settings import NAMESPACE
from settings.mirror_parts import FOLLOWER, FOLLOWER_PORT, FOLLOWER_PORT_NAME, ExactOffsets, follower_name, is_followed

USER = 10002  # of the image, see images/follower
FINGERPRINT = f"{NAMESPACE}/follower-outputs"
FOLDER, OUTPUTS, WORK = "/etc/follower", "outputs.json", "/tmp"  # noqa: S108 - of the pod
_FOLLOWED = frozenset(
    {
        *("name", "topics", "topics_exclude", "groups", "groups_exclude", "naming", "separator", "version"),
        *("source_alias", "target_alias", "replication_factor", "checkpoints_topic", "offset_syncs_topic"),
        *("sync_group_offsets", "exact_offsets"),
    }
)
GRACE_S, DEADLINE_S = 60, 600


@dataclass(frozen=True, kw_only=True)
class FollowerArgs:
    """What is verified of the mirror, which is what is followed, and the values of the variables of its request."""

    of: VerificationArgs
    environment: pulumi.Output[Mapping[str, str]]


class Follower(pulumi.ComponentResource):
    """A mirror whose groups a pod sets."""

    def __init__(self, name: str, args: FollowerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make the Deployment and what it needs; an `up` waits until the pod has done a round, if it is to have one."""
        super().__init__("rt-inventory:kafka:Follower", name, None, opts)
        flow, child = args.of.flow, pulumi.ResourceOptions(parent=self)
        labels = follower_labels(flow.mirror.name)
        metadata = {"name": follower_name(flow.mirror.name), "namespace": flow.namespace, "labels": labels}
        text = pulumi.Output.all(flow.source.bootstrap_servers, flow.target.bootstrap_servers).apply(
            lambda servers: json.dumps(outputs(args.of, *servers), indent=2, sort_keys=True)
        )
        needs: list[pulumi.Resource] = [
            ConfigMap(f"{name}-outputs", metadata=metadata, data={OUTPUTS: text}, opts=child),
            Secret(f"{name}-secrets", metadata=metadata, string_data=args.environment, opts=child),
            NetworkPolicy(f"{name}-metrics", metadata=metadata, spec=metrics_access(labels, FOLLOWER_PORT), opts=child),
        ]
        limit = pulumi.CustomTimeouts(create=f"{DEADLINE_S}s", update=f"{DEADLINE_S}s")
        stack = pulumi.get_stack()
        Deployment(
            f"{name}-deployment",
            metadata=metadata,
            spec=text.apply(lambda known: deployment(args.of, stack, known)),
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs, custom_timeouts=limit),
        )
        self.register_outputs({"deployment": metadata["name"]})


def install_follower(args: FollowerArgs, opts: pulumi.ResourceOptions) -> Follower | None:
    """Return the follower of a mirror that asks for one."""
    mirror = args.of.flow.mirror
    return Follower(follower_name(mirror.name), args, opts) if mirror.exact_offsets is not None else None


def follower_labels(mirror: str) -> dict[str, str]:
    """Return the labels of every object and of the pod; a PodMonitor finds it by them."""
    return {
        "app.kubernetes.io/name": FOLLOWER,
        "app.kubernetes.io/instance": mirror,
        "app.kubernetes.io/part-of": NAMESPACE,
    }


def outputs(of: VerificationArgs, source_servers: str, target_servers: str) -> dict[str, Any]:
    """Return what the pod needs of the stack's outputs, from inside the cluster, and nothing that would restart it.

    None of it depends on the mirror's state or on the active side: at a switch only the number of pods changes.
    """
    request = build_request(of, source_servers, target_servers, None)
    return of_request(of.flow.mirror.name, request, exactly_once=of.flow.mirror.exactly_once)


def of_request(mirror: str, request: Mapping[str, Any], *, exactly_once: bool) -> dict[str, Any]:
    """Return what the pod needs of a mirror's request."""
    used = {key: value for key, value in request["mirror"].items() if key in _FOLLOWED}
    limits = {"isolation": request["limits"]["isolation"]}
    return {
        "verificationRequests": {mirror: {**request, "mirror": used, "limits": limits}},
        "mirrors": {mirror: {"exactlyOnce": exactly_once}},
    }


def deployment(of: VerificationArgs, stack: str, known: str) -> Spec:
    """Return the spec of the Deployment: at most one pod, and the old one ends before a new one starts."""
    flow, labels = of.flow, follower_labels(of.flow.mirror.name)
    asked = flow.mirror.exact_offsets
    if asked is None:
        raise ValueError(f"mirror {flow.mirror.name}: must have exactOffsets to be followed (got none).")
    # The pod reads its outputs and variables when it starts. No secret is in what is digested.
    generations = [side.login.password_generation for side in (flow.source, flow.target)]
    digest = hashlib.sha256(json.dumps([known, generations]).encode()).hexdigest()
    return {
        "replicas": int(is_followed(flow.mirror)),
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": {FINGERPRINT: digest}},
            "spec": _pod(of, stack, asked),
        },
    }


def _pod(of: VerificationArgs, stack: str, asked: ExactOffsets) -> Spec:
    name = of.flow.mirror.name
    container: Spec = {
        "name": "follower",
        "image": asked.image,
        "imagePullPolicy": "IfNotPresent",
        "args": _arguments(stack, name),
        "envFrom": [{"secretRef": {"name": follower_name(name)}}],
        "ports": [{"name": FOLLOWER_PORT_NAME, "containerPort": FOLLOWER_PORT, "protocol": "TCP"}],
        # Ready while rounds succeed. A source that is lost is no reason to start it again.
        "readinessProbe": {"httpGet": {"path": "/ready", "port": FOLLOWER_PORT}, "periodSeconds": 10},
        "livenessProbe": {
            "httpGet": {"path": "/metrics", "port": FOLLOWER_PORT},
            "initialDelaySeconds": 30,
            "periodSeconds": 20,
            "timeoutSeconds": 5,
        },
        "resources": asked.resources.rendered(),
        "securityContext": container_security_context(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "outputs", "mountPath": FOLDER, "readOnly": True},
            {"name": "work", "mountPath": WORK},
        ],
    }
    pod: Spec = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": _security(of),
        "containers": [container],
        "volumes": [
            {"name": "outputs", "configMap": {"name": follower_name(name)}},
            {"name": "work", "emptyDir": {}},
        ],
    }
    if asked.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": one} for one in asked.image_pull_secrets]
    return pod


def _arguments(stack: str, mirror: str) -> Sequence[str]:
    return [
        *("--stack", stack, "--mirror", mirror, "--outputs", f"{FOLDER}/{OUTPUTS}"),
        *("--listen", f"0.0.0.0:{FOLLOWER_PORT}"),
    ]


def _security(of: VerificationArgs) -> Spec:
    context = pod_security_context(USER)
    if of.settings.platform.distribution == "openshift":
        # It gives every namespace users of its own, and the image is content with any.
        return {key: context[key] for key in ("runAsNonRoot", "seccompProfile")}
    return context
