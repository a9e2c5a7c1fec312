"""What keeps records when a broker, a disk or an operator's mistake takes some away."""

from . import (
    autoscaled_brokers,
    cluster_min_insync,
    cluster_replication,
    delete_claim,
    deletion_protection,
    ephemeral_storage,
    mirror_replication,
    topic_min_insync,
    topic_replication,
    topic_retention,
    unclean_leader_election,
)

RULES = (
    topic_replication,
    topic_min_insync,
    topic_retention,
    cluster_replication,
    cluster_min_insync,
    unclean_leader_election,
    ephemeral_storage,
    delete_claim,
    deletion_protection,
    mirror_replication,
    autoscaled_brokers,
)
