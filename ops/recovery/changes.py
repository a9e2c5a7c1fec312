"""How a recovery's changes are carried out, and what an update of the stack would change besides, by a preview.

A recovery runs `pulumi up`, which carries out all that lies in the checkout. Owns which changes are the recovery's own,
and the refusal of others; and whether a failover's changes are carried out directly, by Pulumi, or directly and taken
over by Pulumi at the end. Does not own the changes, nor the preview with the policy pack and its judgement.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ops.connection import PROJECT
from ops.console import log as say
from ops.console import reading
from ops.errors import OpsError
from ops.policy import MANDATORY, Change, judging, planned
from ops.pulumi.stack import SWITCH, PulumiStack
from ops.recovery import break_glass
from ops.recovery.journal import Journal
from ops.recovery.mirror_context import FAILBACK_SUFFIX, MirrorContext
from ops.recovery.operation import StackChanges
from settings.text import format_count

PACK = PROJECT / "policies"
WITHIN_S = 300.0
_NAMED_MAX = 10
# A verification may run with every update, and not while the mirror is stopped; a break-glass copy follows everything.
_WITH_ANY_UPDATE = ("rt-inventory:verification:", "rt-inventory:kafka:BreakGlass")
# Components that follow a mirror's `state`, `active` and `failback`.
_FOLLOWING = (
    "rt-inventory:kafka:Clients$",
    "rt-inventory:kafka:Follower$",
    "rt-inventory:kafka:MetricsRules$",
    "rt-inventory:kubernetes:Scaling$",
    "rt-inventory:kubernetes:CopiedSecrets$",
    "rt-inventory:kubernetes:Monitoring$",
)
# Rights of applications follow a mirror's `active`.
_RIGHTS = "spec.authorization"
# By which the operators stop, pause and start a mirror; without an autoscaler its replicas are declared. Also what the
# mirror leaves out, which changes where topics fail over by themselves.
_STATE_PROPERTIES = {"state", "pause", "replicas", "topicsExcludePattern", "groupsExcludePattern"}
_UNSEEN = "no preview was made: what else lies in the checkout is unknown, and is carried out with it"


def require_none(pulumi: PulumiStack, mirror: str, *, resumes: bool, fails_back: bool = False) -> list[str]:
    """Return warnings once a preview shows no change that is not the recovery's own; raises OpsError otherwise.

    What the policy pack finds is a warning: without other changes it concerns what is deployed already, and a recovery
    that is refused for that helps nobody.

    Args:
        pulumi: The stack that the recovery changes.
        mirror: Its mirror.
        resumes: Whether an interrupted recovery goes on, of which the stack file may be ahead of what is deployed.
        fails_back: Whether it is a failback, which has a mirror of its own.
    """
    level = judging.configured_level(judging.configuration_files(PACK, pulumi.folder, pulumi.name, None))
    with _copy_of(pulumi.file) as stack_file:
        preview = judging.preview_with_pack(pulumi, PACK, None, within_s=WITHIN_S, config_file=stack_file)
    judgement = judging.judge(pulumi.name, PACK, preview, level)
    others = [one for one in planned(preview.log.steps) if not _is_own(one, mirror, resumes, fails_back)]
    if others:
        raise OpsError(
            f"stack {pulumi.name}: the checkout must have no other undeployed changes when a recovery runs `pulumi up` "
            f"(got {format_count(len(others), 'change')}: {_named(others)}). Deploy them first, pulumi up -s "
            f"{pulumi.name}, or take the checkout that is deployed."
        )
    found = sum(one.level == MANDATORY for one in judgement.findings)
    if not found:
        return []
    return [
        f"the policy pack refuses what is deployed already, with {format_count(found, 'mandatory finding')}, which "
        f"`python -m ops policy --stack {pulumi.name}` lists"
    ]


@contextmanager
def _copy_of(file: Path) -> Iterator[Path]:
    """Yield a copy of a stack file, for Pulumi writes an encryption salt into one that has none, in a preview too."""
    with tempfile.TemporaryDirectory(prefix="rt-inventory-preview-") as folder:
        copy = Path(folder) / file.name
        shutil.copyfile(file, copy)
        yield copy


def _is_own(change: Change, mirror: str, resumes: bool, fails_back: bool) -> bool:
    """Whether a change is the recovery's. An update of which nothing is known to differ, as of a secret, is not."""
    of, paths = change.resource, change.paths
    if any(component in of.urn for component in _WITH_ANY_UPDATE):
        return True
    if not resumes:
        return False
    if any(component in of.urn for component in _FOLLOWING):
        return True
    if (of.kind, change.operation) == ("KafkaUser", "update") and paths and all(_RIGHTS in path for path in paths):
        return True
    if fails_back and f"{mirror}{FAILBACK_SUFFIX}" in of.urn:
        return True
    if (of.kind, of.name, change.operation) != ("KafkaMirrorMaker2", mirror, "update"):
        return False
    return fails_back or (bool(paths) and {path.rpartition(".")[2] for path in paths} <= _STATE_PROPERTIES)


def _named(changes: Iterable[Change]) -> str:
    texts = [str(one) for one in changes]
    more = len(texts) - _NAMED_MAX
    return "; ".join(texts[:_NAMED_MAX]) + (f"; and {more} more" if more > 0 else "")


@dataclass(frozen=True, kw_only=True)
class FailoverChanges:
    """`changes` carries out what a whole mirror's steps declare. `pulumi` is None where it is neither asked nor run.

    `of_topics`: the steps make their changes themselves (`SomeTopics`), and Pulumi takes them over.
    """

    mirror: str
    changes: StackChanges
    pulumi: PulumiStack | None
    warnings: tuple[str, ...] = ()
    of_topics: bool = False

    @classmethod
    def of(
        cls,
        known: MirrorContext,
        folder: Path,
        journal: Journal,
        *,
        without_pulumi: bool,
        of_topics: bool = False,
        new_split: bool = False,
    ) -> Self:
        """Change directly if the copy beside the mirror is up to date; warn where Pulumi makes the changes itself.

        `new_split`: topics have failed over by themselves of which Pulumi does not know: each `up` may take them over.
        """
        switch = {SWITCH: known.mirror} if new_split else {}
        where: Any = {"folder": folder, "name": known.stack, "environment": {**os.environ, **switch}}
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
                for warning in require_none(pulumi, self.mirror, resumes=True):
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
                return require_none(self.pulumi, self.mirror, resumes=journal.may_have_changed)
            except OpsError as error:
                raise OpsError(
                    f"{error}\nNothing was changed by this command. If it cannot wait: --without-preview carries out "
                    "whatever else lies in the checkout."
                ) from None
