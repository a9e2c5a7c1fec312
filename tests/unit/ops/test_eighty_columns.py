"""What people read on a terminal of 80 columns: every name stands there whole, and no line is longer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from contract.check_names import CHECK_NAMES
from ops.console import AdaptiveTable, Column
from ops.doctor.command import shown
from ops.doctor.diagnosis import diagnose
from ops.offsets.current_offsets import CurrentOffset, current_offsets_table
from ops.recovery import failover_command
from ops.recovery.failover import Failover, Options
from ops.status import document as status
from ops.verify import Verdict, verdict_table
from tests.support.mirror_symptoms import CASES
from tests.support.recovery_pair import CHECKPOINT, SOURCE, Kept, group, known, observe

GROUPS = ("inventory-replenishment-service", "inventory-replenishment-report", "orders[eu]")
TOPIC = "es-src.store.inventory.replenishment"


def screen(what: RenderableType, width: int = 80) -> str:
    """What a terminal without colours shows."""
    console = Console(width=width, no_color=True, force_terminal=False)
    with console.capture() as taken:
        console.print(what)
    assert [line for line in taken.get().splitlines() if len(line) > width] == []
    return taken.get()


def whole(text: str, *names: str) -> bool:
    """Whether each name stands in one line, and nothing is cut."""
    assert "…" not in text
    return [name for name in names if not any(name in line for line in text.splitlines())] == []


def seen() -> Any:
    return observe(groups=tuple(group(name, source_state="PREPARING_REBALANCE", skipped=2748) for name in GROUPS))


def test_the_status_names_clusters_connectors_and_groups() -> None:
    text = screen(status.table(status.document(seen())))
    assert whole(text, "rt-inventory-dev", "rt-inventory-stg", SOURCE, CHECKPOINT, *GROUPS)
    assert "would skip: 2748" in text


def test_the_plan_of_a_failover_names_groups_and_steps(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.stg.yaml"
    file.write_text("config: {}\n", encoding="utf-8")
    options = Options(path="planned", exact=True, drain_s=1.0, report_dir=Path("reports"))
    engine: Any = SimpleNamespace(environment={}, file=file)
    steps = Failover(known(), options, engine, Kept(), print).steps()
    plan = failover_command.FailoverPlan(seen=seen(), options=options, steps=tuple(steps), journal=Kept())
    assert whole(screen(plan.table()), "rt-inventory-dev", CHECKPOINT, *GROUPS, *(step.name for step in steps))


def standing(name: str, topic: str, **changed: Any) -> CurrentOffset:
    fields = {
        "partition": 11,
        "source_state": "EMPTY",
        "target_state": None,
        "source": 123_456_789,
        "source_lag": 0,
        "target": 123_456_700,
        "target_lag": 89,
        "again": 89,
    }
    return CurrentOffset(group=name, topic=topic, target_topic=topic, **{**fields, **changed})


def test_offsets_name_groups_and_topics() -> None:
    rows = [standing(name, TOPIC) for name in GROUPS]
    text = screen(current_offsets_table("mm2", rows, exact=True))
    assert whole(text, *GROUPS, TOPIC)
    assert text.count("source lag: 0; target: 123456700; target lag: 89") == len(GROUPS)


def test_offsets_with_short_names_are_a_table_without_columns_that_nobody_knows() -> None:
    rows = [standing("till", "items", source=17, target=None, target_lag=None, again=None)]
    text = screen(current_offsets_table("mm2", rows, exact=False))
    head = next(line for line in text.splitlines() if "partition" in line)
    assert head.replace("┃", " ").split() == ["group", "topic", "partition", "source", "source", "lag", "members"]


def test_a_verification_names_every_check() -> None:
    checks = [
        {"name": name, "ok": True, "expected": "at most 10,000 records a group", "observed": "groups: " + "o" * 40}
        for name in CHECK_NAMES
    ]
    report = {"verdict": "pass", "checks": checks}
    text = screen(verdict_table(Verdict(mirror="mm2", exit_code=0, report=report, report_dir=Path("reports"))))
    assert whole(text, *CHECK_NAMES)
    assert "groups_reread_bounded" in CHECK_NAMES


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_doctor_names_every_issue(name: str) -> None:
    looked_at = CASES[name][0]
    assert whole(screen(shown(looked_at, diagnose(looked_at))), name)


def table(**options: Any) -> AdaptiveTable:
    columns = Column("group", name=True), Column("unread", number=True), Column("note")
    return AdaptiveTable("groups", columns, **options)


def test_a_wide_terminal_shows_a_table_and_a_narrow_one_a_list() -> None:
    one = table()
    one.add_row("inventory-replenishment", Text("7", "red"), "some words that may be wrapped")
    assert "┃ group                   ┃ unread ┃ note" in screen(one, 80)
    assert screen(one, 40).split("\n")[:3] == [
        "groups",
        "inventory-replenishment",
        "    unread: 7; note: some words that may",
    ]


def test_cells_are_shown_as_they_are_and_rows_must_be_whole() -> None:
    one = table(caption="and 5 more")
    one.add_row("orders[eu]", "1", "[bold]x[/bold]")
    assert "orders[eu]" in screen(one)
    assert "[bold]x[/bold]" in screen(one)
    assert "and 5 more" in screen(one, 20)
    with pytest.raises(ValueError, match=r"a row must have 3 cells \(got 1\)"):
        one.add_row("orders")
