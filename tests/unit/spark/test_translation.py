"""Positions that a request asks to translate, in both directions, held against the records' own content."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from contract.documents import parse
from contract.fields import RequestError
from contract.verification_request import ClusterConfig, Limits, Mirror, Request, RequestedPosition
from kafka.group_positions import GroupPosition
from spark.comparison import translation
from spark.comparison.bulk import Bulk

from ...support.compared_logs import COPY, TOPIC, Sizes, found_without_spark, offset_range
from ...support.generated_cases import cases
from ...support.oracle import Logs, Record
from ...support.spark_logs import reader


def record(number: int) -> Record:
    return Record(None, b"%d" % number, (), number)


def asking(*positions: RequestedPosition, naming: Any = "identity") -> Request:
    mirror = Mirror(name="mm2", source_alias="a", target_alias="b", topics=(TOPIC,), naming=naming, positions=positions)
    sides = (ClusterConfig(role=role, alias=role, client_config={}) for role in ("source", "target"))
    return Request(source=next(sides), target=next(sides), mirror=mirror, limits=Limits())


def asked(offset: int, side: Any = "source", partition: int = 0) -> RequestedPosition:
    return RequestedPosition(side=side, topic=TOPIC, partition=partition, offset=offset)


def translated(logs: Logs, *positions: RequestedPosition, bits: int = 2) -> list[dict[str, Any]]:
    """What the report tells of these positions between two made-up logs."""
    request, offset_ranges = asking(*positions), [offset_range(0, logs)]
    _, judged = found_without_spark({0: logs}, Sizes(bits=bits), translation.positions(request, offset_ranges))
    others, rows = translation.parted(request, offset_ranges, judged)
    assert not others
    return rows


def exact(logs: Logs, *positions: RequestedPosition) -> list[int | None]:
    return [row["exact"] for row in translated(logs, *positions)]


# Ten records of which the source's log lacks the offsets 3 and 6 (markers of transactions), and the copy begins at 40.
SOURCE = [(at, record(at)) for at in (0, 1, 2, 4, 5, 7, 8, 9, 10, 11)]
COPIED = [(40 + number, one) for number, (_, one) in enumerate(SOURCE)]
CLEAN = Logs(source=SOURCE, target=COPIED, cut=12, target_start=40)


def test_an_offset_becomes_that_of_the_same_record() -> None:
    wanted = [asked(at) for at in (0, 3, 4, 6, 11, 12)]
    assert exact(CLEAN, *wanted) == [40, 43, 43, 45, 49, 50]


def test_and_the_other_way_round() -> None:
    wanted = [asked(at, "target") for at in (40, 43, 45, 49, 50)]
    assert exact(CLEAN, *wanted) == [0, 4, 7, 11, 12]


def test_what_has_not_arrived_is_read_on_either_side() -> None:
    logs = replace(CLEAN, target=COPIED[:6])
    assert exact(logs, asked(9), asked(46, "target")) == [46, 8]


def test_what_the_mirror_has_lost_moves_no_position() -> None:
    logs = replace(CLEAN, target=[*COPIED[:4], *COPIED[5:]])
    assert exact(logs, asked(5), asked(44, "target"), asked(45, "target")) == [45, 7, 7]


def test_what_is_out_of_order_is_never_skipped() -> None:
    swapped = [(40, SOURCE[0][1]), (41, SOURCE[2][1]), (42, SOURCE[1][1]), (43, SOURCE[3][1])]
    logs = Logs(source=SOURCE[:4], target=swapped, cut=5, target_start=40)
    assert exact(logs, asked(2), asked(42, "target")) == [41, 1]


def test_each_position_is_reported_in_the_order_of_the_request_even_twice() -> None:
    rows = translated(CLEAN, asked(11), asked(0), asked(11), asked(50, "target"))
    assert [(row["side"], row["offset"], row["exact"]) for row in rows] == [
        ("source", 11, 49),
        ("source", 0, 40),
        ("source", 11, 49),
        ("target", 50, 12),
    ]
    assert not any(row["problem"] for row in rows)


@pytest.mark.parametrize(
    ("position", "reported"),
    [
        (asked(13), "log's end (got 13, end 12)"),
        (asked(51, "target"), "log's end (got 51, end 50)"),
        (asked(0, partition=7), "partition must be one that the source has"),
    ],
)
def test_a_position_that_is_in_no_log_has_a_reason(position: RequestedPosition, reported: str) -> None:
    (row,) = translated(CLEAN, position)
    assert row["exact"] is None
    assert reported in row["problem"]


def test_nothing_on_the_target_gives_no_position() -> None:
    (row,) = translated(replace(CLEAN, target=[]), asked(3))
    assert (row["exact"], row["problem"]) == (None, "nothing of the partition corresponds on both sides")


def test_what_retention_has_taken_in_front_of_a_position_is_reported() -> None:
    logs = replace(CLEAN, source=SOURCE[4:], source_start=5)
    (row,) = translated(logs, asked(2))
    assert (row["exact"], row["removed"]) == (44, 3)


def test_where_records_are_doubled_spark_counts_the_way_there_and_nobody_reports_the_way_back(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = replace(CLEAN, target=[*COPIED[:3], (43, COPIED[2][1]), *((at + 1, one) for at, one in COPIED[3:])])
    request, offset_ranges = asking(asked(4), asked(4), asked(44, "target")), [offset_range(0, logs)]
    held, found = reader(spark, monkeypatch, {0: logs})
    same = [GroupPosition(group="\0", topic=TOPIC, partition=0, committed=at, synced=None) for at in (1, 4)]
    wanted = [*translation.positions(request, offset_ranges), *same]
    judged = Bulk(held, found).compare(list(found), set(), wanted)
    assert [one.lowest for one in judged[-2:]] == [41, 44], "positions of one name are judged each by itself"
    _, rows = translation.parted(request, offset_ranges, judged)
    assert [row["exact"] for row in rows] == [44, 44, None]
    assert "cannot be decided" not in str(rows[0]["problem"])
    assert "it cannot be decided" in rows[2]["problem"]


def test_groups_are_left_as_they_are_and_copies_are_named() -> None:
    group = GroupPosition(group="g", topic=TOPIC, partition=0, committed=1, synced=1)
    request = asking(asked(1), naming="prefixed")
    others, (row,) = translation.parted(request, [offset_range(0, CLEAN)], [group])
    assert others == [group]
    assert row["target_topic"] == f"a.{TOPIC}"
    assert COPY != TOPIC


@cases(150)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=60),
    st.lists(st.integers(1, 4), min_size=1, max_size=60),
    st.data(),
)
def test_who_has_read_up_to_somewhere_goes_on_with_the_next_record(
    gaps: list[int], others: list[int], data: st.DataObject
) -> None:
    """Both logs have holes of their own; a prefix of the records has arrived. Truth is found by content."""
    source, at = [], 0
    for number, gap in enumerate(gaps):
        source.append((at, record(number)))
        at += gap
    target, there = [], data.draw(st.integers(0, 9))
    for (_, one), gap in zip(source, others, strict=False):
        target.append((there, one))
        there += gap
    logs = Logs(source=source, target=target, cut=source[-1][0] + 1)
    read = data.draw(st.integers(0, logs.cut))
    copied = data.draw(st.integers(0, target[-1][0] + 1))
    bits = data.draw(st.sampled_from([0, 2, 11]))
    rows = translated(logs, asked(read), asked(copied, "target"), bits=bits)
    arrived = {one for _, one in target}
    known = [(offset, one) for offset, one in source if one in arrived]
    images = {one: offset for offset, one in target}
    own = {one: offset for offset, one in source}
    unread = [images[one] for offset, one in known if offset >= read]
    assert rows[0]["exact"] == min(unread, default=target[-1][0] + 1)
    ahead = [own[one] for offset, one in target if offset >= copied]
    assert rows[1]["exact"] == min(ahead, default=known[-1][0] + 1)


SIDES = {name: {"alias": name, "client_config": {"bootstrap.servers": "h:1"}} for name in ("source", "target")}


def test_a_request_may_ask_for_positions() -> None:
    wanted = [{"topic": "items", "partition": 1, "offset": 5}, {"topic": "items", "partition": 0, "offset": 0}]
    wanted[1] |= {"side": "target"}
    found = parse({**SIDES, "mirror": {"topics": ["items"], "positions": wanted}}, {}).mirror.positions
    assert [(one.side, one.topic, one.partition, one.offset) for one in found] == [
        ("source", "items", 1, 5),
        ("target", "items", 0, 0),
    ]


def test_all_wrong_positions_are_reported_together() -> None:
    wrong = [
        {"topic": "items", "partition": 0},
        {"topic": "items", "partition": 0, "offset": -1},
        {"topic": "items", "partition": 0, "offset": 1, "side": "left"},
        {"topic": "other", "partition": 0, "offset": 1},
    ]
    with pytest.raises(RequestError) as caught:
        parse({**SIDES, "mirror": {"topics": ["items"], "positions": wrong}}, {})
    reported = "\n".join(caught.value.problems)
    assert all(f"mirror.positions[{number}]: must be" in reported for number in (0, 1, 2))
    assert "positions must be in topics that the mirror carries (got other" in reported
    with pytest.raises(RequestError, match="positions must be a list"):
        parse({**SIDES, "mirror": {"topics": ["items"], "positions": {}}}, {})
