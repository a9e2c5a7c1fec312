"""A failover of ten thousand groups: what the screen shows of them."""

from typing import Any

from rich.console import Console

from ops.recovery import failover_result
from ops.recovery.failover import UNPLANNED

SETTLED: dict[str, Any] = {"withoutPosition": [], "setBack": {}, "mayBeSkipped": {}, "translated": True}


def test_of_many_groups_the_screen_shows_some_and_first_those_that_may_skip_records() -> None:
    plain = {**SETTLED, "repeated": None, "skipped": None, "left": 7}
    groups = {f"g{number:05}": {**plain, "setBack": {"items-0": 3}} for number in range(10_000)}
    groups["g09999"] = {**plain, "mayBeSkipped": {"items-0": 3}}
    done = {
        "mirror": "mm2",
        "stack": "stg",
        "switchedAt": "now",
        "path": UNPLANNED,
        "recordsLost": None,
        "stranded": None,
        "newestMirrored": None,
        "groups": groups,
        "activeOnTarget": [],
        "translationUnknown": None,
        "clientsSecret": None,
    }
    console = Console(width=200, no_color=True)
    with console.capture() as caught:
        console.print(failover_result.summary(done))
    shown = caught.get()
    assert "and 9970 more: --json shows all" in shown
    assert "! and 9970 more groups of this kind: --json names all" in shown
    assert shown.index("group g09999: it may skip records") < shown.index("group g00000: set back")
    assert len(shown.splitlines()) < 200
