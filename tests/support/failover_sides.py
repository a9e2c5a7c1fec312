"""Both clusters of a failover as its steps see them, and a failover with steps that are done."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka import checkpoints, mirror_position
from kafka.checkpoints import Checkpoint, CheckpointHistory, OffsetSyncHistory, OffsetTranslation
from kafka.topic_partition import TopicPartition
from ops.pulumi.stack import PulumiStack
from ops.recovery import draining, translation
from ops.recovery.failover import PLANNED, Failover, Options
from ops.recovery.fence import SourceFence
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.translation import Proof
from tests.support.recovery_pair import Clock, Kept, Side, entry, known

ITEMS, STORE = TopicPartition("items", 0), TopicPartition("store.inventory", 1)

COPIED = {ITEMS: 9, STORE: 4}

DRAINED: dict[str, Any] = {"drain": {"ends": {"items-0": 10, "store.inventory-1": 5}}}

STOPPED: dict[str, Any] = {"stop": {"boundary": {"items-0": 12, "store.inventory-1": 5}}}


class Sides:
    """Both clusters, the proof that the job would bring, and every setting that was declared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source: Any = Side("es-src", {ITEMS: 10, STORE: 5}, {"orders": {ITEMS: 10, STORE: 2}})
        self.target: Any = Side("es-tgt", {ITEMS: 12, STORE: 5, TopicPartition("local", 0): 9}, {"orders": {ITEMS: 8}})
        self.copied: dict[tuple[str, int], int] | None = dict(COPIED)
        self.proof = Proof(verdict="pass", failed=(), records_compared=15, report="report.html", positions=rows())
        self.checkpoints: dict[tuple[str, str, int], CheckpointHistory] = {}
        self.syncs: dict[TopicPartition, OffsetSyncHistory] | None = None
        self.unread: tuple[str, ...] = ()
        self.declared: list[dict[str, str | None]] = []
        self.ups: list[str | None] = []
        self.at_up: Callable[[], None] = lambda: None
        monkeypatch.setattr(MirrorContext, "source", lambda _: self.source)
        monkeypatch.setattr(MirrorContext, "target", lambda _: self.target)
        monkeypatch.setattr(PulumiStack, "set_mirror", lambda _, __, values: self.declared.append(values))
        monkeypatch.setattr(PulumiStack, "up", lambda _, mirror, __: self.up(mirror))
        monkeypatch.setattr(translation.Prover, "prove", lambda _: self.proof)
        monkeypatch.setattr(translation.Prover, "of_now", lambda *_: self.proof)
        monkeypatch.setattr(checkpoints, "read_checkpoints", lambda *_: self.translation())
        monkeypatch.setattr(checkpoints, "with_syncs", lambda found, *_: replace(found, syncs=self.syncs))
        monkeypatch.setattr(
            mirror_position, "open_reader", lambda *_: (self, "") if self.copied is not None else (None, "?")
        )
        monkeypatch.setattr(draining, "time", Clock())

    def up(self, mirror: str | None) -> None:
        self.ups.append(mirror)
        self.at_up()

    def translate(self, group: str, tp: TopicPartition, *pairs: tuple[int, int]) -> None:
        """Let the mirror have written these checkpoints, each the source and the target offset."""
        history = self.checkpoints.setdefault((group, *tp), CheckpointHistory())
        for upstream, downstream in pairs:
            history.add(Checkpoint(upstream, downstream))

    def translation(self) -> OffsetTranslation:
        return OffsetTranslation(checkpoints=self.checkpoints, problems=self.unread)

    def read(self, within_s: float = 0.0) -> dict[tuple[str, int], int]:
        return dict(self.copied or {})

    def close(self) -> None:
        pass


def rows() -> tuple[dict[str, Any], ...]:
    items = {"topic": "items", "partition": 0, "committed": 10, "lowest": 12, "lag": 0, "repeated": 4, "skipped": 0}
    store = {"topic": STORE[0], "partition": 1, "committed": 2, "lowest": 2, "lag": 3, "repeated": 2, "skipped": 0}
    return {"group": "orders", **items}, {"group": "orders", **store}


def work(
    path: str = PLANNED,
    *,
    exact: bool = False,
    of: MirrorContext | None = None,
    fence: SourceFence | None = None,
    **steps: Any,
) -> Failover:
    options = Options(path=path, exact=exact, drain_s=30.0, report_dir=Path("reports"))
    engine = PulumiStack(folder=Path(), name="stg", environment={})
    return Failover(of or known(), options, engine, Kept(entry(finished=None, **steps)), lambda _: None, fence)


OFFSETS: dict[str, Any] = {"groups": {"orders": {"offsets": {"items-0": 8}, "left": 4}}}
