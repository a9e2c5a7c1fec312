"""The rows of a report in a file: read into a table, and as they are where they stand in another way."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from contract.report_rows import KeyedRows, LazyRows, RowTable, columns, read_report
from spark.report import publish

NAMES = ("group", "partition", "lowest", "judged")


def rows(number: int) -> list[dict[str, Any]]:
    return [
        {"group": f"g{at % 7}", "partition": at, "lowest": None if at % 3 else at * 10**9, "judged": at % 2 == 0}
        | {"checkpoint": [at, at]}
        for at in range(number)
    ]


def written(folder: Path, text: str) -> Path:
    path = folder / "report.json"
    path.write_text(text, encoding="utf-8")
    return path


def report(held: Any) -> dict[str, Any]:
    return {"version": 1, "checks": [{"name": "a", "evidence": [{"group": "x"}]}], "groups": held, "steps": []}


@pytest.mark.parametrize("number", [0, 1, 2500])
def test_rows_are_read_into_a_table_of_the_keys_that_are_named(tmp_path: Path, number: int) -> None:
    path = written(tmp_path, publish.as_json(report(LazyRows(rows(number), dict))))
    found = read_report(path, "groups", *NAMES)
    wanted = [{name: row[name] for name in NAMES} for row in rows(number)]
    assert list(found["groups"]) == wanted
    assert list(columns(found["groups"], "partition", "group")) == [(one["partition"], one["group"]) for one in wanted]
    assert found | {"groups": []} == report([])
    assert isinstance(found["groups"], RowTable) is (number > 0)
    assert read_report(path, "groups") == report([])


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_rows_that_do_not_stand_in_a_line_each_are_read_as_they_are(tmp_path: Path, indent: int | None) -> None:
    path = written(tmp_path, json.dumps(report(rows(5)), indent=indent))
    assert read_report(path, "groups", *NAMES) == report(rows(5))


def test_rows_that_lack_a_key_are_read_as_they_are(tmp_path: Path) -> None:
    path = written(tmp_path, publish.as_json(report(LazyRows([{"group": "g"}], dict))))
    assert read_report(path, "groups", *NAMES) == report([{"group": "g"}])


@pytest.mark.parametrize(
    "text", ["", "[]", '{\n  "groups": [\n    {"group": 1}', '{\n  "groups": [\n    {"a" 1},\n  ]\n}\n']
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_report(written(tmp_path, text), "groups", *NAMES)


def test_a_table_holds_rows_compactly_and_texts_once(tmp_path: Path) -> None:
    """As dictionaries the rows of a million positions take more than a gigabyte."""
    path = written(tmp_path, publish.as_json(report(LazyRows(rows(20_000), dict))))
    tracemalloc.start()
    try:
        table = read_report(path, "groups", *NAMES)["groups"]
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / len(table) < 60
    assert most < 5 * held, "neither the text of the file nor all its rows are in memory"


def test_values_of_any_kind_are_kept() -> None:
    table = RowTable("value")
    values = [1, None, True, 2**70, -(2**63), "text", [1, 2], 1.5, 3]
    for value in values:
        table.extend([{"value": value}])
    assert [row["value"] for row in table] == values
    assert [type(row["value"]) for row in table] == [type(value) for value in values]
    assert table[2:4] == [{"value": True}, {"value": 2**70}]


def test_rows_are_found_by_their_keys() -> None:
    found = KeyedRows(rows(9), "group", "partition")
    assert found["g1", 8]["lowest"] is None
    assert (len(found), ("g1", 7) in found, found.get(("g9", 1))) == (9, False, None)
    assert next(iter(found)) == ("g0", 0)
