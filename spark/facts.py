"""Everything that a run has learned; the checks and the report are made of it and of nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark.clusters.cluster import Partition, Topic
from spark.clusters.connect import ConnectorState
from spark.clusters.lag import Lag
from spark.clusters.metadata import Metadata
from spark.clusters.waiting import CutState
from spark.records.findings import PartitionResult
from spark.records.offsets import GroupPosition
from spark.request.model import Request
from spark.state.resume import Resumed


@dataclass(kw_only=True)
class Facts:
    """Topics by their name on their own side. What is None could not be learned.

    `resumed`: from where a partition was compared, or why as a whole; `state` is what the report tells of it. Both are
    empty without `--state`.
    """

    request: Request
    source_topics: Mapping[str, Topic]
    target_topics: Mapping[str, Topic]
    cut: CutState
    connectors: list[ConnectorState] | None = None
    metadata: Metadata = field(default_factory=Metadata)
    partitions: list[PartitionResult] = field(default_factory=list)
    groups: list[GroupPosition] = field(default_factory=list)
    lag: Lag = field(default_factory=Lag)
    resumed: Mapping[Partition, Resumed | str] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None
