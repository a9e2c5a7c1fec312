"""A made-up pair of clusters for the commands about offsets: groups, logs and checkpoints in dictionaries."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from contract.documents import parse
from contract.stack_outputs import ClusterOutputs, MirrorOutputs
from contract.verification_request import Request
from kafka import checkpoints, mirror_position
from kafka.checkpoints import Checkpoint, CheckpointHistory, OffsetTranslation
from kafka.cluster import Topic
from kafka.errors import ClusterError
from kafka.topic_partition import TopicPartition
from ops import verify
from ops.recovery import group_offsets
from ops.recovery.mirror_context import MirrorContext

SECRET = "very-secret-4711"


@dataclass
class MadeUpCluster:
    """What the commands ask of a cluster. `logs` are start and end by partition, `members` groups that have some.

    `lost` is why some groups may not be listed.
    """

    role: str
    logs: dict[TopicPartition, tuple[int, int]]
    groups: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    commits: list[str] = field(default_factory=list)
    lost: str = ""

    def __post_init__(self) -> None:
        self.side: Any = type("Side", (), {"alias": f"es-{self.role}", "role": self.role, "user": "reader"})()

    def connect(self, within_s: float = 0.0) -> None:
        pass

    def topics(self, wanted: Callable[[str], bool], named: Iterable[str] = ()) -> dict[str, Topic]:
        names = {topic for topic, _ in self.logs if wanted(topic)}
        return {name: Topic(name, {number: 1 for topic, number in self.logs if topic == name}, False) for name in names}

    def starts(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.logs[tp][0] for tp in topic_partitions}

    def ends(self, topic_partitions: Iterable[TopicPartition], isolation: str) -> dict[TopicPartition, int]:
        return {tp: self.logs[tp][1] for tp in topic_partitions}

    def group_states(self, unlisted: dict[str, str] | None = None, **_: object) -> dict[str, str]:
        if self.lost and unlisted is not None:
            unlisted[""] = self.lost
        return {group: "STABLE" if group in self.members else "EMPTY" for group in self.groups}

    def group_offsets(
        self, groups: Iterable[str], unread: dict[str, ClusterError] | None = None
    ) -> dict[str, dict[TopicPartition, int]]:
        return {group: dict(self.groups.get(group, {})) for group in groups}


class MadeUpPair:
    """A mirror of `items` with two partitions that hold records and one that holds none."""

    def __init__(self, tmp_path: Path, **mirror: Any) -> None:
        side = {"client_config": {"bootstrap.servers": "h:1"}}
        document = {
            "source": {"alias": "es-src", **side},
            "target": {"alias": "es-tgt", **side},
            "mirror": {"name": "mm2", "topics": ["items"], "canary": {"topic": "items"}, **mirror},
        }
        prefix = "es-src." if mirror.get("naming") == "prefixed" else ""
        self.request: Request = parse(document, {})
        self.document = document
        self.source_cluster = MadeUpCluster(
            "source",
            {
                TopicPartition("items", 0): (0, 100),
                TopicPartition("items", 1): (0, 50),
                TopicPartition("items", 2): (0, 0),
            },
        )
        self.target_cluster = MadeUpCluster(
            "target",
            {
                TopicPartition(f"{prefix}items", 0): (10, 110),
                TopicPartition(f"{prefix}items", 1): (0, 50),
                TopicPartition(f"{prefix}items", 2): (0, 0),
            },
        )
        self.copied: dict[TopicPartition, int] = {}
        """The source offset up to which the mirror has copied a partition; by default its end."""
        self.checkpoints_by_group: dict[tuple[str, str, int], int] = {}
        self.asked: list[Mapping[str, Any]] = []
        self.report: dict[str, Any] = {}
        self.folder = tmp_path

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "MadeUpPair":
        """Put this pair, its clusters and its job where the commands look for theirs."""
        plan = verify.Plan(stack="stg", mirror="mm2", request=self.document, secrets={"PASSWORD": SECRET})
        known = MirrorContext(
            stack="stg", mirror="mm2", plan=plan, request=self.request, outputs=MirrorOutputs(),
            cluster=ClusterOutputs(), proof=None, project=self.folder,
        )  # fmt: skip
        monkeypatch.setattr("ops.recovery.mirror_context.load", lambda *_: known)
        monkeypatch.setattr(MirrorContext, "source", lambda _: self.source_cluster)
        monkeypatch.setattr(MirrorContext, "target", lambda _: self.target_cluster)
        monkeypatch.setattr(verify, "run", self._run)
        monkeypatch.setattr(group_offsets, "commit_each", self._commit_each)
        monkeypatch.setattr(checkpoints, "read_checkpoints", lambda *_: self._claims())
        monkeypatch.setattr(mirror_position, "open_reader", lambda *_: (self, ""))
        return self

    def read(self) -> dict[TopicPartition, int]:
        """Return the offset of the last record that the mirror has copied, by partition."""
        ends = {tp: self.copied.get(tp, end) for tp, (_, end) in self.source_cluster.logs.items()}
        return {tp: end - 1 for tp, end in ends.items() if end}

    def close(self) -> None:
        pass

    def _claims(self) -> OffsetTranslation:
        found = {key: CheckpointHistory() for key in self.checkpoints_by_group}
        for key, offset in self.checkpoints_by_group.items():
            found[key].add(Checkpoint(0, offset))
        return OffsetTranslation(checkpoints=found)

    def _commit_each(
        self, cluster: MadeUpCluster, wanted: Iterable[tuple[str, Mapping[TopicPartition, int]]]
    ) -> Iterator[tuple[str, Mapping[TopicPartition, int]]]:
        for group, offsets in wanted:
            cluster.commits.append(group)
            cluster.groups.setdefault(group, {}).update(offsets)
            yield group, offsets

    def _run(self, plan: verify.Plan, folder: Path, *_: Any) -> verify.Verdict:
        """Stands for the job: the target holds each record ten offsets further on than the source."""
        parse(dict(plan.request), {})
        mirror = plan.request["mirror"]
        self.asked.append(mirror)
        rows = []
        for one in mirror.get("positions", ()):
            far = one["offset"] + (10 if one["side"] == "source" else -10)
            rows.append(
                {**one, "target_topic": self.request.mirror.target_topic(one["topic"]), "exact": far, "removed": 0,
                 "problem": None}
            )  # fmt: skip
        report = {"checks": [], "positions": rows, **self.report}
        return verify.Verdict(mirror=plan.mirror, exit_code=1, report=report, report_dir=folder)
