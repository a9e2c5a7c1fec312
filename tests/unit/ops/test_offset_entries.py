"""Files of positions: what is read, written and refused."""

from pathlib import Path

import pytest

from ops.errors import OpsError
from ops.offsets.entries import Entry, as_csv, by_group, read, write

ORDERS = Entry(group="orders", topic="items", partition=0, offset=5)
BILLS = Entry(group="bills, all", topic="items", partition=1, offset=0)


def _file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "positions"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["kept.json", "kept.csv"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, "target", [ORDERS, BILLS], {"stack": "stg"})
    assert read(tmp_path / name).entries == [ORDERS, BILLS]


def test_json_reports_its_side_and_lines_do_not(tmp_path: Path) -> None:
    write(tmp_path / "kept.json", "source", [ORDERS], {})
    assert read(tmp_path / "kept.json").side == "source"
    assert read(_file(tmp_path, "items,0,5\n")).side is None


def test_lines_have_the_group_only_if_there_are_several() -> None:
    assert as_csv([ORDERS]) == "items,0,5\n"
    assert as_csv([ORDERS, BILLS]) == 'orders,items,0,5\n"bills, all",items,1,0\n'


@pytest.mark.parametrize(
    "text", ["topic,partition,offset\nitems,0,5\n\n", '[{"topic": "items", "partition": 0, "offset": 5}]']
)
def test_a_heading_an_empty_line_and_a_plain_list_are_read(tmp_path: Path, text: str) -> None:
    assert read(_file(tmp_path, text)).entries == [Entry(topic="items", partition=0, offset=5)]


def test_every_wrong_line_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OpsError) as caught:
        read(_file(tmp_path, "items,0,5\nitems,zero,5\nitems,0,-1\nitems\n,0,1\n"))
    message = str(caught.value).splitlines()
    assert [line.split(":")[1].split(" must")[0].strip() for line in message] == [
        "line 2",
        "line 3",
        "line 4",
        "line 5",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold a position"),
        ("{", "must hold JSON or lines"),
        ('{"stack": 5, "positions": []}', r"stack must be a name, or be left out \(got 5\)"),
        ('{"positions": 1}', "positions must be a list"),
        ('{"side": "left", "positions": []}', "side must be source or target"),
        ('[{"topic": "items", "partition": true, "offset": 1}]', r"positions\[0\] must be"),
        ('[{"topic": "items", "partition": 1, "offset": 1, "more": 1}]', r"positions\[0\] must be"),
    ],
)
def test_what_is_no_file_of_positions_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OpsError, match=message):
        read(_file(tmp_path, text))


def test_a_file_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(OpsError, match="must be readable text"):
        read(tmp_path / "none")


def test_groups_select_and_name(tmp_path: Path) -> None:
    nobodys = Entry(topic="items", partition=2, offset=9)
    assert by_group([ORDERS, BILLS], ["orders"]) == {"orders": {("items", 0): 5}}
    assert by_group([nobodys], ["a", "b"]) == {"a": {("items", 2): 9}, "b": {("items", 2): 9}}


def test_what_is_named_twice_or_of_nobody_is_reported_together() -> None:
    twice = Entry(group="orders", topic="items", partition=0, offset=6)
    nobodys = Entry(topic="items", partition=2, offset=9)
    with pytest.raises(OpsError) as caught:
        by_group([ORDERS, twice, nobodys], [])
    assert "group orders on items-0 at 6: must be named once (got 5 too)" in str(caught.value)
    assert "items-2 at 9: group must be given" in str(caught.value)
    with pytest.raises(OpsError, match="group other: must have a position"):
        by_group([ORDERS], ["orders", "other"])
