"""Where groups must stand on the other side, by a report of the job and by MirrorMaker's checkpoints."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ops import verify
from ops.errors import OpsError
from ops.recovery import translation
from ops.recovery.translation import Proof, Prover
from spark.clusters import checkpoints
from spark.clusters.checkpoints import Checkpoint, CheckpointHistory, Claims
from spark.clusters.cluster import Cluster
from tests.ops.recovery.cases import Side, known


def row(group: str = "orders", partition: int = 0, **changed: Any) -> dict[str, Any]:
    told = {"topic": "items", "committed": 10, "lowest": 12, "lag": 5, "repeated": 3, "skipped": 0, **changed}
    return {"group": group, "partition": partition, **told}


def proof(*rows: Mapping[str, Any]) -> Proof:
    return Proof(verdict="pass", exit_code=0, failed=(), records_compared=7, report="report.html", positions=rows)


def source(*answers: dict[str, dict[tuple[str, int], int]]) -> Any:
    """A source whose groups stand elsewhere from one look to the next; the last answer stays."""
    side, left = Side("es-src", {}), list(answers)

    def group_offsets(groups: list[str]) -> dict[str, dict[tuple[str, int], int]]:
        found = left.pop(0) if len(left) > 1 else left[0]
        return {name: found.get(name, {}) for name in groups}

    side.group_offsets = group_offsets  # type: ignore[assignment,method-assign]
    return side


class Job:
    """Stands in for the verification; each run's report is the next of `reports`, then the last again."""

    def __init__(self, *reports: list[dict[str, Any]]) -> None:
        self.reports = list(reports)
        self.limits: list[float] = []
        self.canaries: list[Any] = []
        self.partitions: list[dict[str, Any]] = []

    def run(
        self, plan: verify.Plan, folder: Path, environment: Mapping[str, str], say: Callable[[str], None]
    ) -> verify.Verdict:
        self.limits.append(plan.request["limits"]["mirror_wait_seconds"])
        self.canaries.append(plan.request["mirror"].get("canary"))
        groups = self.reports.pop(0) if len(self.reports) > 1 else self.reports[0]
        report = {
            "verdict": "fail",
            "records_compared": 7,
            "groups": groups,
            "partitions": self.partitions,
            "checks": [{"name": "lag", "ok": False}, {"name": "groups_synced", "ok": None}],
        }
        return verify.Verdict(mirror="mm2", exit_code=1, report=report, report_dir=folder)


@pytest.fixture
def prover(tmp_path: Path) -> Prover:
    return Prover(known(), tmp_path, {}, lambda _: None)


def test_the_exact_offset_is_the_lowest_that_skips_nothing() -> None:
    rows = row(), row(partition=1, committed=4, lowest=0), row("other", lowest=99)
    assert proof(*rows).exact(known(), {("items", 0): 100, ("items", 1): 7}) == {
        "orders": {("items", 0): 12, ("items", 1): 0},
        "other": {("items", 0): 99},
    }


def test_it_is_told_for_the_topic_as_the_target_names_it() -> None:
    prefixed, read = known({"naming": "prefixed"}), row(partition=1, lowest=None, lag=0)
    assert proof(row(), read).exact(prefixed, {("es-src.items", 1): 40, ("items", 1): 4}) == {
        "orders": {("es-src.items", 0): 12, ("es-src.items", 1): 40}
    }


def test_an_offset_that_nobody_knows_is_refused() -> None:
    with pytest.raises(OpsError) as caught:
        proof(row(), row("late", 3, lowest=None)).exact(known(), {("items", 3): 9})
    assert str(caught.value) == (
        "group late: its exact offset on items-3 must be known (got none: nothing of the partition could be compared). "
        "Report: report.html"
    )
    with pytest.raises(OpsError, match="must be known"):
        proof(row(lowest=None, lag=None)).exact(known(), {})


def test_a_group_that_has_read_all_of_what_is_gone_goes_on_at_the_end() -> None:
    read = row(lowest=None, lag=0), row(partition=1), row(partition=2, lowest=None, lag=0)
    assert proof(*read).exact(known(), {("items", 0): 30, ("items", 1): 31}) == {
        "orders": {("items", 0): 30, ("items", 1): 12, ("items", 2): 0}
    }


def test_the_cost_of_a_group_is_that_of_its_partitions_together() -> None:
    found = proof(row(), row(partition=1, repeated=4, skipped=1), row("other", repeated=0))
    assert found.cost("repeated") == {"orders": 7, "other": 0}
    assert found.cost("skipped") == {"orders": 1, "other": 0}


def test_a_report_is_read_as_it_was_written(prover: Prover, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job = Job([row()])
    monkeypatch.setattr(verify, "run", job.run)
    found = prover.prove()
    assert (found.verdict, found.exit_code, found.failed, found.records_compared) == ("fail", 1, ("lag",), 7)
    assert found.committed() == {"orders": {("items", 0): 10}}
    assert found.document()["report"] == str(tmp_path / "report.html")
    assert job.limits == [120]


def test_records_that_the_target_has_let_go_are_counted_by_partition(
    prover: Prover, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, gone = Job([]), {"kind": "expired_at_target", "count": 3}
    job.partitions = [
        {"topic": "items", "partition": 0, "findings": [gone, {"kind": "expired_at_source", "count": 5}, gone]},
        {"topic": "items", "partition": 1, "findings": [{"kind": "missing", "count": 1}]},
        {"topic": "items", "partition": 2, "findings": [{**gone, "count": 0}]},
    ]
    monkeypatch.setattr(verify, "run", job.run)
    assert prover.prove().expired == {("items", 0): 6}


def test_a_proof_whose_groups_have_not_moved_is_used_as_it_is(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job([row()])
    monkeypatch.setattr(verify, "run", job.run)
    prover.prove()
    assert prover.of_now(source({"orders": {("items", 0): 10}})).committed() == {"orders": {("items", 0): 10}}
    assert len(job.limits) == 1


def test_without_a_proof_one_is_made_that_does_not_wait_for_a_stopped_mirror(
    prover: Prover, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job([row()])
    monkeypatch.setattr(verify, "run", job.run)
    prover.of_now(source({"orders": {("items", 0): 10}}))
    assert job.limits == [2]


def test_a_stopped_mirror_is_sent_no_canary_that_would_stay_at_the_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job, canary = Job([row(committed=11)], [row()]), {"topic": "items", "records": 5, "partition": None}
    monkeypatch.setattr(verify, "run", job.run)
    prover = Prover(known({"canary": canary}), tmp_path, {}, lambda _: None)
    prover.prove()
    prover.of_now(source({"orders": {("items", 0): 10}}))
    assert job.canaries == [canary, None]


def test_groups_that_have_moved_are_translated_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job, said = Job([row()], [row(committed=11, lowest=13)]), list[str]()
    monkeypatch.setattr(verify, "run", job.run)
    prover = Prover(known(), tmp_path, {}, said.append)
    prover.prove()
    found = prover.of_now(source({"orders": {("items", 0): 11}}))
    assert found.exact(known(), {}) == {"orders": {("items", 0): 13}}
    assert job.limits == [120, 2]
    assert any("groups have moved at es-src since: orders" in line for line in said)


def test_groups_that_commit_on_and_on_are_refused_after_three_tries(
    prover: Prover, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job([row()])
    monkeypatch.setattr(verify, "run", job.run)
    with pytest.raises(OpsError, match=r"cluster es-src: consumer groups must be at rest \(orders commit on and on\)"):
        prover.of_now(source({"orders": {("items", 0): 11}}))
    assert job.limits == [2, 2, 2]


def test_a_group_that_was_deleted_since_has_moved_too(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "run", Job([row()], []).run)
    assert prover.of_now(source({})).committed() == {}


def test_the_newest_checkpoint_of_each_mirrored_group_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def history(*downstream: int) -> CheckpointHistory:
        found = CheckpointHistory()
        for offset in downstream:
            found.add(Checkpoint(offset, offset))
        return found

    claims = {
        ("orders", "items", 0): history(5, 9, 7),
        ("orders", "items", 1): history(3),
        ("__ours", "items", 0): history(1),
        ("empty", "items", 0): CheckpointHistory(),
    }
    monkeypatch.setattr(checkpoints, "read_checkpoints", lambda *_: Claims(checkpoints=claims))
    target: Any = Cluster(known().request.target)
    assert translation.claimed(known(), target) == {"orders": {("items", 0): 7, ("items", 1): 3}}


def test_checkpoints_that_cannot_be_read_are_told_and_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = Claims(problems=("target es-tgt: topic es-src.checkpoints.internal must exist",))
    monkeypatch.setattr(checkpoints, "read_checkpoints", lambda *_: unread)
    target: Any = Cluster(known().request.target)
    with pytest.raises(OpsError, match=r"topic es-src\.checkpoints\.internal must exist"):
        translation.claimed(known(), target)
