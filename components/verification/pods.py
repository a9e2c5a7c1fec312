"""Specs of what verifies a mirror in pods: Job, CronJob, SparkApplication and its schedule, NetworkPolicy, and rights.

Pure functions from settings to plain dicts. Does not know where values of Secrets come from, or when a run is due.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.dialects import Spec
from components.kubernetes_objects import container_security_context, pod_security_context
from components.verification_run import SLACK_WEBHOOK, destination_arguments
from settings.verification import Driver, Executor, Run, Schedule, Verification

HOME = "/opt/verification"  # of the image, see images/verification
REQUEST_FOLDER, REQUEST_FILE, REPORTS = "/etc/verification", "request.json", "/reports"
WORK = "/tmp"  # noqa: S108 - of the pod, an empty volume
USER = 185  # of the image, and of Spark's own images
LABELS = {"app.kubernetes.io/name": "rt-inventory-verification", "app.kubernetes.io/part-of": "rt-inventory"}
CONNECT_PORT = 8083
SPARK_API = "sparkoperator.k8s.io/v1beta2"
_POD_NAME = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
_JARS = f"{HOME}/jars/*"
_RESOURCES = "kafkamirrormaker2s"
# What a pod may live longer than the job that is in it: for the image's pull, the start of Python and the report.
MARGIN_S = 300
Rule = dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class Verifier:
    """What verifies one mirror: the settings, and the name of its ConfigMap, Secret and ServiceAccount."""

    mirror: str
    settings: Verification

    @property
    def run(self) -> Run:
        """Where it runs."""
        return self.settings.run

    @property
    def name(self) -> str:
        """Name of everything that stays: ConfigMap, Secret, rights, schedule."""
        return f"{self.mirror}-verify"

    @property
    def service_account(self) -> str:
        """Name of the pods' ServiceAccount."""
        return self.run.service_account or self.name

    @property
    def labels(self) -> dict[str, str]:
        """Labels of every object and pod."""
        return {**LABELS, "app.kubernetes.io/instance": self.mirror}

    def run_name(self, fingerprint: str) -> str:
        """Return the name of the run for a fingerprint of what it verifies."""
        return f"{self.name}-{fingerprint[:10]}"


def connect_access(verifier: Verifier, namespace: str, domain: str) -> Spec:
    """Spec of the NetworkPolicy that admits the pods of this namespace to the REST interface of the mirror's workers.

    The operator's own policy admits the workers and the operator alone. `domain` is that of the operator's labels.
    """
    peer = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "podSelector": {"matchLabels": verifier.labels},
    }
    workers = {f"{domain}/cluster": verifier.mirror, f"{domain}/kind": "KafkaMirrorMaker2"}
    return {
        "podSelector": {"matchLabels": workers},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [peer], "ports": [{"protocol": "TCP", "port": CONNECT_PORT}]}],
    }


def job(verifier: Verifier) -> Spec:
    """Spec of a Job: one try. The job ends by its own deadline first, and writes what it knows."""
    spec: Spec = {
        "activeDeadlineSeconds": verifier.settings.deadline_seconds + MARGIN_S,
        "backoffLimit": 0,
        "template": {"metadata": {"labels": verifier.labels}, "spec": _pod(verifier)},
    }
    if verifier.run.ttl_seconds_after_finished is not None:
        spec["ttlSecondsAfterFinished"] = verifier.run.ttl_seconds_after_finished
    return spec


def cron_job(verifier: Verifier, schedule: Schedule) -> Spec:
    """Spec of a CronJob whose runs never overlap."""
    spec: Spec = {
        "schedule": schedule.schedule,
        "timeZone": schedule.time_zone,
        "suspend": schedule.suspend,
        "concurrencyPolicy": "Forbid",
        "successfulJobsHistoryLimit": schedule.successful_jobs_history_limit,
        "failedJobsHistoryLimit": schedule.failed_jobs_history_limit,
        "jobTemplate": {"metadata": {"labels": verifier.labels}, "spec": job(verifier)},
    }
    if schedule.starting_deadline_seconds is not None:
        spec["startingDeadlineSeconds"] = schedule.starting_deadline_seconds
    return spec


def spark_application(verifier: Verifier) -> Spec:
    """Spec of a SparkApplication: one try; the secrets are variables of the driver only."""
    run = verifier.run
    driver = {
        **spark_pod(verifier.labels, run.driver),
        "serviceAccount": verifier.service_account,
        "env": [_POD_NAME, *_webhook(verifier)],
        "envFrom": _variables(verifier),
        "volumeMounts": _mounts(),
    }
    spec: Spec = {
        **application(run.image, run.spark_version, run.image_pull_secrets),
        "arguments": _arguments(verifier),
        "restartPolicy": {"type": "Never"},
        "volumes": _volumes(verifier),
        "driver": driver,
        "executor": executors(verifier.labels, run.executor),
    }
    if run.ttl_seconds_after_finished is not None:
        spec["timeToLiveSeconds"] = run.ttl_seconds_after_finished
    return spec


def application(image: str | None, spark_version: str, pull_secrets: Sequence[str]) -> Spec:
    """Return what every SparkApplication of the image has: the entry file, and a configuration that keeps secrets."""
    # Tasks carry the clusters' passwords to the executors.
    conf = {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.driver.extraClassPath": _JARS,
        "spark.executor.extraClassPath": _JARS,
        "spark.eventLog.enabled": "false",
        "spark.ui.enabled": "false",
        # Spark would ask for rights on volumes that it never makes.
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
    }
    spec: Spec = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": spark_version,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "mainApplicationFile": f"local://{HOME}/spark/__main__.py",
        "sparkConf": conf,
    }
    if pull_secrets:
        spec["imagePullSecrets"] = list(pull_secrets)
    return spec


def executors(labels: Mapping[str, str], size: Executor) -> Spec:
    """Return the executors of a SparkApplication, which get no secret and no volume but an empty one."""
    return {
        **spark_pod(labels, size),
        "instances": size.instances,
        "deleteOnTermination": True,
        "volumeMounts": [{"name": "work", "mountPath": WORK}],
    }


def scheduled_spark_application(verifier: Verifier, schedule: Schedule) -> Spec:
    """Spec of a ScheduledSparkApplication whose runs never overlap."""
    return {
        "schedule": schedule.schedule,
        "timeZone": schedule.time_zone,
        "suspend": schedule.suspend,
        "concurrencyPolicy": "Forbid",
        "successfulRunHistoryLimit": schedule.successful_jobs_history_limit,
        "failedRunHistoryLimit": schedule.failed_jobs_history_limit,
        "template": spark_application(verifier),
    }


def mirror_rules(mirror: str, api_version: str) -> list[Rule]:
    """Rights of every run, where the mirror is: to read the status of its resource, and of no other."""
    group = api_version.rpartition("/")[0]
    return [{"apiGroups": [group], "resources": [_RESOURCES], "resourceNames": [mirror], "verbs": ["get"]}]


def driver_rules() -> list[Rule]:
    """Rights of Spark's driver, where the pods are: what it does with its executors."""
    remove = ["get", "list", "delete", "deletecollection"]
    return [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "watch", *remove]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", *remove]},
        {"apiGroups": [""], "resources": ["services"], "verbs": remove},
    ]


def _pod(verifier: Verifier) -> Spec:
    run = verifier.run
    pod: Spec = {
        "restartPolicy": "Never",
        "serviceAccountName": verifier.service_account,
        "enableServiceLinks": False,
        "securityContext": pod_security_context(USER),
        "containers": [
            {
                "name": "verification",
                "image": run.image,
                "imagePullPolicy": "IfNotPresent",
                "args": _arguments(verifier),
                "env": [
                    _POD_NAME,
                    *spark_size(run.driver),
                    *_webhook(verifier),
                ],
                "envFrom": _variables(verifier),
                "resources": resources(run.driver),
                "securityContext": container_security_context(),
                # The last lines of the log say which checks do not hold.
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": _mounts(),
            }
        ],
        "volumes": _volumes(verifier),
    }
    if run.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in run.image_pull_secrets]
    return pod


def _arguments(verifier: Verifier) -> list[str]:
    folder = f"{REPORTS}/$(POD_NAME)" if verifier.run.report_claim else REPORTS
    settings = verifier.settings
    state = ["--state", settings.state] if settings.state is not None else []
    index = REPORTS if verifier.run.report_claim else None
    sent = destination_arguments(settings.push_gateway, slack=settings.slack_webhook is not None, index=index)
    return ["--request", f"{REQUEST_FOLDER}/{REQUEST_FILE}", "--report-dir", folder, *state, *sent]


def _variables(verifier: Verifier) -> list[dict[str, Any]]:
    return [{"secretRef": {"name": name}} for name in (verifier.name, *verifier.run.env_from)]


def _webhook(verifier: Verifier) -> list[dict[str, Any]]:
    webhook = verifier.settings.slack_webhook
    if webhook is None:
        return []
    # Without the Secret the job says what is missing, in place of a container that never starts.
    reference = {"name": webhook.secret, "key": webhook.key, "optional": True}
    return [{"name": SLACK_WEBHOOK, "valueFrom": {"secretKeyRef": reference}}]


def _mounts() -> list[dict[str, Any]]:
    return [
        {"name": "request", "mountPath": REQUEST_FOLDER, "readOnly": True},
        {"name": "reports", "mountPath": REPORTS},
        {"name": "work", "mountPath": WORK},
    ]


def _volumes(verifier: Verifier) -> list[dict[str, Any]]:
    claim = verifier.run.report_claim
    return [
        {"name": "request", "configMap": {"name": verifier.name}},
        {"name": "reports", **({"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}})},
        {"name": "work", "emptyDir": {}},
    ]


def spark_pod(labels: Mapping[str, str], size: Driver) -> Spec:
    """Return what driver and executors of a SparkApplication have in common."""
    pod: Spec = {
        "cores": size.cores,
        "memory": size.memory,
        "memoryOverhead": size.memory_overhead,
        "labels": dict(labels),
        "podSecurityContext": pod_security_context(USER),
        "securityContext": container_security_context(),
    }
    if size.core_request is not None:
        pod["coreRequest"] = size.core_request
    if size.core_limit is not None:
        pod["coreLimit"] = size.core_limit
    return pod


def resources(size: Driver) -> Spec:
    """Return what a container of this size requests, and its limits."""
    memory = f"{_mebibytes(size.memory) + _mebibytes(size.memory_overhead)}Mi"
    limits = {"memory": memory} | ({"cpu": size.core_limit} if size.core_limit else {})
    return {"requests": {"cpu": size.core_request or str(size.cores), "memory": memory}, "limits": limits}


def spark_size(size: Driver) -> list[dict[str, Any]]:
    """Return the variables by which Spark uses as much."""
    return [
        {"name": "RT_INVENTORY_SPARK_MEMORY", "value": size.memory},
        {"name": "RT_INVENTORY_SPARK_CORES", "value": str(size.cores)},
    ]


def _mebibytes(amount: str) -> int:
    """An amount as Java writes it."""
    number, unit = re.fullmatch(r"(\d+)([mg])", amount.lower()).groups()  # type: ignore[union-attr]  # as settings hold it
    return int(number) * (1024 if unit == "g" else 1)
