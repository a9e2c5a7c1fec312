"""The follower that a stack declares for a mirror (`exactOffsets`), in a failover of it.

Owns the wait until no pod sets groups any more, and the last rounds that a planned failover does in its place. Does not
own the Deployment, of which the mirror's `state` decides, nor what a round does (`ops/follow/`).
"""

import time
from collections.abc import Callable, Mapping

from kubernetes import client

from kafka.cluster import CALL_DEADLINE_S
from ops.errors import OpsError
from ops.follow.command import followed
from ops.recovery.kubernetes_access import CALL_WITHIN_S, kubernetes
from ops.recovery.mirror_context import MirrorContext
from settings.mirror_parts import FOLLOWER, follower_name

ENDED_WITHIN_S, POLL_S, SAID_EVERY_S = 120.0, 0.5, 10.0
ROUNDS_MAX = 20
"""Of one partition each compares one stretch between two syncs."""
ROUNDS_WITH_PROBLEMS = 3
"""How many more are made where a group could not be read or set, if nothing else is to be set."""
_OVER = ("Succeeded", "Failed")
Say = Callable[[str], None]


def require_ended(
    pair: MirrorContext, environment: Mapping[str, str], say: Say, within_s: float = ENDED_WITHIN_S
) -> None:
    """Return once no pod of the follower is there: none sets a group after the failover has; raises OpsError."""
    resource, began, said = pair.resource, time.monotonic(), 0
    selector = f"app.kubernetes.io/name={FOLLOWER},app.kubernetes.io/instance={pair.mirror}"
    while True:
        with kubernetes(environment, resource.context) as api:
            found = client.CoreV1Api(api).list_namespaced_pod(
                resource.namespace, label_selector=selector, _request_timeout=CALL_WITHIN_S
            )
        left = [str(pod.metadata.name) for pod in found.items if pod.status is None or pod.status.phase not in _OVER]
        if not left:
            return
        waited_s = time.monotonic() - began
        if waited_s > within_s:
            raise OpsError(
                f"Deployment {resource.namespace}/{follower_name(pair.mirror)}: must have no pod once the mirror is "
                f"stopped (got {', '.join(left)} after {within_s:.0f} s). Scale it to 0, or delete the pod, and run "
                "the command again."
            )
        if waited_s >= said * SAID_EVERY_S:
            said += 1
            say(f"  waiting for the end of the follower's pod {', '.join(left)}")
        time.sleep(POLL_S)


def last_rounds(pair: MirrorContext, say: Say) -> bool:
    """Set what groups have read since the pod's last round; return whether anything was set. Raises ClusterError."""
    changed = 0
    with followed(pair, CALL_DEADLINE_S) as follower:
        for number in range(ROUNDS_MAX):
            found = follower.round()
            changed += found.set_offsets
            if not found.set_offsets and (not found.problems or number >= ROUNDS_WITH_PROBLEMS):
                break
    for problem in found.problems:
        say(f"  {problem}")
    states = ", ".join(f"{number} {state}" for state, number in found.positions.items() if number) or "none"
    say(f"  positions as the follower leaves them: {states}")
    return bool(changed)
