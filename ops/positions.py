"""How far a member of a group has handed records over, and committing that while the partitions are its own."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from ops.errors import FINAL, OpsError
from ops.reach import Troubles

REBALANCE_S = 10.0
_POLL_S = 0.2
# A member learns by polling which partitions it keeps; until then it can commit none.
_REBALANCING = frozenset(
    (KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID)
)


class Committing(Protocol):
    """The part of confluent_kafka.Consumer that committing needs."""

    def poll(self, timeout: float) -> Any:
        """Return the next message or event, None if there is none in time."""

    def commit(self, *, offsets: list[TopicPartition], asynchronous: Literal[False]) -> Any:
        """Commit positions."""


@dataclass
class Positions:
    """The offset after the last record handed over, per partition: `committed` ones, and those that wait.

    A partition that another member reads now is none of this member's: committing it would set that one back.
    """

    client: Committing
    topic: str
    troubles: Troubles
    committed: dict[int, int] = field(default_factory=dict)
    refused: int = 0
    _waiting: dict[int, int] = field(default_factory=dict)

    def passed(self, partition: int, next_offset: int) -> None:
        """Note that everything before `next_offset` was handed over."""
        self._waiting[partition] = next_offset

    def commit(self) -> None:
        """Commit what waits; raises OpsError if that fails. While the group rebalances it takes part, for a while."""
        end = time.monotonic() + REBALANCE_S

        def refuse(error: KafkaException) -> None:
            if error.args[0].code() in _REBALANCING and time.monotonic() < end:
                self.client.poll(_POLL_S)  # a record that comes now is not handed over, so it comes again
                return
            self._waiting.clear()
            raise OpsError(
                f"cluster {self.troubles.connection.name}: commit must succeed ({error.args[0].str()}). "
                "The records were handed over and will come again."
            ) from error

        while self._waiting:
            self._commit(self._waiting, refuse)

    def try_commit(self) -> None:
        """Commit what waits; if that fails for now it waits on. Raises OpsError for what no retry heals."""
        self._commit(self._waiting, self._bear)

    def give_back(self, partitions: Iterable[int]) -> None:
        """Commit what waits in partitions that another member is to read, and forget them."""
        self._commit({each: self._waiting[each] for each in partitions if each in self._waiting}, self._bear)
        self.lose(partitions)

    def lose(self, partitions: Iterable[int]) -> None:
        """Forget partitions that another member reads already; what waited there comes again, to that one."""
        for partition in partitions:
            self._waiting.pop(partition, None)

    def _commit(self, offsets: dict[int, int], fail: Callable[[KafkaException], None]) -> None:
        if not offsets:
            return
        found = [TopicPartition(self.topic, partition, offset) for partition, offset in sorted(offsets.items())]
        try:
            answer = self.client.commit(offsets=found, asynchronous=False)
            errors = [part.error for part in answer or () if part.error is not None]
            if errors:
                raise KafkaException(errors[0])
        except KafkaException as error:
            self.refused += 1
            fail(error)
            return
        self.committed |= offsets
        self.lose(list(offsets))

    def _bear(self, error: KafkaException) -> None:
        cause = error.args[0]
        if cause.code() in FINAL or cause.fatal():
            raise self.troubles.error(cause) from error
