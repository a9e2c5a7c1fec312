"""What the report says first: the verdict in words, what is wrong, and what to do about it."""

from collections.abc import Iterable, Mapping
from typing import Any

from contract.verification_metrics import JUDGED_BY
from spark.checks.check import OTHER, UNPROVEN, Remedy
from spark.checks.registry import definitions

HEADLINES = {
    "pass": (
        "Every check holds",
        "Everything before the cut is on the target. A failover would rest on what is shown here.",
    ),
    "fail": ("Do not fail over on this mirror", "Put right what is listed here, then verify again."),
    "unknown": ("Not proven", "Nothing was found wrong, but not everything could be judged. Treat it as not verified."),
    "stopped": ("Stopped before the end", "Somebody ended the run. What is shown here is what was known by then."),
    "error": ("Nothing was judged", "The run ended before it could judge. Remove the cause, then verify again."),
}


# What a failover would lose is reported before what only differs.
GRAVEST = (
    *("records_complete", "groups_no_loss", "topics_present", "records_intact", "records_ordered", "records_foreign"),
    *("records_unique", "groups_synced", "connectors_running", "lag"),
)


def by_gravity(checks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return checks in the order in which to read them: failed, unknown, held; the gravest of each first."""
    rank = {name: number for number, name in enumerate(GRAVEST)}
    return sorted(checks, key=lambda one: (one["ok"] is True, one["ok"] is None, rank.get(one["name"], len(GRAVEST))))


def remedy(check: Mapping[str, Any]) -> Remedy:
    """Return what to do about a check that does not hold."""
    if check["ok"] is not False:
        return UNPROVEN
    found = definitions().get(check["name"])
    return found.remedy if found is not None else OTHER


def state_of(check: Mapping[str, Any]) -> str:
    """Return good, bad or unknown."""
    return "good" if check["ok"] else "unknown" if check["ok"] is None else "bad"


def is_failing(kind: str, checks: Mapping[str, Any]) -> bool:
    """Return whether findings of this kind count against the mirror: their check does not hold."""
    name = JUDGED_BY.get(kind)
    return name is not None and checks.get(name) is not True


def headline(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the words at the top: title, advice, and the checks counted."""
    title, advice = HEADLINES.get(result["verdict"], HEADLINES["unknown"])
    checks = by_gravity(result["checks"])
    if result["verdict"] == "unknown" and result.get("exit_code") == 0:
        advice = "What could not be judged is allowed by name in the limits; the rest holds."
    return {
        "title": title,
        "advice": advice,
        "failed": [check for check in checks if check["ok"] is False],
        "unknown": [check for check in checks if check["ok"] is None],
        "held": sum(check["ok"] is True for check in checks),
        "total": len(checks),
    }
