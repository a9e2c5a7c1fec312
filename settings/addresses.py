"""Where a cluster will be reached, as far as its settings say: for manifests that are written before it runs.

Names of Services are those that Strimzi and Event Streams give: `<cluster>-kafka-bootstrap`.
"""

from settings.cluster import Cluster, Listener

_OUTSIDE_PORT = {"route": 443, "ingress": 443}


def bootstrap_servers(cluster: Cluster) -> str | None:
    """Return `host:port,...` for clients outside; None if only the running cluster knows it (no `host` is given)."""
    if cluster.external is not None:
        return ",".join(cluster.external.bootstrap_servers)
    return of_listener(cluster, cluster.outside_listener)


def of_listener(cluster: Cluster, listener: Listener) -> str | None:
    """Return `host:port` of one listener of a managed cluster; None if only the running cluster knows it."""
    if listener.type == "internal":
        return f"{cluster.name}-kafka-bootstrap.{cluster.namespace}.svc:{listener.port}"
    if listener.host is None:
        return None
    return f"{listener.host}:{_OUTSIDE_PORT.get(listener.type, listener.node_port or listener.port)}"
