"""Judges a run by all checks that are declared, in the order of the report."""

from contract.verification_request import Mirror
from spark.checks.check import Check
from spark.checks.registry import Definition, definitions
from spark.run_context import Facts


def judge(context: Facts) -> list[Check]:
    """Return every check of a run that its request does not leave out."""
    return _judged(context, list(definitions().values()))


def judge_part(context: Facts) -> list[Check]:
    """Return the checks of a run that had to stop: those that need no record, once the wait for the mirror is over."""
    if not context.waited:
        return []
    return _judged(context, [one for one in definitions().values() if not one.needs_records])


def not_judged(mirror: Mirror) -> list[dict[str, str]]:
    """Return the checks that a request leaves out, each with the reason."""
    reasons = {one.name: one.left_out(mirror) for one in definitions().values()}
    return [{"name": name, "reason": reason} for name, reason in reasons.items() if reason is not None]


def _judged(context: Facts, chosen: list[Definition]) -> list[Check]:
    wanted = [one for one in chosen if one.left_out(context.request.mirror) is None]
    return [found for one in wanted if (found := one.judge(context)) is not None]
