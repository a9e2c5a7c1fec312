"""The names of the verification's checks in the report's order, written by `python -m spark.checks`."""

from typing import Literal, get_args

CheckName = Literal[
    "topics_present",
    "partitions_match",
    "replication_factor",
    "topic_config",
    "internal_topics",
    "acls_synced",
    "connectors_running",
    "lag",
    "canary_latency",
    "records_complete",
    "records_unique",
    "records_intact",
    "records_ordered",
    "records_foreign",
    "groups_synced",
    "groups_no_loss",
    "groups_reread_bounded",
    "checkpoints_consistent",
    "standby_read_only",
]
CHECK_NAMES: tuple[CheckName, ...] = get_args(CheckName)
