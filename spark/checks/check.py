"""One check, and the verdict of all of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from contract.verification_request import Limits

Verdict = Literal["pass", "fail", "unknown"]
NOTHING = "nothing to compare"
NAMED_MAX = 5


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check: `ok` is None when it could not be made. Evidence holds JSON values only."""

    name: str
    ok: bool | None
    expected: str
    observed: str
    evidence: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        names = ("name", "ok", "expected", "observed", "evidence")
        return {name: getattr(self, name) for name in names}


def named(texts: Sequence[str]) -> str:
    """Return the first few texts in one line, and how many more there are."""
    more = len(texts) - NAMED_MAX
    return "; ".join(texts[:NAMED_MAX]) + (f"; and {more} more" if more > 0 else "")


def verdict(checks: Iterable[Check], limits: Limits) -> tuple[Verdict, int]:
    """Return the verdict and the exit code: unknown is never green, but may be allowed by name to exit 0."""
    found = list(checks)
    if any(check.ok is False for check in found):
        return "fail", 1
    unknown = [check.name for check in found if check.ok is None]
    if unknown:
        return "unknown", 0 if set(unknown) <= set(limits.allow_unknown) else 1
    return "pass", 0


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
# Of a run that could not judge: nothing to type but what finds the cause.
ENDED = {
    "error": Remedy(text="", commands=(DOCTOR,), page="docs/verification.md#bad-input"),
    "stopped": Remedy(text="", commands=(VERIFY,), page="docs/runbook.md#verification"),
}
