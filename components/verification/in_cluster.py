"""The verification of a mirror by pods: once for what is deployed, and again by a schedule.

Owns the request's ConfigMap, the Secret with the values that it names, the pods' ServiceAccount with its rights, the
NetworkPolicy that admits them to Connect, the run and the schedule. Does not own the image, PersistentVolumeClaims, or
Secrets that the settings name.

A run has the name of what it proves: what the proof depends on changes the name, and so makes another run. One that
did not pass is replaced by the next `up`.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes.batch.v1 import CronJob, Job
from pulumi_kubernetes.core.v1 import ConfigMap, Secret
from pulumi_kubernetes.networking.v1 import NetworkPolicy

from components.custom_resource import CustomResource, Wait
from components.dialects import Manifest, dialect
from components.verification import pods
from components.verification.pods import Verifier
from components.verification.service_account import Account
from settings.stack import Stack

_GRACE_S = pods.MARGIN_S + 60  # `up` sees how the pod ends, whatever ends it
_COMPLETED = ("jsonpath={.status.applicationState.state}=COMPLETED",)


@dataclass(frozen=True, kw_only=True)
class InClusterArgs:
    """What is verified: a mirror by its name and namespace; where the pods are; request, variables and trigger."""

    settings: Stack
    mirror: str
    mirror_namespace: str
    namespace: str
    request: pulumi.Output[Mapping[str, Any]]
    environment: pulumi.Output[Mapping[str, str]]
    trigger: pulumi.Output[str]


class VerificationInCluster(pulumi.ComponentResource):
    """A mirror that pods verify."""

    stack_output: pulumi.Output[Mapping[str, Any]]
    """Its entry in `verifications`: how and where it runs, run and schedule; `verdict` is pass once the run passed."""

    def __init__(self, name: str, args: InClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Make what is due; an `up` fails if the run does."""
        super().__init__("rt-inventory:verification:VerificationInCluster", name, None, opts)
        verification = args.settings.verification
        verifier = Verifier(mirror=args.mirror, settings=verification)
        run, found = verification.run, dict[str, Any]()
        if verification.when != "never" or run.schedule is not None:
            needs = self._prerequisites(name, args, verifier)
            if verification.when != "never":
                found["run"] = self._run(name, args, verifier, needs)
                found["verdict"] = pulumi.Output.from_input(found["run"]).apply(lambda _: "pass")
            if run.schedule is not None:
                found |= {"schedule": run.schedule.schedule, "scheduledBy": verifier.name}
                self._schedule(name, args, verifier, needs)
        self.stack_output = pulumi.Output.all(how=run.how, namespace=args.namespace, **found)
        self.register_outputs({"facts": self.stack_output})  # the key in states of earlier releases

    def _prerequisites(self, name: str, args: InClusterArgs, verifier: Verifier) -> list[pulumi.Resource]:
        """Make what every run needs."""
        child = pulumi.ResourceOptions(parent=self)
        metadata = {"name": verifier.name, "namespace": args.namespace, "labels": verifier.labels}
        request = args.request.apply(lambda known: json.dumps(known, indent=2, sort_keys=True))
        made: list[pulumi.Resource] = [
            ConfigMap(f"{name}-request", metadata=metadata, data={pods.REQUEST_FILE: request}, opts=child),
            Secret(f"{name}-secrets", metadata=metadata, string_data=args.environment, opts=child),
        ]
        if args.settings.verification.run.network_policy:
            domain = dialect(args.settings.platform).LABEL.partition("/")[0]
            made.append(
                NetworkPolicy(
                    f"{name}-connect",
                    metadata={**metadata, "namespace": args.mirror_namespace},
                    spec=pods.connect_access(verifier, args.namespace, domain),
                    opts=child,
                )
            )
        if args.settings.verification.run.service_account is None:
            made += self._service_account(name, args, metadata)
        return made

    def _service_account(self, name: str, args: InClusterArgs, metadata: Mapping[str, Any]) -> list[pulumi.Resource]:
        """Make the pods' account and bind it to exactly the rights that they need."""
        settings, account = args.settings, Account(name, metadata, self)
        account.grant("status", args.mirror_namespace, pods.mirror_rules(args.mirror, settings.platform.api))
        if settings.verification.run.how == "spark-application":
            account.grant("driver", args.namespace, pods.driver_rules())
        account.allow_image_user(settings)
        return account.made

    def _run(
        self, name: str, args: InClusterArgs, verifier: Verifier, needs: list[pulumi.Resource]
    ) -> pulumi.Output[str]:
        """Make the run that is due; its name once it has passed."""
        settings = args.settings.verification
        # A run for every `up` has a name of its own.
        moment = time.time_ns() if settings.when == "always" else 0
        spec = pods.job(verifier) if settings.run.how == "job" else pods.spark_application(verifier)
        run_name = args.trigger.apply(lambda trigger: verifier.run_name(_digest(trigger, spec, moment)))
        seconds = settings.deadline_seconds + _GRACE_S
        limit = pulumi.CustomTimeouts(create=f"{seconds}s", update=f"{seconds}s")
        opts = pulumi.ResourceOptions(parent=self, depends_on=needs, custom_timeouts=limit)
        if settings.run.how == "job":
            # Without the annotation the next `up` would find the same failed Job.
            annotations = {"pulumi.com/replaceUnready": "true"}
            metadata = {"name": run_name, "namespace": args.namespace, "labels": verifier.labels}
            made = Job(f"{name}-run", metadata={**metadata, "annotations": annotations}, spec=spec, opts=opts)
            return made.metadata.apply(lambda known: str(known["name"]))
        application = CustomResource(
            f"{name}-run",
            api_version=pods.SPARK_API,
            manifest=Manifest(kind="SparkApplication", name=verifier.name, labels=verifier.labels, spec=spec),
            named=run_name,
            namespace=args.namespace,
            wait=Wait(
                for_=_COMPLETED, words=f"SparkApplication {verifier.name}: every check of the mirror", seconds=seconds
            ),
            opts=opts,
        )
        return pulumi.Output.all(run_name, application.id).apply(lambda known: str(known[0]))

    def _schedule(self, name: str, args: InClusterArgs, verifier: Verifier, needs: list[pulumi.Resource]) -> None:
        schedule = verifier.run.schedule
        if schedule is None:
            return
        opts = pulumi.ResourceOptions(parent=self, depends_on=needs)
        if verifier.run.how == "job":
            metadata = {"name": verifier.name, "namespace": args.namespace, "labels": verifier.labels}
            CronJob(f"{name}-schedule", metadata=metadata, spec=pods.cron_job(verifier, schedule), opts=opts)
            return
        CustomResource(
            f"{name}-schedule",
            api_version=pods.SPARK_API,
            manifest=Manifest(
                kind="ScheduledSparkApplication",
                name=verifier.name,
                labels=verifier.labels,
                spec=pods.scheduled_spark_application(verifier, schedule),
            ),
            namespace=args.namespace,
            opts=opts,
        )


def _digest(trigger: str, spec: Mapping[str, Any], moment: int) -> str:
    """What a run is called by: everything that it proves, and how it does so."""
    return hashlib.sha256(json.dumps([trigger, spec, moment], sort_keys=True).encode()).hexdigest()
