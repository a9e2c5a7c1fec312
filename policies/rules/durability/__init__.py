"""What keeps records when a broker, a disk or an operator's mistake takes some away."""

from . import mirror_replication, topic_replication

RULES = (topic_replication, mirror_replication)
