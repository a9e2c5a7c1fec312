"""What to do about a check that fails: in words, what to type, and where to read on. Each check states its own."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """`page` is a path below the project's folder, with an anchor.

    Commands are typed in that folder. What stands in braces is of the run: `mirror` its stack and mirror, `source` and
    `target` the stack of a side, `groups` and `topic` what the check found. A command of which something is not known
    is left out.
    """

    text: str
    commands: tuple[str, ...]
    page: str


DOCTOR = "python -m ops doctor {mirror}"
STATUS = "python -m ops status {mirror}"
VERIFY = "python -m ops verify {mirror}"
EXACT = "python -m ops offsets set {mirror} {groups} --exact"

OTHER = Remedy(
    text="Look at what was observed, remove the cause and verify again.",
    commands=(DOCTOR,),
    page="docs/verification.md#how-terms-are-settled",
)
UNPROVEN = Remedy(
    text="It could not be judged: read what was observed, remove the cause and verify again. Unknown is never green.",
    commands=(DOCTOR,),
    page="docs/verification.md#rights-the-users-need",
)
# Of a run that could not judge: nothing to type but what looks for the cause.
ENDED = {
    "error": Remedy(text="", commands=(DOCTOR,), page="docs/verification.md#bad-input"),
    "stopped": Remedy(text="", commands=(VERIFY,), page="docs/runbook.md#verification"),
}
