"""Waiting until an operator has carried out what was changed of a custom resource.

Owns the deadline and the words. Does not own the change.
"""

import time
from collections.abc import Callable, Mapping

from contract.verification_request import Resource
from kafka.connector_status import resource_status
from ops.errors import OpsError

READY_WITHIN_S, POLL_S, REPORTED_EVERY_S = 600.0, 0.25, 10.0


def wait_until_ready(
    resource: Resource, environment: Mapping[str, str], log: Callable[[str], None], within_s: float | None = None
) -> None:
    """Return once the operator has seen the newest generation of a resource and it is Ready; raises OpsError."""
    limit_s = READY_WITHIN_S if within_s is None else within_s
    deadline, reported_at = time.monotonic() + limit_s, time.monotonic()
    while True:
        status = resource_status(resource, (), environment)
        if status.silent is None and status.current and status.ready:
            return
        why = status.silent or status.reason or "its operator has not seen the change"
        if time.monotonic() > deadline:
            raise OpsError(
                f"{resource.kind} {resource.namespace}/{resource.name}: must be Ready within {limit_s:.0f} s (got "
                f"{why}). Remove the cause, then run this again."
            )
        if time.monotonic() - reported_at >= REPORTED_EVERY_S:
            reported_at = time.monotonic()
            log(f"  waiting for {resource.kind} {resource.name}: {why}")
        time.sleep(POLL_S)
