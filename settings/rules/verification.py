"""Rules of the verification: the job has time left after it has waited for the mirror; no check is allowed twice."""

from collections import Counter

from settings.errors import Problem
from settings.verification import Verification


def verification(settings: Verification) -> list[Problem]:
    """All rules of the verification."""
    problems = []
    if settings.mirror_wait_seconds >= settings.deadline_seconds:
        problems.append(
            Problem(
                "verification.mirrorWaitSeconds",
                f"verification: mirrorWaitSeconds must be < deadlineSeconds (got {settings.mirror_wait_seconds}, "
                f"deadlineSeconds {settings.deadline_seconds}). The comparison comes after the wait.",
            )
        )
    problems += [
        Problem("verification.allowUnknown", f"verification: allowUnknown must name a check once (got {name} twice).")
        for name, count in Counter(settings.allow_unknown).items()
        if count > 1
    ]
    return problems
