"""The rules of the pack, one module each. They judge resources alone and share no code with what made them."""

from . import mirror_replication, topic_replication

POLICIES = (topic_replication.POLICY, mirror_replication.POLICY)
