"""Whether the follower that a stack declares for a mirror (`exactOffsets`) sets groups now, by its Deployment.

Its pod is ready while rounds succeed. Does not own the Deployment (`components/kafka/follower.py`), nor its end in a
failover (`ops/recovery/follower_pod.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubernetes import client
from kubernetes.client.rest import ApiException

from ops.errors import OpsError
from ops.recovery.client_workloads import missing
from ops.recovery.kubernetes_access import CALL_WITHIN_S, kubernetes
from ops.recovery.mirror_context import MirrorContext
from settings.mirror_parts import follower_name

NOT_FOLLOWED = "groups-not-followed"
"""Name of the doctor's finding."""
_MISSING = 404


@dataclass(frozen=True, kw_only=True)
class FollowerStatus:
    """What keeps the follower from setting groups now, None if nothing does; `unread`: why nobody knows."""

    problem: str | None = None
    unread: str | None = None


def observe(pair: MirrorContext, environment: Mapping[str, str]) -> FollowerStatus | None:
    """Return whether the follower works, by its Deployment; None of a mirror that is not to be followed now."""
    resource = pair.request.mirror.resource
    is_due = pair.state == "running" and pair.active == "source" and pair.outputs.failback is None
    if not pair.request.mirror.exact_offsets or not is_due or resource is None:
        return None
    name = follower_name(pair.mirror)
    where = f"Deployment {resource.namespace}/{name}"
    try:
        with kubernetes(environment, resource.context) as api:
            found = _deployment(api, resource.namespace, name)
    except OpsError as error:
        return FollowerStatus(unread=str(error))
    if found is None:
        return FollowerStatus(problem=f"{where} does not exist")
    if not (found.get("spec") or {}).get("replicas"):
        return FollowerStatus(problem=f"{where} is scaled to 0")
    why = missing("Deployment", found)
    return FollowerStatus(problem=None if why is None else f"{where}: {why}, so no round has succeeded lately")


def _deployment(api: client.ApiClient, namespace: str, name: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = client.CustomObjectsApi(api).get_namespaced_custom_object(
            "apps", "v1", namespace, "deployments", name, _request_timeout=CALL_WITHIN_S
        )
    except ApiException as error:
        if error.status != _MISSING:
            raise
        return None
    return found
