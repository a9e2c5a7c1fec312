"""A custom resource whose `status` the program can read, and that is done only when its operator says so.

Owns the wait. Does not know any kind of resource: what is waited for is an argument.

The provider's own error at the end of a wait only says that time is up. `READY` is written so that the error quotes the
condition with which the operator explains itself: the provider reports a value that it cannot compare, and the first
expression can compare the text "True" below a condition that holds, but not a whole condition that does not. Strimzi
writes `Ready` False or `NotReady` True, depending on the kind; OLM writes `ResolutionFailed`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime.settings import get_monitor

from components.dialects import Manifest

_WAIT_FOR, _TIMEOUT = "pulumi.com/waitFor", "pulumi.com/timeoutSeconds"
READY = (
    'jsonpath={.status.conditions..[?(@.type=="Ready" && @.status=="False") || @.type=="NotReady", ?@=="True"]}=True',
    "condition=Ready",
)
INSTALLED = (
    'jsonpath={.status..[?@.type=="ResolutionFailed" && @.status=="True", ?@=="AtLatestKnown"]}=AtLatestKnown',
    "jsonpath={.status.installedCSV}",
)
# What says that a cluster runs, by the kind of its resource. Event Streams has a phase of its own.
RUNNING = {"Kafka": READY, "EventStreams": ("jsonpath={.status.phase}=Ready",)}


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
        own = pulumi.ResourceOptions(version=_provider_version(), hooks=_announcement(resource_name, wait))
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
    waits = {} if wait is None else {_WAIT_FOR: json.dumps(wait.for_), _TIMEOUT: str(wait.seconds)}
    if manifest.annotations or waits:
        metadata["annotations"] = {**manifest.annotations, **waits}
    return metadata


@cache
def _provider_version() -> str:
    return version("pulumi-kubernetes")


@dataclass
class _Announcements:
    """One hook for all resources of a program, because each hook is registered with the engine by itself."""

    words: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.hook = pulumi.ResourceHook("announce-wait", self.say)

    def say(self, args: pulumi.ResourceHookArgs) -> None:
        """Tell what is waited for, just before there is something to wait for."""
        pulumi.log.info(self.words[args.name])


# By the program's monitor: rendering runs several programs in one process.
_announcements: WeakKeyDictionary[Any, _Announcements] = WeakKeyDictionary()


def _announcement(resource_name: str, wait: Wait | None) -> pulumi.ResourceHookBinding | None:
    if wait is None:
        return None
    monitor = get_monitor()
    if monitor not in _announcements:
        _announcements[monitor] = _Announcements()
    announcements = _announcements[monitor]
    announcements.words[resource_name] = f"waiting up to {wait.seconds} s for {wait.words}"
    return pulumi.ResourceHookBinding(before_create=[announcements.hook], before_update=[announcements.hook])
