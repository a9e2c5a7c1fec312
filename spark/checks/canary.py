"""Check of the canary: how long a record takes through the mirror."""

from contract.verification_request import Limits
from kafka.canary import CanaryResult
from spark.checks.registry import STATUS, Check, Remedy, check
from spark.run_context import RunContext


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
