"""A command that no longer holds the Lease changes nothing more, wherever it is in a step."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka import group_commits
from kafka.topic_partition import TopicPartition
from ops.errors import OpsError
from ops.pulumi.stack import PulumiStack
from ops.recovery import group_offsets
from ops.recovery.failover import UNPLANNED
from ops.recovery.journal import Journal
from tests.support import failback_sides, failover_sides
from tests.support.pulumi_program import shell_updates
from tests.support.recovery_pair import Kept, Side

LOST = "must be held by this command to change anything"
ITEMS = TopicPartition("items", 0)


def lose(journal: Journal) -> None:
    assert isinstance(journal, Kept)
    journal.lease.lost = True


def test_offsets_are_set_only_with_permission_which_is_asked_for_last(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = Side("es-tgt", {ITEMS: 10}, {"orders": {ITEMS: 3}})
    order, known = list[str](), group_commits.read

    def read(cluster: Any, groups: Any) -> Any:
        order.append("read")
        return known(cluster, groups)

    def forbid() -> None:
        order.append("permission")
        raise OpsError("no longer")

    monkeypatch.setattr(group_commits, "read", read)

    with pytest.raises(OpsError, match="no longer"):
        list(group_offsets.commit_each(cluster, [("orders", {ITEMS: 7})], forbid))
    assert (order, cluster.admin.changes) == (["read", "permission"], [])


@pytest.mark.parametrize("path", ["planned", "planned, exact", UNPLANNED])
def test_a_failover_sets_no_further_group(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    sides = failover_sides.Sides(monkeypatch)
    sides.translate("orders", failover_sides.STORE, (2, 2))
    done = failover_sides.work(path.partition(",")[0], exact="exact" in path)
    lose(done.journal)
    with pytest.raises(OpsError, match=LOST):
        done.offsets()
    assert sides.target.admin.changes == []


def test_a_failback_alters_no_connector_deletes_nothing_and_writes_no_offset_sync(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sides = failback_sides.Sides(monkeypatch)
    done = failback_sides.work(
        survey={"copied": {"items-0": 9}, "stranded": {"items-0": 3}, "emptied": {"items-0": 13}, "anew": {}},
        offsets={"groups": {}},
        **failback_sides.ENDED,
    )
    lose(done.journal)
    for step in (done.realign, done.forward, done.settle):
        with pytest.raises(OpsError, match=LOST):
            step()
    assert (sides.altered, sides.claimed, sides.source.admin.changes) == ({}, [], [])


@pytest.mark.parametrize(
    "change", [lambda stack: stack.set_mirror("mm2", {"state": "stopped"}), lambda stack: stack.up(None, print)]
)
def test_neither_the_stack_file_nor_the_stack_is_changed(tmp_path: Path, change: Callable[[PulumiStack], None]) -> None:
    calls = shell_updates(tmp_path)
    file = tmp_path / "Pulumi.stg.yaml"
    file.write_text("config:\n  rt-inventory:mirrors:\n    - name: mm2\n", encoding="utf-8")
    before = file.read_text(encoding="utf-8")

    def forbid() -> None:
        raise OpsError("no longer")

    stack = PulumiStack(
        folder=tmp_path, name="stg", environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}, require_permission=forbid
    )
    with pytest.raises(OpsError, match="no longer"):
        change(stack)
    assert (file.read_text(encoding="utf-8"), calls.exists()) == (before, False)
