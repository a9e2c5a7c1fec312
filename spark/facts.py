"""Everything that a run has learned; the checks and the report are made of it and of nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark.clusters.cluster import Topic
from spark.clusters.connect import ConnectorState
from spark.clusters.lag import Lag
from spark.clusters.metadata import Metadata
from spark.clusters.waiting import CutState
from spark.records.findings import PartitionResult
from spark.records.offsets import GroupPosition
from spark.request.model import Request


@dataclass(kw_only=True)
class Facts:
    """Topics by their name on their own side. What is None could not be learned."""

    request: Request
    source_topics: Mapping[str, Topic]
    target_topics: Mapping[str, Topic]
    cut: CutState
    connectors: list[ConnectorState] | None = None
    metadata: Metadata = field(default_factory=Metadata)
    partitions: list[PartitionResult] = field(default_factory=list)
    groups: list[GroupPosition] = field(default_factory=list)
    lag: Lag = field(default_factory=Lag)
