"""A custom resource whose `status` the program can read, and that is done only when its operator says so.

Owns what is waited for. Does not know any kind of resource: what is waited for is an argument. How a wait is explained
while it lasts is `explained_waits`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import pulumi

from components.dialects import Manifest
from components.explained_waits import Awaited, waits

_WAIT_FOR, _TIMEOUT = "pulumi.com/waitFor", "pulumi.com/timeoutSeconds"
READY = ("condition=Ready",)
INSTALLED = ("jsonpath={.status.state}=AtLatestKnown", "jsonpath={.status.installedCSV}")
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
    known = waits()
    known.awaited[resource_name] = awaited
    begin, end = known.begin_hook, known.end_hook
    return pulumi.ResourceHookBinding(
        before_create=[begin], before_update=[begin], after_create=[end], after_update=[end]
    )
