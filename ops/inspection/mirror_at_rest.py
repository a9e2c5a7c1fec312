"""Whether a mirror runs that must be at rest, because its target is active.

Somebody may have started it behind Pulumi's back: a GitOps controller, `kubectl edit`, or a restore. It then copies
records that the failover has left at the source into the topics that applications use, and sets their groups back.
Owns when it must be at rest, and what shows that it is not. Does not own what keeps a mirror from working.
"""

from collections.abc import Iterable, Iterator

from kafka.connector_status import ConnectorState, ResourceStatus, declared_state
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import Progress

RUNS_AT_REST = "mirror-runs-behind-failover"
"""Name of the doctor's finding."""
_CONNECTORS = ("sourceConnector", "checkpointConnector", "heartbeatConnector")
_RUNNING = "RUNNING"


def runs_at_rest(
    pair: MirrorContext,
    active_now: str | None,
    recovery: Progress | None,
    connectors: Iterable[ConnectorState] | None,
    resource: ResourceStatus | None,
) -> str | None:
    """Return what runs of a mirror that must be at rest, in words; None if it need not be, or if nothing shows it.

    Args:
        pair: The mirror as it is declared.
        active_now: The active side by what is there; None if that is unknown.
        recovery: The operation that has not finished. A failback starts the mirror in its step `settle`.
        connectors: What Connect or the resource's status reports.
        resource: The mirror's resource, whose spec is what the operator carries out.
    """
    if not _must_rest(pair, active_now, recovery):
        return None
    found = [f"{one.name} is {_RUNNING}" for one in connectors or () if _RUNNING in (one.state, *one.tasks)]
    found += [f"{field} of {resource.resource} is to run" for field in _started(pair, resource)] if resource else []
    return f"the target is active and the mirror must be {pair.rest_state}, yet {', '.join(found)}" if found else None


def _must_rest(pair: MirrorContext, active_now: str | None, recovery: Progress | None) -> bool:
    """Whether a failover has stopped the mirror; Pulumi's outputs do not have one without Pulumi."""
    if recovery is not None and recovery.command == "failback" and recovery.problem is not None:
        return False
    active = active_now or pair.active
    return active == "target" and (pair.state != "running" or pair.active != active)


def _started(pair: MirrorContext, resource: ResourceStatus) -> Iterator[str]:
    """Yield the connectors of the mirror that the resource's spec lets run, by their fields."""
    spec = resource.document.get("spec") or {}
    alias = pair.request.mirror.source_alias
    for flow in spec.get("mirrors") or [] if spec.get("replicas") != 0 else ():
        if alias not in ((flow.get("source") or {}).get("alias"), flow.get("sourceCluster")):
            continue
        for field in _CONNECTORS:
            connector = flow.get(field)
            if connector is not None and declared_state(connector) in (None, "running"):
                yield field
