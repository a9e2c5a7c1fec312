"""The checks of a verification: each module of this package declares its own, with what it needs and its remedy.

A check is declared once, at the function that judges it. The order of the report, the names in `contract`, the checks
that a request leaves out, and the table in docs/verification.md follow from the declarations.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import spark.checks
from contract.verification_request import Mirror
from spark.checks.check import Check, Remedy
from spark.cluster_pair import RunContext

Judge = Callable[[RunContext], Check | None]
_declared: dict[str, "Definition"] = {}


@dataclass(frozen=True, kw_only=True)
class Definition:
    """One check as its module declares it.

    `judge` returns None if the run has nothing that the check could be about. `left_out` returns the reason why a
    request leaves the check out, None if it does not. `after` names the check that stands before it in the report.
    """

    name: str
    after: str | None
    needs_records: bool
    left_out: Callable[[Mirror], str | None]
    remedy: Remedy
    judge: Judge


def _never(mirror: Mirror) -> str | None:
    return None


def check(
    name: str,
    *,
    after: str | None,
    remedy: Remedy,
    needs_records: bool = True,
    left_out: Callable[[Mirror], str | None] = _never,
) -> Callable[[Judge], Judge]:
    """Declare a check at the function that judges it.

    Args:
        name: the name by which reports, settings and metrics know it.
        after: the check behind which it is reported; None for the first.
        remedy: what to do if it fails.
        needs_records: whether it can be judged only if the records were compared.
        left_out: returns the reason why a request leaves it out, None if it does not.
    """

    def declare(judge: Judge) -> Judge:
        if name in _declared:
            raise ValueError(f"check {name}: must be declared once (got it in {judge.__module__} again)")
        _declared[name] = Definition(
            name=name, after=after, needs_records=needs_records, left_out=left_out, remedy=remedy, judge=judge
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
