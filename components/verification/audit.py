"""The audit of a mirror by a pod: a Deployment that reads both clusters for as long as it is declared.

Owns the request's ConfigMap, the Secret with the values that it names, the pod's ServiceAccount, which may do nothing,
the NetworkPolicy that leaves only its metrics to others, and the Deployment. Does not own the image, the
PersistentVolumeClaim, or how the pod is scraped (`components.monitoring`).
"""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ConfigMap, Secret, ServiceAccount
from pulumi_kubernetes.networking.v1 import NetworkPolicy
from pulumi_kubernetes.rbac.v1 import RoleBinding

from components.dialects import Spec
from components.kubernetes_objects import container_security_context, pod_security_context
from components.verification import pods
from components.verification.in_cluster import NON_ROOT, RBAC, InClusterArgs
from settings import NAMESPACE
from settings.verification import AUDIT, AUDIT_PORT, AUDIT_PORT_NAME, Audit

FINGERPRINT = f"{NAMESPACE}/audit-request"
STATE = "/audit"
GRACE_S, DEADLINE_S = 60, 600


class AuditInCluster(pulumi.ComponentResource):
    """A mirror that a pod audits."""

    def __init__(self, name: str, args: InClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make the Deployment and what it needs; an `up` waits until the pod serves its metrics."""
        super().__init__("rt-inventory:verification:AuditInCluster", name, None, opts)
        verification, child = args.settings.verification, pulumi.ResourceOptions(parent=self)
        audit = verification.audit
        if audit is None:
            raise ValueError(f"mirror {args.mirror}: must have verification.audit to be audited (got none).")
        labels = audit_labels(args.mirror)
        metadata = {"name": audit_name(args.mirror), "namespace": args.namespace, "labels": labels}
        request = args.request.apply(lambda known: json.dumps(known, indent=2, sort_keys=True))
        needs: list[pulumi.Resource] = [
            ConfigMap(f"{name}-request", metadata=metadata, data={pods.REQUEST_FILE: request}, opts=child),
            Secret(f"{name}-secrets", metadata=metadata, string_data=args.environment, opts=child),
            NetworkPolicy(f"{name}-metrics", metadata=metadata, spec=metrics_access(labels, AUDIT_PORT), opts=child),
        ]
        if audit.service_account is None:
            needs += self._service_account(name, args, metadata)
        limit = pulumi.CustomTimeouts(create=f"{DEADLINE_S}s", update=f"{DEADLINE_S}s")
        Deployment(
            f"{name}-deployment",
            metadata=metadata,
            spec=args.trigger.apply(lambda trigger: deployment(args.mirror, audit, verification.audit_image, trigger)),
            opts=pulumi.ResourceOptions(parent=self, depends_on=needs, custom_timeouts=limit),
        )
        self.register_outputs({"deployment": metadata["name"]})

    def _service_account(self, name: str, args: InClusterArgs, metadata: Mapping[str, Any]) -> list[pulumi.Resource]:
        """Make an account without rights; OpenShift lets it have the image's user."""
        child = pulumi.ResourceOptions(parent=self)
        account = ServiceAccount(
            f"{name}-account", metadata=metadata, automount_service_account_token=False, opts=child
        )
        if args.settings.platform.distribution != "openshift":
            return [account]
        binding = RoleBinding(
            f"{name}-nonroot",
            metadata={**metadata, "name": f"{metadata['name']}-nonroot"},
            role_ref={"apiGroup": RBAC, "kind": "ClusterRole", "name": NON_ROOT},
            subjects=[{"kind": "ServiceAccount", "name": metadata["name"], "namespace": args.namespace}],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[account]),
        )
        return [account, binding]


def audit_name(mirror: str) -> str:
    """Return the name of everything of an audit."""
    return f"{mirror}-audit"


def audit_labels(mirror: str) -> dict[str, str]:
    """Return the labels of every object and of the pod; a PodMonitor finds it by them."""
    return {
        "app.kubernetes.io/name": AUDIT,
        "app.kubernetes.io/instance": mirror,
        "app.kubernetes.io/part-of": NAMESPACE,
    }


def metrics_access(labels: Mapping[str, str], port: int) -> Spec:
    """Spec of the NetworkPolicy: whoever it is reaches the metrics and no other port, such as those of Spark."""
    return {
        "podSelector": {"matchLabels": labels},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"protocol": "TCP", "port": port}]}],
    }


def deployment(mirror: str, audit: Audit, image: str | None, fingerprint: str) -> Spec:
    """Return the spec of the Deployment: one pod, for its state is of one process."""
    labels = audit_labels(mirror)
    return {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels},
        "template": {
            # The pod reads its request when it starts.
            "metadata": {"labels": labels, "annotations": {FINGERPRINT: fingerprint}},
            "spec": _pod(mirror, audit, image),
        },
    }


def _pod(mirror: str, audit: Audit, image: str | None) -> Spec:
    claim = audit.state_claim
    volume: Spec = {"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}
    container: Spec = {
        "name": "audit",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": _arguments(mirror, audit),
        "env": pods.spark_size(audit.driver),
        "envFrom": [{"secretRef": {"name": audit_name(mirror)}}],
        "ports": [{"name": AUDIT_PORT_NAME, "containerPort": AUDIT_PORT, "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/metrics", "port": AUDIT_PORT}, "periodSeconds": 10},
        "resources": pods.resources(audit.driver),
        "securityContext": container_security_context(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "request", "mountPath": pods.REQUEST_FOLDER, "readOnly": True},
            {"name": "state", "mountPath": STATE},
            {"name": "work", "mountPath": pods.WORK},
        ],
    }
    pod: Spec = {
        "serviceAccountName": audit.service_account or audit_name(mirror),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": pod_security_context(pods.USER),
        "containers": [container],
        "volumes": [
            {"name": "request", "configMap": {"name": audit_name(mirror)}},
            {"name": "state", **volume},
            {"name": "work", "emptyDir": {}},
        ],
    }
    if audit.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in audit.image_pull_secrets]
    return pod


def _arguments(mirror: str, audit: Audit) -> list[str]:
    folder = f"{STATE}/{audit_name(mirror)}"  # mirrors may share a claim
    times = {"bucket": audit.bucket_seconds, "within": audit.within_seconds, "every": audit.every_seconds}
    return [
        *("audit", "--request", f"{pods.REQUEST_FOLDER}/{pods.REQUEST_FILE}"),
        *("--state", f"{folder}/state", "--report", f"{folder}/audit.json", "--metrics", f"0.0.0.0:{AUDIT_PORT}"),
        *(word for name, seconds in times.items() for word in (f"--{name}", str(seconds))),
    ]
