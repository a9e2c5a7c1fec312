"""Check of the mirror's connectors, as Connect and the mirror's resource report them."""

from collections.abc import Sequence

from kafka.connector_status import ConnectorState, ResourceStatus
from spark.checks.registry import DOCTOR, Check, Remedy, check, named
from spark.run_context import RunContext


def connectors_running(
    states: Sequence[ConnectorState] | None, url: str | None, resource: ResourceStatus | None = None
) -> Check:
    """The mirror's connectors and all their tasks run: by Connect's REST interface and by the resource's status.

    A Ready resource proves nothing: operators call a mirror Ready whose task has failed. If one of the two
    is missing, the other one decides and the check says so; without both it is unknown. A status of an older generation
    of the resource proves nothing good by itself: its operator may be gone since.
    """
    listed = list(resource.connectors) if resource is not None and resource.silent is None else []
    failed = [fault for one in states or [] for fault in one.faults]
    if resource is not None and resource.ready and failed:
        failed = [f"{fault}, although {resource.resource} is Ready" for fault in failed]
    faults = [*failed, *(resource.faults if resource is not None else [])]
    good = f"{len(states or listed)} connectors run"
    missing = _missing(states, url, resource)
    known = bool(states) or (bool(listed) and resource is not None and resource.current)
    return Check(
        name="connectors_running",
        ok=False if faults else True if known else None,
        expected="every connector and task RUNNING, the mirror's resource Ready",
        observed="; ".join([*([named(faults)] if faults else [good] if known else []), *missing]),
        evidence=[_evidence("Connect", one) for one in states or []] + [_evidence("resource", one) for one in listed],
    )


def _missing(states: Sequence[ConnectorState] | None, url: str | None, resource: ResourceStatus | None) -> list[str]:
    """Return which of the two is missing, and why."""
    found = []
    if not states:
        found.append(f"Connect at {url} does not answer" if url else "the request names no Connect address")
    if resource is not None and resource.silent is not None:
        found.append(f"{resource.resource} is not known: {resource.silent}")
    elif resource is not None and not resource.connectors:
        found.append(f"the status of {resource.resource} lists no connector")
    elif resource is not None and not resource.current and not states:
        found.append(
            f"the status of {resource.resource} is older than its specification: its operator has not reconciled it"
        )
    return found


def _evidence(reported_by: str, one: ConnectorState) -> dict[str, object]:
    return {"told_by": reported_by, "connector": one.name, "state": one.state, "tasks": list(one.tasks)}


@check(
    "connectors_running",
    after="acls_synced",
    needs_records=False,
    remedy=Remedy(
        text="Read the failed task's trace, remove its cause, then restart what failed: doctor shows the trace and the "
        "request that restarts it.",
        commands=(DOCTOR,),
        page="docs/doctor.md#known-issues",
    ),
)
def _connectors_running(context: RunContext) -> Check:
    return connectors_running(context.connectors, context.request.mirror.connect_url, context.metadata.resource)
