"""Security: who may connect to a cluster, and which values others must not read."""
