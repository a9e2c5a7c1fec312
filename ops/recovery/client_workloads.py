"""Workloads whose pods read a Secret: found by their references, and restarted so that they read it again.

A pod that has a Secret in its environment keeps the values that it was started with, and few clients read a mounted
file twice. Owns which workloads read a Secret, their restart as `kubectl rollout restart` makes it, the wait for it,
the step of a recovery that does both, and its words. Does not own the Secret.
"""

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kubernetes import client

from ops.console import Text
from ops.errors import OpsError
from ops.recovery.journal import Journal
from ops.recovery.kubernetes_access import CALL_WITHIN_S, kubernetes
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import Step
from settings.mirror_parts import clients_secret

STEP = "restart"
COMPLETE, INCOMPLETE, UNKNOWN = "complete", "incomplete", "unknown"
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
"""Annotation of a pod template that makes its controller replace the pods, as `kubectl rollout restart` sets it."""
ROLLED_WITHIN_S, POLL_S, REPORTED_EVERY_S = 300.0, 1.0, 10.0


@dataclass(frozen=True, order=True)
class Workload:
    """A Deployment, StatefulSet or DaemonSet."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return it as messages name it, such as `Deployment shop/orders`."""
        return f"{self.kind} {self.namespace}/{self.name}"

    def restart_command(self, context: str | None) -> str:
        """Return the command that restarts it by hand; `context` of the kubeconfig, None for its current one."""
        return f"{_kubectl(context)} rollout restart -n {self.namespace} {self.kind.lower()}/{self.name}"


@dataclass(frozen=True)
class ClientWorkloads:
    """The workloads of one namespace that read a Secret.

    `api` is a client of the API server; its errors are raised as they come.
    """

    api: client.ApiClient
    namespace: str
    secret: str

    def find(self) -> list[Workload]:
        """Return those whose pod template refers to the Secret, by kind and name."""
        return sorted(
            Workload(kind, self.namespace, str(each["metadata"]["name"]))
            for kind, plural in _PLURALS.items()
            for each in self._apps.list_namespaced_custom_object(
                *_APPS, self.namespace, plural, _request_timeout=CALL_WITHIN_S
            )["items"]
            if self.secret in _secrets(each["spec"]["template"].get("spec") or {})
        )

    def restart(
        self, every: Iterable[Workload], stamp: str, require_permission: Callable[[], None] = lambda: None
    ) -> None:
        """Let their pods be replaced; a workload whose template has this stamp already is left alone.

        `require_permission` is called before each, and raises if it must not be changed.
        """
        body = {"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: stamp}}}}}
        for one in every:
            require_permission()
            self._apps.patch_namespaced_custom_object(
                *_APPS,
                one.namespace,
                _PLURALS[one.kind],
                one.name,
                body,
                _content_type=_MERGE,
                _request_timeout=CALL_WITHIN_S,
            )

    def wait(
        self, every: Iterable[Workload], say: Callable[[str], None], within_s: float = ROLLED_WITHIN_S
    ) -> dict[Workload, str]:
        """Wait until all pods are new and available; return what keeps those from it that are not in time."""
        began = time.monotonic()
        reported_at, left = began, dict.fromkeys(every, "")
        while True:
            left = {one: why for one in left if (why := self._missing(one)) is not None}
            now = time.monotonic()
            if not left or now - began > within_s or all(why in _NEVER for why in left.values()):
                return left
            if now - reported_at >= REPORTED_EVERY_S:
                reported_at = now
                for one, why in left.items():
                    say(f"  waiting for the new pods of {one}: {why}, for {within_s - (now - began):.0f} s at most")
            time.sleep(POLL_S)

    @property
    def _apps(self) -> client.CustomObjectsApi:
        # Not AppsV1Api, which refuses what a later release of Kubernetes adds to a pod.
        return client.CustomObjectsApi(self.api)

    def _missing(self, of: Workload) -> str | None:
        found = self._apps.get_namespaced_custom_object(
            *_APPS, of.namespace, _PLURALS[of.kind], of.name, _request_timeout=CALL_WITHIN_S
        )
        return missing(of.kind, found)


@dataclass(frozen=True)
class FollowingClients:
    """The workloads that read the Secret of a mirror's active side, in one recovery of it.

    They are listed or restarted after the switch, when nothing may keep the recovery from its end: what cannot be done
    is returned, not raised. `environment` is that of the command, `log` reports progress.
    """

    pair: MirrorContext
    environment: Mapping[str, str] = field(repr=False)
    journal: Journal
    log: Callable[[str], None]

    def steps(self) -> list[Step]:
        """Return the step that restarts them, if the settings ask for it."""
        words = f"replace the pods of the workloads that read Secret {secret_of(self.pair)}, and wait for them"
        return [Step(STEP, words, self.restart)] if self.pair.outputs.restart_clients else []

    def listed(self) -> dict[str, Any]:
        """Return `workloads`: those that read the Secret, None if nobody can tell; the reason is `workloadsWhy`.

        Nothing if this recovery has restarted them.
        """
        if STEP in self.journal.steps:
            return {}
        if secret_of(self.pair) is None:
            return {"workloads": []}
        try:
            with self._found() as found:
                return {"workloads": [str(one) for one in found.find()]}
        except OpsError as error:
            return {"workloads": None, "workloadsWhy": str(error)}

    def restart(self) -> dict[str, Any]:
        """Restart them once in this recovery and wait; return the same, `restart`, and `notRestarted` with reasons."""
        self.journal.require_held()
        every: list[Workload] | None = None
        try:
            with self._found() as found:
                every = found.find()
                for one in every:
                    self.log(f"  {one}: its pods are replaced")
                stamp = str((self.journal.entry or {})["startedAt"])
                found.restart(every, stamp, self.journal.require_held)
                left = found.wait(every, self.log)
        except OpsError as error:
            self.journal.require_held()  # without the Lease it is another command's to report what it finds
            names = None if every is None else [str(one) for one in every]
            return {"workloads": names, "workloadsWhy": f"{error} {self._by_hand(every)}", "restart": UNKNOWN}
        return {
            "workloads": [str(one) for one in every],
            "restart": INCOMPLETE if left else COMPLETE,
            "notRestarted": {str(one): f"{why}; by hand: {self._by_command(one)}" for one, why in left.items()},
        }

    def _by_hand(self, every: Iterable[Workload] | None) -> str:
        if every is not None:
            return f"By hand: {'; '.join(map(self._by_command, every))}."
        namespace, kubectl = self.pair.resource.namespace, _kubectl(self.pair.resource.context)
        return (
            f"By hand: `{kubectl} get deployments,statefulsets,daemonsets -n {namespace} -o yaml` shows which name the "
            f"Secret, `{kubectl} rollout restart -n {namespace} KIND/NAME` replaces their pods."
        )

    def _by_command(self, one: Workload) -> str:
        return one.restart_command(self.pair.resource.context)

    @contextmanager
    def _found(self) -> Iterator[ClientWorkloads]:
        resource = self.pair.resource
        with kubernetes(self.environment, resource.context) as api:
            yield ClientWorkloads(api, resource.namespace, str(secret_of(self.pair)))


def _kubectl(context: str | None) -> str:
    """The words that a command for a context of the kubeconfig begins with."""
    return "kubectl" if context is None else f"kubectl --context {shlex.quote(context)}"


def secret_of(pair: MirrorContext) -> str | None:
    """Return the Secret of a mirror's active side; None if there is none, and none after a switch."""
    outputs = pair.outputs  # an external source has none while it is active
    return outputs.clients_secret or (clients_secret(pair.mirror) if outputs.restart_clients else None)


def result(steps: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the steps of a recovery have found of the workloads, as `--json` prints it.

    `workloads` read the Secret of the active side, None if nobody can tell (`workloadsWhy`). `restart` is None if it
    was not asked for, `complete`, `incomplete` (`notRestarted` are those whose pods were not replaced, with the reason)
    or `unknown`: nobody can tell.
    """
    facts = {**steps.get("confirm", {}), **steps.get(STEP, {})}
    return {key: facts.get(key) for key in ("workloads", "workloadsWhy", "restart", "notRestarted")}


def is_unsettled(done: Mapping[str, Any]) -> bool:
    """Return whether a restart was asked for and pods are old, or nobody can tell."""
    return done.get("restart") not in (None, COMPLETE)


def summary(done: Mapping[str, Any]) -> list[Text]:
    """Return for people which workloads follow the switch, and which must be restarted by them."""
    workloads, left = done.get("workloads") or [], done.get("notRestarted") or {}
    if done.get("restart") == UNKNOWN:
        of = ", ".join(workloads) or "the workloads that read that Secret"
        return [Text(f"! Whether the pods of {of} were replaced is unknown. {done['workloadsWhy']}", "red")]
    if why := done.get("workloadsWhy"):
        return [Text(f"! Which workloads read that Secret is unknown: restart them yourself. {why}", "yellow")]
    if not workloads:
        return []
    if done.get("restart") is None:
        return [Text(f"They read it: {', '.join(workloads)}. Restart those that do not read it again by themselves.")]
    lines = [Text(f"Restarted: {', '.join(one for one in workloads if one not in left) or 'none'}.")]
    return [*lines, *(Text(f"! {one} is not restarted: {why}", "red") for one, why in left.items())]


def planned(pair: MirrorContext, found: Mapping[str, Any]) -> list[Text]:
    """Return for people which workloads will follow a switch, of what was `listed` before it."""
    secret = secret_of(pair)
    if why := found.get("workloadsWhy"):
        return [Text(f"! Which workloads read Secret {secret} is unknown. {why}", "yellow")]
    if not found.get("workloads"):
        return []
    restarted = "they are restarted" if pair.outputs.restart_clients else "nobody restarts them"
    return [Text(f"These read Secret {secret}, {restarted}: {', '.join(found['workloads'])}.")]


_APPS = "apps", "v1"
_PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}
_MERGE = "application/merge-patch+json"
_PAUSED = "its rollout is paused"
_ON_DELETE = "its updateStrategy is OnDelete, which replaces no pod by itself"
_PARTITION = "the partition of its rolling update keeps pods as they are"
_NEVER = {_PAUSED, _ON_DELETE, _PARTITION}


def missing(kind: str, found: Mapping[str, Any]) -> str | None:
    """Return what is missing until all pods of a workload are new and available, None if nothing is.

    It counts as `kubectl rollout status` does.
    """
    spec, status = found.get("spec") or {}, found.get("status") or {}
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return _ON_DELETE
    if (strategy.get("rollingUpdate") or {}).get("partition"):
        return _PARTITION
    if spec.get("paused"):
        return _PAUSED
    if status.get("observedGeneration", 0) < (found.get("metadata") or {}).get("generation", 0):
        return "its controller has not seen the restart yet"
    if kind == "DaemonSet":
        wanted = status.get("desiredNumberScheduled", 0)
        new, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
    else:
        wanted = spec.get("replicas", 1)
        new, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    if new < wanted:
        return f"{new} of {wanted} pods are new"
    if kind == "Deployment" and (old := status.get("replicas", 0) - new) > 0:
        return f"{old} old pods still run"
    if available < wanted:
        return f"{available} of {wanted} pods are available"
    return None


def _secrets(pod: Mapping[str, Any]) -> set[str]:
    """Names of the Secrets that a pod template mounts or has in its environment."""
    return {name for name in _references(pod) if name}


def _references(pod: Mapping[str, Any]) -> Iterator[str | None]:
    for container in [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]:
        for source in container.get("envFrom") or ():
            yield (source.get("secretRef") or {}).get("name")
        for variable in container.get("env") or ():
            yield ((variable.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
    for volume in pod.get("volumes") or ():
        yield (volume.get("secret") or {}).get("secretName")
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield (source.get("secret") or {}).get("name")
