"""The audit of a mirror by pods, which read both clusters for as long as it is declared.

That is a Deployment, or a SparkApplication where the verification is one. Owns the request's ConfigMap, the Secret with
the values that it names, the ServiceAccount, which may do nothing or what Spark's driver does, the NetworkPolicy that
leaves only the metrics to others, and the pods. Does not own the image, the PersistentVolumeClaim, or how the metrics
are scraped (`components.monitoring`).
"""

import json
from collections.abc import Mapping

import pulumi
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import ConfigMap, Secret
from pulumi_kubernetes.networking.v1 import NetworkPolicy

from components.custom_resource import CustomResource, Wait
from components.dialects import Manifest, Spec
from components.kubernetes_objects import container_security_context, pod_security_context
from components.verification import pods
from components.verification.in_cluster import InClusterArgs
from components.verification.service_account import Account
from settings import NAMESPACE
from settings.verification import AUDIT, AUDIT_PORT, AUDIT_PORT_NAME, Audit, Verification

FINGERPRINT = f"{NAMESPACE}/audit-request"
STATE = "/audit"
GRACE_S, DEADLINE_S = 60, 600
_NAME = "app.kubernetes.io/name"
_BY_SPARK = "spark-application"
_EXECUTOR = f"{AUDIT}-executor"
# Spark's own defaults on Kubernetes for the driver; executors would take any port.
_DRIVER_PORT, _BLOCK_MANAGER_PORT = 7078, 7079
_RETRY_S = 20
# Only a driver whose Spark has started asks for executors: it has taken request, state and the metrics' port before.
_RUNNING = ("jsonpath={.status.applicationState.state}=RUNNING", "jsonpath={.status.executorState}")


class AuditInCluster(pulumi.ComponentResource):
    """A mirror that pods audit."""

    def __init__(self, name: str, args: InClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make the pods and what they need; an `up` waits until metrics are served, or executors are there."""
        super().__init__("rt-inventory:verification:AuditInCluster", name, None, opts)
        verification, child = args.settings.verification, pulumi.ResourceOptions(parent=self)
        audit, by_spark = verification.audit, verification.run.how == _BY_SPARK
        if audit is None:
            raise ValueError(f"mirror {args.mirror}: must have verification.audit to be audited (got none).")
        labels = audit_labels(args.mirror)
        metadata = {"name": audit_name(args.mirror), "namespace": args.namespace, "labels": labels}
        request = args.request.apply(lambda known: json.dumps(known, indent=2, sort_keys=True))
        access = application_access(args.mirror) if by_spark else metrics_access(labels, AUDIT_PORT)
        needs: list[pulumi.Resource] = [
            ConfigMap(f"{name}-request", metadata=metadata, data={pods.REQUEST_FILE: request}, opts=child),
            Secret(f"{name}-secrets", metadata=metadata, string_data=args.environment, opts=child),
            NetworkPolicy(f"{name}-metrics", metadata=metadata, spec=access, opts=child),
        ]
        if audit.service_account is None:
            account = Account(name, metadata, self, token=None if by_spark else False)
            if by_spark:
                account.grant("driver", args.namespace, pods.driver_rules())
            account.allow_image_user(args.settings)
            needs += account.made
        if by_spark:
            self._application(name, args, verification, audit, needs)
        else:
            limit = pulumi.CustomTimeouts(create=f"{DEADLINE_S}s", update=f"{DEADLINE_S}s")
            Deployment(
                f"{name}-deployment",
                metadata=metadata,
                spec=args.trigger.apply(lambda known: deployment(args.mirror, audit, verification.audit_image, known)),
                opts=pulumi.ResourceOptions(parent=self, depends_on=needs, custom_timeouts=limit),
            )
        self.register_outputs({"deployment": metadata["name"]})

    def _application(
        self, name: str, args: InClusterArgs, verification: Verification, audit: Audit, needs: list[pulumi.Resource]
    ) -> None:
        manifest = Manifest(
            kind="SparkApplication", name=audit_name(args.mirror), labels=audit_labels(args.mirror), spec={}
        )
        CustomResource(
            f"{name}-application",
            api_version=pods.SPARK_API,
            manifest=manifest,
            spec=args.trigger.apply(lambda known: application(args.mirror, audit, verification, known)),
            namespace=args.namespace,
            wait=Wait(
                for_=_RUNNING, words=f"SparkApplication {manifest.name}: running, with executors", seconds=DEADLINE_S
            ),
            # A status does not say which spec it is of: that of the run before would end the wait at once. So a changed
            # one is another object, and nothing of the old one is left, for the state is of one driver.
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=needs, replace_on_changes=["spec"], delete_before_replace=True
            ),
        )


def audit_name(mirror: str) -> str:
    """Return the name of everything of an audit."""
    return f"{mirror}-audit"


def audit_labels(mirror: str) -> dict[str, str]:
    """Return the labels of every object and of the pod with the metrics; a PodMonitor finds it by them."""
    return {
        _NAME: AUDIT,
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


def application_access(mirror: str) -> Spec:
    """Spec of the NetworkPolicy for driver and executors: whoever it is reaches the metrics, and only they Spark."""
    labels = audit_labels(mirror)
    application: Spec = {
        "matchLabels": {key: value for key, value in labels.items() if key != _NAME},
        "matchExpressions": [{"key": _NAME, "operator": "In", "values": [AUDIT, _EXECUTOR]}],
    }
    ports = [{"protocol": "TCP", "port": port} for port in (_DRIVER_PORT, _BLOCK_MANAGER_PORT)]
    spec = metrics_access(labels, AUDIT_PORT)
    among = {"from": [{"podSelector": application}], "ports": ports}
    return {**spec, "podSelector": application, "ingress": [*spec["ingress"], among]}


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


def application(mirror: str, audit: Audit, verification: Verification, fingerprint: str) -> Spec:
    """Return the spec of the SparkApplication: a driver that keeps the state, and executors that read.

    Its metadata's labels are those of all its pods too, as the operator has it, unless a pod has another value.
    """
    spec = pods.application(verification.audit_image, verification.run.spark_version, audit.image_pull_secrets)
    ports = {
        "spark.driver.port": _DRIVER_PORT,
        "spark.driver.blockManager.port": _BLOCK_MANAGER_PORT,
        "spark.blockManager.port": _BLOCK_MANAGER_PORT,
    }
    driver = {
        **pods.spark_pod(audit_labels(mirror), audit.driver),
        # The driver reads its request when it starts.
        "annotations": {FINGERPRINT: fingerprint},
        "serviceAccount": audit.service_account or audit_name(mirror),
        "envFrom": _variables(mirror),
        "ports": _ports(),
        "volumeMounts": _mounts(),
    }
    return {
        **spec,
        "sparkConf": spec["sparkConf"] | {key: str(port) for key, port in ports.items()},
        "arguments": _arguments(mirror, audit),
        # What is left out here a webhook of the operator would fill in.
        "restartPolicy": {
            "type": "Always",
            "onFailureRetryInterval": _RETRY_S,
            "onSubmissionFailureRetryInterval": _RETRY_S,
        },
        "volumes": _volumes(mirror, audit),
        "driver": driver,
        "executor": pods.executors({**audit_labels(mirror), _NAME: _EXECUTOR}, audit.executor),
    }


def _pod(mirror: str, audit: Audit, image: str | None) -> Spec:
    container: Spec = {
        "name": "audit",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": _arguments(mirror, audit),
        "env": pods.spark_size(audit.driver),
        "envFrom": _variables(mirror),
        "ports": _ports(),
        "readinessProbe": {"httpGet": {"path": "/metrics", "port": AUDIT_PORT}, "periodSeconds": 10},
        "resources": pods.resources(audit.driver),
        "securityContext": container_security_context(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(),
    }
    pod: Spec = {
        "serviceAccountName": audit.service_account or audit_name(mirror),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": pod_security_context(pods.USER),
        "containers": [container],
        "volumes": _volumes(mirror, audit),
    }
    if audit.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in audit.image_pull_secrets]
    return pod


def _variables(mirror: str) -> list[Spec]:
    return [{"secretRef": {"name": audit_name(mirror)}}]


def _ports() -> list[Spec]:
    return [{"name": AUDIT_PORT_NAME, "containerPort": AUDIT_PORT, "protocol": "TCP"}]


def _mounts() -> list[Spec]:
    return [
        {"name": "request", "mountPath": pods.REQUEST_FOLDER, "readOnly": True},
        {"name": "state", "mountPath": STATE},
        {"name": "work", "mountPath": pods.WORK},
    ]


def _volumes(mirror: str, audit: Audit) -> list[Spec]:
    claim = audit.state_claim
    return [
        {"name": "request", "configMap": {"name": audit_name(mirror)}},
        {"name": "state", **({"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}})},
        {"name": "work", "emptyDir": {}},
    ]


def _arguments(mirror: str, audit: Audit) -> list[str]:
    folder = f"{STATE}/{audit_name(mirror)}"  # mirrors may share a claim
    times = {"bucket": audit.bucket_seconds, "within": audit.within_seconds, "every": audit.every_seconds}
    return [
        *("audit", "--request", f"{pods.REQUEST_FOLDER}/{pods.REQUEST_FILE}"),
        *("--state", f"{folder}/state", "--report", f"{folder}/audit.json", "--metrics", f"0.0.0.0:{AUDIT_PORT}"),
        *(word for name, seconds in times.items() for word in (f"--{name}", str(seconds))),
    ]
