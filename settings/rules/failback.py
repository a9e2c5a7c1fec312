"""Rules of the way back: only where nothing else writes into the source, and where it can begin at an exact place."""

from settings.errors import Problem
from settings.mirrors import Mirror


def failback(where: str, subject: str, mirror: Mirror) -> list[Problem]:
    """What keeps records that were written on the target from being brought back under their names."""
    phase = mirror.failback
    if phase is None:
        return []
    at, problems = f"{where}.failback", []

    def refuse(rule: str) -> None:
        problems.append(Problem(at, f"{subject}: failback must {rule}"))

    if mirror.naming != "identity":
        refuse(
            f"not be given with prefixed names (got {phase}). The direction back is a mirror of its own there: declare "
            "it with reverse."
        )
    if mirror.active != "target":
        refuse(
            f"not be given while source is active (got {phase}). There is nothing to bring back: set active target, or "
            "remove it; `python -m ops failback` sets and removes it by itself."
        )
    if mirror.source.external is not None:
        refuse(
            f"not be given with an external source (got {phase}; no user is known that may write there). Bring its "
            "records back by hand."
        )
    if not mirror.config_defaults:
        refuse(
            f"not be given with configDefaults false (got {phase}; such a mirror names no ConfigMap for its offsets). "
            "Leave configDefaults out."
        )
    return problems
