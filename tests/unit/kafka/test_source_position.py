"""The mirror's own position: where it is read, and what is judged without it."""

from typing import Any

import pytest

from contract.documents import parse
from kafka import mirror_position
from kafka.errors import DeniedError
from kafka.mirror_position import CutState
from spark.checks.records import records_complete
from spark.checks.registry import judge
from spark.comparison.findings import Finding, PartitionResult, Run
from spark.run_context import RunContext

URL = "http://connect.example.com:8083"
WHY = "user reader may not Read topic mm2-offsets"


class Target:
    """A target whose offsets topic cannot be read, or is not seen at all."""

    def __init__(self, error: str | None) -> None:
        self.error = error

    def topic_reader(self, topic: str) -> Any:
        if self.error:
            raise DeniedError(self.error)
        return type("TopicReader", (), {"exists": False})()


def request(**mirror: Any) -> Any:
    side = {"client_config": {"bootstrap.servers": "h:1"}}
    return parse(
        {"source": side | {"alias": "a"}, "target": side | {"alias": "b"}, "mirror": {"topics": ["items"]} | mirror}, {}
    )


@pytest.mark.parametrize("error", [WHY, None])
def test_why_the_position_is_not_known_is_reported(monkeypatch: pytest.MonkeyPatch, error: str | None) -> None:
    monkeypatch.setattr(mirror_position, "positions_from_rest", lambda *_: None)
    target: Any = Target(error)
    asked = request(offset_storage_topic="mm2-offsets", connect_url=URL)
    reader, why = mirror_position.open_reader(target, asked, lambda _: None)
    assert reader is None
    assert (error or "topic mm2-offsets") in why
    assert f"Connect at {URL} reports no position" in why


def test_a_request_that_says_nothing_of_the_position_needs_no_reason() -> None:
    target: Any = Target(WHY)
    assert mirror_position.open_reader(target, request(), lambda _: None) == (None, "")


def lost(*runs: Run, count: int | None = None, kind: str = "lost", **changes: Any) -> PartitionResult:
    fields: dict[str, Any] = {"topic": "items", "partition": 0, "source_start": 0, "cut": 10, "target_start": 0}
    fields |= {"target_end": 8, "source_records": 10, "target_records": 8, "compared": 8} | changes
    number = sum(run.records for run in runs) if count is None else count
    return PartitionResult(**fields, findings=[Finding(kind, "items", 0, number, runs=runs)])


TAIL, GAP = Run(8, 9, 2, "tail"), Run(4, 5, 2, "gap")
WHOLE = Run(0, 9, 10, "whole")
UNKNOWN = CutState(unknown=WHY)


def test_a_tail_that_is_missing_while_the_position_is_not_known_is_unknown() -> None:
    assert records_complete([lost(TAIL)]).ok is False
    check = records_complete([lost(TAIL)], UNKNOWN)
    assert check.ok is None
    assert "2 lost in items-0 (tail, source offsets 8 to 9)" in check.observed
    assert WHY in check.observed
    assert check.evidence


@pytest.mark.parametrize(
    "result",
    [
        lost(GAP),
        lost(GAP, TAIL),
        lost(TAIL, count=3),
        lost(WHOLE),
        lost(TAIL, kind="no_overlap"),
    ],
)
def test_any_other_loss_fails_without_a_position_too(result: PartitionResult) -> None:
    assert records_complete([lost(TAIL), result], UNKNOWN).ok is False


def test_a_partition_that_the_mirror_has_not_begun_is_a_tail() -> None:
    assert records_complete([lost(WHOLE, target_records=0, target_end=0, compared=0)], UNKNOWN).ok is None


def test_without_a_loss_an_unknown_position_changes_nothing() -> None:
    assert records_complete([lost(TAIL, kind="doubled")], UNKNOWN).ok is True


def test_the_reason_reaches_the_check() -> None:
    context = RunContext(request=request(), partitions=[lost(TAIL)], cut=CutState(unknown=WHY))
    (check,) = [one for one in judge(context) if one.name == "records_complete"]
    assert check.ok is None
