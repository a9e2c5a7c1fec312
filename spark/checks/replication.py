"""Checks of the mirror at work: its connectors run, how far it is behind, and how long a record takes through it."""

from collections.abc import Sequence

from contract.verification_request import Limits, Mirror
from kafka.canary import CanaryResult
from kafka.connector_status import ConnectorState, ResourceStatus
from kafka.lag import Lag, Measure
from spark.checks.registry import DOCTOR, NAMED_MAX, STATUS, Check, Remedy, check, named
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
    missing = _unreported(states, url, resource)
    known = bool(states) or (bool(listed) and resource is not None and resource.current)
    return Check(
        name="connectors_running",
        ok=False if faults else True if known else None,
        expected="every connector and task RUNNING, the mirror's resource Ready",
        observed="; ".join([*([named(faults)] if faults else [good] if known else []), *missing]),
        evidence=[_reported("Connect", one) for one in states or []] + [_reported("resource", one) for one in listed],
    )


def _unreported(states: Sequence[ConnectorState] | None, url: str | None, resource: ResourceStatus | None) -> list[str]:
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


def _reported(reported_by: str, one: ConnectorState) -> dict[str, object]:
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


def lag(measured: Lag, mirror: Mirror, limits: Limits) -> Check | None:
    """The mirror is no further behind than the limits say, at the end of the run and in all partitions together.

    Without limits the lag is shown and nothing is judged. None if the request neither says where the mirror's position
    is found nor sets a limit.
    """
    bounds = (limits.lag_records_max, limits.lag_seconds_max)
    if not mirror.locates_position and bounds == (None, None):
        return None
    last = measured.at_end
    return Check(
        name="lag",
        ok=_within(last, limits) if last else None,
        expected=_lag_expected(limits),
        observed=_lag_observed(last) if last else "the mirror's committed position is not known",
        evidence=[vars(one) for one in last.partitions if one.records or one.seconds is None] if last else [],
    )


def _within(last: Measure, limits: Limits) -> bool | None:
    if limits.lag_records_max is not None and last.records > limits.lag_records_max:
        return False
    if limits.lag_seconds_max is None:
        return True
    if any(one.seconds is not None and one.seconds > limits.lag_seconds_max for one in last.partitions):
        return False
    return None if last.seconds is None else True


def _lag_expected(limits: Limits) -> str:
    wanted = [
        f"at most {limit} {unit} behind"
        for limit, unit in ((limits.lag_records_max, "records"), (limits.lag_seconds_max, "seconds"))
        if limit is not None
    ]
    return " and ".join(wanted) or "shown only: the request sets no limit"


def _lag_observed(last: Measure) -> str:
    age = "an age that could not be read" if last.seconds is None else f"{last.seconds:g} seconds"
    text = f"{last.records} records and {age} behind"
    worst = sorted((one for one in last.partitions if one.records), key=lambda one: -one.records)
    named = [f"{one.topic}-{one.partition} {one.records}" for one in worst[:NAMED_MAX]]
    more = len(worst) - len(named)
    return text + (f": {', '.join(named)}" if named else "") + (f" and {more} more partitions" if more > 0 else "")


@check(
    "lag",
    after="connectors_running",
    remedy=Remedy(
        text="Look for a stopped or throttled source connector; then raise tasksMax, or the producer's batch.size and "
        "linger.ms. A lag that keeps growing never ends by waiting.",
        commands=(STATUS, DOCTOR),
        page="docs/mirrors.md#scaling-on-lag",
    ),
)
def _lag(context: RunContext) -> Check | None:
    return lag(context.lag, context.request.mirror, context.request.limits)


def canary_latency(found: CanaryResult | None, limits: Limits) -> Check | None:
    """Every canary record arrives in time, 99 of 100 within the limit; None if no canary was asked for.

    Without a limit the latency is shown, but a record that has not arrived by the deadline fails the check all the
    same. Unknown when the canary could not be sent.
    """
    if found is None:
        return None
    limit = limits.canary_p99_ms_max
    missing, p99 = found.sent - len(found.latencies_ms), found.percentile(99)
    if found.problem is not None or not found.sent:
        ok, observed = None, found.problem or "no canary record was sent before the deadline"
    elif missing:
        ok, observed = False, f"{missing} of {found.sent} records not on the target after {found.waited_s:.0f} s"
    elif found.sent < found.asked:
        ok, observed = None, f"only {found.sent} of {found.asked} records were sent before the deadline; all arrived"
    else:
        ok = limit is None or (p99 is not None and p99 <= limit)
        shares = ", ".join(f"p{share} {found.percentile(share):g} ms" for share in (50, 95, 99))
        observed = f"{found.sent} records through {found.topic}: {shares}"
    bound = f"p99 at most {limit} ms" if limit is not None else "latency shown only: the request sets no limit"
    return Check(
        name="canary_latency",
        ok=ok,
        expected=f"every canary record arrives in time, {bound}",
        observed=observed,
        evidence=[{name: value for name, value in found.document().items() if name != "latencies_ms"}],
    )


@check(
    "canary_latency",
    after="lag",
    left_out=lambda mirror: "the request asks for no canary" if mirror.canary is None else None,
    remedy=Remedy(
        text="Look at lag and connectors first: stamped records take the same way as all others.",
        commands=(STATUS,),
        page="docs/verification.md#how-terms-are-settled",
    ),
)
def _canary_latency(context: RunContext) -> Check | None:
    return canary_latency(context.canary, context.request.limits)
