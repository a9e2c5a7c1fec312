"""Check of the mirror's connectors."""

from collections.abc import Sequence

from spark.checks.check import Check
from spark.clusters.connect import ConnectorState


def connectors_running(states: Sequence[ConnectorState] | None, url: str | None) -> Check:
    """The mirror's connectors and all their tasks run."""
    bad = [state for state in states or [] if not state.running]
    shown = "; ".join(f"{one.name} is {one.state}, tasks {', '.join(one.tasks) or 'none'}" for one in bad)
    return Check(
        name="connectors_running",
        ok=not bad if states else None,
        expected="every connector and task RUNNING",
        observed=(shown or f"{len(states)} connectors run") if states else _silent(url),
        evidence=[{"connector": one.name, "state": one.state, "tasks": list(one.tasks)} for one in states or []],
    )


def _silent(url: str | None) -> str:
    return f"Connect at {url} does not answer" if url else "the request names no Connect address"
