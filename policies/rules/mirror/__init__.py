"""What makes a mirror complete, and keeps it from copying what it must not."""

from . import connect_cluster, disaster_recovery_offsets, identity_loops, mirror_intervals, replication_policy

RULES = (connect_cluster, replication_policy, disaster_recovery_offsets, mirror_intervals, identity_loops)
