"""A custom resource whose `status` the program can read, and that is done only when its operator reports it ready.

Owns what an `up` waits for and its report: a line every 10 s with the time and the operator's state, and an error with
the operator's reason and a remedy just before the time is up. Does not own the wait: it is the provider's, whose own
error only says that the time is up. Does not know any kind of resource: what is waited for is an argument.
"""

import contextvars
import functools
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any

import pulumi

from components.dialects import Manifest
from components.kubernetes_objects import KubernetesAccess, Object, UnreadableError, per_program

_WAIT_FOR, _TIMEOUT = "pulumi.com/waitFor", "pulumi.com/timeoutSeconds"
READY = ("condition=Ready",)
INSTALLED = ("jsonpath={.status.state}=AtLatestKnown", "jsonpath={.status.installedCSV}")
EVERY_S = 10.0
_BEFORE_END_S = 1.0  # the provider's error follows when the time is up
_MESSAGE_MAX = 600
_NOTHING_YET = "its operator has reported nothing"
# What an operator reports of a resource that it is still making: the reason before it says more.
_IN_PROGRESS = {"Creating", "Pending", "Installing", ""}
_DONE = {"Ready", "AtLatestKnown", "COMPLETED"}
_LOOK = "Look at it: kubectl describe -n {namespace} {kind} {name}. "
_LONGER = "If it only needs longer, raise readySeconds."
_DRIVER = "What its driver says: kubectl logs -n {namespace} {name}-driver."
# The most special first. Words in braces are replaced by those of the resource.
_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        f"SparkApplication: {re.escape(_NOTHING_YET)}",
        "A Spark operator must watch namespace {namespace}: kubectl get deployments -A shows whether one runs.",
    ),
    (
        re.escape(_NOTHING_YET),
        "An operator must watch namespace {namespace}: kubectl get deployments -A shows whether one runs; "
        "operator.install in the stack file installs one, operator.watchedNamespaces says which namespaces it watches.",
    ),
    (
        r"(?i)authenticat|SaslException|credentials",
        "Correct the user or its password at the cluster that the message names; `python -m ops doctor` asks both.",
    ),
    (r"(?i)authoriz", "Give the user the right that the message names (users[].aclSets), and run `pulumi up` again."),
    (
        r"(?i)timeout|timed out|ConnectException|ConnectRest|unreachable|UnknownHost|bootstrap",
        "What runs in namespace {namespace} must reach the address that the message names: check it with "
        "`python -m ops doctor`, and the pods with kubectl get pods -n {namespace}.",
    ),
    (r"UnsupportedKafkaVersion|UnsupportedVersion", "Set a version that the operator's release runs."),
    (r"(?i)not exist|not found|missing|NoSuchResource", "Make what the message names, then run `pulumi up` again."),
    (r"Invalid|ConfigException", "Correct the setting that the message names, then run `pulumi up` again."),
)


@dataclass(frozen=True, kw_only=True)
class Awaited:
    """One resource that is waited for: where it is, what must hold in words, and for how long."""

    api_version: str
    kind: str
    words: str
    seconds: int


def explained(found: Object | None) -> tuple[str, bool]:
    """Return the operator's reason why an object is not ready, and whether it is only in progress."""
    if found is None:
        return "it does not exist", True
    status: Mapping[str, Any] = found.get("status") or {}
    asked, seen = found["metadata"].get("generation", 0), status.get("observedGeneration")
    if seen is not None and seen < asked:
        return f"its operator has not seen this change yet (generation {asked}, observed {seen})", True
    conditions = [each for each in status.get("conditions") or [] if isinstance(each, Mapping)]
    for each in conditions:
        negative = each.get("type") in ("NotReady", "ResolutionFailed") and each.get("status") == "True"
        if negative or (each.get("type") == "Ready" and each.get("status") == "False"):
            return _condition(each), str(each.get("reason") or "") in _IN_PROGRESS
    failed = [
        f"task {task.get('id', '?')} of {connector.get('name', '?')} FAILED: {_line(task.get('trace'))}"
        for connector in status.get("connectors") or []
        for task in connector.get("tasks") or []
        if task.get("state") == "FAILED"
    ]
    if failed:
        return "; ".join(failed)[:_MESSAGE_MAX], False
    state = status.get("applicationState") or {}
    if state.get("errorMessage"):
        return f"{state.get('state')}: {_line(_exceptions(str(state['errorMessage'])))}", False
    word = state.get("state") or status.get("phase") or status.get("state")
    if word:
        return str(word), True
    if any(each.get("type") == "Ready" for each in conditions):
        return "Ready", True
    if conditions:
        return "; ".join(_condition(each) for each in conditions), True
    return _NOTHING_YET, True


def remedy(text: str, *, kind: str, namespace: str, name: str) -> str:
    """Return what to do about a reason."""
    known = [words for pattern, words in _REMEDIES if re.search(pattern, f"{kind}: {text}")][:1]
    look = _LOOK + (_DRIVER if kind == "SparkApplication" else _LONGER)
    return " ".join([*known, look]).format(kind=kind.lower(), namespace=namespace, name=name)


def _condition(condition: Mapping[str, Any]) -> str:
    words = f"{condition.get('type')} is {condition.get('status')}"
    if condition.get("reason"):
        words += f", reason {condition['reason']}"
    return f"{words}: {_line(condition['message'])}" if condition.get("message") else words


def _exceptions(text: str) -> str:
    """Return the exceptions in what `spark-submit` printed, all of which the Spark operator reports; else the text."""
    found = [line for line in text.splitlines() if line.startswith(("Exception in thread", "Caused by: "))]
    return " ".join(found) or text


def _line(text: Any) -> str:
    return " ".join(str(text or "no message").split())[:_MESSAGE_MAX]


class WaitReport(threading.Thread):
    """Reports on one wait until `end` or until the time is up; `read` returns the object."""

    def __init__(
        self,
        awaited: Awaited,
        namespace: str,
        name: str,
        read: Callable[[], Object | None] | None,
        *,
        every_s: float = EVERY_S,
    ) -> None:
        """Begin to count now; nothing is reported before `start`."""
        super().__init__(name=f"wait-{awaited.kind}-{name}", daemon=True)
        self._awaited, self._namespace, self._object, self._read = awaited, namespace, name, read
        self._every_s, self._began, self._over = every_s, time.monotonic(), threading.Event()
        self._reason: str | None = None
        # The engine is known by the context in which this object was made.
        self._context = contextvars.copy_context()

    def end(self) -> None:
        """Report nothing more: the wait is over."""
        self._over.set()

    def run(self) -> None:
        """Report every `every_s` seconds, and as an error just before the time is up."""
        self._context.run(self._report)

    def _report(self) -> None:
        last = self._awaited.seconds - _BEFORE_END_S
        while True:
            left = last - (time.monotonic() - self._began)
            if self._over.wait(max(0.0, min(self._every_s, left))):
                return
            now = self._state()
            if self._over.is_set():
                return
            passed = time.monotonic() - self._began
            if passed >= last:
                self._fail(now)
                return
            words = f"waiting for {self._awaited.words}, {passed:.0f} of {self._awaited.seconds} s"
            # Ephemeral: shown as it comes, and not repeated at the end.
            pulumi.log.info(f"{words}: {now}" if now else words, ephemeral=True)

    def _state(self) -> str | None:
        if self._read is None:
            return None
        try:
            text, in_progress = explained(self._read())
        except UnreadableError as error:
            return str(error)
        if not in_progress:
            self._reason = text
        return text

    def _fail(self, now: str | None) -> None:
        if now is None or now in _DONE:
            return  # nothing is known that the provider would not say, or it is about to see it
        earlier = f"; before that {self._reason.rstrip('.')}" if self._reason and self._reason != now else ""
        advice = remedy(self._reason or now, kind=self._awaited.kind, namespace=self._namespace, name=self._object)
        pulumi.log.error(
            f"waited {self._awaited.seconds} s in vain for {self._awaited.words} ({now.rstrip('.')}{earlier}). {advice}"
        )


@dataclass
class Waits:
    """All waits of a program: one hook each for their begin and end, as the engine knows each hook by itself."""

    access: KubernetesAccess | None = None
    awaited: dict[str, Awaited] = field(default_factory=dict)
    reports: dict[str, WaitReport] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.begin_hook = pulumi.ResourceHook("begin-wait", self.begin)
        self.end_hook = pulumi.ResourceHook("end-wait", self.end)

    def begin(self, args: pulumi.ResourceHookArgs) -> None:
        """Report what is waited for, just before there is something to wait for."""
        awaited = self.awaited[args.name]
        pulumi.log.info(f"waiting up to {awaited.seconds} s for {awaited.words}")
        metadata = (args.new_inputs or {}).get("metadata") or {}
        namespace, name = str(metadata.get("namespace")), str(metadata.get("name"))
        access = self.access
        read = None
        if access is not None:
            read = functools.partial(access.custom_resource, awaited.api_version, awaited.kind, namespace, name)
        self.reports[args.name] = WaitReport(awaited, namespace, name, read)
        self.reports[args.name].start()

    def end(self, args: pulumi.ResourceHookArgs) -> None:
        """The provider has found what it waited for."""
        if report := self.reports.pop(args.name, None):
            report.end()


def explain_waits(access: KubernetesAccess) -> None:
    """Let the waits of this program read what they wait for."""
    per_program(Waits).access = access


@dataclass(frozen=True, kw_only=True)
class Wait:
    """What must hold before the resource counts as created or updated, in words and for the provider."""

    for_: tuple[str, ...]
    words: str
    seconds: int


class CustomResource(pulumi.CustomResource):
    """Any object of a custom kind."""

    status: pulumi.Output[Mapping[str, Any] | None]
    """What the operator reported when the wait ended; unknown in the preview that comes before."""

    def __init__(
        self,
        resource_name: str,
        *,
        api_version: str,
        manifest: Manifest,
        namespace: str,
        named: pulumi.Input[str] | None = None,
        spec: pulumi.Input[Mapping[str, Any]] | None = None,
        wait: Wait | None = None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Register the object. `spec` and `named` take the place of the manifest's while they are not known yet."""
        hooks = None
        if wait is not None:
            hooks = _reported(
                resource_name,
                Awaited(api_version=api_version, kind=manifest.kind, words=wait.words, seconds=wait.seconds),
            )
        own = pulumi.ResourceOptions(version=_provider_version(), hooks=hooks)
        props: dict[str, Any] = {
            "apiVersion": api_version,
            "kind": manifest.kind,
            "metadata": _metadata(manifest, namespace, wait) | ({} if named is None else {"name": named}),
            "spec": manifest.spec if spec is None else spec,
            "status": None,
        }
        super().__init__(
            f"kubernetes:{api_version}:{manifest.kind}", resource_name, props, pulumi.ResourceOptions.merge(opts, own)
        )


def _metadata(manifest: Manifest, namespace: str, wait: Wait | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": manifest.name, "namespace": namespace}
    if manifest.labels:
        metadata["labels"] = dict(manifest.labels)
    marks = {} if wait is None else {_WAIT_FOR: json.dumps(wait.for_), _TIMEOUT: str(wait.seconds)}
    if manifest.annotations or marks:
        metadata["annotations"] = {**manifest.annotations, **marks}
    return metadata


@cache
def _provider_version() -> str:
    return version("pulumi-kubernetes")


def _reported(resource_name: str, awaited: Awaited) -> pulumi.ResourceHookBinding:
    known = per_program(Waits)
    known.awaited[resource_name] = awaited
    begin, end = known.begin_hook, known.end_hook
    return pulumi.ResourceHookBinding(
        before_create=[begin], before_update=[begin], after_create=[end], after_update=[end]
    )
