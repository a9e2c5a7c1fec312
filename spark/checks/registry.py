"""What a check is, its remedy, and the registry of all of them: each module of this package declares its own checks.

A check is declared once, at the function that judges it. The order of the report, the names in `contract`, the checks
that a request leaves out, and the table in docs/verification.md follow from the declarations.
"""

import pkgutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal

import spark.checks
from contract.verification_request import Limits, Mirror
from spark.run_context import RunContext

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


def verdict(checks: Iterable[Check], limits: Limits, expired: Collection[str] = ()) -> tuple[Verdict, int]:
    """Return the verdict and the exit code: unknown is never green, but may be allowed by name to exit 0.

    `expired` are checks that `allow_unknown` forgives no more, whether it names them or not.
    """
    found = list(checks)
    if any(check.ok is False for check in found):
        return "fail", 1
    unknown = [check.name for check in found if check.ok is None]
    if unknown:
        return "unknown", 0 if set(unknown) <= set(limits.allow_unknown) - set(expired) else 1
    return "pass", 0


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """`page` is a path below the project's folder, with an anchor.

    Commands are typed in that folder. What is in braces comes from the run: `mirror` its stack and mirror, `source` and
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


Judge = Callable[[RunContext], Check | None]
Expires = Callable[[RunContext], bool]
_declared: dict[str, "Definition"] = {}


def _never_expires(context: RunContext) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Definition:
    """One check as its module declares it.

    `judge` returns None if the run has nothing that the check could be about. `left_out` returns the reason why a
    request leaves the check out, None if it does not. `after` names the check before it in the report. `expires`
    returns whether there is something that the check is about, so that `allow_unknown` forgives it no more.
    """

    name: str
    after: str | None
    needs_records: bool
    left_out: Callable[[Mirror], str | None]
    remedy: Remedy
    judge: Judge
    expires: Expires = _never_expires


def _never(mirror: Mirror) -> str | None:
    return None


def check(
    name: str,
    *,
    after: str | None,
    remedy: Remedy,
    needs_records: bool = True,
    left_out: Callable[[Mirror], str | None] = _never,
    expires: Expires = _never_expires,
) -> Callable[[Judge], Judge]:
    """Declare a check at the function that judges it.

    Args:
        name: the name by which reports, settings and metrics know it.
        after: the check behind which it is reported; None for the first.
        remedy: what to do if it fails.
        needs_records: whether it can be judged only if the records were compared.
        left_out: returns the reason why a request leaves it out, None if it does not.
        expires: returns whether `allow_unknown` forgives the check no more, for there is something that it is about.
    """

    def declare(judge: Judge) -> Judge:
        if name in _declared:
            raise ValueError(f"check {name}: must be declared once (got it in {judge.__module__} again)")
        _declared[name] = Definition(
            name=name,
            after=after,
            needs_records=needs_records,
            left_out=left_out,
            remedy=remedy,
            judge=judge,
            expires=expires,
        )
        return judge

    return declare


@cache
def definitions() -> dict[str, Definition]:
    """Return all checks by name, in the order of the report."""
    for module in pkgutil.iter_modules(spark.checks.__path__):
        if not module.name.startswith("__"):
            import_module(f"spark.checks.{module.name}")
    return in_order(_declared)


def in_order(declared: dict[str, Definition]) -> dict[str, Definition]:
    """Return checks in the order that `after` gives; several behind one check follow it by name.

    Raises ValueError if `after` names no check, or leads in a circle.
    """
    ordered: dict[str, Definition] = {}

    def append(after: str | None) -> None:
        for name in sorted(declared):
            if declared[name].after == after:
                ordered[name] = declared[name]
                append(name)

    append(None)
    if lost := sorted(set(declared) - set(ordered)):
        raise ValueError(f"checks {', '.join(lost)}: `after` must lead to the first check")
    return ordered


def judge(context: RunContext) -> list[Check]:
    """Return every check of a run that its request does not leave out."""
    return _judged(context, list(definitions().values()))


def expired(context: RunContext, checks: Iterable[Check]) -> list[str]:
    """Return the checks that `allow_unknown` forgives no more: it is meant for a pair that holds nothing yet."""
    known = definitions()
    return [one.name for one in checks if one.name in known and known[one.name].expires(context)]


def judge_part(context: RunContext) -> list[Check]:
    """Return the checks of a run that had to stop: those that need no record, once the wait for the mirror is over."""
    if not context.waited:
        return []
    return _judged(context, [one for one in definitions().values() if not one.needs_records])


def not_judged(mirror: Mirror) -> list[dict[str, str]]:
    """Return the checks that a request leaves out, each with the reason."""
    reasons = {one.name: one.left_out(mirror) for one in definitions().values()}
    return [{"name": name, "reason": reason} for name, reason in reasons.items() if reason is not None]


def _judged(context: RunContext, chosen: list[Definition]) -> list[Check]:
    wanted = [one for one in chosen if one.left_out(context.request.mirror) is None]
    return [found for one in wanted if (found := one.judge(context)) is not None]
