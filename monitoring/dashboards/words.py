"""Words and colours that stand for numbers: what a panel shows instead of 0, 1 and 2."""

from collections.abc import Mapping
from enum import StrEnum


class Colour(StrEnum):
    """Colours as Grafana names them; each means the same everywhere."""

    GOOD = "green"
    WARNING = "orange"
    BAD = "red"
    PLANNED = "blue"
    UNKNOWN = "purple"
    NEUTRAL = "text"


Words = Mapping[int, tuple[str, Colour]]
Vocabulary = Mapping[str, Colour]

# Values of a label, from the least to the most grave: see queries.coded.
CONNECTOR_STATES: Vocabulary = {
    "running": Colour.GOOD,
    "paused": Colour.PLANNED,
    "stopped": Colour.PLANNED,
    "restarting": Colour.WARNING,
    "unassigned": Colour.WARNING,
    "destroyed": Colour.BAD,
    "failed": Colour.BAD,
}
MIRROR_STATES: Vocabulary = {"running": Colour.GOOD, "paused": Colour.PLANNED, "stopped": Colour.PLANNED}
SIDES: Vocabulary = {"source": Colour.GOOD, "target": Colour.WARNING}
VERDICTS: Vocabulary = {
    "pass": Colour.GOOD,
    "stopped": Colour.UNKNOWN,
    "unknown": Colour.WARNING,
    "error": Colour.BAD,
    "fail": Colour.BAD,
}

UP: Words = {0: ("down", Colour.BAD), 1: ("up", Colour.GOOD)}
RUNNING: Words = {0: ("not running", Colour.BAD), 1: ("running", Colour.GOOD)}
REACHED: Words = {0: ("no answer", Colour.BAD), 1: ("answers", Colour.GOOD)}
LOOK: Words = {0: ("good", Colour.GOOD), 1: ("failed", Colour.BAD)}
READY: Words = {0: ("not ready", Colour.BAD), 1: ("ready", Colour.GOOD)}
CHECK: Words = {-1: ("unknown", Colour.WARNING), 0: ("fails", Colour.BAD), 1: ("holds", Colour.GOOD)}
NEVER: Words = {-1: ("never", Colour.GOOD)}
REBALANCING: Words = {0: ("steady", Colour.GOOD), 1: ("rebalancing", Colour.WARNING)}


def numbered(vocabulary: Vocabulary) -> Words:
    """Return the words under the numbers that queries.coded gives them."""
    return {number: (word, colour) for number, (word, colour) in enumerate(vocabulary.items(), start=1)}
