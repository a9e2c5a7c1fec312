"""Records that were written to the side that is given up after it was drained: nothing copies them any more.

Owns how they are found, the words for it, what must hold before they are deleted at the source so that they return from
the target, and the deletion. Does not own what a command does about them, nor which partitions are emptied.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Mirror, Request
from kafka import topic_metadata
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops.console import Text
from ops.errors import OpsError
from ops.recovery import draining, mirror_offsets
from ops.recovery.operation import Facts
from ops.recovery.translation import Proof
from settings.text import format_count

ANSWERS_WITHIN_S = 3.0
COMPARED_MAX = 2_000_000
Offsets = Mapping[TopicPartition, int]
_NAMED_MAX = 5
EMPTYING = "emptying"
"""Noted before records are deleted: where these partitions ended when the target was proven to hold all of them."""


def not_copied(
    source: Cluster, ends: Offsets, copied: Offsets
) -> tuple[dict[TopicPartition, int], list[TopicPartition]]:
    """Return the offsets by partition that hold records which a mirror had not copied, and partitions made anew.

    Args:
        source: The side that was given up.
        ends: Where its partitions end now.
        copied: The last offset of each that was copied.
    """
    starts, stranded, anew = source.starts(ends), dict[TopicPartition, int](), list[TopicPartition]()
    for tp, end in ends.items():
        following = copied.get(tp, -1) + 1
        if following > end:  # nothing of what the mirror had copied is there
            anew.append(tp)
            following = 0
        begin = max(following, starts[tp])
        if begin < end and source.has_records(tp, begin, end, "read_committed"):
            stranded[tp] = end - begin
    return stranded, anew


def left_behind(source: Cluster, copied: Offsets, request: Request) -> dict[TopicPartition, int]:
    """Return the offsets by partition that lie behind the last one that was copied; all of those where none was."""
    topics = source.topics(request.mirror.carries_topic, request.mirror.named_topics)
    topic_partitions = [TopicPartition(one.name, number) for one in topics.values() for number in one.replicas]
    ends, starts = source.ends(topic_partitions, request.limits.isolation), source.starts(topic_partitions)
    left = {tp: ends[tp] - max(copied.get(tp, -1) + 1, starts[tp]) for tp in topic_partitions}
    return {tp: offsets for tp, offsets in left.items() if offsets > 0}


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


def written_afterwards(
    found: Mapping[str, int] | None, side: str, other: str, remedy: str, why: str | None = None
) -> Text:
    """Return what a side got after all of it was compared, and whether records were lost by that.

    `why` is the reason if it is unknown.
    """
    if found == {}:
        return Text("No record was lost: all were compared.")
    if found is None:
        return Text(
            f"! All records were compared, but whether more were written to the {side} afterwards is {unknown(why)}",
            "yellow",
        )
    return Text(
        f"! All records were compared, but the {side} was written to afterwards ({named(found)}). These records are "
        f"not on the {other}. Stop the producer; {remedy}.",
        "red",
    )


def unknown(why: str | None) -> str:
    """Return that something is unknown, with the reason, as the end of a sentence."""
    return f"unknown: {why.rstrip('.')}." if why else "unknown."


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
    return (digest for _, digest in mirror_offsets.read_records(side, tp, end, start)) if end > start else iter(())


def require_logs(source: Cluster, mirror: Mirror, stranded: Iterable[TopicPartition], name: str) -> None:
    """Raise OpsError for stranded records of compacted topics: brought over last, they would hide newer ones."""
    topics = source.topics(mirror.carries_topic)
    compacted = [tp for tp in stranded if topics[tp.topic].compacted]
    if compacted:
        raise OpsError(
            f"source {name}: compacted topics must hold no record that was not copied before the failover (got "
            f"{draining.named(compacted)}): it is older than what the target has by now. Delete these topics there, "
            "keep what is needed of them, let `pulumi up` make them again, and run the command again: they are filled "
            "from the target."
        )


def require_replicated(target: Cluster, topic_partitions: Iterable[TopicPartition], name: str) -> None:
    """Raise OpsError unless all replicas of these partitions are in sync: for a while they hold the only copy."""
    wanted = set(topic_partitions)
    states = topic_metadata.topic_states(target, {tp.topic for tp in wanted})
    faults = dict(states.refused)
    for tp in sorted(wanted):
        state = states.found.get(tp.topic)
        part = state.partitions.get(tp.partition) if state is not None else None
        if tp.topic not in states.refused and (fault := part.fault(None) if part is not None else "is not there"):
            faults[str(tp)] = fault
    if faults:
        named = "; ".join(f"{place} {fault}" for place, fault in [*faults.items()][:_NAMED_MAX])
        raise OpsError(
            f"target {name}: partitions that are emptied at the source must have all of their replicas in sync (got "
            f"{named}): until they return the target has their only copy. Wait until its brokers run and have caught "
            "up, then run the command again; nothing was deleted."
        )


def empty_now(
    source: Cluster, topic_partitions: Iterable[TopicPartition], emptied: Mapping[str, int]
) -> dict[TopicPartition, bool]:
    """Return the partitions without a record at the source, where nothing can be compared and nothing be deleted.

    Each with whether it was emptied before an interruption, up to its end in `emptied`. Else somebody has deleted its
    records, or retention has, and nobody has proven that the target holds them.
    """
    wanted, proven = [*topic_partitions], draining.read_places(emptied)
    starts, ends = source.starts(wanted), source.ends(wanted, "read_uncommitted")
    return {tp: ends[tp] == proven.get(tp) for tp in wanted if starts[tp] == ends[tp]}


def require_proven(proof: Proof, topic_partitions: Iterable[TopicPartition], mirror: str) -> None:
    """Raise OpsError unless the target was found to hold every record of these partitions."""
    if doubts := proof.not_held(topic_partitions):
        named = ", ".join(f"{tp}: {why}" for tp, why in [*sorted(doubts.items())][:_NAMED_MAX])
        raise OpsError(
            f"mirror {mirror}: the target must hold every record of partitions that are emptied at the source (got "
            f"{named}). See {proof.report}; nothing was deleted. Where its retention was shorter, raise it, or keep "
            "these records elsewhere and delete them at the source."
        )


def deletion_warning(emptied: Mapping[str, int], name: str) -> str:
    """Return what is deleted, for a plan; `emptied` are the offsets in each partition, "" if it is none."""
    if not emptied:
        return ""
    every = ", ".join(f"{place} {offsets}" for place, offsets in emptied.items())
    return (
        f"{format_count(len(emptied), 'partition')} of {name} with records that only it has: up to "
        f"{format_count(sum(emptied.values()), 'record')} are deleted there ({every}), once the target is proven to "
        "hold all of them; they return from it"
    )


def delete_records(
    source: Cluster, proven: Mapping[TopicPartition, int], require_permission: Callable[[], None]
) -> None:
    """Delete all records of these partitions, none behind the offsets up to which they were proven; raises OpsError.

    `require_permission` is called right before, and raises if nothing must be deleted.
    """
    now_at = source.ends(proven, "read_uncommitted")
    if grown := [str(tp) for tp, end in sorted(proven.items()) if now_at[tp] != end]:
        raise OpsError(
            f"cluster {source.side.alias}: nothing may be written, and no transaction be open, while the target is "
            f"active (got more than was verified in {', '.join(grown)}). Stop who does and run this again; nothing was "
            "deleted."
        )
    wanted = [ClientTopicPartition(*tp, end) for tp, end in sorted(proven.items())]
    require_permission()
    for part, future in source.admin.delete_records(wanted, request_timeout=CALL_DEADLINE_S).items():
        try:
            future.result()
        except KafkaException as error:
            raise OpsError(
                f"cluster {source.side.alias}: records of {part.topic}-{part.partition} must be deleted (got "
                f"{error.args[0].str()}). Give user {source.side.user} Delete on the topic and run this again."
            ) from None
