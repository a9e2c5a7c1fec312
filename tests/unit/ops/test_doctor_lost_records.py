"""What the doctor reports of records that are lost, or about to be, between a source and its mirror."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.lag import Measure, PartitionLag
from kafka.topic_partition import TopicPartition
from ops.doctor import log_probes
from ops.doctor.command import left_out
from ops.doctor.diagnosis import diagnose
from ops.doctor.observations import LargeRecord, Log, ReplacedLog

from ...support.mirror_symptoms import MIRROR, TOO_LARGE, failed, seen


def test_a_record_that_is_too_large_is_reported_with_its_topic_and_all_limits() -> None:
    one = LargeRecord(
        topic="items",
        remote_topic="es-src.items",
        partition=0,
        size=2_097_300,
        topic_limit=1_048_588,
        request_limit=None,
    )
    (finding,) = diagnose(seen(large_records=(one,)))
    assert (finding.trouble, finding.where) == ("record-too-large", "topic items of the source")
    assert "takes about 2097300 bytes, and max.message.bytes of es-src.items is 1048588" in finding.what
    assert "max.request.size" not in finding.what, "which is not known"
    assert "Set all three to at least 2097300: max.message.bytes of es-src.items at the target" in finding.remedy
    log = Log(name="log of pod mm2-0", text="WorkerSourceTask{id=x-0} failed to send record to es-src.items: \n")
    by_log = [one for one in diagnose(replace(failed(TOO_LARGE), logs=(log,))) if one.trouble == "record-too-large"]
    assert "max.message.bytes of es-src.items at the target" in by_log[0].remedy


def test_a_topic_that_was_created_again_is_known_by_its_id() -> None:
    log = ReplacedLog(topic="items", partition=None, is_new=True, known_id="a", topic_id="b", known_at="yesterday")
    (finding,) = diagnose(seen(replaced_logs=(log,)))
    assert (finding.trouble, finding.where) == ("source-topic-recreated", "topic items of the source")
    assert finding.what == "its id was a at the verification of yesterday, and is b now"


ENDS = {TopicPartition("items", number): end for number, end in enumerate([(10, 3), (10, 3), (3, 0), (0, None)])}


@pytest.mark.parametrize(
    ("number", "position", "is_new"), [(0, 9, None), (0, 10, False), (1, None, None), (2, 9, True), (3, 9, True)]
)
def test_a_log_that_ends_in_front_of_the_position_is_another_one_or_was_cut_off(
    number: int, position: int | None, is_new: bool | None
) -> None:
    fields: dict[str, Any] = {"topic": "items", "partition": number, "records": 0, "seconds": 0.0}
    one = PartitionLag(**fields, position=position, source_end=ENDS[TopicPartition("items", number)][0])
    found = log_probes._replaced(one, ENDS, renewed=())
    assert (None if found is None else found.is_new) is is_new


def test_a_log_of_a_topic_whose_id_is_new_was_not_cut_off_whatever_its_epoch_is() -> None:
    fields: dict[str, Any] = {"topic": "items", "partition": 0, "records": 0, "seconds": 0.0}
    found = log_probes._replaced(PartitionLag(**fields, position=10, source_end=10), ENDS, renewed={"items"})
    assert found is not None
    assert found.is_new


@pytest.mark.parametrize(
    ("connector", "document", "limit"),
    [
        ({"producer.override.max.request.size": "7"}, {}, 7),
        ({}, {}, log_probes.REQUEST_LIMIT),
        ({}, {"spec": {"target": {"config": {"producer.max.request.size": 8}}}}, 8),
        (None, {"spec": {"mirrors": [{"sourceConnector": {"config": {"producer.override.max.request.size": 9}}}]}}, 9),
        (None, {}, None),
        (
            {"producer.override.max.request.size": "7"},
            {"spec": {"target": {"config": {"producer.max.request.size": 8}}}},
            7,
        ),
    ],
)
def test_the_producers_limit_is_that_of_the_connector_else_of_the_workers(
    monkeypatch: pytest.MonkeyPatch, connector: dict[str, str] | None, document: dict[str, Any], limit: int | None
) -> None:
    monkeypatch.setattr(log_probes, "connector_config", lambda _: connector)
    resource = SimpleNamespace(document=document)
    readings: Any = SimpleNamespace(resource=lambda: resource)
    found = log_probes._producer(readings, MIRROR)
    assert (None if found is None else int(found.get("max.request.size", log_probes.REQUEST_LIMIT))) == limit


def test_a_record_within_all_limits_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartitionLag(topic="items", partition=0, position=9, source_end=20, records=10, seconds=1.0)
    readings: Any = SimpleNamespace(
        lag=lambda: Measure(at_s=0.0, partitions=(part,)),
        pair=SimpleNamespace(
            request=SimpleNamespace(mirror=MIRROR, limits=SimpleNamespace(isolation="read_committed"))
        ),
        source=SimpleNamespace(cluster=None),
        target=SimpleNamespace(cluster=None),
    )
    sizes = {TopicPartition("items", 0): 1_048_580}
    monkeypatch.setattr(log_probes, "record_bytes", lambda *_: sizes)
    limits = {"items": {"max.message.bytes": SimpleNamespace(value="1048588")}}
    monkeypatch.setattr(log_probes, "topic_configs", lambda *_: SimpleNamespace(found=limits))
    producer = {"max.request.size": "1048588"}
    monkeypatch.setattr(log_probes, "_producer", lambda *_: producer)
    assert log_probes.large_records(readings).records == ()
    sizes[TopicPartition("items", 0)] = 1_048_589
    assert [one.size for one in log_probes.large_records(readings).records] == [1_048_589]
    producer |= {"max.request.size": "5000000", "compression.type": "lz4"}
    assert log_probes.large_records(readings).records == (), "nobody knows how large its batch will be"
    producer["compression.type"] = "none"
    assert [one.request_limit for one in log_probes.large_records(readings).records] == [5_000_000]


@pytest.mark.parametrize(("read", "noted"), [({}, ("0 of 1",)), ({TopicPartition("items", 0): 10}, ())])
def test_a_partition_whose_records_were_not_read_in_time_does_not_pass_for_one_without_a_large_one(
    monkeypatch: pytest.MonkeyPatch, read: dict[TopicPartition, int], noted: tuple[str, ...]
) -> None:
    part = PartitionLag(topic="items", partition=0, position=9, source_end=20, records=10, seconds=1.0)
    pair = SimpleNamespace(request=SimpleNamespace(mirror=MIRROR, limits=SimpleNamespace(isolation="read_committed")))
    readings: Any = SimpleNamespace(
        lag=lambda: Measure(at_s=0.0, partitions=(part,)), pair=pair, source=SimpleNamespace(cluster=None)
    )
    monkeypatch.setattr(log_probes, "record_bytes", lambda *_: read)
    notes = left_out(MIRROR, (), None, log_probes.large_records(readings))
    wanted = (
        f"source: sizes of records in {one} partitions that are behind; the others could not be read in time"
        for one in noted
    )
    assert notes == tuple(wanted)
