"""What a failover moves: a whole mirror. Owns what `stop` and `switch` declare and carry out, and how it is read back.

Does not own the steps (`failover.py`), nor the failover of some topics of a mirror (`topic_scope.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ops.errors import OpsError
from ops.pulumi import stack_file
from ops.recovery import mirror_context
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import Say, StackChanges


class Scope(Protocol):
    """What a failover moves, and how."""

    @property
    def stop_words(self) -> str:
        """What `stop` does."""

    @property
    def switch_words(self) -> str:
        """What `switch` does."""

    @property
    def switches_clients(self) -> bool:
        """Whether the Secret that applications read follows, and so the workloads that read it."""

    def stop(self) -> None:
        """Declare that nothing is copied any more and carry it out; raises OpsError."""

    def run_again(self) -> None:
        """Take back what `stop` has done, for there is more to copy; raises OpsError."""

    def require_groups(self, groups: Iterable[str]) -> None:
        """Raise OpsError unless these groups may be set at the target."""

    def switch(self) -> None:
        """Declare the target as active and carry it out; raises OpsError."""

    def read_back(self) -> MirrorContext:
        """Return the mirror as it is declared now; raises OpsError unless it says what `switch` has declared."""


@dataclass(frozen=True, kw_only=True)
class WholeMirror:
    """A whole mirror, or what is left of it where topics were failed over by themselves before."""

    pair: MirrorContext
    changes: StackChanges
    say: Say

    stop_words = "stop the mirror: nothing may be copied over what the target writes from now on"
    switch_words = "record the target as active, and give applications its properties"
    switches_clients = True

    def stop(self) -> None:
        """Declare the mirror stopped, and carry it out."""
        self.changes.set_mirror(self.pair.mirror, {"state": self.pair.rest_state})
        self.changes.up(None, self.say)

    def run_again(self) -> None:
        """Declare the mirror running, and carry it out."""
        self.changes.set_mirror(self.pair.mirror, {"state": "running"})
        self.changes.up(None, self.say)

    def require_groups(self, groups: Iterable[str]) -> None:
        """All of them may be set."""

    def switch(self) -> None:
        """Record the new active side in the stack's settings, outputs and the Secret that applications read."""
        is_split = "failedOver" in stack_file.mirror_entry(self.changes.file, self.pair.mirror)
        split = {"failedOver": None} if is_split else {}
        self.changes.set_mirror(self.pair.mirror, {"state": self.pair.rest_state, "active": "target", **split})
        self.changes.up(self.pair.mirror, self.say)

    def read_back(self) -> MirrorContext:
        """Return the mirror by the stack's outputs."""
        known = mirror_context.load(
            self.pair.stack, self.pair.mirror, self.changes.environment, self.pair.project, self.changes.outputs
        )
        if known.active != "target":
            raise OpsError(
                f"stack {known.stack}: output mirrors.{known.mirror}.active must be target after the switch (got "
                f"{known.active}). Look at the stack file and run the command again."
            )
        return known
