"""What has expired: no more than a log start proves, and nothing whose image the other side still holds."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.checks.records import records_complete, records_intact
from spark.comparison.findings import PartitionResult, Run
from spark.comparison.offset_ranges import ComparisonEngine

from ...support import oracle
from ...support.compared_logs import Sizes, found_without_spark
from ...support.expired_logs import ALTERED, BOUNDED, DOUBLED, LATEST, Case, kept, log, stamped
from ...support.generated_cases import cases
from ...support.oracle import Logs
from .test_truth import SIZES, World, faulty
from .test_without_spark import alone, clusters

Alone = Callable[[Mapping[int, Logs]], ComparisonEngine[object] | None]
ENGINES: dict[str, Alone] = {"lists": lambda _: None, "alone": lambda partitions: alone(*clusters(partitions))}


def compared(*logs: Logs, sizes: Sizes | None = None, engine: str = "lists") -> list[PartitionResult]:
    partitions = dict(enumerate(logs))
    return found_without_spark(partitions, sizes or Sizes(), engine=ENGINES[engine](partitions))[0]


def counts(result: PartitionResult) -> dict[str, int]:
    return {one.kind: one.count for one in result.findings}


def exactly(case: Case) -> None:
    """Both engines and the oracle find what must be found, however finely the logs are cut."""
    assert oracle.judge({0: case.logs})[0].counts() == dict(sorted(case.found.items()))
    for engine in ENGINES:
        for bits in (0, 2, 11):
            (result,) = compared(case.logs, sizes=Sizes(bits=bits), engine=engine)
            assert counts(result) == case.found, (engine, bits)


@pytest.mark.parametrize("name", DOUBLED)
def test_a_record_that_was_copied_again_is_doubled_and_never_expired(name: str) -> None:
    exactly(DOUBLED[name])


@pytest.mark.parametrize("name", BOUNDED)
def test_no_more_has_expired_than_a_log_start_proves(name: str) -> None:
    exactly(BOUNDED[name])


@pytest.mark.parametrize("name", ALTERED)
def test_altered_records_are_neither_lost_nor_without_an_overlap(name: str) -> None:
    exactly(ALTERED[name])


HOUR_MS, YEAR_MS = 3_600_000, 31_536_000_000
NOW_MS = 1_790_000_000_000


@pytest.mark.parametrize("ahead_ms", [-HOUR_MS, HOUR_MS, YEAR_MS])
@pytest.mark.parametrize("name", BOUNDED)
def test_a_clock_that_is_ahead_or_behind_lets_no_more_expire_and_hides_no_loss(name: str, ahead_ms: int) -> None:
    """What has expired is judged by log starts: neither this machine's clock nor that of clients and brokers counts."""
    case = BOUNDED[name]
    dated = {
        name: [(at, replace(one, timestamp=NOW_MS + ahead_ms + one.timestamp)) for at, one in getattr(case.logs, name)]
        for name in ("source", "target", "aborted")
    }
    exactly(replace(case, logs=replace(case.logs, **dated)))


def test_what_exceeds_the_log_start_is_lost_at_the_head() -> None:
    (result,) = compared(LATEST)
    (lost,) = [one for one in result.findings if one.kind == "lost"]
    assert lost.runs == (Run(0, 299, 300, "head"),)


def test_what_exceeds_the_log_start_is_lost_at_the_head_of_a_stretch_that_is_not_read_too() -> None:
    (result,) = compared(LATEST, sizes=Sizes(bits=2, large=50))
    (lost,) = [one for one in result.findings if one.kind == "lost"]
    assert (lost.count, lost.runs) == (300, (Run(0, 299, 300, "head"),))


def test_of_an_emptied_target_what_stands_on_either_side_of_what_expired_is_reported_apart() -> None:
    (result,) = compared(BOUNDED["a target that was emptied in front of the mirror's position"].logs)
    (lost,) = [one for one in result.findings if one.kind == "lost"]
    assert lost.runs == (Run(0, 3, 4, "head"), Run(6, 8, 3, "tail"))


def test_altered_records_alone_are_no_reason_to_mirror_everything_again() -> None:
    results = compared(ALTERED["all stamped by the target"].logs)
    assert records_complete(results).ok is None
    assert "nothing to compare" in records_complete(results).observed
    assert records_intact(results).ok is False


def test_records_that_all_went_to_another_partition_are_no_reason_either() -> None:
    here = Logs(source=kept(0, 9), target=log(range(100, 109)), cut=9)
    there = Logs(source=log(range(100, 109)), target=log(range(9)), cut=9)
    results = compared(here, there)
    assert [counts(one) for one in results] == [{"wrong_partition": 9}] * 2
    assert records_complete(results).ok is None


def test_what_is_neither_altered_nor_elsewhere_is_counted_without_an_overlap() -> None:
    logs = Logs(source=kept(0, 9), target=[*stamped(kept(0, 4)), *log(range(900, 903), first=4)], cut=9)
    (result,) = compared(logs)
    assert counts(result) == {"altered": 4, "lost": 5, "foreign": 3, "no_overlap": 5}


def test_a_lost_record_that_an_expired_one_of_another_partition_equals_is_lost() -> None:
    here = Logs(source=kept(0, 9), target=log(range(3), range(4, 9)), cut=9)
    there = Logs(source=kept(100, 109), target=log(range(3, 4), range(100, 109)), cut=109, source_start=100)
    assert [counts(one) for one in compared(here, there)] == [{"lost": 1}, {"expired_at_source": 1}]


# Equal records are among them: which of those is the image of which cannot be reported, the numbers hold all the same.
ANYTHING = [
    World(same=same, retention=True, restarts=True, tail=tail) for same in (False, True) for tail in (False, True)
]


@cases(100)
@given(st.sampled_from(ANYTHING).flatmap(faulty), SIZES)
def test_whatever_happens_no_more_expires_than_the_log_starts_prove(partitions: dict[int, Logs], sizes: Sizes) -> None:
    logs = partitions[0]
    (result,) = compared(logs, sizes=sizes)
    found = counts(result)
    at_source, at_target = (found.get(f"expired_at_{side}", 0) for side in ("source", "target"))
    assert at_source <= logs.source_start
    assert at_target <= logs.target_start
    assert not (at_source and at_target)
    held = {one for _, one in [*logs.source, *logs.pending]}
    assert at_source <= sum(one not in held for _, one in logs.target)
    before = sum(at < logs.cut for at, _ in [*logs.source, *logs.pending])
    assert result.compared + sum(found.get(kind, 0) for kind in ("lost", "altered")) + at_target == before
