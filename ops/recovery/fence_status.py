"""Whether the source of a mirror is fenced now, by its KafkaUsers; and a fence that was declared is carried out.

Owns what is a problem: a fence that nobody needs, and a source that takes writes while the target is active. Does not
own the fence itself (`fence.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ops import verify
from ops.errors import OpsError
from ops.recovery import fence
from ops.recovery.fence import FENCING
from ops.recovery.fencing import ANSWERS_WITHIN_S
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext
from settings import SettingsError

LEFT_BEHIND, TAKES_WRITES = "fence-left-behind", "source-still-takes-writes"
"""Names of the doctor's findings."""
_UNKNOWN = OpsError, SettingsError
CALL_WITHIN_S = 5
"""For reading the users: the source may be lost, and a failover waits for the snapshot."""


@dataclass(frozen=True, kw_only=True)
class FenceStatus:
    """The fence of a source.

    Args:
        cluster: Name of the source's cluster.
        stack: Stack of the source.
        users: Whether each application user may write a mirrored topic there.
        declared: Whether the source's stack file has a fence for topics of the mirror.
        failed_over: Whether each application user may write a topic there that is failed over by itself.
    """

    cluster: str
    stack: str
    users: Mapping[str, bool]
    declared: bool
    failed_over: Mapping[str, bool] = field(default_factory=dict)

    @property
    def may_write(self) -> list[str]:
        """Application users that are not refused."""
        return sorted(user for user, may in self.users.items() if may)

    @property
    def refused(self) -> list[str]:
        """Application users that are refused."""
        return sorted(user for user, may in self.users.items() if not may)

    @property
    def in_force(self) -> bool | None:
        """Whether all application users are refused; None if there are none."""
        return not self.may_write if self.users else None

    def issue(self, active: str, *, recovers: bool) -> tuple[str, str] | None:
        """Return the name of the issue and its evidence; None if the fence is as it must be.

        Args:
            active: The side that applications use.
            recovers: Whether a failover or failback has changed something and not finished: it is reported by itself.
        """
        if recovers:
            return None
        if active == "target" and self.may_write:
            users = ", ".join(self.may_write)
            return TAKES_WRITES, f"the target is active, and {users} may write the mirrored topics at {self.cluster}"
        if moved := sorted(user for user, may in self.failed_over.items() if may):
            what = f"topics are failed over by themselves, and {', '.join(moved)} may write them at {self.cluster}"
            return TAKES_WRITES, what
        if active == "source" and self.refused:
            users = ", ".join(self.refused)
            return LEFT_BEHIND, f"the source is active, and {users} may not write the mirrored topics there"
        if active == "source" and self.declared:
            return LEFT_BEHIND, f"the source is active, and the stack file of {self.stack} declares a fence"
        return None

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "cluster": self.cluster,
            "inForce": self.in_force,
            "mayWrite": self.may_write,
            "refused": self.refused,
            "declared": self.declared,
            "mayWriteFailedOver": sorted(user for user, may in self.failed_over.items() if may),
        }


def observe(pair: MirrorContext, environment: Mapping[str, str]) -> FenceStatus | None:
    """Return the fence of a mirror's source; None if it cannot be fenced, or its KafkaUsers cannot be read."""
    if pair.outputs.active is None:
        return None
    mirror = pair.request.mirror
    try:
        found, _ = fence.at_source(pair, pair.project, environment, lambda _: None)
        if found is None or pair.source_stack is None:
            return None
        declared = found.declared(mirror)
        topics, prefixes = fence.covered(mirror, ())
        moved = pair.failed_over.topics if pair.failed_over is not None else ()
        if declared is None and not topics and not prefixes and not moved:
            return None
        quick = replace(found, rights=replace(found.rights, call_within_s=CALL_WITHIN_S, tried_within_s=0.0))
        users = quick.missing(declared or found.of(topics, prefixes))
        of_moved = quick.missing(found.of(moved, ())) if moved else {}
    except _UNKNOWN:
        return None
    return FenceStatus(
        cluster=found.cluster,
        stack=verify.label_of(pair.source_stack),
        users=users,
        declared=declared is not None,
        failed_over=of_moved,
    )


def carry_out_declared(pair: MirrorContext, environment: Mapping[str, str], log: Callable[[str], None]) -> list[str]:
    """Fence a source that takes writes although a failover has declared its fence; return the users that changed.

    Nothing is done while a failover or failback is under way, and without a fence in the journal. Raises OpsError.
    """
    journal = Journal.load(pair.resource.namespace, pair.mirror, environment, pair.resource.context)
    entry = journal.entry or {}
    entry = (entry.get("before") or {}) if journal.under_way else entry  # one under way has changed nothing, or counts
    noted = (entry.get("steps") or {}).get(FENCING)
    found, _ = fence.at_source(pair, pair.project, environment, log)
    if journal.may_have_changed or noted is None or found is None or entry["command"] != "failover":
        return []
    return found.put_up(fence.made(noted), ANSWERS_WITHIN_S)
