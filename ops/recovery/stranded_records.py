"""Records that were written to the side that is given up after it was drained: nothing copies them any more.

Owns how they are found, and the words for it. Does not own what a command does about them.
"""

from collections.abc import Callable, Iterator, Mapping

from rich.text import Text

from contract.verification_request import Request
from kafka.cluster import Cluster
from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import draining, last_copied
from ops.recovery.operation import Facts
from settings.text import format_count

ANSWERS_WITHIN_S = 3.0
COMPARED_MAX = 2_000_000
Offsets = Mapping[TopicPartition, int]


def found_or_unknown(side: Cluster, count: Callable[[], Offsets]) -> Facts:
    """Return `stranded`, offsets by partition; None and the reason, `why`, if a side does not answer in full.

    `side` is the one that is given up, `count` finds what is there once it answers.
    """
    try:
        side.connect(ANSWERS_WITHIN_S)
        return {"stranded": draining.format_places(count())}
    except (ClusterError, OpsError) as error:  # who is active has changed: it shall keep nobody from going on
        return {"stranded": None, "why": str(error)}


def named(places: Mapping[str, int]) -> str:
    """Return stranded offsets in words, such as `items-0: 3 offsets`."""
    return ", ".join(f"{place}: {format_count(offsets, 'offset')}" for place, offsets in places.items())


def written_afterwards(found: Mapping[str, int] | None, side: str, other: str, remedy: str) -> Text:
    """Return what a side got after all of it was compared, and whether records were lost by that."""
    if found == {}:
        return Text("No record was lost: all were compared.")
    if found is None:
        return Text(
            f"! All records were compared, but whether more were written to the {side} afterwards is unknown, because "
            "it does not answer.",
            "yellow",
        )
    return Text(
        f"! All records were compared, but the {side} was written to afterwards ({named(found)}). These records are "
        f"not on the {other}. Stop the producer; {remedy}.",
        "red",
    )


def not_from(
    active: Cluster, active_ends: Offsets, given_up: Cluster, given_up_ends: Offsets, request: Request
) -> dict[TopicPartition, int]:
    """Return the records that the side that is given up has and did not get from the active one, by partition.

    The mirror from the active side may run again: what it has copied is known by its content. Where the active side has
    not grown, all that was added is counted, in offsets. Names are the same on both sides.

    Args:
        active: The side that applications use.
        active_ends: Where it ended when the way back was stopped.
        given_up: The other side.
        given_up_ends: Where that one ended when it was drained.
        request: Verification's request of the mirror, which names the topics.

    Raises:
        ClusterError: A side does not answer.
        OpsError: A partition cannot be read, or more than `COMPARED_MAX` offsets were added to it.
    """
    added = draining.grown_since(given_up, request, given_up_ends)
    since = draining.grown_since(active, request, active_ends) if added else {}  # later: it holds what was copied
    return {
        tp: records
        for tp, offsets in added.items()
        if (records := _foreign(active, active_ends, given_up, given_up_ends, tp) if tp in since else offsets)
    }


def _foreign(
    active: Cluster, active_ends: Offsets, given_up: Cluster, given_up_ends: Offsets, tp: TopicPartition
) -> int:
    """How many records were added to a partition that the active side does not have; open transactions do not count."""
    theirs = _added(given_up, given_up_ends, tp)  # its end is read first: what is copied later is not in it
    ours = set(_added(active, active_ends, tp))
    return sum(record not in ours for record in theirs)


def _added(side: Cluster, ends: Offsets, tp: TopicPartition) -> Iterator[int]:
    """The digests of what was added to a partition; raises OpsError at once if it cannot be read as a whole."""
    end = side.ends([tp], "read_committed")[tp]
    start = draining.noted_end(ends, tp, end)
    if end - start > COMPARED_MAX:
        raise OpsError(f"{side.side.role} {side.side.alias}: {tp} has grown by more than {COMPARED_MAX} offsets.")
    if (first := side.starts([tp])[tp]) > start:
        raise OpsError(f"{side.side.role} {side.side.alias}: {tp} must still hold offset {start} (begins at {first}).")
    return (digest for _, digest in last_copied.read_records(side, tp, end, start)) if end > start else iter(())
