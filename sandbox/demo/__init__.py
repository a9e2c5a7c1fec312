"""The demo: two clusters, a mirror, a failover, and a count of every record, in a sandbox or on real clusters."""
