"""NumPy's view of the positions of consumer groups: the columns of `GroupPositions`, and the places of a partition."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kafka.group_positions import GroupPositions
from kafka.topic_partition import TopicPartition

Places = npt.NDArray[np.int64]


class PositionColumns:
    """The columns of positions: what is written to one is in the positions. None may be added as long as this lives."""

    def __init__(self, positions: GroupPositions) -> None:
        self.group_numbers: npt.NDArray[np.int32] = np.asarray(positions.group_numbers)
        self.partition_numbers: npt.NDArray[np.int32] = np.asarray(positions.partition_numbers)
        self.numbers: dict[str, npt.NDArray[np.int64]] = {
            name: np.asarray(held) for name, held in positions.numbers.items()
        }
        self.flags: dict[str, npt.NDArray[np.int8]] = {name: np.asarray(held) for name, held in positions.flags.items()}

    @property
    def committed(self) -> npt.NDArray[np.int64]:
        """The committed offsets at the source."""
        return self.numbers["committed"]

    @property
    def synced(self) -> npt.NDArray[np.int64]:
        """The offsets on the target, NONE where there is none."""
        return self.numbers["synced"]

    def is_set(self, flag: str) -> npt.NDArray[np.bool_]:
        """Whether a flag is set."""
        return self.flags[flag].view(np.bool_)


def by_partition(positions: GroupPositions) -> Iterator[tuple[TopicPartition, Places]]:
    """Yield each partition that has a position, with the places of its positions in their order."""
    numbers = np.asarray(positions.partition_numbers)
    if not len(numbers):
        return
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order])) + 1
    for places in np.split(order, starts):
        yield positions.partitions[numbers[places[0]]], places
