"""Runs of the verification job that remember: what is read again, and what makes a run compare everything."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.waiting import wait_until

from ...support.written_topics import Bench, Record, findings, own_name, record

VERIFIED = 400
NEW = 25
TAIL = 16  # records that a run may compare again


@dataclass
class Remembering:
    """One topic, and runs of the job on it that share a state."""

    bench: Bench
    state: Path
    topic: str = field(default_factory=lambda: own_name("state"))

    def write(self, first: int, last: int, *, sides: tuple[str, ...] = ("source", "target"), **changes: Any) -> None:
        records: list[Record] = [record(number, **changes) for number in range(first, last)]
        for side in sides:
            self.bench.write(side, self.topic, records)

    def create(self) -> None:
        """Make the topic; its deletion may still be on."""

        def created() -> bool:
            try:
                self.bench.topic(self.topic)
            except KafkaException:
                return False
            return True

        wait_until(f"{self.topic} can be created", created, every_s=1)

    def delete(self, *sides: str) -> None:
        for side in sides:
            admin = AdminClient(self.bench.client(side))  # named, because its futures end with it
            admin.delete_topics([self.topic])[self.topic].result(30)

    def cut_off(self, side: str, offset: int) -> None:
        """Remove all records before an offset."""
        place = TopicPartition(self.topic, 0, offset)
        admin = AdminClient(self.bench.client(side))  # named, because its futures end with it
        admin.delete_records([place])[place].result(30)

    def run(self, *, state: str | None = None) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        return self.bench.verify([self.topic], None, ("--state", state or str(self.state)))


@pytest.fixture
def remembering(bench: Bench, tmp_path: Path) -> Remembering:
    """A topic with equal records on both sides that one run has verified."""
    made = Remembering(bench, tmp_path / "state")
    made.create()
    made.write(0, VERIFIED)
    result, report = made.run()
    assert result.returncode == 0, result.stderr + result.stdout
    assert report["state"]["full_partitions"][0]["reason"] == "there is no state of an earlier run"
    assert (report["state"]["loaded"], report["state"]["saved"]) == (False, True)
    assert report["records_compared"] == VERIFIED
    return made


def reason(report: dict[str, Any]) -> str:
    """Why the only partition was compared whole."""
    assert not report["state"]["resumed_partitions"]
    (only,) = report["state"]["full_partitions"]
    return str(only["reason"])


def test_a_second_run_reads_only_what_is_new_and_finds_a_fault_in_it_exactly(remembering: Remembering) -> None:
    remembering.write(VERIFIED, VERIFIED + NEW)
    result, report = remembering.run()
    assert result.returncode == 0, result.stderr + result.stdout
    assert NEW <= report["records_compared"] <= NEW + TAIL
    assert report["state"]["loaded"]
    assert not report["state"]["full_partitions"]
    (resumed,) = report["state"]["resumed_partitions"]
    assert VERIFIED - TAIL <= resumed["source_offset"] <= VERIFIED
    assert report["partitions"][0]["verified_from"] == resumed["source_offset"]

    result, report = remembering.run()
    assert result.returncode == 0, "nothing new is no reason to doubt"
    assert 0 < report["records_compared"] <= TAIL

    first = VERIFIED + NEW
    remembering.write(first, first + 10)
    remembering.write(first + 10, first + 12, sides=("source",))
    remembering.write(first + 12, first + 20)
    for _ in range(2):  # a fault is seen again by the next run
        result, report = remembering.run()
        assert result.returncode == 1
        (lost,) = findings(report, remembering.topic).pop("lost")
        assert lost["count"] == 2
        assert [sample["source_offset"] for sample in lost["samples"]] == [first + 10, first + 11]
        assert report["records_compared"] <= TAIL + 20
        assert report["state"]["resumed_partitions"]
        assert report["state"]["saved"]


def test_a_copy_of_a_verified_record_is_doubled_and_not_foreign(remembering: Remembering) -> None:
    remembering.write(VERIFIED, VERIFIED + NEW)
    remembering.write(7, 8, sides=("target",))
    result, report = remembering.run()
    assert result.returncode == 1
    assert {kind: found[0]["count"] for kind, found in findings(report, remembering.topic).items()} == {"doubled": 1}
    assert "compared whole to find out what they are" in reason(report)


def test_records_that_were_copied_again_are_never_moved_past_whatever_the_source_removes(
    remembering: Remembering,
) -> None:
    remembering.write(0, VERIFIED, sides=("target",))
    remembering.cut_off("source", VERIFIED - 1)
    for _ in range(2):
        result, report = remembering.run()
        assert result.returncode == 1
        assert {kind: found[0]["count"] for kind, found in findings(report, remembering.topic).items()} == {
            "doubled": VERIFIED,
            "expired_at_source": VERIFIED - 1,
        }


def test_a_topic_deleted_and_created_again_is_compared_whole(remembering: Remembering) -> None:
    remembering.delete("source", "target")
    remembering.create()
    remembering.write(0, VERIFIED + NEW)
    result, report = remembering.run()
    assert result.returncode == 0, result.stderr + result.stdout
    assert reason(report) == "the topic was deleted and created again at the source"
    assert report["records_compared"] == VERIFIED + NEW


def test_a_target_whose_verified_records_are_gone_is_compared_whole(remembering: Remembering) -> None:
    remembering.write(VERIFIED, VERIFIED + NEW)
    remembering.cut_off("target", VERIFIED + 1)
    result, report = remembering.run()
    assert "the target's log starts at offset" in reason(report)
    assert findings(report, remembering.topic)["expired_at_target"][0]["count"] == VERIFIED + 1
    assert result.returncode == 0, result.stderr + result.stdout
    assert report["records_compared"] == NEW - 1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", marks=pytest.mark.nightly),
        b'{"version": 1, "mirror"',
        pytest.param(b'{"version": 99}', marks=pytest.mark.nightly),
    ],
)
def test_a_damaged_state_is_reported_and_replaced(remembering: Remembering, data: bytes) -> None:
    (file,) = remembering.state.glob("*.json")
    file.write_bytes(data)
    result, report = remembering.run()
    assert result.returncode == 0
    assert "cannot be used: it" in reason(report)
    assert "cannot be used: it" in result.stderr
    assert "Traceback" not in result.stderr
    assert report["records_compared"] == VERIFIED
    assert report["state"]["saved"]
    assert remembering.run()[1]["state"]["resumed_partitions"]


def test_a_state_that_knows_other_records_is_not_trusted(remembering: Remembering) -> None:
    other = Remembering(remembering.bench, remembering.state)
    other.create()
    other.write(0, VERIFIED, value=b"other")
    assert other.run()[0].returncode == 0
    (file,) = remembering.state.glob("*.json")
    assert other.topic in file.read_text(), "one document for the mirror"
    # The entry of the first topic was kept while the second was verified, as both are still there.
    assert remembering.topic not in file.read_text()
    assert reason(remembering.run()[1]) == "no earlier run has verified this partition"


def test_a_state_that_cannot_be_kept_does_not_change_the_verdict(remembering: Remembering) -> None:
    result, report = remembering.run(state="/proc/no-such-folder")
    assert result.returncode == 0, result.stderr
    assert not report["state"]["saved"]
    assert "cannot be written" in report["state"]["problems"][0]
    assert "state: not saved" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("uri", ["gs://bucket/x", "s3://", "/etc/hosts"])
def test_a_wrong_state_ends_before_anything_starts(bench: Bench, tmp_path: Path, uri: str) -> None:
    made = Remembering(bench, tmp_path)
    result, report = made.run(state=uri)
    assert result.returncode == 2
    assert result.stderr.startswith("--state: must ")
    assert (report["verdict"], report["partitions"]) == ("error", [])
