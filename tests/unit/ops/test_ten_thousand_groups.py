"""Ten thousand consumer groups: each is asked for once, and screens and messages name some and count the others."""

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from kafka import checkpoints
from kafka.checkpoints import OffsetTranslation
from kafka.topic_partition import TopicPartition
from ops.doctor.command import shown
from ops.doctor.diagnosis import NAMED_MAX, diagnose
from ops.errors import OpsError
from ops.inspection import group_status
from ops.inspection.probes import ClusterReadings
from ops.offsets import offset_plan
from ops.status import document as status
from tests.support.mirror_symptoms import seen, side
from tests.support.recovery_pair import Side, group, known, lag, observe

NUMBER = 10_000
NAMES = [f"g{number:05}" for number in range(NUMBER)]
ITEMS = TopicPartition("items", 0)
LINES_MAX, MESSAGE_MAX = 250, 2000


class Counting(Side):
    """A cluster that counts what it is asked. Each of its groups stands at the same offset."""

    def __init__(self, alias: str, groups: list[str]) -> None:
        super().__init__(alias, {ITEMS: 10}, {name: {ITEMS: 4} for name in groups})
        self.asked: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name in ("topics", "ends", "starts", "group_states", "group_offsets"):
            self.asked[name] += 1
        return found


def screen(renderable: Any) -> list[str]:
    console = Console(width=120, no_color=True)
    with console.capture() as caught:
        console.print(renderable)
    return caught.get().splitlines()


@pytest.fixture(autouse=True)
def _no_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "read_checkpoints", lambda *_: OffsetTranslation())


def test_the_status_asks_no_more_often_for_ten_thousand_groups_than_for_ten() -> None:
    asked = []
    for names in (NAMES[:10], NAMES):
        source, target = Counting("es-src", names), Counting("es-tgt", names)
        clusters: list[Any] = [source, target]
        of_both = [ClusterReadings(one, debug=True) for one in clusters]
        readings: Any = SimpleNamespace(pair=known(), source=of_both[0], target=of_both[1])
        found = group_status.mirrored_groups(readings, [ITEMS], lag(), {})
        assert [one.group for one in found] == names
        asked.append((source.asked, target.asked))
    assert asked[0] == asked[1]


def test_a_screen_of_status_shows_some_groups_and_how_many_more_there_are() -> None:
    document = json.loads(json.dumps(status.document(observe(groups=tuple(group(name, skipped=7) for name in NAMES)))))
    assert len(document["groups"]) == NUMBER
    assert len(document["problems"]) == 1
    assert len(document["problems"][0]) < MESSAGE_MAX
    assert f"{NUMBER} groups would skip about 70,000 records" in document["problems"][0]
    lines = screen(status.table(document))
    assert len(lines) < LINES_MAX
    assert [line for line in lines if f"and {NUMBER - status.GROUPS_SHOWN} more" in line]


def test_the_doctor_names_some_of_the_groups_that_work_on_the_target_and_counts_the_others() -> None:
    source, target = (side(role, groups=dict.fromkeys(NAMES, "STABLE")) for role in ("source", "target"))
    one = seen(source=source, target=target)
    findings = diagnose(one)
    assert {each.trouble for each in findings} == {"group-active-on-target"}
    assert len(findings) == NAMED_MAX + 1
    assert findings[0].where == "group g00000"
    assert findings[-1].where == f"groups, {NUMBER - NAMED_MAX} more"
    assert "g00010" in findings[-1].remedy
    assert len(screen(shown(one, findings))) < LINES_MAX


@pytest.mark.parametrize("number", [1, NAMED_MAX, NAMED_MAX + 1])
def test_the_doctor_counts_no_group_twice(number: int) -> None:
    states = dict.fromkeys(NAMES[:number], "STABLE")
    found = diagnose(seen(source=side("source", groups=states), target=side("target", groups=states)))
    assert len(found) == number
    assert found[-1].where == ("groups, 1 more" if number > NAMED_MAX else f"group {NAMES[number - 1]}")


def test_a_plan_of_offsets_asks_once_for_all_groups_and_names_some_of_those_with_members() -> None:
    target: Any = Counting("es-tgt", NAMES)
    wanted = {name: {ITEMS: 7} for name in NAMES}
    found = offset_plan.plan(known(), target, "target", wanted)
    assert found.pending == NUMBER
    assert max(target.asked.values()) <= 2
    target.states = dict.fromkeys(NAMES, "STABLE")
    with pytest.raises(OpsError, match=r"got members in g00000, .* and 9992 more\)") as caught:
        offset_plan.plan(known(), target, "target", wanted)
    assert len(str(caught.value)) < MESSAGE_MAX


def test_a_screen_of_a_plan_shows_some_positions_and_how_many_more_there_are() -> None:
    target: Any = Counting("es-tgt", NAMES)
    found = offset_plan.plan(known(), target, "target", {name: {ITEMS: 7} for name in NAMES})
    found = replace(found, left=tuple(f"group {name}: no" for name in NAMES), notes=())
    lines = screen(offset_plan.plan_table(found))
    assert len(lines) < LINES_MAX
    assert [line for line in lines if f"and {NUMBER - offset_plan.POSITIONS_SHOWN} more: --json shows all" in line]


def test_groups_without_a_checkpoint_are_named_in_part() -> None:
    target: Any = Counting("es-tgt", NAMES)
    with pytest.raises(OpsError, match=r"got none of g00000, .* and 9992 more\)") as caught:
        offset_plan.synced_offsets(known(), target, NAMES)
    assert len(str(caught.value)) < MESSAGE_MAX


def test_offsets_outside_of_their_logs_are_named_in_part() -> None:
    target: Any = Counting("es-tgt", NAMES)
    with pytest.raises(OpsError, match=r"group g00000 on items-0: offset must be from 0 to 10") as caught:
        offset_plan.plan(known(), target, "target", {name: {ITEMS: 99} for name in NAMES})
    assert "and 9980 more positions" in str(caught.value)
    assert str(caught.value).endswith("Nothing was set.")
    assert len(str(caught.value)) < 2 * MESSAGE_MAX
