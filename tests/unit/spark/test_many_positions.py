"""The report of a million positions of groups: rows are made when they are read, and pages show some of them."""

import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

from contract.documents import LazyRows, RowReader
from kafka.errors import redact_document, visible_document
from kafka.groups import GroupPosition, Groups
from spark.checks import groups as checks
from spark.report import html, publish, summary
from tests.unit.kafka.test_groups import MIRROR

from ...support import report_documents as made


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


def test_a_reader_holds_rows_compactly_and_texts_once() -> None:
    """As dictionaries the rows of a million positions take more than a gigabyte."""
    text = "".join(publish.json_lines({**made.clean(), "groups": Made(1000, 20, committed=70_000).rows}))
    reader = RowReader("group", "committed", "lowest")
    tracemalloc.start()
    try:
        read = json.loads(text, object_hook=reader)
        each = tracemalloc.get_traced_memory()[0] / len(read["groups"])
    finally:
        tracemalloc.stop()
    assert each < 500
    plain = json.loads(text)
    assert [dict(row) for row in read["groups"]] == plain["groups"]
    assert {key: value for key, value in read.items() if key != "groups"} == {
        key: value for key, value in plain.items() if key != "groups"
    }
