"""How topics are replicated right now: replicas, those in sync, and whether a partition has a leader."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from spark.clusters.asking import Answers, code_of, reason
from spark.clusters.cluster import CALL_DEADLINE_S, Cluster


@dataclass(frozen=True)
class PartitionState:
    """Number of replicas, how many of them are in sync, and whether there is a leader."""

    replicas: int
    in_sync: int
    online: bool = True

    def fault(self, wanted: int | None) -> str | None:
        """Return what is wrong if `wanted` replicas should hold the partition, None if nothing is."""
        if not self.online:
            return "is offline: no leader"
        if wanted is not None and self.replicas < wanted:
            return f"has {self.replicas} replicas of {wanted}"
        if self.in_sync < self.replicas:
            return f"is under-replicated: {self.in_sync} of {self.replicas} replicas in sync"
        return None


@dataclass(frozen=True)
class TopicState:
    """The partitions of a topic by number."""

    name: str
    partitions: Mapping[int, PartitionState]

    def faults(self, wanted: int | None) -> dict[int, str]:
        """Return what is wrong with its partitions, by number."""
        found = {number: part.fault(wanted) for number, part in sorted(self.partitions.items())}
        return {number: fault for number, fault in found.items() if fault is not None}


def topic_states(cluster: Cluster, names: Iterable[str]) -> Answers[TopicState]:
    """Describe topics by name. Unlike a plain metadata request this never creates one."""
    wanted = sorted(set(names))
    answers: Answers[TopicState] = Answers()
    if not wanted:
        return answers
    futures = cluster.admin.describe_topics(TopicCollection(wanted), request_timeout=CALL_DEADLINE_S)
    for name, future in futures.items():
        try:
            described = future.result()
        except KafkaException as error:
            if code_of(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                needs = f"DESCRIBE on topic {name}"
                answers.refused[name] = reason(cluster.side, f"describe topic {name}", needs, error)
            continue
        answers.found[name] = TopicState(
            name,
            {
                part.id: PartitionState(
                    len(part.replicas), len(part.isr), part.leader is not None and part.leader.id >= 0
                )
                for part in described.partitions
            },
        )
    return answers
