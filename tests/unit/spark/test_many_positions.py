"""The report of a million positions of groups: rows are made when they are read, and pages show some of them."""

import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest

from contract.report_rows import LazyRows
from contract.verification_metrics import registry
from contract.verification_request import Limits
from kafka.checkpoints import CheckpointHistory, CheckpointKey, OffsetTranslation
from kafka.errors import redact_document, visible_document
from kafka.group_positions import GroupPosition, GroupPositions
from kafka.groups import Groups, LogRange
from kafka.topic_partition import TopicPartition
from spark.checks import groups as checks
from spark.checks.checkpoints import checkpoints_consistent
from spark.report import group_rows, html, publish, summary
from tests.unit.kafka.test_groups import MIRROR

from ...support import report_documents as made
from ...support import slow_group_checks as slow
from ...support.generated_cases import cases


class Made:
    """Makes rows, and counts how many it has made."""

    def __init__(self, groups: int, partitions: int, **fields: Any) -> None:
        self.number = 0
        self.fields = fields
        self.rows = LazyRows([(group, number) for group in range(groups) for number in range(partitions)], self.row)

    def row(self, item: tuple[int, int]) -> Mapping[str, Any]:
        self.number += 1
        return made.group(f"g{item[0]:05}", item[1], **self.fields)


def test_rows_are_made_when_they_are_read_with_all_that_is_done_to_them() -> None:
    rows = Made(2, 2).rows
    evil = LazyRows([{"group": "secret-4711\x1b"}], dict)
    assert [row["partition"] for row in rows] == [0, 1, 0, 1]
    assert (len(rows), rows[2]["group"], len(rows[1:])) == (4, "g00001", 3)
    assert rows == list(rows)
    assert list(visible_document({"groups": evil})["groups"]) == [{"group": r"secret-4711\x1b"}]
    assert list(redact_document({"groups": evil}, ["secret-4711"])["groups"]) == [{"group": "[hidden]\x1b"}]


def test_a_report_is_written_row_by_row_and_reads_as_before() -> None:
    of = Made(100, 10)
    document = {**made.clean(), "groups": of.rows}
    written = ""
    for part in publish.json_lines(document):
        written += part
        assert of.number <= written.count('"committed"') + 1, "one row is in memory, not all of them"
    assert of.number == 1000
    assert json.loads(written) == {**made.clean(), "groups": list(of.rows)}
    nothing: tuple[Any, ...] = ([], LazyRows([], dict))
    for groups in nothing:
        assert json.loads(publish.as_json({**made.clean(), "groups": groups}))["groups"] == []
    assert json.loads(publish.as_json({})) == {}


def test_findings_of_many_groups_read_the_rows_a_few_times_and_not_once_a_group() -> None:
    of = Made(700, 5, synced=None)
    document = {**made.clean(), "groups": of.rows, "checks": [made.check("groups_synced", False)]}
    found = summary.findings(document)
    assert [one["group"] for one in found] == [f"g{number:05}" for number in range(summary.GROUP_FINDINGS_MAX)]
    assert {one["count"] for one in found} == {5}
    assert of.number <= 3 * len(of.rows)


def test_a_page_shows_some_groups_and_positions_and_how_many_more_there_are() -> None:
    document = {**made.clean(), "groups": Made(1500, 4).rows}
    page = html.as_html(document)
    assert page.count('data-label="positions">4<') == html.GROUPS_SHOWN
    assert "and 500 more groups: report.json has all" in page
    assert page.count("<code>orders-") == html.POSITIONS_SHOWN
    rows = html.groups(document["groups"])
    assert (len(rows), rows[0]["number"], sum(row["skipped"] for row in rows)) == (1500, 4, 0)
    one = html.groups(Made(1, 5000).rows)[0]
    assert (one["number"], len(one["positions"])) == (5000, html.POSITIONS_SHOWN)


def test_a_check_shows_the_positions_that_fail_first_and_not_all() -> None:
    fields: dict[str, Any] = {"topic": "items", "committed": 9, "judged": True, "skipped": 1}
    positions = [
        GroupPosition(group=f"g{at:05}", partition=0, synced=None if at == 4000 else 8, **fields) for at in range(5000)
    ]
    check = checks.groups_synced(Groups(positions=positions), MIRROR)
    assert (check.ok, len(check.evidence)) == (False, checks.EVIDENCE_MAX)
    assert [row["group"] for row in check.evidence[:2]] == ["g04000", "g00000"]
    assert len(checks.groups_no_loss(positions).evidence) == checks.EVIDENCE_MAX


MAYBE = st.none() | st.integers(0, 40)
NAMES = st.sampled_from(["g1", "g2", 'a "quoted" \x1b name', "sécret-4711"])


@st.composite
def positions_of_groups(draw: st.DrawFn) -> Groups:
    """Groups with every kind of position, whether it can occur or not."""
    keys = draw(st.lists(st.tuples(NAMES, st.sampled_from(["items", "orders"]), st.integers(0, 3)), unique=True))
    flags = st.booleans()
    positions = [
        GroupPosition(
            group=group,
            topic=topic,
            partition=partition,
            committed=draw(st.integers(0, 40)),
            **{name: draw(MAYBE) for name in ("synced", "lowest", "highest", "back")},
            **{name: draw(st.integers(0, 5)) for name in ("unread", "skipped", "repeated")},
            **{name: draw(flags) for name in ("active", "unclaimed", "judged")},
        )
        for group, topic, partition in keys
    ]
    logs = {TopicPartition(topic, number): LogRange(draw(st.integers(0, 9)), 30) for _, topic, number in keys[::2]}
    found: dict[CheckpointKey, CheckpointHistory] = {}
    for key in keys[1::2]:
        found[key] = CheckpointHistory()
        for _ in range(draw(st.integers(0, 3))):
            found[key].append(draw(st.integers(0, 40)), draw(st.integers(0, 40)), None)
    return Groups(
        positions=positions,
        source_states=dict.fromkeys(draw(st.lists(NAMES)), "EMPTY"),
        target_states=dict.fromkeys(draw(st.lists(NAMES)), "STABLE"),
        logs=logs,
        translation=OffsetTranslation(checkpoints=found),
        due={key: draw(st.integers(0, 40)) for key in keys[::3]},
    )


@cases(100)
@given(positions_of_groups())
def test_positions_by_column_are_the_same_positions(groups: Groups) -> None:
    held = GroupPositions.of(groups.positions)
    assert held == groups.positions
    assert held.with_these(groups.positions) == [*groups.positions, *groups.positions]
    others, apart = held.parted(lambda name: name == "g1")
    assert others == [one for one in groups.positions if one.group != "g1"]
    assert apart == [one for one in groups.positions if one.group == "g1"]
    assert [one for at in range(len(held)) for one in held.chosen([at])] == groups.positions
    for at, one in enumerate(reversed(groups.positions)):
        held.replace(len(held) - 1 - at, one)
    assert held == groups.positions
    held.forget_judgement()
    assert not any(one.judged or one.skipped or one.lowest for one in held)


@cases(150)
@given(positions_of_groups(), st.integers(0, 12))
def test_checks_by_column_find_what_each_position_shows(groups: Groups, most: int) -> None:
    limits = Limits(reread_records_max=most)
    assert checks.groups_synced(groups, MIRROR) == slow.groups_synced(groups, MIRROR)
    assert checks.groups_no_loss(groups.positions) == slow.groups_no_loss(groups.positions)
    assert checks.groups_reread_bounded(groups.positions, limits) == slow.groups_reread_bounded(
        groups.positions, limits
    )
    cut = dict.fromkeys((TopicPartition(one.topic, one.partition) for one in groups.positions), 30)
    truth = {(*tp, offset): (offset, offset + most) for tp in cut for offset in range(0, 40, 2)}
    found = checkpoints_consistent(groups, MIRROR, cut, truth)
    assert found == slow.checkpoints_consistent(groups, MIRROR, cut, truth)


@cases(60)
@given(positions_of_groups(), st.sampled_from([True, False, None]), st.sampled_from([True, False, None]))
def test_rows_by_column_make_the_same_report(groups: Groups, synced: bool | None, lossless: bool | None) -> None:
    """Text, findings, page and metrics of the rows are those of dictionaries, with all that is done to texts."""
    rows = [groups.row(one, MIRROR) for one in groups.positions]
    by_column = group_rows.GroupRows(groups, MIRROR)
    assert list(by_column) == rows
    assert list(by_column.json_lines()) == [json.dumps(row) for row in rows]
    found = [made.check("groups_synced", synced), made.check("groups_no_loss", lossless)]
    found.append(made.check("groups_reread_bounded", lossless))
    plain, document = ({**made.clean(), "checks": found, "groups": held} for held in (rows, by_column))
    assert publish.as_json(document) == publish.as_json({**plain, "groups": LazyRows(rows, dict)})
    assert summary.findings(document) == summary.findings(plain)
    assert html.groups(document["groups"]) == html.groups(rows)
    hidden = [redact_document(one, ["sécret-4711"]) for one in (document, plain)]
    assert list(hidden[0]["groups"]) == hidden[1]["groups"]
    assert html.as_html(hidden[0]) == html.as_html(hidden[1])
    metrics = [generate_latest(registry(visible_document(one))) for one in (document, plain)]
    assert metrics[0] == metrics[1]


def test_rows_by_column_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_rows, "_AT_ONCE", 3)
    positions = [GroupPosition(group=f"g{at}", topic="items", partition=at, committed=at, synced=at) for at in range(8)]
    rows = group_rows.GroupRows(Groups(positions=positions), MIRROR)
    assert list(rows.columns("group", "committed")) == [(f"g{at}", at) for at in range(8)]
    assert [json.loads(line)["partition"] for line in rows.json_lines()] == list(range(8))


def test_a_million_positions_fit_into_memory() -> None:
    """Objects of them take more than 300 bytes each."""
    partitions = [TopicPartition("items", number) for number in range(100)]
    held = GroupPositions()
    tracemalloc.start()
    try:
        for number in range(100):
            offsets = range(10_000 * number, 10_000 * number + 100)
            held.add_group(f"g{number}", partitions, offsets, offsets, [False] * 100, active=False)
        assert tracemalloc.get_traced_memory()[0] / len(held) < 100
    finally:
        tracemalloc.stop()
    assert held[9999] == GroupPosition(group="g99", topic="items", partition=99, committed=990_099, synced=990_099)
