"""What a stack may cost."""

from . import (
    autoscaler_bounds,
    autoscaler_tasks,
    partition_limits,
    partitions_per_broker,
    replica_limits,
    storage_limits,
)

RULES = (
    replica_limits,
    autoscaler_bounds,
    autoscaler_tasks,
    storage_limits,
    partition_limits,
    partitions_per_broker,
)
