"""How a failover's changes are carried out: directly, by Pulumi, or directly and taken over by Pulumi at the end.

Owns the choice, and the preview that keeps whatever else lies in the checkout out of it. Does not own the changes.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ops.console import log as say
from ops.console import reading
from ops.errors import OpsError
from ops.pulumi.stack import PulumiStack
from ops.recovery import break_glass, undeployed_changes
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.operation import StackChanges

_UNSEEN = "no preview was made: what else lies in the checkout is unknown, and is carried out with it"


@dataclass(frozen=True, kw_only=True)
class FailoverChanges:
    """`changes` carries out what a whole mirror's steps declare. `pulumi` is None where it is neither asked nor run.

    `of_topics`: the steps make their changes themselves (`topic_scope.py`), and Pulumi takes them over.
    """

    mirror: str
    changes: StackChanges
    pulumi: PulumiStack | None
    warnings: tuple[str, ...] = ()
    of_topics: bool = False

    @classmethod
    def of(
        cls, known: MirrorContext, folder: Path, journal: Journal, *, without_pulumi: bool, of_topics: bool = False
    ) -> Self:
        """Change directly if the copy beside the mirror is up to date; warn where Pulumi makes the changes itself."""
        where: Any = {"folder": folder, "name": known.stack, "environment": os.environ}
        may = journal.require_held
        if without_pulumi:
            direct = break_glass.direct_changes(known.mirror, **where, require_permission=may)
            return cls(mirror=known.mirror, changes=direct, pulumi=None)
        pulumi = PulumiStack(**where, require_permission=may)
        if of_topics:
            return cls(mirror=known.mirror, changes=pulumi, pulumi=pulumi, of_topics=True)
        try:
            direct = break_glass.direct_changes(known.mirror, **where, require_permission=may)
            why = break_glass.why_outdated(direct, known)
        except OpsError as error:
            why = str(error).splitlines()[0]
        if why is None:
            return cls(mirror=known.mirror, changes=direct, pulumi=pulumi)
        slower = f"each change is a `pulumi up` of its own, which takes longer, because {why}"
        return cls(mirror=known.mirror, changes=pulumi, pulumi=pulumi, warnings=(slower,))

    @property
    def reconciles(self) -> bool:
        """Whether Pulumi takes over at the end what was changed without it."""
        return self.of_topics or (self.pulumi is not None and self.changes is not self.pulumi)

    def reconcile(self, *, preview_first: bool) -> Callable[[], None] | None:
        """Return what lets Pulumi take it over, if it has to; first a preview that refuses other changes, if wanted."""
        pulumi = self.pulumi
        if pulumi is None or not self.reconciles:
            return None

        def reconcile() -> None:
            if preview_first:
                for warning in undeployed_changes.require_none(pulumi, self.mirror, resumes=True):
                    say(f"! {warning}")
            pulumi.up(self.mirror, say)

        return reconcile

    def previewed(self, journal: Journal, *, without_preview: bool, preview_afterwards: bool) -> list[str]:
        """Return the warnings of a preview, or that there is none; raises OpsError for changes of somebody else."""
        if preview_afterwards:
            return []
        if self.pulumi is None:
            return [break_glass.UNSEEN]
        if without_preview:
            return [_UNSEEN]
        with reading("what `pulumi up` would change, by a preview with the policy pack"):
            try:
                return undeployed_changes.require_none(self.pulumi, self.mirror, resumes=journal.may_have_changed)
            except OpsError as error:
                raise OpsError(
                    f"{error}\nNothing was changed by this command. If it cannot wait: --without-preview carries out "
                    "whatever else lies in the checkout."
                ) from None
