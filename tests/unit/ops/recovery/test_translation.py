"""Where groups must stand on the other side, by a report of the job and by MirrorMaker's checkpoints."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ops import verify
from ops.errors import OpsError
from ops.recovery.mirror_context import MirrorContext
from ops.recovery.translation import Proof, Prover
from tests.support.recovery_pair import Side, known


def row(group: str = "orders", partition: int = 0, **changed: Any) -> dict[str, Any]:
    reported = {"topic": "items", "committed": 10, "lowest": 12, "lag": 5, "repeated": 3, "skipped": 0, **changed}
    return {"group": group, "partition": partition, **reported}


def partition(number: int = 0, *findings: tuple[str, int], **changed: Any) -> dict[str, Any]:
    found = [{"kind": kind, "count": count} for kind, count in findings]
    return {"topic": "items", "partition": number, "compared": 7, "findings": found, "undecided": None, **changed}


def proof(*rows: Mapping[str, Any]) -> Proof:
    return Proof(verdict="pass", failed=(), records_compared=7, report="report.html", positions=rows)


def source(*answers: dict[str, dict[tuple[str, int], int]]) -> Any:
    """A source whose groups stand elsewhere from one look to the next; the last answer stays."""
    side, left = Side("es-src", {}), list(answers)

    def group_offsets(groups: list[str], *_: object) -> dict[str, dict[tuple[str, int], int]]:
        if not groups:
            return {}
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
        self.waits_for_groups: list[bool] = []
        self.states: list[str | None] = []
        self.compared = 7
        self.checks: list[dict[str, Any]] = []

    def run(
        self,
        plan: verify.Plan,
        folder: Path,
        environment: Mapping[str, str],
        say: Callable[[str], None],
        state: str | None = None,
    ) -> verify.Verdict:
        self.states.append(state)
        self.limits.append(plan.request["limits"]["mirror_wait_seconds"])
        self.canaries.append(plan.request["mirror"].get("canary"))
        self.waits_for_groups.append(plan.request["mirror"].get("sync_group_offsets", True))
        groups = self.reports.pop(0) if len(self.reports) > 1 else self.reports[0]
        answers = {"lag": False, "standby_read_only": False, "groups_synced": None, "records_intact": None}
        answers |= {"records_complete": True}
        report = {
            "verdict": "fail",
            "records_compared": self.compared,
            "groups": groups,
            "partitions": [partition()],
            "allowed_unknown": ["groups_synced"],
            "checks": [*({"name": name, "ok": ok} for name, ok in answers.items()), *self.checks],
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


def test_it_is_reported_for_the_topic_as_the_target_names_it() -> None:
    prefixed, read = known({"naming": "prefixed"}), row(partition=1, lowest=None, lag=0)
    assert proof(row(), read).exact(prefixed, {("es-src.items", 1): 40, ("items", 1): 4}) == {
        "orders": {("es-src.items", 0): 12, ("es-src.items", 1): 40}
    }


def test_an_offset_that_nobody_knows_is_refused() -> None:
    with pytest.raises(OpsError) as caught:
        proof(row(), row("late", 3, lowest=None), row("old", lowest=None)).exact(known(), {("items", 3): 9})
    assert str(caught.value) == (
        "groups: exact offsets must be known (got none for late on items-3, old on items-0: nothing of the partition "
        "could be compared). Delete groups that nobody needs, or leave --exact out. Report: report.html"
    )
    with pytest.raises(OpsError, match=r"for orders on items-0, (orders on items-\d, ){3}orders on items-4:"):
        proof(*(row(partition=number, lowest=None) for number in range(7))).exact(known(), {})
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
    assert (found.verdict, found.failed, found.records_compared) == ("fail", ("lag",), 7)
    assert found.unproven == ("groups_synced", "records_intact"), "whatever the stack allows to be unknown"
    assert found.records_in_doubt() == ["records_intact"]
    assert found.partitions == (partition(),)
    assert found.committed() == {"orders": {("items", 0): 10}}
    assert found.document()["report"] == str(tmp_path / "report.html")
    assert job.limits == [120]


@pytest.mark.parametrize("kind", ["lost", "no_overlap", "altered", "wrong_partition", "expired_at_target"])
def test_a_partition_with_such_findings_is_not_surely_held(kind: str) -> None:
    found = replace(proof(), partitions=(partition(0, (kind, 3)), partition(1, (kind, 0))))
    assert found.not_held([("items", 0), ("items", 1)]) == {("items", 0): f"3 {kind}"}


def test_what_says_nothing_about_records_of_the_source_is_no_doubt() -> None:
    others = ("foreign", "doubled", "reordered", "expired_at_source", "aborted")
    found = replace(proof(), partitions=(partition(0, *((kind, 1) for kind in others)), partition(1, ("lost", 1))))
    assert found.not_held([("items", 0)]) == {}, "partition 1 was not asked for"


def test_all_doubts_of_a_partition_are_reported_and_what_was_not_looked_at_is_one() -> None:
    rows = (
        partition(0, ("lost", 1), ("altered", 2), undecided="too many differ"),
        partition(1, undecided="too many differ"),
        partition(2, compared=0),
    )
    topic_partitions = [("items", number) for number in range(4)]
    reported = ("1 lost, 2 altered", "too many differ", *["nothing of it was compared"] * 2)
    assert replace(proof(), partitions=rows).not_held(topic_partitions) == dict(
        zip(topic_partitions, reported, strict=True)
    )


def test_only_checks_of_records_leave_records_in_doubt() -> None:
    found = replace(proof(), failed=("lag", "records_complete"), unproven=("groups_no_loss", "records_ordered"))
    assert found.records_in_doubt() == ["records_complete", "records_ordered"]
    assert found.document()["unproven"] == ["groups_no_loss", "records_ordered"]


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


def test_no_run_sends_a_canary_that_would_stay_at_the_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job, canary = Job([row(committed=11)], [row()]), {"topic": "items", "records": 5, "partition": None}
    monkeypatch.setattr(verify, "run", job.run)
    prover = Prover(known({"canary": canary}), tmp_path, {}, lambda _: None)
    prover.prove()
    prover.of_now(source({"orders": {("items", 0): 10}}))
    assert (job.canaries, job.limits) == ([None, None], [120, 2])


def test_a_proof_of_records_waits_for_no_group(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job([row()])
    monkeypatch.setattr(verify, "run", job.run)
    prover.prove()
    prover.prove_records()
    assert (job.waits_for_groups, job.canaries) == ([True, False], [None, None])


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


def test_a_group_that_has_begun_since_has_moved_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job, said = Job([row()], [row(), row("late", committed=1)]), list[str]()
    monkeypatch.setattr(verify, "run", job.run)
    side: Any = Side("es-src", {("items", 0): 10}, {"orders": {("items", 0): 10}, "late": {("items", 0): 1}})
    found = Prover(known(), tmp_path, {}, said.append).of_now(side)
    assert sorted(found.committed()) == ["late", "orders"]
    assert [line for line in said if "moved" in line] == [
        "  groups have moved at es-src since: late; they are translated again"
    ]


def test_a_partition_that_a_group_has_begun_since_has_moved_it(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "run", Job([row()], [row(), row(partition=1, committed=4)]).run)
    held = {("items", 0): 10, ("items", 1): 4}
    assert prover.of_now(Side("es-src", held, {"orders": held})).committed() == {"orders": held}  # type: ignore[arg-type]


def test_groups_that_the_mirror_does_not_carry_and_places_without_records_have_not_moved(
    prover: Prover, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job([row()])
    monkeypatch.setattr(verify, "run", job.run)
    empty, other, read = ("items", 1), ("other", 0), ("items", 0)
    groups = {"orders": {read: 10, empty: 0, other: 3}, "idle": {empty: 0}, "new": {}, "__ours": {read: 2}}
    side: Any = Side("es-src", {read: 10, empty: 7, other: 9}, groups)
    side.begin[empty] = 7
    assert prover.of_now(side).committed() == {"orders": {read: 10}}
    assert len(job.limits) == 1


def test_the_state_of_earlier_runs_shortens_a_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job([row()])
    monkeypatch.setattr(verify, "run", job.run)
    Prover(known(), tmp_path, {}, lambda _: None, "s3://bucket/state").prove()
    Prover(known(), tmp_path, {}, lambda _: None).prove()
    assert job.states == ["s3://bucket/state", None]


UNKNOWN = ("records_complete", "groups_no_loss")


@pytest.mark.parametrize(
    ("changed", "records", "groups"),
    [
        ({"unproven": UNKNOWN}, ["records_complete"], ["groups_no_loss"]),
        ({"unproven": UNKNOWN, "positions": ()}, ["records_complete"], []),
        ({"unproven": ("lag", "topics_present", "partitions_match")}, ["topics_present", "partitions_match"], []),
        ({"failed": ("topics_present",)}, [], []),
        ({"unproven": UNKNOWN, "empty": True}, [], []),
        ({"failed": ("records_intact", "lag"), "empty": True}, ["records_intact"], []),
        ({}, [], []),
    ],
    ids=["records", "no groups", "topics", "failed topics", "empty", "failed", "all known"],
)
def test_what_has_no_answer_is_in_doubt_unless_there_is_nothing(
    changed: dict[str, Any], records: list[str], groups: list[str]
) -> None:
    found = replace(proof(row()), **changed)
    assert (found.records_in_doubt(), found.groups_in_doubt()) == (records, groups)


@pytest.mark.parametrize(
    ("start", "end", "there", "empty"), [(5, 5, 0, True), (4, 5, 0, False), (5, 5, 1, False)], ids=str
)
def test_a_pair_is_empty_if_neither_side_has_a_record(
    prover: Prover, monkeypatch: pytest.MonkeyPatch, start: int, end: int, there: int, empty: bool
) -> None:
    here: Any = Side("es-src", {("items", 0): end, ("other", 0): 9})
    here.begin[("items", 0)] = start
    target: Any = Side("es-tgt", {("items", 0): there, ("others", 0): 9})
    monkeypatch.setattr(MirrorContext, "source", lambda _: here)
    monkeypatch.setattr(MirrorContext, "target", lambda _: target)
    job = Job([])
    job.compared = 0
    monkeypatch.setattr(verify, "run", job.run)
    assert prover.prove().empty == empty
    job.checks = [{"name": "topics_present", "ok": None, "evidence": []}]
    assert prover.prove().empty == empty, "no topic matches"
    job.checks = [{"name": "topics_present", "ok": None, "evidence": [{"hidden": "secret", "named_by": "an offset"}]}]
    assert not prover.prove().empty, "nobody knows what is in there"
