"""What a stack may cost."""

from . import partition_limits, partitions_per_broker, replica_limits, storage_limits

RULES = (replica_limits, storage_limits, partition_limits, partitions_per_broker)
