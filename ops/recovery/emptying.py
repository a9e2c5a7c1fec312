"""Emptying partitions of the source that hold stranded records: all of their records return from the target.

Owns what must hold before a record is deleted, and the deletion. Does not own which partitions are emptied.
"""

from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from contract.verification_request import Mirror
from kafka import topic_metadata
from kafka.cluster import CALL_DEADLINE_S, Cluster
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.recovery import draining
from settings.text import format_count

_NAMED_MAX = 5


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


def warning(emptied: Mapping[str, int], name: str) -> str:
    """Return what is deleted, for a plan; `emptied` are the offsets in each partition, "" if it is none."""
    if not emptied:
        return ""
    every = ", ".join(f"{place} {offsets}" for place, offsets in emptied.items())
    return (
        f"{format_count(len(emptied), 'partition')} of {name} with records that only it has: up to "
        f"{format_count(sum(emptied.values()), 'record')} are deleted there ({every}), once the target is proven to "
        "hold all of them; they return from it"
    )


def empty(source: Cluster, proven: Mapping[TopicPartition, int]) -> None:
    """Delete all records of these partitions, none behind the offsets up to which they were proven; raises OpsError."""
    now_at = source.ends(proven, "read_uncommitted")
    if grown := [str(tp) for tp, end in sorted(proven.items()) if now_at[tp] != end]:
        raise OpsError(
            f"cluster {source.side.alias}: nothing may be written, and no transaction be open, while the target is "
            f"active (got more than was verified in {', '.join(grown)}). Stop who does and run this again; nothing was "
            "deleted."
        )
    wanted = [ClientTopicPartition(*tp, end) for tp, end in sorted(proven.items())]
    for part, future in source.admin.delete_records(wanted, request_timeout=CALL_DEADLINE_S).items():
        try:
            future.result()
        except KafkaException as error:
            raise OpsError(
                f"cluster {source.side.alias}: records of {part.topic}-{part.partition} must be deleted (got "
                f"{error.args[0].str()}). Give user {source.side.user} Delete on the topic and run this again."
            ) from None
