"""What the operator watches: every event only puts the resources that it may concern on the work queue."""

from collections.abc import Mapping
from typing import Any

import kopf

from .dispatch import Dispatcher, Key
from .kubernetes_api import (
    CATALOG,
    INSTALL_PLAN,
    KAFKA,
    LABEL,
    MIRROR,
    NODE_POOL,
    OPERATOR_GROUP,
    SUBSCRIPTION,
    TOPIC,
    USER,
    Resource,
)
from .seen_secrets import SeenSecrets

OWN = (KAFKA, USER, TOPIC, MIRROR, SUBSCRIPTION, OPERATOR_GROUP, CATALOG)
READS_SECRETS = (MIRROR,)
READS_CONFIG_MAPS = (KAFKA, MIRROR)
KIND = "strimzi.io/kind"


def register(registry: kopf.OperatorRegistry, dispatcher: Dispatcher, seen: SeenSecrets) -> None:
    """Add the handlers of all kinds to kopf's registry."""
    for resource in OWN:
        _on_event(registry, resource, _itself(dispatcher, resource))
    _on_event(registry, NODE_POOL, _labelled_cluster(dispatcher))
    for resource in (OPERATOR_GROUP, INSTALL_PLAN):
        _on_event(registry, resource, _namespace(dispatcher, (SUBSCRIPTION,)))
    kopf.on.event("v1", "secrets", registry=registry)(_secrets(dispatcher, seen))
    # The user operator watches the Secrets that it wrote itself, and no others.
    kopf.on.event("v1", "secrets", registry=registry, labels={LABEL: kopf.PRESENT, KIND: USER.kind})(
        _of_the_same_name(dispatcher, USER)
    )
    # An annotation on an authority's Secret asks the cluster for something.
    kopf.on.event("v1", "secrets", registry=registry, labels={LABEL: kopf.PRESENT, KIND: KAFKA.kind})(
        _labelled_cluster(dispatcher)
    )
    kopf.on.event("v1", "configmaps", registry=registry)(_namespace(dispatcher, READS_CONFIG_MAPS))


def settings() -> kopf.OperatorSettings:
    """kopf's settings: no events posted, nothing stored on the resources, watches that reconnect soon."""
    result = kopf.OperatorSettings()
    result.posting.enabled = False
    result.watching.server_timeout = 300
    result.watching.client_timeout = 330
    result.watching.reconnect_backoff = 0.5
    result.networking.error_backoffs = [0.2, 0.5, 1, 2]
    return result


def _secrets(dispatcher: Dispatcher, seen: SeenSecrets) -> Any:
    enqueue = _namespace(dispatcher, READS_SECRETS)

    async def note(event: Mapping[str, Any], namespace: str | None, name: str | None, **_: Any) -> None:
        if event.get("type") == "DELETED":
            seen.forget(str(namespace), str(name))
        else:
            seen.put(event["object"])
        await enqueue(namespace)

    return note


def _on_event(registry: kopf.OperatorRegistry, resource: Resource, handler: Any) -> None:
    kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)(handler)


def _itself(dispatcher: Dispatcher, resource: Resource) -> Any:
    async def enqueue(namespace: str | None, name: str | None, **_: Any) -> None:
        if namespace and name:
            dispatcher.add(Key(resource.kind, namespace, name))

    return enqueue


def _of_the_same_name(dispatcher: Dispatcher, resource: Resource) -> Any:
    """An object that belongs to a resource of its own name; a label alone makes nobody a resource."""

    async def enqueue(namespace: str | None, name: str | None, **_: Any) -> None:
        for key in dispatcher.known(resource.kind, namespace):
            if key.name == name:
                dispatcher.add(key)

    return enqueue


def _labelled_cluster(dispatcher: Dispatcher) -> Any:
    async def enqueue(namespace: str | None, labels: Mapping[str, str], **_: Any) -> None:
        if namespace and LABEL in labels:
            dispatcher.add(Key(KAFKA.kind, namespace, labels[LABEL]))

    return enqueue


def _namespace(dispatcher: Dispatcher, resources: tuple[Resource, ...]) -> Any:
    async def enqueue(namespace: str | None, **_: Any) -> None:
        for resource in resources:
            for key in dispatcher.known(resource.kind, namespace):
                dispatcher.add(key)

    return enqueue
