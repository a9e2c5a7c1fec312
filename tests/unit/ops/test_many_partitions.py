"""A topic of three thousand partitions: clusters are asked as often as for one; screens count what they leave out."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from rich.console import Console

from kafka import lag as measuring
from kafka.lag import LagMeter, Measure, PartitionLag
from kafka.retention import UntilDeletion
from kafka.topic_partition import TopicPartition
from ops.doctor.command import shown
from ops.doctor.diagnosis import diagnose
from ops.doctor.observations import ReplacedLog
from ops.status import document as status
from tests.support.mirror_symptoms import seen
from tests.support.recovery_pair import known, observe

NUMBER = 3000
PLACES = [TopicPartition("items", number) for number in range(NUMBER)]
LINES_MAX, MESSAGE_MAX = 250, 1500


def screen(renderable: Any) -> list[str]:
    console = Console(width=120, no_color=True)
    with console.capture() as caught:
        console.print(renderable)
    return caught.get().splitlines()


class Counting:
    """A source, and the reader of a mirror's positions, that count what they are asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def ends(self, places: Iterable[TopicPartition], isolation: str) -> Mapping[TopicPartition, int]:
        self.asked["ends"] += 1
        return dict.fromkeys(places, 9)

    def starts(self, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        self.asked["starts"] += 1
        return dict.fromkeys(places, 0)

    def read(self) -> Mapping[TopicPartition, int]:
        self.asked["positions"] += 1
        return {}


def test_the_lag_of_three_thousand_partitions_asks_no_more_often_than_that_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    for places in (PLACES[:1], PLACES):
        source: Any = Counting()

        def first(of: Counting, behind: Mapping[TopicPartition, int], *_: Any) -> Mapping[Any, Any]:
            of.asked["first records"] += 1
            return dict.fromkeys(behind, (0, 0))

        monkeypatch.setattr(measuring, "first_records", first)
        meter = LagMeter(source, known().request, source, places)
        meter.at_end()
        assert meter.lag.at_end is not None
        assert meter.lag.at_end.records == 9 * len(places)
        asked.append(source.asked)
    assert asked[0] == asked[1]
    assert set(asked[0].values()) == {1}


def until_deletion(number: int, **changed: Any) -> UntilDeletion:
    fields: dict[str, Any] = {"seconds": 60.0, "left_bytes": None, "waited_s": 600.0, "catch_up_s": None, "deleted": 7}
    return UntilDeletion(topic="items", partition=number, records=5, **{**fields, **changed})


def test_the_status_of_three_thousand_partitions_that_are_behind_names_some() -> None:
    parts = [
        PartitionLag(topic="items", partition=number, position=0, source_end=9, records=8, seconds=600.0)
        for number in range(NUMBER)
    ]
    late = tuple(until_deletion(number) for number in range(NUMBER))
    found = observe(lag=Measure(at_s=0.0, partitions=tuple(parts)), until_deletion=late)
    document = json.loads(json.dumps(status.document(found)))
    assert len(document["problems"]) == 2
    assert max(map(len, document["problems"])) < MESSAGE_MAX
    assert "in items-0 and 2999 more partitions" in document["problems"][1]
    assert len(screen(status.table(document))) < LINES_MAX


def test_what_retention_has_deleted_of_many_partitions_is_named_in_part() -> None:
    found = diagnose(seen(until_deletion=tuple(until_deletion(number) for number in range(NUMBER))))
    (overtook,) = [one for one in found if one.trouble == "retention-overtook-mirror"]
    assert "7 of partition 0, 7 of partition 1, " in overtook.what
    assert "and 20,930 of 2990 more partitions" in overtook.what
    assert len(overtook.what) < MESSAGE_MAX


def test_logs_that_were_cut_off_are_named_in_part() -> None:
    logs = tuple(
        ReplacedLog(topic="items", partition=number, position=90, log_end=10, is_new=False) for number in range(NUMBER)
    )
    one = seen(replaced_logs=logs)
    found = [each for each in diagnose(one) if each.trouble == "source-log-truncated"]
    assert len(found) == 11
    assert {each.where for each in found} > {"topic items of the source, partition 0"}
    assert [each.where for each in found if "more" in each.where] == ["topic items of the source, 2990 more partitions"]
    assert len(screen(shown(one, found))) < LINES_MAX
