"""Check of how far the mirror is behind the source."""

from contract.verification_request import Limits, Mirror
from kafka.lag import Lag, Measure
from spark.checks.registry import DOCTOR, NAMED_MAX, STATUS, Check, Remedy, check
from spark.run_context import RunContext


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
        ok=_ok(last, limits) if last else None,
        expected=_expected(limits),
        observed=_observed(last) if last else "the mirror's committed position is not known",
        evidence=[vars(one) for one in last.partitions if one.records or one.seconds is None] if last else [],
    )


def _ok(last: Measure, limits: Limits) -> bool | None:
    if limits.lag_records_max is not None and last.records > limits.lag_records_max:
        return False
    if limits.lag_seconds_max is None:
        return True
    if any(one.seconds is not None and one.seconds > limits.lag_seconds_max for one in last.partitions):
        return False
    return None if last.seconds is None else True


def _expected(limits: Limits) -> str:
    wanted = [
        f"at most {limit} {unit} behind"
        for limit, unit in ((limits.lag_records_max, "records"), (limits.lag_seconds_max, "seconds"))
        if limit is not None
    ]
    return " and ".join(wanted) or "shown only: the request sets no limit"


def _observed(last: Measure) -> str:
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
