"""A failover of ten thousand groups: what the screen shows of them."""

from typing import Any

from rich.console import Console

from ops.recovery import failover_result
from tests.support.recovery_pair import finished_failover


def test_of_many_groups_the_screen_shows_some_and_first_those_that_may_skip_records() -> None:
    groups: dict[str, dict[str, Any]] = {f"g{number:05}": {"setBack": {"items-0": 3}} for number in range(10_000)}
    groups["g09999"] = {"mayBeSkipped": {"items-0": 3}}
    done = finished_failover(groups)
    console = Console(width=200, no_color=True)
    with console.capture() as caught:
        console.print(failover_result.summary(done))
    shown = caught.get()
    assert "and 9970 more: --json shows all" in shown
    assert "! and 9970 more groups of this kind: --json names all" in shown
    assert shown.index("group g09999: it may skip records") < shown.index("group g00000: set back")
    assert len(shown.splitlines()) < 200
