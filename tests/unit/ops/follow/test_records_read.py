"""What is read of a stretch: whether it reaches the end of its range, and with all of its records."""

from types import SimpleNamespace
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME
from confluent_kafka import TopicPartition as ClientTopicPartition

from kafka.checkpoints import OffsetSync
from ops.follow.record_proof import RECORDS_MAX, RecordComparison, Stretch
from tests.support.followed_sides import ITEMS, Followed
from tests.support.recovery_pair import Side
from tests.unit.kafka import test_offset_syncs as simulated

FIRST_BATCH = 300
"""Records that a consumer gives at first; then as many as are asked for."""


class MadeUpConsumer:
    """A log of so many records that are all alike in a partition, given in batches."""

    def __init__(self, end: int) -> None:
        self.end, self._at = end, 0

    def assign(self, parts: list[ClientTopicPartition]) -> None:
        self._at = parts[0].offset

    def consume(self, number: int, timeout: float) -> list[Any]:
        began = self._at
        self._at = min(self.end, began + (number if began else FIRST_BATCH))
        return [self._message(offset) for offset in range(began, self._at)]

    def position(self, _: object) -> list[ClientTopicPartition]:
        return [ClientTopicPartition(*ITEMS, self._at)]

    def incremental_unassign(self, _: object) -> None:
        pass

    def unassign(self) -> None:
        pass

    @staticmethod
    def _message(offset: int) -> Any:
        answers = {
            "topic": ITEMS.topic, "partition": ITEMS.partition, "offset": offset, "error": None, "key": b"k",
            "value": b"v", "headers": None, "timestamp": (TIMESTAMP_CREATE_TIME, offset),
        }  # fmt: skip
        return SimpleNamespace(**{name: lambda found=found: found for name, found in answers.items()})


def comparison(number: int, *, unsettled: int = 0) -> RecordComparison:
    """Both sides hold so many records; the last ones at the source are of an open transaction."""
    sides: list[Any] = [Side(role, {ITEMS: number}) for role in ("source", "target")]
    sides[0].open[ITEMS] = unsettled
    for side in sides:
        settled = number - side.open.get(ITEMS, 0)
        side.consumer = lambda *_, settled=settled: MadeUpConsumer(settled)
    return RecordComparison(sides[0], sides[1], "read_committed")


def from_the_start(until: int) -> Stretch:
    return Stretch(ITEMS, ITEMS, OffsetSync(0, 0), None, until)


def test_more_records_than_are_read_at_once_are_not_complete() -> None:
    for number, complete in ((RECORDS_MAX, True), (RECORDS_MAX + 100, False)):
        compared = comparison(number).compare([from_the_start(number)])[ITEMS]
        assert len(compared.source.offsets) == RECORDS_MAX
        assert (compared.source.complete, compared.target.complete) == (complete, complete)
        assert compared.source_is_copied is complete


def test_a_position_behind_what_was_read_is_not_exact() -> None:
    proof = comparison(RECORDS_MAX + 100).compare([from_the_start(RECORDS_MAX + 100)])[ITEMS].position(RECORDS_MAX + 50)
    assert proof is not None
    assert (proof.offset, proof.exact) == (RECORDS_MAX, False)


def test_an_open_transaction_at_the_source_leaves_its_records_unread() -> None:
    """They may be there twice, so that second copies do not count yet."""
    for unsettled, complete in ((0, True), (10, False)):
        compared = comparison(100, unsettled=unsettled).compare([from_the_start(100)])[ITEMS]
        assert (compared.source.complete, compared.source_is_copied) == (complete, complete)
    nothing = comparison(100, unsettled=60).compare([Stretch(ITEMS, ITEMS, OffsetSync(50, 50), None, 100)])[ITEMS]
    assert not nothing.source.complete


def test_a_group_that_has_read_an_open_transaction_is_not_exact_in_front_of_it(followed: Followed) -> None:
    followed.copies((simulated.RECORD, 40))
    followed.ahead(10)
    followed.source.open[ITEMS] = 12
    followed.stands(45)
    assert followed.round() == {"unproven": 1}
    followed.source.open.clear()
    assert followed.round() == {"behind": 1}
    assert followed.at() == 40
