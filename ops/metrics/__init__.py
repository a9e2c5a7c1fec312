"""`ops metrics`: the snapshot of a mirror as Prometheus metrics."""
