"""The metrics of a mirror's last verification.

Does not own which one is the last, nor the metrics of a run: they are the verification's.
"""

from pathlib import Path

from ops.metrics.families import Family, of_registry
from ops.recovery.latest_verification import REPORTS, latest
from ops.recovery.pair import Pair
from spark.report import metrics


def families(pair: Pair, reports: Path = REPORTS) -> list[Family]:
    """Return the metrics of the last run whose end is known; nothing if there is none.

    A report has them all. Of a run whose report lies elsewhere the outputs tell the verdict, the
    checks that do not hold, and how many records were compared.
    """
    last = latest(pair, reports)
    if last is None:
        return []
    try:
        return of_registry(metrics.registry({**last, "stack": pair.label, "mirror": pair.mirror}))
    except (KeyError, TypeError, ValueError, AttributeError):  # a report of another version, or half of one
        return []
