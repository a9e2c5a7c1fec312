"""Both clusters of a failback as its steps see them, and a failback with steps that are done."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka import topic_metadata
from kafka.errors import Answers
from kafka.topic_metadata import PartitionState, TopicState
from kafka.topic_partition import TopicPartition
from ops.pulumi.stack import PulumiStack
from ops.recovery import connector_offsets, draining, mirror_context, mirror_offsets, translation
from ops.recovery.client_workloads import FollowingClients
from ops.recovery.failback import Failback, Options
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.mirror_offsets import OffsetMapping
from ops.recovery.target_fence import TargetFence
from ops.recovery.translation import Proof
from tests.support.recovery_pair import Clock, Kept, Side, entry, known

ITEMS, STORE, NEW = (
    TopicPartition("items", 0),
    TopicPartition("store.inventory", 1),
    TopicPartition("items.inventory", 0),
)

STRANDED: dict[str, Any] = {
    "survey": {"copied": {}, "stranded": {"items-0": 3}, "emptied": {"items-0": 13}, "anew": {"items-0": 0}}
}

NONE: dict[str, Any] = {"survey": {"copied": {}, "stranded": {}, "emptied": {}, "anew": {}}}

AT_REST: dict[str, Any] = {"drain": {"ends": {"items-0": 12, "store.inventory-1": 8, "items.inventory-0": 2}}}

FOUND: dict[str, Any] = {"topic": "items", "partition": 0, "compared": 13, "findings": [], "undecided": None}

PROOF = Proof(verdict="pass", failed=(), records_compared=15, report="report.html", positions=(), partitions=(FOUND,))


class Sides:
    """Both clusters, the offsets at which connectors begin, and every setting that was declared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source: Any = Side("es-src", {ITEMS: 13, STORE: 5})
        self.target: Any = Side("es-tgt", {ITEMS: 12, STORE: 8, NEW: 2})
        self.proof = PROOF
        self.beyond: dict[tuple[str, int], int] = {}
        self.asked: dict[tuple[str, int], int] = {}
        self.claimed: list[OffsetMapping] = []
        self.declared: list[dict[str, str | None]] = []
        self.ups: list[str | None] = []
        self.at_up: Callable[[], None] = lambda: None
        self.altered: dict[tuple[str, int], int] = {}
        self.proven: list[MirrorContext] = []
        self.drained = {"items-0": 13, "store.inventory-1": 5}
        self.replicas: Answers[TopicState] = Answers(found={"items": TopicState("items", {0: PartitionState(3, 3)})})
        monkeypatch.setattr(topic_metadata, "topic_states", lambda side, _: {self.target: self.replicas}[side])
        monkeypatch.setattr(
            MirrorContext, "source", lambda one: self.target if one.mirror.endswith("back") else self.source
        )
        monkeypatch.setattr(
            MirrorContext, "target", lambda one: self.source if one.mirror.endswith("back") else self.target
        )
        monkeypatch.setattr(PulumiStack, "set_mirror", lambda _, __, values: self.declared.append(values))
        monkeypatch.setattr(PulumiStack, "up", lambda _, mirror, __: self.up(mirror))
        for proof in ("prove", "prove_records"):
            monkeypatch.setattr(translation.Prover, proof, lambda prover: self.prove(prover))
        monkeypatch.setattr(translation.Prover, "of_now", lambda *_: self.proof)
        monkeypatch.setattr(draining, "drain", lambda *_: {"ends": self.drained, "records": 18})
        monkeypatch.setattr(draining, "time", Clock())
        monkeypatch.setattr(mirror_context, "load", lambda _, name, *__: replace(known(), mirror=name))
        monkeypatch.setattr(connector_offsets, "alter", lambda _, __, at, *___, **____: self.altered.update(at))
        monkeypatch.setattr(mirror_offsets, "last_copied_offsets", self.last_copied_offsets)
        monkeypatch.setattr(FollowingClients, "listed", lambda _: {"workloads": ["Deployment stg/orders"]})
        monkeypatch.setattr(mirror_offsets, "write", self.write)

    def write(self, mappings: Iterable[OffsetMapping], *_: object) -> int:
        found = list(mappings)
        self.claimed += found
        return len(found)

    def last_copied_offsets(self, source: Any, target: Any, committed: Any, open_: Any, boundary: Any) -> Any:
        assert (source, target, boundary) == (self.source, self.target, {ITEMS: 10})
        self.asked = dict(open_)
        return self.beyond

    def up(self, mirror: str | None) -> None:
        self.declared.append({})
        self.ups.append(mirror)
        self.at_up()

    def prove(self, prover: Any) -> Proof:
        self.proven.append(prover._pair)
        return self.proof


def work(committed: dict[str, int] | None = None, target_fence: TargetFence | None = None, **steps: Any) -> Failback:
    options = Options(catch_up_s=30.0, drain_s=30.0, report_dir=Path("reports"))
    journal = Kept(entry("failback", finished=None, **steps))
    noted = {"copied": committed or {"items-0": 9, "store.inventory-1": 4}, "boundary": {"items-0": 10}}
    assert journal.entry is not None
    journal.entry["before"] = {"command": "failover", "steps": {"stop": noted}}
    pulumi = PulumiStack(folder=Path(), name="stg", environment={})
    return Failback(known(active="target"), options, pulumi, journal, print, target_fence=target_fence)


UNREAD: dict[str, Any] = {"offsets": {"groups": {}, "stood": hashlib.sha256().hexdigest()}}
"""No group has read anything."""

ENDED: dict[str, Any] = {"stop": {"ends": {"items-0": 13, "store.inventory-1": 5}}}

LAST: dict[str, Any] = {
    **{name: {} for name in ("copy", "forward")},
    "prove": {"verdict": "pass", "failed": [], "recordsCompared": 15, "report": "report.html"},
    "settle": {"records": 0},
    **UNREAD,
    **ENDED,
    **AT_REST,
}
