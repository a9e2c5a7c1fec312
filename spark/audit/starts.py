"""Where an audit begins to read each partition: at the first record that is not older than its begin."""

from collections.abc import Collection

from confluent_kafka import KafkaException

from kafka.cluster import Cluster
from kafka.mirror_position import first_from
from kafka.topic_partition import TopicPartition


def first_offsets(cluster: Cluster, topics: Collection[str], from_ms: int) -> dict[TopicPartition, int]:
    """Return the offset of the first record from a time on, else the log end offset; raises ClusterError.

    Spark's own `startingTimestamp` asks for the ends last, and leaves out what is written between the two, which is
    much where a broker is away meanwhile.
    """
    try:
        seen = cluster.admin.list_topics(timeout=cluster.call_within_s).topics
    except KafkaException as error:
        cluster.refusals.call("list topics", error, None)
    there = [TopicPartition(name, number) for name in topics if name in seen for number in seen[name].partitions]
    return first_from(cluster, there, from_ms)
