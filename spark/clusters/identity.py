"""What a cluster and its topics are apart from their names: ids that a re-created one does not share."""

from collections.abc import Iterable

from confluent_kafka import KafkaException, TopicCollection

from spark.clusters.cluster import CALL_DEADLINE_S, Cluster


def cluster_id(cluster: Cluster) -> str | None:
    """Return the id of the cluster, None when the brokers do not tell it."""
    try:
        found = cluster.admin.describe_cluster(request_timeout=CALL_DEADLINE_S).result().cluster_id
    except KafkaException:
        return None
    return str(found) if found else None


def topic_ids(cluster: Cluster, names: Iterable[str]) -> dict[str, str]:
    """Return the ids of the topics that are there and may be described."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    found = {}
    futures = cluster.admin.describe_topics(TopicCollection(wanted), request_timeout=CALL_DEADLINE_S)
    for name, future in futures.items():
        try:
            found[name] = str(future.result().topic_id)
        except KafkaException:
            continue
    return found
