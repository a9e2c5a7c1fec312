"""A side of a pair, ready to be asked."""

from spark.clusters.cluster import Cluster


def connected(side: Cluster) -> Cluster:
    """Return the side once it answers its user; raises ClusterError."""
    side.connect()
    return side
