"""What makes a mirror complete, and keeps it from copying what it must not."""

from . import (
    connect_cluster,
    connect_storage_mirrored,
    disaster_recovery_offsets,
    group_patterns,
    identity_loops,
    internal_topics_mirrored,
    mirror_intervals,
    mirrors_overlap,
    pattern_syntax,
    replication_policy,
    topics_mirrored,
    unescaped_dots,
)

RULES = (
    connect_cluster,
    replication_policy,
    disaster_recovery_offsets,
    mirror_intervals,
    identity_loops,
    pattern_syntax,
    internal_topics_mirrored,
    connect_storage_mirrored,
    group_patterns,
    unescaped_dots,
    mirrors_overlap,
    topics_mirrored,
)
