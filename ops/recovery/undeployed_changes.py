"""What an update of the stack would change besides a recovery, by a preview with the policy pack; changes nothing.

A recovery runs `pulumi up`, which carries out all that lies in the checkout. Owns which changes are the recovery's own,
and the refusal of others. Does not own the preview or its judgement.
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ops.connection import PROJECT
from ops.errors import OpsError
from ops.policy import MANDATORY, Change, judging, planned
from ops.pulumi.stack import PulumiStack
from ops.recovery.mirror_context import FAILBACK_SUFFIX
from settings.text import format_count

PACK = PROJECT / "policies"
WITHIN_S = 300.0
_NAMED_MAX = 10
# A verification may run with every update, and not while the mirror is stopped; a break-glass copy follows everything.
_WITH_ANY_UPDATE = ("rt-inventory:verification:", "rt-inventory:kafka:BreakGlass")
# Components that follow a mirror's `state`, `active` and `failback`.
_FOLLOWING = (
    "rt-inventory:kafka:Clients$",
    "rt-inventory:kafka:MetricsRules$",
    "rt-inventory:kubernetes:Scaling$",
    "rt-inventory:kubernetes:CopiedSecrets$",
    "rt-inventory:kubernetes:Monitoring$",
)
# Rights of applications follow a mirror's `active`.
_RIGHTS = "spec.authorization"
# How the operators are told to stop, pause and start a mirror; without an autoscaler its replicas are declared.
# What it leaves out, where topics fail over by themselves.
_STATE_PROPERTIES = {"state", "pause", "replicas", "topicsExcludePattern", "groupsExcludePattern"}


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
    of = change.resource
    if any(component in of.urn for component in _WITH_ANY_UPDATE):
        return True
    if not resumes:
        return False
    if any(component in of.urn for component in _FOLLOWING):
        return True
    if (of.kind, change.operation) == ("KafkaUser", "update") and all(_RIGHTS in path for path in change.paths):
        return True
    if fails_back and f"{mirror}{FAILBACK_SUFFIX}" in of.urn:
        return True
    if (of.kind, of.name, change.operation) != ("KafkaMirrorMaker2", mirror, "update"):
        return False
    return fails_back or {path.rpartition(".")[2] for path in change.paths} <= _STATE_PROPERTIES


def _named(changes: Iterable[Change]) -> str:
    texts = [str(one) for one in changes]
    more = len(texts) - _NAMED_MAX
    return "; ".join(texts[:_NAMED_MAX]) + (f"; and {more} more" if more > 0 else "")
