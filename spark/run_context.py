"""Everything that a run has learned; the checks and the report are made of it and of nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contract.verification_request import Request
from kafka.canary import CanaryResult
from kafka.checkpoints import SourceOffset
from kafka.cluster import Partition, Topic
from kafka.connect_rest import ConnectorState
from kafka.groups import Groups
from kafka.lag import Lag
from kafka.mirror_metadata import Metadata
from kafka.topic_metadata import HiddenTopics
from kafka.waiting import CutState
from spark.comparison.findings import PartitionResult
from spark.state.resume import Resumed


@dataclass(kw_only=True)
class Facts:
    """Topics by their name on their own side. What is None could not be learned.

    Filled in while the run goes on: what it knew when it had to stop is used too. `stage` is what it does; `waited`:
    the wait for the mirror is over, topics and connectors are as they will be judged. `absent_topics`, `absent_groups`:
    plain names that the mirror is asked to carry and the source does not have. `doubtful_topics`: whether the mirror
    carries them depends on its release of Kafka, which is not known. `hidden_topics` are those that the source may have
    and does not show. `denied_groups`: why offsets of a group cannot be read, under "" why no group is shown at all.
    `..._starts_after`: log starts after the comparison, both by the source's topic name, for
    `records.retention`. `resumed`: from where a partition was compared, or why as a whole; `state` is what the report
    tells of it. Both are empty without `--state`.
    `loops` are topics of the target that were mirrored back to it. `translated` are the positions that the request asks
    for, each with its exact counterpart. `truth` holds the lowest and the highest target offset of the source offsets
    that MirrorMaker's checkpoints and offset syncs name.
    """

    request: Request
    source_topics: Mapping[str, Topic] = field(default_factory=dict)
    target_topics: Mapping[str, Topic] = field(default_factory=dict)
    cut: CutState = field(default_factory=CutState)
    stage: str = "reading the request"
    waited: bool = False
    absent_topics: Sequence[str] = ()
    doubtful_topics: Sequence[str] = ()
    hidden_topics: HiddenTopics = field(default_factory=HiddenTopics)
    absent_groups: Sequence[str] = ()
    denied_groups: Mapping[str, str] = field(default_factory=dict)
    source_starts_after: Mapping[Partition, int] | None = None
    target_starts_after: Mapping[Partition, int] | None = None
    warnings: list[str] = field(default_factory=list)
    connectors: list[ConnectorState] | None = None
    metadata: Metadata = field(default_factory=Metadata)
    partitions: list[PartitionResult] = field(default_factory=list)
    groups: Groups = field(default_factory=Groups)
    lag: Lag = field(default_factory=Lag)
    resumed: Mapping[Partition, Resumed | str] = field(default_factory=dict)
    state: Mapping[str, Any] | None = None
    canary: CanaryResult | None = None
    loops: Sequence[str] = ()
    translated: Sequence[Mapping[str, Any]] = ()
    truth: Mapping[SourceOffset, tuple[int | None, int | None]] = field(default_factory=dict)
